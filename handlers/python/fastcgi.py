"""
WSGI applications as FastCGI workers:

    fastcgi.serve(application)

serves requests on the listening socket that is descriptor 0, one at a time; for more at a time, start more
workers. A connection that the web server keeps open is served until the web server closes it.
"""
import io
import socket
import struct
import sys
from wsgiref.handlers import BaseCGIHandler

VERSION = 1
BEGIN_REQUEST, ABORT_REQUEST, END_REQUEST, PARAMS, STDIN, STDOUT = range(1, 7)
GET_VALUES, GET_VALUES_RESULT, UNKNOWN_TYPE = range(9, 12)
RESPONDER = 1
KEEP_CONNECTION = 1
REQUEST_COMPLETE, CANT_MULTIPLEX, _OVERLOADED, UNKNOWN_ROLE = range(4)
CONTENT_MAX = 65535
PARAMS_MAX = 1 << 20

# version, type, request id, content length, padding length, reserved
HEADER = struct.Struct("!BBHHBx")


class ConnectionEnd(ConnectionAbortedError):
    """The web server is gone, has given up the request, or speaks no FastCGI."""


def decode_pairs(data):
    """{name: value}. Lengths are one byte, or four with the highest bit set."""
    pairs, at = {}, 0

    def length():
        nonlocal at
        if data[at] < 0x80:
            at += 1
            return data[at - 1]
        at += 4
        return struct.unpack_from("!I", data, at - 4)[0] & 0x7fffffff

    try:
        while at < len(data):
            name_length, value_length = length(), length()
            name_end = at + name_length
            end = name_end + value_length
            if end > len(data):
                raise ConnectionEnd
            # PEP 3333: text that stands for bytes.
            pairs[data[at:name_end].decode("latin-1")] = data[name_end:end].decode("latin-1")
            at = end
    except (IndexError, struct.error):
        raise ConnectionEnd from None
    return pairs


class Connection:
    """The records of one connection, and at most one request at a time."""

    def __init__(self, sock):
        self.socket = sock
        self.file = sock.makefile("rb")
        self.request_id = 0         # of the request in work; 0 is none
        self.is_kept = False
        self.input_ended = False

    def send(self, kind, request_id, content=b""):
        self.socket.sendall(HEADER.pack(VERSION, kind, request_id, len(content), 0) + content)

    def end_request(self, request_id, protocol_status):
        self.send(END_REQUEST, request_id, struct.pack("!IB3x", 0, protocol_status))

    def read_record(self):
        header = self.file.read(HEADER.size)
        if len(header) < HEADER.size:
            raise ConnectionEnd
        version, kind, request_id, length, padding = HEADER.unpack(header)
        content = self.file.read(length + padding)
        if version != VERSION or len(content) < length + padding:
            raise ConnectionEnd
        return kind, request_id, content[:length]

    def next_record(self):
        """The next (type, content) of the request in work; all other records are answered here."""
        while True:
            kind, request_id, content = self.read_record()
            if request_id == 0:
                self.answer_management(kind, content)
            elif kind == BEGIN_REQUEST and self.request_id != 0:
                self.end_request(request_id, CANT_MULTIPLEX)
            elif kind == BEGIN_REQUEST:
                self.begin(request_id, content)
            elif request_id != self.request_id:
                pass                # of a request that is over: to be ignored
            elif kind == ABORT_REQUEST:
                self.request_id = 0
                self.end_request(request_id, REQUEST_COMPLETE)
                raise ConnectionEnd
            else:
                return kind, content

    def answer_management(self, kind, content):
        if kind != GET_VALUES:
            self.send(UNKNOWN_TYPE, 0, bytes([kind]) + bytes(7))
            return
        name = b"FCGI_MPXS_CONNS"   # the only one that has an answer here
        is_asked = name.decode() in decode_pairs(content)
        self.send(GET_VALUES_RESULT, 0, bytes([len(name), 1]) + name + b"0" if is_asked else b"")

    def begin(self, request_id, content):
        if len(content) < 3:
            raise ConnectionEnd
        role, flags = struct.unpack_from("!HB", content)
        self.is_kept = bool(flags & KEEP_CONNECTION)
        if role == RESPONDER:
            self.request_id, self.input_ended = request_id, False
            return
        self.end_request(request_id, UNKNOWN_ROLE)
        if not self.is_kept:
            raise ConnectionEnd

    def read_params(self):
        """The variables of the next request."""
        data = bytearray()
        while True:
            kind, content = self.next_record()
            if kind != PARAMS or len(data) > PARAMS_MAX:
                raise ConnectionEnd
            if not content:
                return decode_pairs(bytes(data))
            data += content

    def read_input(self):
        """The next bytes of the request's body; b"" at its end."""
        if self.input_ended:
            return b""
        kind, content = self.next_record()
        if kind != STDIN:
            raise ConnectionEnd
        self.input_ended = not content
        return content

    def finish(self):
        """Ends the answer. What nobody read of the body is skipped when the next request is looked for."""
        request_id, self.request_id = self.request_id, 0
        self.socket.sendall(
            HEADER.pack(VERSION, STDOUT, request_id, 0, 0) +
            HEADER.pack(VERSION, END_REQUEST, request_id, 8, 0) + struct.pack("!IB3x", 0, REQUEST_COMPLETE))


class Input(io.RawIOBase):
    def __init__(self, connection):
        super().__init__()
        self.connection = connection
        self.rest = b""

    def readable(self):
        return True

    def readinto(self, buffer):
        data = self.rest or self.connection.read_input()
        count = min(len(data), len(buffer))
        buffer[:count] = data[:count]
        self.rest = data[count:]
        return count


class Output:
    """Collects what is written until it is flushed."""

    def __init__(self, connection):
        self.connection = connection
        self.pieces = []

    def write(self, data):
        self.pieces.append(data)

    def flush(self):
        if self.connection.request_id == 0:     # given up in the meantime
            raise ConnectionEnd
        data = b"".join(self.pieces)
        self.pieces = []
        for at in range(0, len(data), CONTENT_MAX):
            self.connection.send(STDOUT, self.connection.request_id, data[at:at + CONTENT_MAX])


def serve_connection(sock, application):
    connection = Connection(sock)
    try:
        while True:
            environ = connection.read_params()
            environ["wsgi.input_terminated"] = True     # reads as empty after its end, also without CONTENT_LENGTH
            body = io.BufferedReader(Input(connection))
            output = Output(connection)
            BaseCGIHandler(body, output, sys.stderr, environ, multithread=False, multiprocess=True).run(application)
            output.flush()
            connection.finish()
            if not connection.is_kept:
                return
    except (ConnectionEnd, OSError):
        pass


def serve(application):
    with socket.socket(fileno=0) as listener:
        while True:
            sock, _ = listener.accept()
            with sock:
                serve_connection(sock, application)
