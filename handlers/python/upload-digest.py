#!/usr/bin/python3
"""The SHA-256 digest and the size of what is uploaded, in bounded memory."""
import hashlib
import sys

digest = hashlib.sha256()
size = 0
while block := sys.stdin.buffer.read(65536):
    digest.update(block)
    size += len(block)

print("Content-Type: text/plain")
print()
print("sha256:", digest.hexdigest())
print("bytes:", size)
