"""Waiting for a process has limits, and nobody waits for someone else's handler."""
import os
import signal
import socket
import subprocess
import time

import pytest

from lib import wire
from lib.handlers import HELLO, worker
from lib.wait import wait_until
from test_persistent_workers import in_parallel


def refused_properly(answer):
    return answer.status == 503 and answer.complete and answer.body and answer.get("Retry-After") is not None


def test_waiting_has_a_limit_in_places_and_in_time(make_host, fastcgi_program):
    """One worker, a handler of 1 s, three places, a wait of 1.5 s, 10 at once: the rest is told 503."""
    host = make_host({"w": worker(fastcgi_program, workers={"min": 1, "max": 1}, queue={"max": 3, "timeout": "1500ms"})})
    host.request("/w")
    answers = in_parallel(10, lambda i: host.request("/w?sleep=1000"))
    good = [a for a in answers if a.status == 200]
    rest = [a for a in answers if a.status != 200]
    assert len(good) == 2, answers
    assert all(refused_properly(a) for a in rest), rest
    assert max(a.elapsed for a in rest) < 3
    assert sum(a.elapsed < 1 for a in rest) == 6, "those without a place are told at once"
    assert len(host.wait_log(event="request", status=503, count=8)) == 8


def test_a_full_line_of_processes_per_request(make_host, front):
    host = make_host({"h": {"script": "while [ ! -e \"$SCRATCH/go\" ]; do sleep 0.05; done; " + HELLO, "workers": {"max": 1},
                            "queue": {"max": 1, "timeout": "20s"}}})
    client = front(host)
    with host.connect() as running, host.connect() as waiting:
        for conn in (running, waiting):
            conn.start(wire.variables("/h"))
            conn.send(wire.record(wire.STDIN))
            if conn is running:
                wait_until(host.children, 10)
        # The line is full from here on, which only a refusal shows.
        def is_refused():
            answer = client.get("/h")
            return answer if answer.status == 503 else None
        answer = is_refused()
        assert answer and refused_properly(answer)
        (host.scratch / "go").write_text("")
        assert running.answer().text == waiting.answer().text == "hello\n"


def test_clients_that_hang_up_while_waiting_never_reach_a_handler(make_host):
    host = make_host({"h": {"script": "echo >> \"$SCRATCH/ran\"; while [ ! -e \"$SCRATCH/go\" ]; do sleep 0.05; done; " + HELLO, "workers": {"max": 1}}})
    with host.connect() as running:
        running.start(wire.variables("/h"))
        running.send(wire.record(wire.STDIN))
        wait_until((host.scratch / "ran").exists, 10)
        waiting = [host.connect() for _ in range(5)]
        for conn in waiting:
            conn.start(wire.variables("/h"))
            conn.send(wire.record(wire.STDIN))
        for conn in waiting[:4]:
            conn.close()
        host.wait_log(event="request", count=4)
        (host.scratch / "go").write_text("")
        assert running.answer().text == "hello\n"
        assert waiting[4].answer().text == "hello\n"
        waiting[4].close()
    assert (host.scratch / "ran").read_text().count("\n") == 2


def test_one_greedy_route_does_not_slow_another(make_host):
    host = make_host({"greedy": {"script": "sleep 60", "workers": {"max": 60}}, "hello": HELLO},
                     defaults={"timeout": {"kill": "1s"}})
    host.request("/hello")
    alone = max(host.request("/hello").elapsed for _ in range(5))
    conns = [host.connect() for _ in range(50)]
    for conn in conns:
        conn.start(wire.variables("/greedy"))
        conn.send(wire.record(wire.STDIN))
    wait_until(lambda: len(host.children()) >= 50, 30, "fifty hanging handlers")
    for _ in range(5):
        answer = host.request("/hello")
        assert answer.text == "hello\n"
        assert answer.elapsed < max(10 * alone, 1.0)
    for conn in conns:
        conn.close()
    wait_until(lambda: not host.children(), 20)


def test_a_waiting_request_is_served_when_a_process_is_free(make_host):
    host = make_host({"h": {"script": "sleep 0.2; " + HELLO, "workers": {"max": 1}}})
    started = time.monotonic()
    answers = in_parallel(5, lambda i: host.request("/h"))
    assert [a.text for a in answers] == ["hello\n"] * 5
    assert time.monotonic() - started >= 0.9
    waits = sorted(e["queue_ms"] for e in host.wait_log(event="request", count=5))
    assert waits[0] < 150 < waits[-1]


# --- the kernel's line is longer than ours

CROWD = 900         # at once; the backlog that the host asks for is 1024


def waiting_in_backlog(path):
    """Connections that a unix socket has not accepted yet."""
    shown = subprocess.run(["ss", "-xlnH", "src", path], capture_output=True, text=True, check=True).stdout.split()
    return int(shown[2]) if shown else 0


@pytest.mark.parametrize("name", ["wire", "nginx-kept", "nginx-plain"])
def test_a_crowd_is_answered_or_refused_by_us_and_never_by_the_kernel(make_host, make_front, fastcgi_program, name):
    """All of them connect while the relay does not run: more than workers and line take, and the kernel keeps every one."""
    host = make_host({"w": worker(fastcgi_program, workers={"min": 2, "max": 2}, queue={"max": 50, "timeout": "20s"})})
    client = make_front(name, host)
    assert client.get("/w").status == 200
    wait_until(lambda: len(host.children()) == 2, 10)
    os.kill(host.relay, signal.SIGSTOP)
    try:
        crowd = [socket.socket(socket.AF_UNIX if name == "wire" else socket.AF_INET) for _ in range(CROWD)]
        for s in crowd:
            s.settimeout(30)
            s.connect(host.address if name == "wire" else ("127.0.0.1", client.port))
            if name == "wire":
                s.sendall(wire.begin() + wire.stream(wire.PARAMS, wire.pairs(wire.variables("/w"))) + wire.record(wire.STDIN))
            else:
                s.sendall(b"GET /w HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        # Those that nginx has kept need no place.
        wait_until(lambda: waiting_in_backlog(host.socket) >= CROWD - 32, 20, "the crowd in the backlog")
    finally:
        os.kill(host.relay, signal.SIGCONT)
    texts = []
    for s in crowd:
        with s:
            texts.append(b"".join(iter(lambda: s.recv(65536), b"")))
    good = [t for t in texts if b"pid=" in t]
    refused = [t for t in texts if b"503" in t and b"Retry-After" in t]
    assert len(good) + len(refused) == CROWD, [t for t in texts if t not in good and t not in refused][:3]
    assert len(good) >= 52 and len(refused) > 0, (len(good), len(refused))
    assert len(host.wait_log(event="request", count=CROWD + 1)) == CROWD + 1, "each of them reached us"
