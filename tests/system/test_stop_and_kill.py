"""How the host ends, and what it takes with it."""
import os
import select
import signal
import time

import pytest

from lib import proc, wire
from lib.handlers import HELLO, worker
from lib.wait import connects, free_port, wait_until

EVERY_PROCESS = True


def hanging(host, path="/h"):
    conn = host.connect()
    conn.start(wire.variables(path))
    conn.send(wire.record(wire.STDIN))
    wait_until(host.children, 10, "the handler's start")
    return conn


def test_term_while_a_handler_sleeps(make_host):
    host = make_host({"h": "exec sleep 300"}, defaults={"timeout": {"kill": "1s", "response": "0s"}})
    with hanging(host):
        started = time.monotonic()
        assert host.stop() == 0
        assert time.monotonic() - started < 6
    assert not host.children()
    assert not os.path.lexists(host.socket)


def test_term_lets_what_runs_finish(make_host, front):
    host = make_host({"h": "echo > \"$SCRATCH/started\"; sleep 1; " + HELLO}, defaults={"timeout": {"kill": "10s"}})
    client = front(host)
    import threading
    got = []
    asking = threading.Thread(target=lambda: got.append(client.get("/h")))
    asking.start()
    wait_until((host.scratch / "started").exists, 10)
    host.signal(signal.SIGTERM)
    asking.join()
    assert (got[0].status, got[0].text, got[0].complete) == (200, "hello\n", True)
    assert host.process.wait(10) == 0


def test_term_stops_accepting_at_once(make_host):
    host = make_host({"h": "sleep 2; " + HELLO}, defaults={"timeout": {"kill": "5s"}})
    with hanging(host) as conn:
        host.signal(signal.SIGTERM)
        wait_until(lambda: not connects(host.socket), 5, "the end of accepting")
        assert conn.answer().text == "hello\n"
    assert host.process.wait(10) == 0


@pytest.mark.parametrize("listen", ["unix", "tcp"])
def test_term_answers_what_has_reached_the_socket(make_host, listen):
    """Requests on connections that wait to be accepted, and on kept ones that wait to be read."""
    more = {"listen": f"127.0.0.1:{free_port()}"} if listen == "tcp" else {}
    host = make_host({"h": HELLO}, defaults={"timeout": {"kill": "20s"}}, **more)
    kept = [host.connect() for _ in range(5)]
    for conn in kept:
        assert wire.request(None, "/h", conn=conn, keep=True).text == "hello\n"
    os.kill(host.relay, signal.SIGSTOP)
    fresh = [host.connect() for _ in range(100)]
    for conn in kept + fresh:
        conn.start(wire.variables("/h", "POST", b"x"))
        conn.send(wire.stream(wire.STDIN, b"x"))
    host.signal(signal.SIGTERM)
    os.kill(host.relay, signal.SIGCONT)
    answers = [conn.answer() for conn in kept + fresh]
    assert [a.text for a in answers] == ["hello\n"] * 105, [a for a in answers if a.text != "hello\n"][:3]
    assert host.process.wait(20) == 0


def test_term_still_takes_what_is_on_its_way_on_a_kept_connection(make_host):
    """A web server that took the connection at that moment would not send a POST a second time."""
    for _ in range(10):
        host = make_host({"h": HELLO})
        with host.connect() as kept:
            assert wire.request(None, "/h", conn=kept, keep=True).text == "hello\n"
            host.signal(signal.SIGTERM)
            host.wait_log(event="stopping")
            os.kill(host.relay, signal.SIGSTOP)
            is_too_late = select.select([kept.socket], [], [], 0)[0]     # this machine was slow: once more
            kept.start(wire.variables("/h", "POST", b"x"), flags=wire.KEEP)
            kept.send_quietly(wire.stream(wire.STDIN, b"x"))
            os.kill(host.relay, signal.SIGCONT)
            if not is_too_late:
                assert kept.answer().text == "hello\n"
                assert kept.at_end(), "and is closed after it"
        assert host.process.wait(20) == 0
        if not is_too_late:
            return
    raise AssertionError("the connection was always closed before a request could be sent on it")


@pytest.mark.parametrize("server, more", [("nginx/1.22.1", [wire.UNKNOWN]), ("Apache/2.4.62 (Debian)", [])])
def test_term_ends_a_kept_connection_so_that_no_request_is_sent_on_it(make_host, server, more):
    """nginx may use it again before it sees the end, unless more than END_REQUEST has come; Apache looks first."""
    host = make_host({"h": 'echo > "$SCRATCH/started"; until [ -e "$SCRATCH/go" ]; do sleep 0.01; done; ' + HELLO}, defaults={"timeout": {"kill": "20s"}})
    with host.connect() as kept:
        kept.start(wire.variables("/h", SERVER_SOFTWARE=server), flags=wire.KEEP)
        kept.send(wire.record(wire.STDIN))
        wait_until((host.scratch / "started").exists, 10)
        host.signal(signal.SIGTERM)
        host.wait_log(event="stopping")
        (host.scratch / "go").touch()
        assert kept.answer().text == "hello\n"
        assert [r.kind for r in iter(kept.read, None)] == more
    assert host.process.wait(20) == 0


def test_term_serves_who_waits_in_line(make_host):
    host = make_host({"h": {"script": "echo > \"$SCRATCH/started\"; sleep 0.3; " + HELLO, "workers": {"max": 1}}}, defaults={"timeout": {"kill": "20s"}})
    conns = [host.connect() for _ in range(4)]
    for conn in conns:
        conn.start(wire.variables("/h"))
        conn.send(wire.record(wire.STDIN))
    wait_until((host.scratch / "started").exists, 10)
    host.signal(signal.SIGTERM)
    assert [conn.answer().text for conn in conns] == ["hello\n"] * 4
    assert host.process.wait(20) == 0


def test_who_still_waits_in_line_when_the_grace_time_runs_out_is_told(make_host):
    host = make_host({"h": {"script": "echo > \"$SCRATCH/started\"; exec sleep 60", "workers": {"max": 1}}}, defaults={"timeout": {"kill": "2s"}})
    conns = [host.connect() for _ in range(2)]
    for conn in conns:
        conn.start(wire.variables("/h"))
        conn.send(wire.record(wire.STDIN))
        wait_until((host.scratch / "started").exists, 10)
    host.signal(signal.SIGTERM)
    answer = conns[1].answer()
    assert answer.status == 503 and answer.complete and answer.get("Retry-After")
    assert host.process.wait(20) == 0


def test_a_second_term_ends_at_once(make_host):
    host = make_host({"h": "trap '' TERM; while :; do sleep 1; done"}, defaults={"timeout": {"kill": "60s"}})
    with hanging(host):
        host.signal(signal.SIGTERM)
        wait_until(lambda: not connects(host.socket), 5)
        started = time.monotonic()
        host.signal(signal.SIGTERM)
        host.expect_exit = host.process.wait(10)
        assert time.monotonic() - started < 5
    wait_until(lambda: not host.children(), 5)


def test_a_second_term_ends_a_worker_that_is_starting(make_host):
    host = make_host({"w": {"script": "trap '' TERM; echo > \"$SCRATCH/started\"; while :; do sleep 1; done", "protocol": "fastcgi",
                            "timeout": {"start": "60s"}}}, defaults={"timeout": {"kill": "60s"}})
    with hanging(host, "/w"):
        wait_until((host.scratch / "started").exists, 10)
        host.signal(signal.SIGTERM)
        host.wait_log(event="stopping")
        host.signal(signal.SIGTERM)
        assert host.process.wait(10) == 0
    assert not host.children()


def test_stop_with_a_handler_that_ignores_term(make_host):
    host = make_host({"h": "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & while :; do sleep 1; done"},
                     defaults={"timeout": {"kill": "700ms"}})
    with hanging(host):
        assert host.stop() == 0
    assert not host.children()
    assert "KILL" in host.log_text() or "killed" in host.log_text(), "the log says what was killed"


@pytest.mark.per_request
def test_stop_ends_idle_workers(make_host, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"min": 3, "max": 3})})
    wait_until(lambda: len([p for p in host.children() if proc.exe(p) == str(fastcgi_program)]) == 3, 10)
    assert host.stop() == 0
    assert not host.children()


def test_int_stops_too(make_host):
    host = make_host({"h": HELLO})
    host.signal(signal.SIGINT)
    assert host.process.wait(10) == 0


@pytest.mark.parametrize("who", ["relay", "first process"])
def test_when_the_host_is_killed_outright_its_children_end_too(make_host, fastcgi_program, folder, who):
    host = make_host({"h": "trap '' TERM HUP; while :; do sleep 1; done", "w": worker(fastcgi_program, workers={"min": 1, "max": 1})},
                     environment={"RUNTIME_DIRECTORY": str(folder)})
    assert len(list(folder.glob("fcgi-host.*/*"))) == 1, "the worker's socket"
    wait_until(lambda: len(host.children()) >= 1, 10)
    with hanging(host):
        wait_until(lambda: len(host.children()) >= 2, 10)
        everyone = host.host_pids()
        host.was_killed = True
        os.kill(host.relay if who == "relay" else host.process.pid, signal.SIGKILL)
        host.process.wait(10)
        wait_until(lambda: not host.children(), 5, "the end of every handler")
        wait_until(lambda: not [p for p in everyone if proc.is_alive(p)], 5, "the end of the rest of the host")
        assert not list(folder.glob("fcgi-host.*")), "the folder of the workers' sockets is gone too"
    host.start()
    host.was_killed = False
    assert host.request("/w").status == 200, "the next start replaces the dead socket"


def test_when_a_spawner_is_killed_nothing_is_left(make_host):
    host = make_host({"h": "exec sleep 300", "hello": HELLO})
    with hanging(host):
        spawners = [p for p in host.host_pids() if p != host.relay]
        assert spawners
        host.was_killed = True
        for pid in spawners:
            proc.kill_quietly(pid)
        wait_until(lambda: not host.children(), 10, "the end of every handler")
    # Whether the host goes on or ends is not said; that it hangs is out of the question.
    def settled():
        if host.process.poll() is not None:
            return True
        try:
            return host.request("/hello", timeout=5).status in (200, 502, 503)
        except OSError:
            return False        # on its way out
    wait_until(settled, 10)
    if host.process.poll() is None:
        host.stop()


def test_killing_one_handler_costs_no_cpu_afterwards(make_host):
    host = make_host({"h": "echo $$ > \"$SCRATCH/pid\"; exec sleep 300", "hello": HELLO})
    with hanging(host) as conn:
        wait_until(lambda: (host.scratch / "pid").exists() and (host.scratch / "pid").read_text().strip(), 10)
        os.kill(int((host.scratch / "pid").read_text()), signal.SIGKILL)
        assert conn.answer().status == 502
    assert host.request("/hello").text == "hello\n"
    host.check_idle()
    before = proc.cpu_ticks(host.relay)
    time.sleep(1)       # the time over which nothing must happen
    assert proc.cpu_ticks(host.relay) - before <= 2


def test_the_clock_jumps(make_host, folder):
    """The wall clock steps by an hour while a request runs: no limit fires, no duration is negative.

    The host's own idea of wall time is moved by a preloaded library, so that the machine's clock stays."""
    import subprocess
    source = folder / "jump.c"
    source.write_text("""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long jump(void) { const char *f = getenv("JUMP_FILE"); return f && access(f, F_OK) == 0 ? -3600 : 0; }
int clock_gettime(clockid_t c, struct timespec *t) {
	static int (*real)(clockid_t, struct timespec *);
	if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
	int r = real(c, t);
	if (c == CLOCK_REALTIME || c == CLOCK_REALTIME_COARSE) t->tv_sec += jump();
	return r;
}
int gettimeofday(struct timeval *t, void *z) {
	static int (*real)(struct timeval *, void *);
	if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
	int r = real(t, z);
	t->tv_sec += jump();
	return r;
}
time_t time(time_t *t) { struct timespec s; clock_gettime(CLOCK_REALTIME, &s); if (t) *t = s.tv_sec; return s.tv_sec; }
""")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(folder / "jump.so"), str(source), "-ldl"], check=True)
    host = make_host({"h": "echo > \"$SCRATCH/started\"; sleep 0.8; printf 'Content-Type: text/plain\\n\\n'; sleep 0.3; echo hello"}, start=False,
                     environment={"LD_PRELOAD": str(folder / "jump.so"), "JUMP_FILE": str(folder / "jumped")},
                     defaults={"timeout": {"response": "5s", "idle": "5s", "total": "8s"}})
    asan = subprocess.run(["ldd", host.program], capture_output=True, text=True).stdout
    library = [w for w in asan.split() if w.startswith("/") and "libasan" in w]
    if library:
        host.environment["LD_PRELOAD"] = f"{library[0]} {folder}/jump.so"
    host.start()
    with host.connect() as conn:
        conn.start(wire.variables("/h"))
        conn.send(wire.record(wire.STDIN))
        wait_until((host.scratch / "started").exists, 10)
        (folder / "jumped").write_text("")
        answer = conn.answer()
    assert (answer.text, answer.complete) == ("hello\n", True)
    entry = host.wait_log(event="request")
    assert all(entry[n] >= 0 for n in entry if n.endswith("_ms") and entry[n] is not None)
    assert 1000 <= entry["total_ms"] < 10_000


def stopped(host):
    """While the relay stands still, the kernel takes connections and bytes for it."""
    os.kill(host.relay, signal.SIGSTOP)
    wait_until(lambda: proc.stat(host.relay)[0] == "T", 5)


def test_a_request_that_comes_right_after_its_connection_is_answered(make_host):
    """The connection is older than TERM, its bytes are younger."""
    host = make_host({"h": HELLO})
    stopped(host)
    conn = host.connect()
    host.signal(signal.SIGTERM)
    os.kill(host.relay, signal.SIGCONT)
    host.wait_log(event="stopping")
    conn.start(wire.variables("/h"))
    conn.send_quietly(wire.record(wire.STDIN))      # the answer may be over by now
    assert conn.answer().text == "hello\n"
    assert host.process.wait(10) == 0


def test_a_connection_without_a_word_does_not_hold_the_host(make_host):
    host = make_host({"h": HELLO}, defaults={"timeout": {"kill": "60s"}})
    host.connect()
    kept = host.connect()
    assert wire.request(host.address, "/h", conn=kept, keep=True).text == "hello\n"
    started = time.monotonic()
    assert host.stop() == 0
    assert time.monotonic() - started < 10
    assert kept.at_end()


def test_nginx_gets_its_answers_while_the_host_stops(make_host, make_front):
    """Requests on kept connections, POSTs, which nginx does not repeat: none that was let in is without an answer."""
    import threading
    host = make_host({"h": "cat; sleep 0.2; " + HELLO, "hello": HELLO})
    client = make_front("nginx-kept", host)
    for _ in range(3):
        assert client.post("/hello", b"x").status == 200
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(client.post("/h", b"x"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(host.children()) >= 4, 10)
    host.signal(signal.SIGTERM)
    for thread in threads:
        thread.join()
    assert [a.status for a in answers] == [200] * 4
    assert host.process.wait(10) == 0
