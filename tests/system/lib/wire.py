"""A raw FastCGI client: writes records byte by byte, reads answers record by record."""
import array
import fcntl
import select
import socket
import struct
import termios
import time
from urllib.parse import unquote_to_bytes

from .answer import Answer

BEGIN, ABORT, END, PARAMS, STDIN, STDOUT, STDERR, DATA, GET_VALUES, GET_VALUES_RESULT, UNKNOWN = range(1, 12)
RESPONDER, AUTHORIZER, FILTER = 1, 2, 3
KEEP = 1
COMPLETE, CANT_MPX, OVERLOADED, UNKNOWN_ROLE = range(4)


def as_bytes(value):
    return value if isinstance(value, bytes) else str(value).encode()


def record(kind, request_id=1, content=b"", padding=0, version=1):
    return struct.pack(">BBHHBB", version, kind, request_id, len(content), padding, 0) + content + b"\xaa" * padding


def length(n, wide=False):
    return struct.pack(">I", n | 0x80000000) if wide or n > 127 else bytes([n])


def pair(name, value, wide=False):
    name, value = as_bytes(name), as_bytes(value)
    return length(len(name), wide) + length(len(value), wide) + name + value


def pairs(variables, wide=False):
    items = variables.items() if isinstance(variables, dict) else variables
    return b"".join(pair(n, v, wide) for n, v in items)


def decode_pairs(data):
    out, at = [], 0
    while at < len(data):
        lengths = []
        for _ in range(2):
            if data[at] & 0x80:
                lengths.append(struct.unpack_from(">I", data, at)[0] & 0x7FFFFFFF)
                at += 4
            else:
                lengths.append(data[at])
                at += 1
        name, value = data[at:at + lengths[0]], data[at + lengths[0]:at + sum(lengths)]
        out.append((name, value))
        at += sum(lengths)
    return out


def stream(kind, data, request_id=1, cut=None, padding=0, end=True):
    """`data` as records of at most `cut` bytes, ended by the empty record."""
    cut = cut or 65528
    out = [record(kind, request_id, data[i:i + cut], padding) for i in range(0, len(data), cut)]
    if end:
        out.append(record(kind, request_id, b"", padding))
    return b"".join(out)


def begin(request_id=1, role=RESPONDER, flags=0):
    return record(BEGIN, request_id, struct.pack(">HB5x", role, flags))


def variables(path="/", method="GET", body=None, headers=(), **extra):
    """What nginx with its stock fastcgi_params would send."""
    bare, _, query = path.partition("?")
    out = {
        "QUERY_STRING": query, "REQUEST_METHOD": method, "CONTENT_TYPE": "", "CONTENT_LENGTH": "",
        "SCRIPT_NAME": unquote_to_bytes(bare), "REQUEST_URI": path, "DOCUMENT_URI": unquote_to_bytes(bare),
        "DOCUMENT_ROOT": "/srv/www", "SERVER_PROTOCOL": "HTTP/1.1", "REQUEST_SCHEME": "http",
        "GATEWAY_INTERFACE": "CGI/1.1", "SERVER_SOFTWARE": "wire/1", "REMOTE_ADDR": "127.0.0.1",
        "REMOTE_PORT": "4711", "SERVER_ADDR": "127.0.0.1", "SERVER_PORT": "80", "SERVER_NAME": "localhost",
        "HTTP_HOST": "localhost",
    }
    if body is not None:
        out["CONTENT_LENGTH"] = str(len(body))
    for name, value in headers:
        name = name.upper().replace("-", "_")
        out[name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else "HTTP_" + name] = value
    out.update(extra)
    return {n: v for n, v in out.items() if v is not None}


class Record:
    def __init__(self, version, kind, request_id, content, padding, at):
        self.version, self.kind, self.id, self.content, self.padding, self.at = version, kind, request_id, content, padding, at

    def __repr__(self):
        return f"<Record v{self.version} kind={self.kind} id={self.id} {self.content[:60]!r}>"


class Conn:
    def __init__(self, address, timeout=15):
        self.socket = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
        self.socket.settimeout(timeout)
        self.socket.connect(address)
        self.buffer = b""
        self.is_broken = False      # reset, or a record of another version

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def shut(self):
        self.socket.shutdown(socket.SHUT_WR)

    def send(self, *parts):
        self.socket.sendall(b"".join(parts))

    def is_read(self):
        """Whether the other end has read all that was sent.  For unix sockets."""
        unread = array.array("i", [0])
        fcntl.ioctl(self.socket, termios.TIOCOUTQ, unread)
        return unread[0] == 0

    def send_quietly(self, *parts):
        """Where the other end may be gone already."""
        try:
            self.send(*parts)
        except OSError:
            pass

    def start(self, params, request_id=1, flags=0, cut=None, wide=False, padding=0):
        block = params if isinstance(params, bytes) else pairs(params, wide)
        self.send(begin(request_id, flags=flags), stream(PARAMS, block, request_id, cut, padding))

    def _fill(self, n):
        while len(self.buffer) < n:
            try:
                more = self.socket.recv(max(65536, n - len(self.buffer)))
            except (ConnectionResetError, BrokenPipeError):
                self.is_broken = True
                return False
            if not more:
                return False
            self.buffer += more
        return True

    def read(self):
        """The next record; None at the end of the connection."""
        if not self._fill(8):
            return None
        version, kind, request_id, size, padding, _ = struct.unpack(">BBHHBB", self.buffer[:8])
        if version != 1:
            self.is_broken = True
            return None
        if not self._fill(8 + size + padding):
            self.is_broken = True
            return None
        content = self.buffer[8:8 + size]
        self.buffer = self.buffer[8 + size + padding:]
        return Record(version, kind, request_id, content, padding, time.monotonic())

    def at_end(self):
        """Has the other end closed, with nothing more to read?  Waits for the fact."""
        return not self.buffer and not self._fill(1)

    def is_quiet(self, seconds=0.2):
        """Nothing arrives for a while and the connection stays."""
        before = self.socket.gettimeout()
        self.socket.settimeout(seconds)
        try:
            return not self.buffer and not self.socket.recv(1) and False
        except (socket.timeout, TimeoutError):
            return True
        finally:
            self.socket.settimeout(before)

    def answer(self, request_id=1, started=None):
        """Reads up to END_REQUEST of this request."""
        out = WireAnswer(started or time.monotonic())
        while True:
            r = self.read()
            if r is None:
                break
            out.add(r)
            if r.kind == END and r.id == request_id:
                break
        out.finish(self.is_broken)
        return out


class WireAnswer(Answer):
    def __init__(self, started):
        super().__init__(None, [], b"", complete=False)
        self.records, self.stdout, self.stderr, self.end = [], b"", b"", None
        self.header = b""
        self.started = started
        self._chunks = []

    def add(self, r):
        self.records.append(r)
        if r.kind == STDOUT:
            self._chunks.append(r.content)
        elif r.kind == STDERR:
            self.stderr += r.content
        elif r.kind == END:
            app, protocol = struct.unpack(">IB3x", r.content)
            self.end = (app, protocol)

    def finish(self, is_broken):
        self.elapsed = time.monotonic() - self.started
        self.stdout = b"".join(self._chunks)
        self.complete = self.end is not None and not is_broken
        self.header, found, self.body = self.stdout.partition(b"\r\n\r\n")
        if not found:
            self.note = "no header" if self.stdout else "nothing"
            return
        for line in self.header.split(b"\r\n"):
            name, _, value = line.decode("latin-1").partition(":")
            self.headers.append((name, value.strip(" ")))
        status = self.get("Status")
        self.status = int(status.split()[0]) if status else None
        declared = self.get("Content-Length")
        if declared is not None and self.records and len(self.body) < int(declared) and self.method != "HEAD":
            self.complete = False
            self.note = "shorter than Content-Length"

    method = "GET"


def request(address, path="/", method="GET", body=None, headers=(), keep=False, timeout=15, chunked=False,
            conn=None, request_id=1, cut=None, extra=None):
    """One whole request on a connection of its own (or on `conn`)."""
    if method in ("POST", "PUT") and body is None:
        body = b""
    own = conn is None
    conn = conn or Conn(address, timeout)
    try:
        params = variables(path, method, body, headers, **(extra or {}))
        if chunked:
            params.pop("CONTENT_LENGTH", None)
        started = time.monotonic()
        head = begin(request_id, flags=KEEP if keep else 0) + stream(PARAMS, pairs(params), request_id)
        out = WireAnswer(started)
        out.method = method
        _both_ways(conn, head + stream(STDIN, body or b"", request_id, cut), out, request_id, keep)
        out.finish(conn.is_broken)
        return out
    finally:
        if own:
            conn.close()


def _both_ways(conn, data, out, request_id, is_kept):
    """Writes and reads at once, as a peer that never blocks."""
    sock, view = conn.socket, memoryview(data)
    timeout = sock.gettimeout()
    sock.setblocking(False)
    poll = select.poll()
    poll.register(sock)
    deadline = time.monotonic() + timeout
    try:
        while True:
            while _take(conn, out, request_id):
                if out.end is not None:
                    _send_rest(sock, view)
                    return
            poll.modify(sock, select.POLLIN | (select.POLLOUT if view else 0))
            events = sum(e for _, e in poll.poll(max(0, deadline - time.monotonic()) * 1000))
            readable, writable = events & ~select.POLLOUT, events & select.POLLOUT
            if not events:
                raise socket.timeout(f"no answer within {timeout} s; so far {out.records[:5]}")
            if writable:
                try:
                    view = view[sock.send(view[:262144]):]
                except (BrokenPipeError, ConnectionResetError):
                    view = view[:0]
                except BlockingIOError:
                    pass
            if readable:
                try:
                    more = sock.recv(262144)
                except BlockingIOError:
                    continue
                except ConnectionResetError:
                    conn.is_broken = True
                    return
                if not more:
                    return
                conn.buffer += more
    finally:
        sock.settimeout(timeout)


def _send_rest(sock, view):
    """A peer that keeps the connection finishes what it has begun to send."""
    sock.setblocking(True)
    try:
        sock.sendall(view)
    except (BrokenPipeError, ConnectionResetError):
        pass


def _take(conn, out, request_id):
    if out.end is not None or len(conn.buffer) < 8:
        return False
    if conn.buffer[0] != 1:
        conn.is_broken = True
        out.note = "record of an invalid version"
        return False
    size = 8 + struct.unpack_from(">H", conn.buffer, 4)[0] + conn.buffer[6]
    if len(conn.buffer) < size:
        return False
    out.add(conn.read())
    return True
