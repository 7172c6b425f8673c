"""
Runs a WSGI application in the way in which the program was started: as an HTTP server of its own with
--port N, as a CGI program where the environment has a request, else as a FastCGI worker.
"""
import os
import sys


def run(application, serve_http=None):
    """`serve_http(port)` takes the place of the standard library's server."""
    if sys.argv[1:2] == ["--port"]:
        (serve_http or wsgi_server(application))(int(sys.argv[2]))
    elif "REQUEST_METHOD" in os.environ:
        from wsgiref.handlers import CGIHandler
        CGIHandler().run(application)
    else:
        import fastcgi
        fastcgi.serve(application)


def wsgi_server(application):
    """The server of wsgiref, which is that of http.server, with a thread for each connection."""
    from socketserver import ThreadingMixIn
    from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

    class Server(ThreadingMixIn, WSGIServer):
        daemon_threads = True
        request_queue_size = 1024

    class Handler(WSGIRequestHandler):
        wbufsize = -1               # header and body in one write

        def log_request(self, *_):
            pass

    def serve_http(port):
        server = Server(("127.0.0.1", port), Handler)
        server.set_app(application)
        server.serve_forever()
    return serve_http
