#!/usr/bin/python3
"""A function: {"name":"Johnny"} on standard input, "Hello, Johnny!" on standard output (protocol: stdio)."""
import json
import sys

try:
    name = json.load(sys.stdin.buffer)["name"]
except (ValueError, TypeError, KeyError, RecursionError):
    name = None
if not isinstance(name, str):
    sys.exit("expected a JSON object with a string, name")
sys.stdout.buffer.write(f"Hello, {name}!\n".encode())
