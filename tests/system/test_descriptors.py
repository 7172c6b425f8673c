"""Descriptors: more than 1024, and what happens when they run short."""
import re

import pytest

from lib import proc, wire
from lib.handlers import HELLO
from lib.wait import stays, wait_until

EVERY_PROCESS = True


def kept(host):
    conn = host.connect()
    answer = wire.request(None, "/h", conn=conn, keep=True)
    assert answer.text == "hello\n"
    return conn


@pytest.mark.parametrize("limits", [None, (1024, 4096)], ids=["raised before", "the usual soft limit"])
def test_more_than_1024_descriptors(make_host, limits):
    host = make_host({"h": HELLO}, files=limits)
    conns = [host.connect() for _ in range(1300)]
    for conn in conns[::100] + conns[-3:]:
        assert wire.request(None, "/h", conn=conn, keep=True).text == "hello\n"
    assert len(proc.fds(host.relay)) > 1300
    for conn in conns:
        conn.close()


def test_a_handler_does_not_see_the_relays_limit(make_host):
    """A program that closes every descriptor up to its limit must not have to close thousands more for our sake."""
    host = make_host({"h": "printf 'Content-Type: text/plain\\n\\n'; ulimit -Sn"}, files=(1024, 4096))
    assert host.request("/h").text == "1024\n"


def test_when_descriptors_run_short_the_listener_pauses_and_comes_back(make_host):
    host = make_host({"h": HELLO}, files=(64, 64))
    about = re.compile("descriptor|Too many open files|EMFILE")
    first = kept(host)
    conns = [host.connect() for _ in range(100)]
    wait_until(lambda: [line for line in host.log_lines() if about.search(line)], 10, "saying that descriptors are short")
    ticks = proc.cpu_ticks(host.relay)
    stays(lambda: host.is_running(), 1, "the host's life")
    assert proc.cpu_ticks(host.relay) - ticks <= 20, "a busy loop around accept"
    paused = [line for line in host.log_lines() if about.search(line) and "event=request" not in line]
    assert len(paused) == 1, f"said once: {paused}"

    # A connection that was there before is served, at worst with a proper refusal.
    answer = wire.request(None, "/h", conn=first, keep=True)
    assert answer.complete and answer.status in (200, 503)
    if answer.status == 503:
        assert answer.get("Retry-After") is not None
    for conn in conns:
        conn.close()
    assert wire.request(None, "/h", conn=first, keep=True).text == "hello\n"
    assert host.request("/h").text == "hello\n", "it comes back by itself"
    first.close()


def test_a_shortage_is_503_and_ends(make_host):
    host = make_host({"h": "while [ ! -e \"$SCRATCH/go\" ]; do sleep 0.05; done; " + HELLO}, files=(64, 64))
    conns = []
    for _ in range(25):
        conn = host.connect()
        conn.start(wire.variables("/h"))
        conn.send(wire.record(wire.STDIN))
        conns.append(conn)
    wait_until(lambda: host.log(event="request") or len(host.children()) >= 8, 10)
    (host.scratch / "go").write_text("")
    answers = [c.answer() for c in conns]
    assert all(a.complete and a.status in (200, 503) for a in answers), answers
    assert any(a.status == 200 for a in answers)
    for conn in conns:
        conn.close()
    assert host.request("/h").text == "hello\n"
