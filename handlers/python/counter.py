#!/usr/bin/python3
"""A line a second, each sent as soon as it is written: ?count=N, 5 by default."""
import os
import sys
import time
from urllib.parse import parse_qs

COUNT_MAX = 3600

query = parse_qs(os.environ.get("QUERY_STRING", ""))
count = query.get("count", ["5"])[0]
if not (count.isascii() and count.isdigit() and 1 <= len(count) <= 4 and 1 <= int(count) <= COUNT_MAX):
    print("Status: 400 Bad Request")
    print("Content-Type: text/plain")
    print()
    print(f"count must be a number from 1 to {COUNT_MAX}")
    sys.exit(0)

print("Content-Type: text/plain")
print()
for number in range(1, int(count) + 1):
    if number > 1:
        time.sleep(1)
    print(number, flush=True)   # without the flush Python would keep the lines to the end
