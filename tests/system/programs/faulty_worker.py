#!/usr/bin/python3
"""
A FastCGI worker that goes wrong in one named way.  FAULT says how; every request that it has begun to
read is written to SCRATCH/attempts as "pid method".  Once SCRATCH/repaired exists it behaves.
"""
import os
import signal
import socket
import struct
import sys
import time

FAULT, SCRATCH = os.environ.get("FAULT", ""), os.environ["SCRATCH"]


def note(text, name="attempts"):
    with open(os.path.join(SCRATCH, name), "a") as f:
        f.write(text + "\n")


note(str(os.getpid()), "starts")
is_repaired = os.path.exists(os.path.join(SCRATCH, "repaired"))
if FAULT == "exit-at-start" and not is_repaired:
    sys.exit(3)
if FAULT == "never-accepts" and not is_repaired:
    time.sleep(300)


def record(kind, content=b"", version=1):
    return struct.pack(">BBHHBB", version, kind, 1, len(content), 0, 0) + content


def text(body, extra=b""):
    return record(6, b"Content-Type: text/plain\r\n" + extra + b"\r\n" + body)


END = record(6) + record(3, bytes(8))
listener = socket.socket(fileno=0)
served = 0


def exactly(conn, n):
    data = b""
    while len(data) < n:
        more = conn.recv(n - len(data))
        if not more:
            return None
        data += more
    return data


def one(conn):
    """Reads one request.  None at the end of the connection."""
    params, body, keep = b"", b"", False
    while True:
        head = exactly(conn, 8)
        if head is None:
            return None
        _, kind, _, size, padding, _ = struct.unpack(">BBHHBB", head)
        content = (exactly(conn, size + padding) or b"")[:size]
        if kind == 1:
            keep = bool(content[2] & 1)
            if FAULT == "dies-on-begin" and not is_repaired:
                note(f"{os.getpid()} ?")
                os._exit(5)
        elif kind == 4:
            params += content
        elif kind == 5 and size:
            body += content
        elif kind == 5:
            return params, body, keep


def method_of(params):
    at = params.find(b"REQUEST_METHOD")
    rest = params[at + 14:]
    return next((m for m in ("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE") if rest.startswith(m.encode())), "?")


while True:
    conn, _ = listener.accept()
    if FAULT == "closes-on-accept" and not is_repaired:
        note(f"{os.getpid()} accept")
        conn.close()
        continue
    if FAULT in ("dies-on-accept-once", "answers-unread", "refuses-and-dies") and not conn.recv(1, socket.MSG_PEEK):
        conn.close()            # the host looked whether we accept
        continue
    if FAULT == "dies-on-accept-once" and not os.path.exists(f"{SCRATCH}/died"):
        note(f"{os.getpid()} accept")
        # Not before the host has sent what the socket holds, and waits to send the rest.
        while not os.path.exists(f"{SCRATCH}/go"):
            time.sleep(0.01)
        note("", "died")
        os.kill(os.getpid(), signal.SIGKILL)
    if FAULT == "refuses-and-dies":
        note(f"{os.getpid()} accept")
        while not os.path.exists(f"{SCRATCH}/go"):
            time.sleep(0.01)
        conn.shutdown(socket.SHUT_RD)
        time.sleep(0.3)         # for the host to see that
        os.kill(os.getpid(), signal.SIGKILL)
    if FAULT == "answers-unread":
        conn.shutdown(socket.SHUT_RD)
        while not os.path.exists(f"{SCRATCH}/go"):
            time.sleep(0.01)
        conn.sendall(text(b"unread") + END)
        conn.close()
        continue
    while True:
        got = one(conn)
        if got is None:
            break
        params, body, keep = got
        served += 1
        note(f"{os.getpid()} {method_of(params)}")
        is_repaired = os.path.exists(os.path.join(SCRATCH, "repaired"))
        fault = "" if is_repaired else FAULT
        if fault == "dies-before-answer" or (fault == "dies-once" and not os.path.exists(f"{SCRATCH}/died")):
            note("", "died")
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault == "dies-in-body":
            conn.sendall(text(b"half of it"))
            os._exit(7)
        elif fault == "closes-before-answer":
            conn.close()
            break
        elif fault == "hangs":
            time.sleep(300)
        elif fault == "hangs-in-body":
            conn.sendall(text(b"some"))
            time.sleep(300)
        elif fault == "end-only":
            conn.sendall(record(3, bytes(8)))
        elif fault == "no-header":
            conn.sendall(record(6, b"no header here\n") + END)
        elif fault == "wrong-version":
            conn.sendall(record(6, b"Status: 200\r\n\r\nx", version=2))
        elif fault == "wrong-id":
            conn.sendall(struct.pack(">BBHHBB", 1, 6, 9, 3, 0, 0) + b"odd" + text(b"fine") + END)
        elif fault == "overloaded":
            conn.sendall(record(6) + record(3, struct.pack(">IB3x", 0, 2)))
        elif fault == "garbage":
            conn.sendall(b"HTTP/1.1 200 OK\r\n\r\nhello")
            conn.close()
            break
        elif fault == "app-status":
            conn.sendall(text(b"whole") + record(6) + record(3, struct.pack(">IB3x", 7, 0)))
        elif fault == "one-byte-records":
            whole = b"Content-Type: text/plain\r\n\r\nabcdef"
            conn.sendall(b"".join(record(6, whole[i:i + 1]) for i in range(len(whole))) + END)
        elif fault == "chatters":
            conn.sendall(record(7, b"before\n") + record(7) + text(b"fine") + record(11, bytes(8)) + END)
        else:
            conn.sendall(text(f"pid={os.getpid()} served={served} body={len(body)}\n".encode()) + END)
        if not keep or fault == "never-keeps":
            conn.close()
            break
    conn.close()
