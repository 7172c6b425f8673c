"""What a handler's descriptors are, and how its input ends."""
import hashlib
import threading
import time

import pytest

from lib import wire
from lib.handlers import COUNT, HELLO, pattern, sha
from lib.wait import wait_until

EVERY_PROCESS = True


def test_input_ends_after_the_last_byte(make_host, front):
    host = make_host({"count": COUNT})
    client = front(host)
    assert client.post("/count", b"0123456789").text == "10"
    assert client.get("/count").text == "0"
    answer = client.post("/count", b"")
    assert (answer.status, answer.text) == (200, "0")


def test_input_ends_within_a_second(make_host):
    host = make_host({"count": COUNT})
    assert host.request("/count", "POST", b"0123456789").elapsed < 1
    assert host.request("/count").elapsed < 1


def test_no_other_process_holds_the_input_open(make_host):
    host = make_host({"count": COUNT, "slow": 'echo > "$SCRATCH/slow"; sleep 8; ' + HELLO})
    with host.connect() as first, host.connect() as second:
        first.start(wire.variables("/count", "POST", b"0123456789"))
        first.send(wire.stream(wire.STDIN, b"01234", end=False))
        second.start(wire.variables("/slow"))
        second.send(wire.record(wire.STDIN))
        wait_until((host.scratch / "slow").exists, 10)
        first.send(wire.stream(wire.STDIN, b"56789"))
        started = time.monotonic()
        assert first.answer().text == "10"
        assert time.monotonic() - started < 4


def test_a_handler_that_closes_its_input_is_no_error(make_host, front):
    host = make_host({"deaf": "exec 0<&-\nprintf 'Content-Type: text/plain\\n\\nok'"})
    client = front(host)
    for _ in range(3):
        answer = client.post("/deaf", bytes(3 << 20))
        assert (answer.status, answer.text, answer.complete) == (200, "ok", True)


def test_connection_is_good_after_a_handler_closed_its_input(make_host):
    host = make_host({"deaf": "exec 0<&-\nprintf 'Content-Type: text/plain\\n\\nok'", "hello": HELLO})
    with host.connect() as conn:
        for _ in range(2):
            answer = wire.request(None, "/deaf", "POST", bytes(3 << 20), conn=conn, keep=True)
            assert (answer.status, answer.text, answer.complete) == (200, "ok", True)
        assert wire.request(None, "/hello", conn=conn, keep=True).text == "hello\n"
    assert not [e for e in host.log(event="request", handler="deaf") if e["status"] != 200]


def test_a_handler_that_ignores_its_input(make_host, front):
    host = make_host({"ignore": HELLO})
    answer = front(host).post("/ignore", bytes(3 << 20))
    assert (answer.status, answer.text, answer.complete) == (200, "hello\n", True)


def test_handlers_have_standard_descriptors_when_the_host_has_none(make_host, front):
    host = make_host({"alive": "echo note >&2 || exit 9\nprintf 'Content-Type: text/plain\\n\\nalive'\n"
                               "ls -l /proc/self/fd >\"$SCRATCH/fds\""},
                     close_standard=True, log={"file": "host.log"})
    client = front(host)
    assert client.get("/alive").text == "alive"
    wait_until(lambda: (host.scratch / "fds").exists() and (host.scratch / "fds").read_text(), 5)
    host.wait_log(event="request", handler="alive")


def test_no_socket_of_the_host_becomes_a_standard_descriptor(make_host):
    from lib import proc
    host = make_host({"hello": HELLO}, close_standard=True, log={"file": "host.log"})
    assert host.request("/hello").text == "hello\n"
    for pid in host.host_pids():
        fds = proc.fds(pid)
        for fd in (0, 1, 2):
            assert fd in fds and not fds[fd].startswith("socket:"), (fd, fds)


def test_a_handler_gets_three_descriptors_and_nothing_else(make_host):
    script = ("#!/usr/bin/python3 -ISu\nimport os, signal\n"
              "fds = [n for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + n)]\n"
              "status = dict(l.split(':\\t', 1) for l in open('/proc/self/status').read().splitlines() if ':\\t' in l)\n"
              "print('Content-Type: text/plain\\n')\n"
              "print(','.join(sorted(fds, key=int)), status['SigBlk'], status['SigIgn'], os.getpgid(0) == os.getpid())\n")
    host = make_host({"fds": script})
    with host.connect() as idle:        # a descriptor of the relay that must not leak
        assert idle
        fds, blocked, ignored, leads = host.request("/fds").text.split()
    assert fds == "0,1,2"
    assert int(blocked, 16) == 0
    # Python itself ignores PIPE and XFSZ.
    assert int(ignored, 16) & ~(1 << 12 | 1 << 24) == 0
    assert leads == "True"


@pytest.mark.parametrize("kind", ["slowly", "one byte a record"])
def test_a_body_in_small_pieces_is_one_body(make_host, kind):
    host = make_host({"digest": "printf 'Content-Type: text/plain\\n\\n'; head -c $CONTENT_LENGTH | sha256sum | cut -c1-64 | tr -d '\\n'"})
    data = pattern(500_000 if kind == "slowly" else 3000)
    with host.connect() as conn:
        conn.start(wire.variables("/digest", "POST", data))
        if kind == "slowly":
            for i in range(0, len(data), 25_000):
                conn.send(wire.stream(wire.STDIN, data[i:i + 25_000], end=False))
                time.sleep(0.02)        # the pace of the sender is the point
            conn.send(wire.record(wire.STDIN))
        else:
            conn.send(wire.stream(wire.STDIN, data, cut=1))
        assert conn.answer().text == sha(data)


@pytest.mark.parametrize("name", ["nginx-streaming", "mod_proxy_fcgi", "mod_fcgid", "nginx-kept"])
def test_a_body_sent_slowly_through_a_web_server(make_host, make_front, name):
    host = make_host({"digest": "printf 'Content-Type: text/plain\\n\\n'; head -c $CONTENT_LENGTH | sha256sum | cut -c1-64 | tr -d '\\n'"})
    client = make_front(name, host)
    data = pattern(500_000)

    def pieces():
        for i in range(0, len(data), 25_000):
            yield data[i:i + 25_000]
            time.sleep(0.02)
    answer = client.request("/digest", "POST", pieces(), headers=[("Content-Length", str(len(data)))])
    assert answer.text == sha(data)


def test_the_record_cut_anywhere_by_the_network(make_host):
    """The bytes of a whole request, one by one."""
    host = make_host({"count": COUNT})
    data = (wire.begin() + wire.stream(wire.PARAMS, wire.pairs(wire.variables("/count", "POST", b"abc")), padding=5)
            + wire.stream(wire.STDIN, b"abc", padding=3))
    with host.connect() as conn:
        import socket
        conn.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1) if conn.socket.family == socket.AF_UNIX else None
        for i in range(len(data)):
            conn.send(data[i:i + 1])
        assert conn.answer().text == "3"


def test_many_bodies_at_once_do_not_mix(make_host):
    host = make_host({"digest": "printf 'Content-Type: text/plain\\n\\n'; sha256sum | cut -c1-64 | tr -d '\\n'"})
    results = {}

    def one(i):
        data = pattern(300_000, seed=i)
        results[i] = host.request("/digest", "POST", data).text == hashlib.sha256(data).hexdigest()
    threads = [threading.Thread(target=one, args=(i,)) for i in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {i: True for i in range(12)}
