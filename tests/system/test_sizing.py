"""How many workers there are, when they are ready, and when they are replaced."""
import collections
import json
import threading

import pytest

from lib import proc, wire
from lib.handlers import HELLO, worker
from lib.wait import stays, wait_until
from test_persistent_workers import PID, in_parallel, pid_of


def workers_of(host, program):
    """Pids of running workers, whatever their command line says."""
    return sorted(p for p in proc.marked(host.folder) if str(program).encode() in proc._read(p, "cmdline").split(b"\0"))


def status_of(host, handler="w"):
    done = host.command("status", "--json", "-c", str(host.config))
    return next(h for h in json.loads(done.stdout)["handlers"] if h["name"] == handler)


def late(program, seconds, **keys):
    return {"script": f"#!/bin/sh\n/usr/bin/sleep {seconds}\nexec {program}\n", "protocol": "fastcgi", **keys}


def test_a_slow_starter_costs_waiting_and_no_error(make_host, front, fastcgi_program):
    host = make_host({"w": late(fastcgi_program, 1, workers={"max": 2})})
    client = front(host)
    answers = in_parallel(4, lambda i: client.get("/w"))
    assert [getattr(a, "status", a) for a in answers] == [200] * 4


def test_a_worker_that_is_not_ready_in_time_is_killed(make_host, fastcgi_program):
    host = make_host({"w": late(fastcgi_program, 60, workers={"max": 1}, timeout={"start": "300ms"}), "hello": HELLO})
    answer = host.request("/w")
    assert answer.status == 503 and answer.get("Retry-After")
    assert any("timeout.start" in line for line in host.log_lines())
    assert host.request("/hello").text == "hello\n"


def test_requests_go_to_a_worker_that_is_free_while_another_still_starts(make_host, folder, fastcgi_program):
    """The second worker takes 20 s to start; the one that is there serves meanwhile."""
    first = folder / "first"
    script = f"#!/bin/sh\nif mkdir {first} 2>/dev/null; then exec {fastcgi_program}; fi\n/usr/bin/sleep 20\nexec {fastcgi_program}\n"
    host = make_host({"w": {"script": script, "protocol": "fastcgi", "workers": {"max": 2}, "timeout": {"start": "30s"}}})
    assert host.request("/w").status == 200
    answers = in_parallel(6, lambda i: host.request("/w?sleep=20"))
    assert [getattr(a, "status", a) for a in answers] == [200] * 6
    assert max(a.elapsed for a in answers) < 5


def test_a_spare_worker_is_ready_while_another_works(make_host, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"min": 0, "max": 4, "spare": 2})})
    busy = threading.Thread(target=host.request, args=("/w?sleep=3000",))
    busy.start()
    wait_until(lambda: len(workers_of(host, fastcgi_program)) == 3, 5, "one at work and two spare")
    busy.join()


def test_spares_go_when_nothing_is_at_work(make_host, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"min": 0, "max": 4, "spare": 2, "idle_timeout": "300ms"})})
    assert host.request("/w?sleep=300").status == 200
    wait_until(lambda: not workers_of(host, fastcgi_program), 10, "no worker left")


@pytest.mark.limit(90)
def test_lifetimes_are_spread_and_the_pool_is_never_small(make_host, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"min": 4, "max": 4, "spare": 0, "max_requests": 50, "jitter": "20%"})})
    wait_until(lambda: len(workers_of(host, fastcgi_program)) == 4, 10)
    stop, counts = threading.Event(), []

    def watch():
        while not stop.is_set():
            processes = status_of(host)["processes"]
            counts.append(processes["idle"] + processes["busy"])
    watcher = threading.Thread(target=watch)
    watcher.start()
    answers = [a for batch in in_parallel(4, lambda i: [host.request("/w") for _ in range(250)]) for a in batch]
    stop.set()
    watcher.join()
    assert all(a.status == 200 for a in answers)
    served = collections.Counter()
    for answer in answers:
        served[pid_of(answer)] = max(served[pid_of(answer)], int(PID.search(answer.text).group(2)))
    finished = [n for n in served.values() if n >= 40]
    assert max(served.values()) <= 60
    assert len(finished) >= 1000 // 60
    assert len(set(finished)) > 3, f"all alike: {sorted(finished)}"
    assert min(counts) >= 3


def test_workers_have_an_age(make_host, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"min": 2, "max": 2, "max_age": "1s"})})
    wait_until(lambda: len(workers_of(host, fastcgi_program)) == 2, 10)
    before = set(workers_of(host, fastcgi_program))
    wait_until(lambda: len(workers_of(host, fastcgi_program)) >= 2 and not before & set(workers_of(host, fastcgi_program)), 15, "all were replaced")
    assert host.request("/w").status == 200


def test_a_worker_that_holds_too_much_memory_is_replaced(make_host, fastcgi_program, folder):
    hoarder = ("#!/usr/bin/perl\nuse FCGI;\nmy @kept;\nmy $r = FCGI::Request();\nwhile ($r->Accept() >= 0) {\n"
               "push @kept, 'x' x (8 << 20);\nprint \"Content-Type: text/plain\\r\\n\\r\\npid=$$ served=1\";\n}\n")
    host = make_host({"w": {"script": hoarder, "protocol": "fastcgi", "workers": {"max": 1, "spare": 0}, "limits": {"memory": "64MiB"}}})
    pids = [pid_of(host.request("/w")) for _ in range(40)]
    assert len(set(pids)) >= 3, "it was never replaced"
    assert len(set(pids)) <= 20, "it was replaced all the time"


def test_a_greedy_handler_leaves_what_another_has_reserved(make_host, fastcgi_program):
    host = make_host({
        "greedy": {"script": "exec /usr/bin/sleep 30", "workers": {"max": 50}, "queue": {"max": 100, "timeout": "20s"}, "timeout": {"response": "60s"}},
        "modest": {"script": "printf 'Content-Type: text/plain\\n\\nok'", "workers": {"max": 4, "reserved": 1}},
    }, max_processes=4)
    conns = []
    for _ in range(20):
        conn = host.connect()
        conn.send(wire.begin() + wire.stream(wire.PARAMS, wire.pairs(wire.variables("/greedy"))) + wire.record(wire.STDIN))
        conns.append(conn)
    wait_until(lambda: len([p for p in host.children() if b"sleep" in proc._read(p, "cmdline")]) == 3, 10, "three of four are taken")
    for _ in range(5):
        answer = host.request("/modest")
        assert (answer.status, answer.text) == (200, "ok")
        assert answer.elapsed < 2
    assert len([p for p in host.children() if b"sleep" in proc._read(p, "cmdline")]) == 3
    for conn in conns:
        conn.close()


@pytest.mark.parametrize("order", [("greedy", "modest"), ("modest", "greedy")])
def test_without_a_reservation_a_greedy_handler_does_not_take_all_that_becomes_free(make_host, order):
    handlers = {"greedy": {"script": "sleep 0.3; " + HELLO, "workers": {"max": 50}, "queue": {"max": 100, "timeout": "60s"}},
                "modest": {"script": HELLO, "workers": {"max": 4}}}
    host = make_host({name: handlers[name] for name in order}, max_processes=2)
    conns = [host.connect(60) for _ in range(30)]
    for conn in conns:
        conn.start(wire.variables("/greedy"))
        conn.send(wire.record(wire.STDIN))
    wait_until(lambda: status_of(host, "greedy")["waiting"] == 28, 10)
    assert host.request("/modest").text == "hello\n"
    assert status_of(host, "greedy")["waiting"] > 10, "it did not have to wait for all of the greedy one's"
    for conn in conns:
        conn.close()


def test_idle_workers_make_room_for_another_handler(make_host, fastcgi_program):
    host = make_host({"a": worker(fastcgi_program, workers={"min": 0, "max": 4, "idle_timeout": "60s"}), "hello": HELLO}, max_processes=2)
    answers = in_parallel(2, lambda i: host.request("/a?sleep=200"))
    assert [a.status for a in answers] == [200, 200]
    answer = host.request("/hello")
    assert (answer.status, answer.text) == (200, "hello\n")


def test_who_wants_more_than_there_is_takes_nothing_from_another_for_ever(make_host, fastcgi_program):
    """What is to be ready ahead is no reason to end what another has ready."""
    keys = {"workers": {"min": 2, "max": 2}}
    host = make_host({name: worker(fastcgi_program, **keys) for name in ("a", "b")}, max_processes=3)
    wait_until(lambda: len(workers_of(host, fastcgi_program)) == 3, 10)
    stays(lambda: sum(status_of(host, name)["started"] for name in ("a", "b")) == 3, 0.5, "the three that there are")
    # Who needs one gets it, and what was taken comes back when there is room for it.
    for answers in (in_parallel(2, lambda i: host.request(f"/{name}?sleep=100")) for name in "abab"):
        assert [a.status for a in answers] == [200, 200]
    assert len(workers_of(host, fastcgi_program)) <= 3


def test_limits_reach_the_process(make_host):
    host = make_host({"h": {"script": "printf 'Content-Type: text/plain\\n\\n%s %s %s' $(ulimit -n) $(ulimit -d) $(ulimit -t)",
                            "limits": {"files": 77, "memory": "128MiB", "cpu": "9s"}}})
    assert host.request("/h").text == f"77 {128 * 1024} 9"


def test_a_process_over_its_time_of_the_processor_is_ended(make_host):
    host = make_host({"h": {"script": "while :; do :; done", "limits": {"cpu": "1s"}, "timeout": {"response": "30s"}}})
    answer = host.request("/h", timeout=20)
    assert answer.status == 502
    entry = host.wait_log(event="request", handler="h")
    assert "24" in str(entry["signal"])


def test_a_backlog_above_somaxconn_is_said(make_host):
    with open("/proc/sys/net/core/somaxconn") as f:
        somaxconn = int(f.read())
    if somaxconn >= 65535:
        pytest.skip("somaxconn is as large as a backlog may be")
    host = make_host({"h": HELLO}, start=False)
    text = host.config.read_text().replace('mode: "0666"', f'mode: "0666", backlog: {somaxconn + 1}')
    host.write_text(text)
    host.start()
    entry = host.wait_log(event="backlog")
    assert str(somaxconn) in entry["msg"] and str(somaxconn + 1) in entry["msg"]
