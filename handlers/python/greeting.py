#!/usr/bin/python3
"""POST {"name":"Johnny"} is answered with {"greeting":"Hello, Johnny!"}."""
import json
import sys

BODY_MAX = 65536


def answer(status, value):
    body = json.dumps(value, separators=(",", ":")) + "\n"
    sys.stdout.write(f"Status: {status}\nContent-Type: application/json\n\n{body}")
    sys.exit(0)


body = sys.stdin.buffer.read(BODY_MAX + 1)
if len(body) > BODY_MAX:
    answer("413 Content Too Large", {"error": "the body is larger than 64 KiB"})
try:
    request = json.loads(body.decode("utf-8"))
except (ValueError, RecursionError):    # UnicodeDecodeError is a ValueError
    request = None
if not isinstance(request, dict) or list(request) != ["name"] or not isinstance(request["name"], str):
    answer("400 Bad Request", {"error": "expected a JSON object with one string, name"})
answer("200 OK", {"greeting": f"Hello, {request['name']}!"})
