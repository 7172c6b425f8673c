"""log.slow: a slow request is logged while it still runs, once, with what it waits for."""
import signal
import threading

import pytest

from lib import logs, wire
from lib.handlers import HELLO, python, worker
from lib.wait import wait_until

EVERY_PROCESS = True

SLOW_FIELDS = ["time", "level", "event", "id", "route", "handler", "process", "pid", "method", "path", "stage", "elapsed_ms"]
WAITS = "touch $SCRATCH/begun; while [ ! -e $SCRATCH/go ]; do sleep 0.02; done; "


def go(host):
    (host.scratch / "go").touch()


def begin(host, path, method="GET", **more):
    conn = host.connect()
    conn.start(wire.variables(path, method, **more))
    return conn


def test_a_handler_that_takes_long(make_host, front):
    host = make_host({"h": WAITS + HELLO}, log={"slow": "200ms"})
    client = front(host)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(client.get("/h/x")))
    thread.start()
    entry = host.wait_log(event="slow")
    assert not host.log(event="request"), "it still runs"
    assert list(entry) == SLOW_FIELDS
    assert (entry["level"], entry["handler"], entry["route"], entry["method"], entry["path"]) == ("warning", "h", "/h/*", "GET", "/h/x")
    assert entry["stage"] == "handler" and entry["process"] == (host.cgi_process or "per-request")
    assert 200 <= entry["elapsed_ms"] < 10000
    go(host)
    thread.join()
    assert answers[0].body == b"hello\n"
    done = host.wait_log(event="request")
    assert (done["id"], done["pid"]) == (entry["id"], entry["pid"])
    assert done["total_ms"] >= entry["elapsed_ms"]
    assert len(host.log(event="slow")) == 1


def test_in_json(make_host):
    host = make_host({"h": WAITS + HELLO}, log={"slow": "100ms", "format": "json"})
    conn = begin(host, "/h")
    conn.send(wire.record(wire.STDIN))
    entry = host.wait_log(event="slow")
    assert list(entry) == SLOW_FIELDS and entry["pid"] > 1
    go(host)
    assert conn.answer().complete


def test_a_body_that_does_not_come(make_host):
    host = make_host({"h": "cat > /dev/null; " + HELLO}, log={"slow": "150ms"})
    conn = begin(host, "/h", "POST", body=b"0123456789")
    conn.send(wire.record(wire.STDIN, 1, b"01234"))
    assert host.wait_log(event="slow")["stage"] == "body"
    conn.send(wire.record(wire.STDIN, 1, b"56789"), wire.record(wire.STDIN))
    assert conn.answer().complete
    assert len(host.log(event="slow")) == 1


def test_a_body_that_is_gathered_first(make_host):
    host = make_host({"h": {"script": "cat > /dev/null; " + HELLO, "body": {"chunked": "spool"}}}, log={"slow": "150ms"})
    conn = begin(host, "/h", "POST")
    conn.send(wire.record(wire.STDIN, 1, b"01234"))
    entry = host.wait_log(event="slow")
    assert (entry["stage"], entry["pid"]) == ("body", None)
    conn.send(wire.record(wire.STDIN))
    assert conn.answer().complete


def test_a_body_that_the_handler_does_not_read(make_host):
    host = make_host({"h": WAITS + "cat > /dev/null; " + HELLO}, log={"slow": "300ms"})
    conn = begin(host, "/h", "POST", body=bytes(1 << 20))
    conn.send(wire.record(wire.STDIN, 1, bytes(65000)), wire.record(wire.STDIN, 1, bytes(65000)))
    assert host.wait_log(event="slow")["stage"] == "handler"
    go(host)
    conn.send(wire.stream(wire.STDIN, bytes((1 << 20) - 130000)))
    assert conn.answer().complete


def test_the_line(make_host):
    host = make_host({"h": {"script": WAITS + HELLO, "workers": {"max": 1}}}, log={"slow": "200ms"})
    first = begin(host, "/h/first")
    first.send(wire.record(wire.STDIN))
    wait_until((host.scratch / "begun").exists, 10)
    second = begin(host, "/h/second")
    second.send(wire.record(wire.STDIN))
    entry = wait_until(lambda: host.log(event="slow", path="/h/second"), 10)[0]
    assert (entry["stage"], entry["pid"]) == ("queue", None)
    go(host)
    assert first.answer().complete and second.answer().complete
    assert len(host.log(event="slow")) == 2


def test_an_answer_that_stops_half_way(make_host):
    host = make_host({"h": "printf 'Content-Type: text/plain\\n\\nbegun'; " + WAITS}, log={"slow": "200ms"})
    conn = begin(host, "/h")
    conn.send(wire.record(wire.STDIN))
    assert host.wait_log(event="slow")["stage"] == "answer"
    go(host)
    assert conn.answer().complete


@pytest.mark.parametrize("keys", [{}, {"protocol": "stdio"}], ids=["cgi", "stdio"])
def test_a_client_that_does_not_read(make_host, keys):
    script = python("out.write(b'Content-Type: text/plain\\n\\n' + b'x' * 4000000)")
    host = make_host({"h": {"script": script, **keys}}, log={"slow": "300ms"})
    conn = begin(host, "/h")
    conn.send(wire.record(wire.STDIN))
    assert host.wait_log(event="slow")["stage"] == "client"
    assert len(conn.answer().stdout) >= 4000000


@pytest.mark.per_request
def test_a_worker_that_takes_long(make_host, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program)}, log={"slow": "200ms"})
    answer = host.request("/w?sleep=600")
    assert answer.status == 200
    entry = host.wait_log(event="slow")
    assert (entry["stage"], entry["process"]) == ("handler", "persistent")
    assert f"pid={entry['pid']} " in answer.text


@pytest.mark.per_request
def test_a_program_that_takes_long_to_start(make_host):
    """A worker that does not accept yet: its request is in line for it."""
    from lib.handlers import faulty
    host = make_host({"w": faulty("never-accepts", timeout={"start": "2s", "kill": "300ms"})}, log={"slow": "200ms"})
    conn = begin(host, "/w")
    conn.send(wire.record(wire.STDIN))
    assert host.wait_log(event="slow")["stage"] in ("queue", "start")
    assert conn.answer().status in (503, 504)


def test_fast_requests_leave_none(make_host, front):
    host = make_host({"h": HELLO}, log={"slow": "20s"})
    client = front(host)
    for _ in range(5):
        client.get("/h")
    host.wait_log(event="request", count=5)
    assert not host.log(event="slow")


def test_whoever_has_the_answer_is_not_slow(make_host):
    """The process goes on after its answer: nobody waits for that."""
    host = make_host({"h": "printf 'Content-Type: text/plain\\nContent-Length: 2\\n\\nok'; exec >&-; " + WAITS}, log={"slow": "150ms"})
    assert host.request("/h").body == b"ok"
    wait_until((host.scratch / "begun").exists, 10)
    conn = begin(host, "/h")       # the second one's line would come later than the first one's
    conn.send(wire.record(wire.STDIN))
    assert conn.answer().stdout.endswith(b"ok")
    go(host)
    host.wait_log(event="request", count=2)
    assert not host.log(event="slow")


def test_it_can_be_reloaded(make_host):
    host = make_host({"h": WAITS + HELLO})
    host.write_text(host.config.read_text().replace("handlers:", "log: {slow: 150ms}\nhandlers:", 1))
    host.signal(signal.SIGHUP)
    host.wait_log(event="reloaded")
    conn = begin(host, "/h")
    conn.send(wire.record(wire.STDIN))
    assert host.wait_log(event="slow")["handler"] == "h"
    go(host)
    assert conn.answer().complete


def test_the_line_is_one_of_ours(make_host):
    host = make_host({"h": WAITS + HELLO}, log={"slow": "100ms"})
    conn = begin(host, "/h/a%20b%0Aevent=request")
    conn.send(wire.record(wire.STDIN))
    host.wait_log(event="slow")
    assert all(logs.parse(line) for line in host.log_lines())
    go(host)
    conn.answer()
