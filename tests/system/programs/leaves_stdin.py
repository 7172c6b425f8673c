#!/usr/bin/python3
"""
A FastCGI worker that answers a request without a body before it has read the end of that, as php-cgi does.
On a connection where that end then comes first, it skips it (LEFTOVER=skips) or gives up the connection with the request.
Each connection and each request on it is a line in SCRATCH/attempts.
"""
import os
import select
import socket
import struct

listener = socket.socket(fileno=0)


def note(text):
    with open(os.path.join(os.environ["SCRATCH"], "attempts"), "a") as f:
        f.write(text + "\n")


def record(kind, content=b""):
    return struct.pack(">BBHHBB", 1, kind, 1, len(content), 0, 0) + content


def exactly(conn, n):
    data = b""
    while len(data) < n:
        more = conn.recv(n - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def read_record(conn):
    _, kind, _, size, padding, _ = struct.unpack(">BBHHBB", exactly(conn, 8))
    return kind, exactly(conn, size + padding)[:size]


def wait_for_more_than_a_header(conn):
    poll = select.poll()
    poll.register(conn, select.POLLRDHUP)
    while len(conn.recv(9, socket.MSG_PEEK)) < 9 and not poll.poll(2):
        pass


def begin(conn):
    wait_for_more_than_a_header(conn)
    kind, _ = read_record(conn)
    if kind == 5:
        kind, _ = read_record(conn)
        if os.environ["LEFTOVER"] != "skips":
            note("gave up")
            raise EOFError
    assert kind == 1


def one(conn):
    begin(conn)
    params, body = b"", b""
    while (piece := read_record(conn)[1]):
        params += piece
    note("request")
    if b"CONTENT_LENGTH" in params:
        while (piece := read_record(conn)[1]):
            body += piece
    conn.sendall(record(6, b"Content-Type: text/plain\r\n\r\n%d" % len(body)) + record(6) + record(3, bytes(8)))


while True:
    conn, _ = listener.accept()
    with conn:
        try:
            if conn.recv(1, socket.MSG_PEEK):
                note("connection")
            while True:
                one(conn)
        except (EOFError, ConnectionError):
            pass
