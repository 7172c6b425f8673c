#!/usr/bin/python3
"""hello-world as http.server has it: hello-world-http.py PORT"""
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BODY = b"Hello, World!\n"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"   # connections are kept
    wbufsize = -1                   # header and body in one write

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_request(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 1024


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
