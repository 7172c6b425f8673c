"""An idle host does nothing at all."""
import time

import pytest

from lib import proc
from lib.handlers import HELLO, worker


def wake_ups(host, seconds=2):
    pids = host.host_pids()
    before = {p: proc.context_switches(p) for p in pids}
    time.sleep(seconds)     # the time over which nothing must happen
    return {p: proc.context_switches(p) - before[p] for p in pids if proc.context_switches(p) != before[p]}


@pytest.mark.parametrize("state", ["fresh", "after requests", "with kept connections", "with workers"])
def test_no_wake_ups_while_idle(make_host, make_front, fastcgi_program, state):
    handlers = {"h": HELLO}
    if state == "with workers":
        handlers["w"] = worker(fastcgi_program, workers={"min": 2, "max": 4, "idle_timeout": "60s"})
    host = make_host(handlers)
    conns = []
    if state != "fresh":
        for _ in range(3):
            host.request("/h")
        host.wait_log(event="request", count=3)
    if state == "with workers":
        host.request("/w")
    if state == "with kept connections":
        conns = [host.connect() for _ in range(20)]
    time.sleep(0.5)         # what was begun may end
    try:
        assert wake_ups(host) == {}
    finally:
        for conn in conns:
            conn.close()
