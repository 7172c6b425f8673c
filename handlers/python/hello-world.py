#!/usr/bin/python3 -B
"""The same few bytes for every request."""
import serve

BODY = b"Hello, World!\n"


def application(_environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(BODY)))])
    return [BODY]


serve.run(application)
