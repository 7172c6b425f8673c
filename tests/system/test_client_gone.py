"""The client leaves: what becomes of the process, the connection and the log."""
import socket
import threading
import time

import pytest

from lib import proc, wire
from lib.handlers import COUNT, HELLO, DIGEST, python
from lib.wait import stays, wait_until

EVERY_PROCESS = True

# Ignores PIPE and goes on for ever: only being ended stops the file from growing.
FOREVER = python("""
import signal
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
out.write(b'Content-Type: text/plain\\n\\n')
while True:
    with open(os.environ['SCRATCH'] + '/grows', 'a') as f:
        f.write('tick\\n')
    try:
        os.write(1, b'tick\\n')
    except OSError:
        pass
    time.sleep(0.1)
""")


def size(path):
    return path.stat().st_size if path.exists() else 0


def assert_ended(host, timeout=5):
    wait_until(lambda: not host.children(), timeout, "the end of the handler")
    grown = size(host.scratch / "grows")
    stays(lambda: size(host.scratch / "grows") == grown, 0.5, "the file's size")


@pytest.mark.parametrize("how", ["close", "ABORT_REQUEST", "reset"])
def test_a_client_that_goes_away_ends_the_process_raw(make_host, how):
    host = make_host({"forever": FOREVER}, defaults={"timeout": {"kill": "500ms"}})
    with host.connect() as conn:
        conn.start(wire.variables("/forever"), flags=wire.KEEP)
        conn.send(wire.record(wire.STDIN))
        seen = b""
        while seen.count(b"tick") < 3:
            seen += conn.read().content
        if how == "ABORT_REQUEST":
            conn.send(wire.record(wire.ABORT))
            answer = conn.answer()
            assert answer.end is not None or conn.is_broken or answer.records == [] or not answer.complete
        elif how == "reset":
            conn.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert_ended(host)
    entry = host.wait_log(event="request", handler="forever")
    assert entry["total_ms"] > 100
    assert entry["bytes_out"] >= 15
    assert "closed the connection" in entry["reason"] or "abort" in entry["reason"].lower()


@pytest.mark.parametrize("name", ["nginx-streaming", "nginx-kept", "nginx-plain", "mod_proxy_fcgi", "mod_fcgid"])
def test_a_client_that_goes_away_ends_the_process(make_host, make_front, name):
    host = make_host({"forever": FOREVER}, defaults={"timeout": {"kill": "500ms"}})
    # What mod_fcgid holds back it does not try to write, and so cannot notice.
    client = make_front(name, host, after="FcgidOutputBufferSize 0")
    with socket.create_connection(("127.0.0.1", client.port)) as conn:
        conn.sendall(b"GET /forever HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_until(lambda: size(host.scratch / "grows") > 10, 10)
        if client.streams_output:
            conn.settimeout(10)
            assert b"tick" in conn.recv(4096) + conn.recv(4096)
    assert_ended(host, 15)
    entry = host.wait_log(event="request", handler="forever")
    assert entry["total_ms"] > 100 and entry["bytes_out"] >= 5
    assert entry["reason"]


def test_on_abort_finish_lets_the_process_end_by_itself(make_host):
    script = "printf 'Content-Type: text/plain\\n\\n'; echo > \"$SCRATCH/started\"; trap '' PIPE; while [ ! -e \"$SCRATCH/go\" ]; do sleep 0.05; done; echo done; echo > \"$SCRATCH/finished\""
    host = make_host({"h": {"script": script, "on_abort": "finish"}})
    with host.connect() as conn:
        conn.start(wire.variables("/h"))
        conn.send(wire.record(wire.STDIN))
        wait_until((host.scratch / "started").exists, 10)
    stays(lambda: bool(host.children()), 0.5, "the handler's life")
    (host.scratch / "go").write_text("")
    wait_until((host.scratch / "finished").exists, 10)
    host.wait_log(event="request", handler="h")


@pytest.mark.parametrize("script, limits, says", [
    ("echo > \"$SCRATCH/started\"; exec sleep 300", {"response": "1s", "idle": "60s"}, "timeout.response"),
    ("printf 'Content-Type: text/plain\\n\\nbegun'; echo > \"$SCRATCH/started\"; exec sleep 300", {"response": "60s", "idle": "1s"}, "timeout.idle"),
], ids=["before the header", "in the body"])
def test_a_process_that_may_finish_keeps_its_limits_of_time(make_host, script, limits, says):
    host = make_host({"h": {"script": script, "on_abort": "finish", "timeout": limits}})
    with host.connect() as conn:
        conn.start(wire.variables("/h"))
        conn.send(wire.record(wire.STDIN))
        wait_until((host.scratch / "started").exists, 10)
    assert says in host.wait_log(event="limit")["msg"]
    host.wait_log(event="request", handler="h")
    assert not host.children()


@pytest.mark.parametrize("how", ["close", "ABORT_REQUEST"])
def test_a_client_lost_in_the_body_never_gives_half_a_body_for_a_whole_one(make_host, how):
    """The process is ended before its input is closed."""
    host = make_host({"h": "trap '' TERM; n=$(wc -c); echo $n > \"$SCRATCH/whole\"; " + HELLO}, defaults={"timeout": {"kill": "300ms"}})
    for chunked in (False, True):
        conn = host.connect()
        params = wire.variables("/h", "POST", bytes(100_000))
        if chunked:
            del params["CONTENT_LENGTH"]
        conn.start(params)
        conn.send(wire.stream(wire.STDIN, bytes(50_000), end=False))
        wait_until(host.children, 10, "the handler's start")
        if how == "ABORT_REQUEST":
            conn.send(wire.record(wire.ABORT))
            conn.answer()
        conn.close()
        wait_until(lambda: not host.children(), 10, "the end of the handler")
        assert not (host.scratch / "whole").exists()
    assert all(e["reason"] for e in host.wait_log(event="request", count=2))


def test_a_client_that_hangs_up_in_the_body_through_nginx(make_host, make_front):
    host = make_host({"h": "n=$(wc -c); echo $n > \"$SCRATCH/whole\"; " + HELLO})
    client = make_front("nginx-streaming", host)
    with socket.create_connection(("127.0.0.1", client.port)) as conn:
        conn.sendall(b"POST /h HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" + bytes(50_000))
        wait_until(host.children, 10, "the handler's start")
    wait_until(lambda: not host.children(), 10, "the end of the handler")
    assert not (host.scratch / "whole").exists()


def test_half_closing_after_the_body_is_no_abort(make_host):
    host = make_host({"count": "n=$(wc -c); sleep 0.3; printf 'Content-Type: text/plain\\n\\n%s' $n"})
    with host.connect() as conn:
        conn.start(wire.variables("/count", "POST", b"0123456789"))
        conn.send(wire.stream(wire.STDIN, b"0123456789"))
        conn.shut()
        answer = conn.answer()
    # A half-closed connection may or may not count as a lost client; half an answer it never gives.
    assert (answer.text, answer.complete) == ("10", True) or not answer.complete


def test_a_slow_client_does_not_lose_the_end_of_the_answer(make_host):
    """The answer stands in the socket when the host closes; input is unread."""
    host = make_host({"h": python("out.write(b'Content-Type: text/plain\\n\\n' + b'z' * 150000)")})
    with host.connect() as conn:
        conn.start(wire.variables("/h", "POST", bytes(400_000)))
        sender = threading.Thread(target=conn.send_quietly, args=(wire.stream(wire.STDIN, bytes(400_000)),))
        sender.start()
        wait_until(lambda: host.log(event="request") or not host.children(), 10)
        time.sleep(0.2)     # a client that takes its time before it reads
        answer = conn.answer()
        sender.join()
    assert (len(answer.body), answer.complete) == (150_000, True)


def test_the_front_gives_up_before_the_handler_answers(make_host, make_front):
    """An answer slower than the front's read timeout: the log says who closed, after how long and how many bytes."""
    host = make_host({"slow": "cat >/dev/null; sleep 30; " + HELLO})
    client = make_front("nginx-streaming", host, read_timeout="1s")
    assert client.post("/slow", b"12345").status == 504
    entry = host.wait_log(event="request", handler="slow")
    assert entry["bytes_in"] == 5 and entry["bytes_out"] == 0
    assert 500 < entry["total_ms"] < 10_000
    assert entry["reason"]
    wait_until(lambda: not host.children(), 5, "the end of the handler")


def test_a_large_post_through_mod_fcgid(make_host, make_front):
    """mod_fcgid's own limit is 131072 by default: the shipped configuration raises it."""
    host = make_host({"digest": DIGEST, "count": COUNT})
    assert make_front("mod_fcgid", host).post("/count", bytes(200_000)).text == "200000"


def test_hundreds_of_clients_that_leave_leave_nothing(make_host):
    host = make_host({"hello": HELLO, "slow": "sleep 20; " + HELLO}, defaults={"workers": {"max": 4}})
    for i in range(250):
        conn = host.connect()
        conn.send(wire.begin(), wire.stream(wire.PARAMS, wire.pairs(wire.variables("/slow" if i % 10 == 0 else "/hello"))))
        if i % 3 == 0:
            conn.send(wire.record(wire.STDIN))
        conn.close()
    wait_until(lambda: not host.children(), 20, "the end of every handler")
    assert host.request("/hello").text == "hello\n"


@pytest.mark.parametrize("keys", [{}, {"protocol": "stdio"}], ids=["cgi", "stdio"])
def test_a_client_that_has_half_closed_and_then_leaves_ends_the_process(make_host, keys):
    host = make_host({"h": {"script": "echo > \"$SCRATCH/begun\"; exec sleep 50", **keys}})
    with host.connect() as conn:
        conn.start(wire.variables("/h"))
        conn.send(wire.record(wire.STDIN))
        conn.shut()
        wait_until((host.scratch / "begun").exists, 10)
        stays(host.children, 0.3, "the process")
    wait_until(lambda: not host.children(), 5, "the end of the process")
    assert host.wait_log(event="request")["status"] == 499


def test_a_half_closed_client_costs_nothing_while_it_waits(make_host):
    host = make_host({"h": "while [ ! -e $SCRATCH/go ]; do sleep 0.05; done; " + HELLO})
    with host.connect() as conn:
        conn.start(wire.variables("/h"))
        conn.send(wire.record(wire.STDIN))
        conn.shut()
        wait_until(host.children, 10)
        before = proc.cpu_ticks(host.relay)
        time.sleep(0.5)         # what it must not use is time
        assert proc.cpu_ticks(host.relay) - before <= 10
        (host.scratch / "go").touch()
        assert conn.answer().text == "hello\n"


@pytest.mark.parametrize("script", ["out.write(b'x' * 250000)", "out.write(b'Content-Type: text/plain\\n\\n' + b'x' * 250000)\nout.flush()\nos.kill(os.getpid(), 9)"],
                         ids=["whole", "broken"])
def test_a_client_that_never_takes_the_end_of_its_answer_is_given_up(make_host, script):
    head = "out.write(b'Content-Type: text/plain\\n\\n')\n" if script.startswith("out.write(b'x'") else ""
    host = make_host({"h": {"script": python(head + script), "timeout": {"idle": "400ms"}}})
    conn = host.connect()
    conn.start(wire.variables("/h"), flags=wire.KEEP)
    conn.send(wire.record(wire.STDIN))
    host.wait_log(event="request")
    assert "did not take the end of an answer" in host.wait_log(event="client")["msg"]
    assert not conn.answer().complete


def test_who_takes_it_slowly_gets_all_of_it(make_host):
    host = make_host({"h": {"script": python("out.write(b'Content-Type: text/plain\\n\\n' + b'x' * 250000)"), "timeout": {"idle": "1s"}}})
    conn = host.connect()
    conn.start(wire.variables("/h"), flags=wire.KEEP)
    conn.send(wire.record(wire.STDIN))
    host.wait_log(event="request")
    conn.read()
    answer = conn.answer()
    assert answer.end == (0, 0)
    time.sleep(1.2)             # past the limit: it was for that answer only
    assert wire.request(host.address, "/h", conn=conn, keep=True).complete
    assert not host.log(event="client")
