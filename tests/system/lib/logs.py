"""The host's log lines, text or JSON, as dictionaries of the same shape."""
import json
import re

REQUEST_FIELDS = ("time level event id route handler process pid method path status bytes_in bytes_out "
                  "queue_ms start_ms first_byte_ms total_ms cpu_ms rss_kib faults exit signal reason").split()
START_FIELDS = "start start_cpu_ms start_faults".split()      # of parked and zygote, at the end
NUMBERS = set("pid status bytes_in bytes_out queue_ms start_ms first_byte_ms total_ms cpu_ms rss_kib faults exit elapsed_ms start_cpu_ms start_faults".split())

_field = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)=("(?:[^"\\]|\\.)*"|[^ ]*)(?: |$)')
_escape = re.compile(r'\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)')
_simple = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "e": "\x1b", "b": "\b", "f": "\f"}


def _unescape(text):
    def one(m):
        e = m.group(1)
        return chr(int(e[1:], 16)) if e[0] in "xu" and len(e) > 1 else _simple.get(e, e)
    return _escape.sub(one, text)


def _number(name, value):
    if name in NUMBERS and isinstance(value, str):
        try:
            return float(value) if "." in value else int(value)
        except ValueError:
            return value
    return value


def parse_text(line):
    """None when the line is not one of ours, whole."""
    fields, at = {}, 0
    while at < len(line):
        m = _field.match(line, at)
        if not m:
            return None
        name, value = m.groups()
        if value.startswith('"'):
            value = _unescape(value[1:-1])
        elif value == "-":
            value = None
        fields[name] = _number(name, value)
        at = m.end()
    return fields if "event" in fields else None


def parse_json(line):
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) and "event" in fields else None


def parse(line):
    return parse_json(line) if line.startswith("{") else parse_text(line)


def select(lines, **want):
    """Lines whose fields equal (or, for a compiled pattern, match) what is wanted."""
    def fits(entry):
        for name, value in want.items():
            have = entry.get(name)
            if hasattr(value, "search"):
                if have is None or not value.search(str(have)):
                    return False
            elif have != value:
                return False
        return True
    return [e for e in lines if fits(e)]
