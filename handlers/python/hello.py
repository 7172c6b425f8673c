#!/usr/bin/python3
"""The smallest handler: a header, a blank line, a body."""
import os

print("Content-Type: text/plain; charset=utf-8")
print()
print("Hello from Python")
print("pid:", os.getpid())
print("method:", os.environ["REQUEST_METHOD"])
print("uri:", os.environ.get("REQUEST_URI", ""))
