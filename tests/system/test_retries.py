"""A worker that fails before it has answered: what is tried once more, with what, and on whom."""
import os
import signal
import socket

from lib import proc, wire
from lib.handlers import faulty, worker
from lib.wait import stays, wait_until
from test_persistent_workers import pid_of

# More than a unix socket holds, so that a part of the request cannot be sent yet.
LARGE = {"HTTP_X_LARGE": "v" * 230_000}


def start(host, path, method="GET", body=b""):
    conn = host.connect()
    conn.start({**wire.variables(path, method, body), **LARGE})
    conn.send(wire.stream(wire.STDIN, body))
    return conn


def test_a_worker_that_refused_the_rest_of_a_request_and_died_is_replaced(make_host):
    """Whoever is asked next gets all of the request, its end as well."""
    host = make_host({"w": faulty("dies-on-accept-once", workers={"max": 2}, timeout={"response": "8s"})})
    conn = start(host, "/w")
    wait_until((host.scratch / "attempts").exists, 10, "an accept")
    (host.scratch / "go").write_text("")
    answer = conn.answer()
    assert answer.status == 200 and "body=0" in answer.text, answer
    assert host.wait_log(event="retry")


def test_a_worker_that_reads_nothing_of_a_body_and_answers(make_host):
    """Its end of the connection is shut for reading while a part of the body is still ours: its answer counts all the same."""
    host = make_host({"w": faulty("answers-unread", workers={"max": 1})})
    conn = start(host, "/w", "POST", b"b" * 60_000)
    wait_until(lambda: (host.scratch / "starts").exists(), 10)
    (host.scratch / "go").write_text("")
    answer = conn.answer()
    assert (answer.status, answer.text, answer.complete) == (200, "unread", True)
    assert host.request("/w", "POST", b"b" * 60_000).text == "unread"


def socket_of(pid):
    """The path that a worker listens at."""
    inode = os.readlink(f"/proc/{pid}/fd/0")[8:-1]
    with open("/proc/net/unix") as f:
        return next(line.split()[7] for line in f if line.split()[6] == inode)


def test_a_body_that_was_refused_is_not_sent_again_without_its_beginning(make_host):
    """Even where somebody else's connection waits behind it, so that it looks as if nothing had been accepted."""
    host = make_host({"w": faulty("refuses-and-dies", workers={"max": 2}, timeout={"response": "8s"})})
    conn = start(host, "/w", "POST", b"b" * 60_000)
    wait_until((host.scratch / "attempts").exists, 10, "an accept")
    pid = int((host.scratch / "attempts").read_text().split()[0])
    with socket.socket(socket.AF_UNIX) as behind:
        behind.connect(socket_of(pid))
        (host.scratch / "go").write_text("")
        assert conn.answer().status == 502
    assert len((host.scratch / "attempts").read_text().splitlines()) == 1, "tried once"


def test_a_retry_goes_to_no_worker_that_is_about_to_end(make_host, fastcgi_program):
    """The news of the exit is late: until it comes, nothing is given to that worker again."""
    host = make_host({"w": worker(fastcgi_program, workers={"min": 2, "max": 2}, timeout={"response": "8s"})})
    wait_until(lambda: len([p for p in host.children() if proc.exe(p) == str(fastcgi_program)]) == 2, 10)
    first = pid_of(host.request("/w"))
    spawners = [p for p in host.host_pids() if p != host.relay]
    with host.connect() as conn:
        conn.start(wire.variables("/w?sleep=300"))
        conn.send(wire.record(wire.STDIN))
        # Whichever has it is killed, and the spawners do not tell.
        for pid in spawners:
            os.kill(pid, signal.SIGSTOP)
        try:
            busy = [p for p in host.children() if proc.exe(p) == str(fastcgi_program)]
            assert first in busy
            proc.kill_quietly(first)
            wait_until(lambda: not proc.is_alive(first), 10)
            stays(lambda: not host.log(event="retry"), 0.3, "the wait for the news")
        finally:
            for pid in spawners:
                os.kill(pid, signal.SIGCONT)
        answer = conn.answer()
    assert answer.status == 200 and pid_of(answer) != first, (answer, host.log_text()[-2000:])
    assert len(host.wait_log(event="retry", count=1)) > 0
