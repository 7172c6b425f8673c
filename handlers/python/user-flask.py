#!/usr/bin/python3 -B
"""user.py with Flask (Debian: python3-flask); with --port N on the server that comes with Flask."""
import json
import logging

from flask import Flask, Response

import serve
import users

app = Flask(__name__)
logging.getLogger("werkzeug").setLevel(logging.ERROR)       # no line for each request


@app.route("/users/id/<int:user_id>")
def user(user_id):
    found = users.find(user_id)
    if found is None:
        return Response("no such user\n", 404, content_type="text/plain")
    return Response(json.dumps(found, ensure_ascii=False, separators=(",", ":")) + "\n", content_type="application/json")


serve.run(app, lambda port: app.run("127.0.0.1", port))
