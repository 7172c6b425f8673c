#!/usr/bin/python3 -B
"""hello-world with Flask (Debian: python3-flask); with --port N on the server that comes with Flask."""
import logging

from flask import Flask, Response

import serve

app = Flask(__name__)
logging.getLogger("werkzeug").setLevel(logging.ERROR)       # no line for each request


@app.route("/", defaults={"path": ""})
@app.route("/<path:path>")
def hello(path):
    return Response("Hello, World!\n", content_type="text/plain")


serve.run(app, lambda port: app.run("127.0.0.1", port))
