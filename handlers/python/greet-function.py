#!/usr/bin/python3
"""The greeting as a function: JSON on stdin, JSON on stdout, and an exception where there is no answer."""
import json
import sys

name = json.load(sys.stdin.buffer)["name"]
if not isinstance(name, str):
    sys.exit("name is no string")
json.dump({"greeting": f"Hello, {name}!"}, sys.stdout, separators=(",", ":"))
