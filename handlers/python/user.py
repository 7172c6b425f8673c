#!/usr/bin/python3 -B
"""GET …/{id} is answered with a user from a PostgreSQL database: see users.py."""
import json
import sys

import serve
import users

ID_MAX = 2**31 - 1


def application(environ, start_response):
    def answer(status, content_type, text):
        body = text.encode()
        start_response(status, [("Content-Type", content_type), ("Content-Length", str(len(body)))])
        return [body]

    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    user_id = path.rpartition("/")[2]
    if not (user_id.isascii() and user_id.isdigit() and int(user_id) <= ID_MAX):
        return answer("400 Bad Request", "text/plain", "the id is no number\n")
    try:
        user = users.find(int(user_id))
    except users.Unavailable as error:
        print(error, file=sys.stderr)
        return answer("503 Service Unavailable", "text/plain", "the database does not answer\n")
    if user is None:
        return answer("404 Not Found", "text/plain", "no such user\n")
    return answer("200 OK", "application/json", json.dumps(user, ensure_ascii=False, separators=(",", ":")) + "\n")


serve.run(application)
