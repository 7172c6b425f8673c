#!/usr/bin/python3 -B
"""POST {"name":"Johnny"} is answered with {"greeting":"Hello, Johnny!"}."""
import json

import serve

BODY_MAX = 65536


def read_body(environ):
    """At most BODY_MAX bytes and one more."""
    length = environ.get("CONTENT_LENGTH", "")
    return environ["wsgi.input"].read(min(int(length), BODY_MAX + 1) if length.isdigit() else 0)


def application(environ, start_response):
    def answer(status, text, content_type="text/plain"):
        body = text.encode()
        start_response(status, [("Content-Type", content_type), ("Content-Length", str(len(body)))])
        return [body]

    body = read_body(environ)
    if len(body) > BODY_MAX:
        return answer("413 Content Too Large", "the body is larger than 64 KiB\n")
    try:
        name = json.loads(body)["name"]
    except (ValueError, TypeError, KeyError, RecursionError):
        name = None
    if not isinstance(name, str):
        return answer("400 Bad Request", "expected a JSON object with a string, name\n")
    return answer("200 OK", json.dumps({"greeting": f"Hello, {name}!"}, separators=(",", ":")), "application/json")


serve.run(application)
