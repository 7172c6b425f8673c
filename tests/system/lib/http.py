"""HTTP clients: a small one of our own for most tests, and curl where its verdict matters."""
import http.client
import pathlib
import subprocess
import tempfile
import time

from .answer import Answer


def request(port, path, method="GET", body=None, headers=(), timeout=20, chunked=False, conn=None):
    """`body`: bytes, or an iterable of pieces (sent as they come; chunked, or with the length in `headers`)."""
    own = conn is None
    conn = conn or http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    started = time.monotonic()
    status, fields, data, complete, note = None, [], b"", False, ""
    if method in ("POST", "PUT") and body is None:
        body = b""
    try:
        conn.putrequest(method, path, skip_host=any(n.lower() == "host" for n, _ in headers), skip_accept_encoding=True)
        for name, value in headers:
            conn.putheader(name, value)
        if chunked:
            conn.putheader("Transfer-Encoding", "chunked")
        elif isinstance(body, bytes):
            conn.putheader("Content-Length", str(len(body)))
        conn.endheaders()
        pieces = [body] if isinstance(body, bytes) else (body or [])
        try:
            for piece in pieces:
                if chunked:
                    if piece:
                        conn.send(b"%x\r\n%s\r\n" % (len(piece), piece))
                else:
                    conn.send(piece)
            if chunked:
                conn.send(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            note = "the server stopped reading"
        answer = conn.getresponse()
        status, fields = answer.status, answer.getheaders()
        try:
            data = answer.read()
            complete = True
        except http.client.IncompleteRead as e:
            data, note = e.partial, "incomplete"
    except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, http.client.BadStatusLine) as e:
        note = repr(e)
    finally:
        if own:
            conn.close()
    return Answer(status, fields, data, complete, time.monotonic() - started, note)


class Curl:
    def __init__(self, code, status, body, header, stderr, seconds):
        self.code, self.status, self.body, self.header, self.stderr, self.seconds = code, status, body, header, stderr, seconds

    def __repr__(self):
        return f"<curl exit {self.code} status {self.status} {len(self.body)} bytes {self.body[:200]!r} {self.stderr.strip()}>"


def curl(url, *arguments, timeout=30, keep_body=True):
    with tempfile.TemporaryDirectory(prefix="curl-") as folder:
        out, head = pathlib.Path(folder, "out"), pathlib.Path(folder, "head")
        started = time.monotonic()
        done = subprocess.run(
            ["curl", "-sS", "-o", str(out) if keep_body else "/dev/null", "-D", str(head), "-w", "%{http_code}", "--max-time", str(timeout),
             "-H", "Expect:", *arguments, url], capture_output=True, text=True, timeout=timeout + 10)
        return Curl(done.returncode, int(done.stdout or 0), out.read_bytes() if out.exists() else b"",
                    head.read_text(errors="replace") if head.exists() else "", done.stderr, time.monotonic() - started)
