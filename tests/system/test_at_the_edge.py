"""Requests whose parts end in an unlucky order."""
import socket
import time

import pytest

from lib import wire
from lib.handlers import COUNT, HELLO, faulty, pattern
from lib.wait import wait_until

EVERY_PROCESS = True

LINGERS = {"timeout": {"kill": "1s", "response": "0s", "idle": "0s"}}


# --- the host stops

@pytest.mark.parametrize("sent", ["nothing more", "some variables", "no body"])
def test_stop_does_not_wait_for_a_request_that_never_comes_whole(make_host, sent):
    host = make_host({"h": {"script": COUNT, "body": {"chunked": "spool"}}}, defaults=LINGERS)
    with host.connect() as conn:
        if sent == "no body":
            params = wire.variables("/h", "POST")
            params.pop("CONTENT_LENGTH")
            conn.start(params)
        else:
            conn.send(wire.begin(), wire.record(wire.PARAMS, 1, b"\x04") if sent == "some variables" else b"")
        assert conn.is_quiet()
        started = time.monotonic()
        assert host.stop() == 0
        assert time.monotonic() - started < 10
        assert conn.answer().status == 503


def test_stop_does_not_wait_for_a_server_of_somebody_else(make_host, folder):
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(folder / "deaf"))
    server.listen(5)
    (folder / "deaf").chmod(0o666)
    host = make_host({"s": {"connect": f"unix:{folder}/deaf", "protocol": "fastcgi"}}, defaults=LINGERS)
    with host.connect() as conn:
        conn.start(wire.variables("/s"))
        conn.send(wire.record(wire.STDIN))
        taken, _ = server.accept()
        started = time.monotonic()
        assert host.stop() == 0
        assert time.monotonic() - started < 10
        assert conn.answer().status == 503
    taken.close()
    server.close()


# --- the worker ends

LEAVES = """#!/usr/bin/python3
import os, socket, struct
def record(kind, content=b""):
    return struct.pack(">BBHHBB", 1, kind, 1, len(content), 0, 0) + content
listener = socket.socket(fileno=0)
conn, _ = listener.accept()
while not conn.recv(65536):     # the host looks whether we accept
    conn, _ = listener.accept()
conn.sendall(record(6, b"Content-Type: text/plain\\r\\n\\r\\n"))
for _ in range(30):
    conn.sendall(record(6, b"x" * 10000))
conn.sendall(record(6) + record(3, bytes(8)))
os._exit(%d)
"""


@pytest.mark.parametrize("status", [0, 3])
def test_an_answer_that_a_worker_left_behind_reaches_a_slow_client(make_host, status):
    host = make_host({"w": {"script": LEAVES % status, "protocol": "fastcgi"}})
    with host.connect() as conn:
        conn.start(wire.variables("/w"))
        conn.send(wire.record(wire.STDIN))
        wait_until(lambda: "event=worker_exit" in host.log_text(), 10, "the end of the worker")
        answer = conn.answer()
    assert (answer.status, len(answer.body), answer.complete) == (200, 300000, True)


def test_a_client_that_leaves_an_answer_that_a_worker_left_behind(make_host):
    host = make_host({"w": {"script": LEAVES % 0, "protocol": "fastcgi"}})
    with host.connect() as conn:
        conn.start(wire.variables("/w"))
        conn.send(wire.record(wire.STDIN))
        wait_until(lambda: "event=worker_exit" in host.log_text(), 10, "the end of the worker")
    wait_until(lambda: "event=request" in host.log_text(), 10, "the end of the request")


def test_a_redirect_of_a_body_that_was_ignored_to_a_worker(make_host):
    host = make_host({"h": "exec 0<&-; printf 'Location: /w/there\\n\\n'", "w": faulty("")},
                     defaults={"timeout": {"response": "5s"}})
    answer = wire.request(host.address, "/h", "POST", pattern(300000))
    assert answer.status == 200 and b"body=0" in answer.body


# --- the client ends

def test_a_body_that_stops_while_it_is_spooled_has_a_limit(make_host):
    host = make_host({"h": {"script": COUNT, "body": {"chunked": "spool"}}}, defaults={"timeout": {"idle": "300ms"}})
    params = wire.variables("/h", "POST")
    params.pop("CONTENT_LENGTH")
    with host.connect() as conn:
        conn.start(params)
        conn.send(wire.record(wire.STDIN, 1, b"some"))
        assert conn.answer().status == 504


WAITS = "while ! test -e \"$SCRATCH/go\"; do sleep 0.05; done; " + COUNT


def test_a_client_that_has_said_all_waits_for_a_slow_handler(make_host):
    host = make_host({"h": WAITS})
    body = pattern(200000)
    with host.connect() as conn:
        conn.start(wire.variables("/h", "POST", body))
        conn.send(wire.stream(wire.STDIN, body))
        conn.shut()
        assert conn.is_quiet()
        (host.scratch / "go").touch()
        answer = conn.answer()
    assert (answer.status, answer.body) == (200, b"200000")


def test_a_client_that_leaves_with_answers_unread_and_its_body_unsent(make_host):
    host = make_host({"h": "exec sleep 300", "hello": HELLO}, defaults={"timeout": {"idle": "0s", "response": "0s"}})
    with host.connect() as conn:
        conn.start(wire.variables("/hello"), flags=wire.KEEP)
        conn.send(wire.record(wire.STDIN))
        wait_until(lambda: "event=request" in host.log_text(), 10, "the first answer")
        conn.start(wire.variables("/h", "POST", CONTENT_LENGTH="10000000"), flags=wire.KEEP)
        conn.send(wire.stream(wire.STDIN, bytes(200000), end=False))
        wait_until(host.children, 10, "the handler's start")
    wait_until(lambda: not host.children(), 10, "the end of the handler")
    wait_until(lambda: "the web server closed the connection" in host.log_text(), 10, "the line of the request")
