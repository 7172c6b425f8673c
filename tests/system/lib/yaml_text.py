"""Writes a configuration the way an operator would."""
import json
import re

_plain = re.compile(r"^[A-Za-z0-9_./][A-Za-z0-9_./ -]*$")
_words = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


def scalar(value):
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    text = str(value)
    if _plain.match(text) and text.lower() not in _words and not text.endswith(" ") and not text[0].isdigit():
        return text
    if re.match(r"^[0-9]+(ms|s|m|h|KiB|MiB|GiB|%)$", text):
        return text
    return json.dumps(text)


def flow(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar(k)}: {flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(flow(v) for v in value) + "]"
    return scalar(value)


def block(value, indent=0):
    pad, lines = "  " * indent, []
    for key, item in value.items():
        if isinstance(item, dict) and item and any(isinstance(v, (dict, list)) for v in item.values()):
            lines.append(f"{pad}{scalar(key)}:")
            lines.append(block(item, indent + 1))
        elif isinstance(item, list) and item and isinstance(item[0], dict):
            lines.append(f"{pad}{scalar(key)}:")
            lines.extend(f"{pad}  - {flow(one)}" for one in item)
        else:
            lines.append(f"{pad}{scalar(key)}: {flow(item)}")
    return "\n".join(lines)
