"""`fcgi-host status`: what the host says of itself is true, and it says it whatever the pools do."""
import collections
import json
import os
import re
import socket
import statistics
import subprocess
import threading
import time

import pytest

from lib import proc, wire
from lib.handlers import HELLO, faulty, worker
from lib.wait import wait_until
from test_persistent_workers import pid_of

STATES = ("idle", "busy", "starting", "stopping")
CLASSES = ("2xx", "3xx", "4xx", "5xx")
FAILURES = ("timeouts", "refused", "bad_gateway", "handler_errors", "broken", "client_gone")
PARKED = {"script": HELLO, "process": "parked"}
ZYGOTE = {"script": HELLO, "process": "zygote"}
UNTIL_GO = "while [ ! -e \"$SCRATCH/go\" ]; do sleep 0.05; done; " + HELLO


class Asker:
    """Asks over the control socket as the command does, without starting a program each time."""

    def __init__(self, host):
        host.wait_log(event="ready")
        names = [line.split()[-1] for line in open("/proc/net/unix") if "@fcgi-host/" in line]
        # The command asks the one that its file leads to: that is the one which answers with this file.
        self.name = next(n for n in set(names) if self.ask(n).get("config") == str(host.config))

    @staticmethod
    def ask(name):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            try:
                s.connect("\0" + name[1:])
                s.sendall(b"status\n")
                data = b""
                while True:
                    more = s.recv(1 << 20)
                    if not more:
                        break
                    data += more
            except ConnectionError:
                return {}
        return json.loads(data) if data.startswith(b"{") else {}

    def __call__(self):
        return self.ask(self.name)


def status(host):
    host.wait_log(event="ready")
    done = host.command("status", "-c", str(host.config), "--json")
    assert done.returncode == 0 and not done.stderr, done
    return json.loads(done.stdout)


def of(reading, name):
    return next(h for h in reading["handlers"] if h["name"] == name)


def start_of(line):
    """Where the process of a request came from; only those of handlers whose processes wait say so."""
    return line.get("start") or ("cold" if line["process"] == "per-request" and line["start_ms"] is not None else None)


def check_counts(reading):
    for handler in reading["handlers"]:
        counts = handler["processes"]
        assert sum(counts[s] for s in STATES) == counts["total"] == len(handler["process_list"]) - handler["zygotes"], handler
        listed = collections.Counter(p["state"] for p in handler["process_list"])
        assert {s: listed[s] for s in STATES} == {s: counts[s] for s in STATES} and listed["zygote"] == handler["zygotes"], handler
        assert sum(handler["starts"].values()) <= handler["totals"]["requests"] and handler["ended"]["waited"] <= handler["ended"]["count"]
        assert counts["idle"] + counts["busy"] + counts["starting"] + handler["zygotes"] <= handler["configured"]["workers"]["max"] + 1, handler


def hold(host, path):
    conn = host.connect()
    conn.start(wire.variables(path))
    conn.send(wire.record(wire.STDIN))
    return conn


def test_the_members(make_host, fastcgi_program):
    host = make_host({"h": HELLO, "w": worker(fastcgi_program, workers={"min": 1, "max": 1})})
    host.request("/h")
    host.request("/w")
    host.wait_log(event="request", count=2)
    reading = status(host)
    assert set(reading) == {"version", "pid", "state", "uptime_ms", "config", "generation", "reloads", "reloading", "connections",
                            "processes", "max_processes", "log_lines_dropped", "listeners", "unrouted", "builtin", "handlers", "by_process",
                            "failures"}
    assert (reading["pid"], reading["state"], reading["config"]) == (host.relay, "running", str(host.config))
    assert reading["listeners"] == [{"address": f"unix:{host.socket}", "backlog": reading["listeners"][0]["backlog"], "state": "accepting"}]
    assert [h["name"] for h in reading["handlers"]] == ["h", "w"]
    spans = {"count", "p50", "p90", "p95", "p99", "max", "mean"}
    for handler in reading["handlers"]:
        assert set(handler) == {"name", "protocol", "process", "connect", "retired", "generation", "configured", "processes",
                                "waiting", "longest_wait_ms", "totals", "started", "restarts", "died", "early_deaths",
                                "zygotes", "starts", "ended", "spawn", "next_try_ms", "latency_ms", "first_byte_ms", "start_ms", "queue_ms", "requests_per_second", "per_second",
                                "process_list", "cpu_ms", "cpu_per_request_ms", "max_rss_kib"}
        assert set(handler["starts"]) == {"cold", "parked", "forked"}
        assert set(handler["ended"]) == {"count", "cpu_ms", "faults", "context_switches", "waited", "start_cpu_ms", "start_faults"}
        assert set(handler["spawn"]) == {"count", "start_ms", "first_byte_ms", "end_ms", "exit_ms"}
        assert set(handler["totals"]) == {"requests", *CLASSES, *FAILURES, "retried", "bytes_in", "bytes_out"}
        assert set(handler["latency_ms"]) == set(handler["queue_ms"]) == set(handler["first_byte_ms"]) == spans
        assert handler["started"] == 1 and handler["cpu_ms"] >= 0 and handler["max_rss_kib"] > 0 and not handler["retired"]
    (process,) = of(reading, "w")["process_list"]
    assert set(process) == {"pid", "state", "age_ms", "requests", "request", "request_age_ms", "cpu_ms", "rss_kib"}
    assert process["pid"] == pid_of(host.request("/w")) and (process["state"], process["requests"], process["request"]) == ("idle", 1, None)


def test_the_configured_limits_stand_beside_the_counts(make_host, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"min": 1, "max": 3, "idle_timeout": "7s", "max_requests": 900},
                                  queue={"max": 11, "timeout": "1500ms"},
                                  timeout={"start": "1s", "response": "2s", "idle": "3s", "total": "4s", "kill": "500ms"})})
    configured = of(status(host), "w")["configured"]
    workers = configured["workers"]
    assert (workers["min"], workers["max"], workers["idle_timeout_ms"], workers["max_requests"]) == (1, 3, 7000, 900)
    assert configured["queue"] == {"max": 11, "timeout_ms": 1500}
    assert configured["timeout"] == {"start_ms": 1000, "response_ms": 2000, "idle_ms": 3000, "total_ms": 4000, "kill_ms": 500}


def test_answered_while_every_pool_is_busy(make_host, fastcgi_program):
    host = make_host({"h": {"script": UNTIL_GO, "workers": {"max": 2}},
                      "w": worker(fastcgi_program, workers={"min": 0, "max": 2})}, defaults={"queue": {"max": 50, "timeout": "30s"}})
    ask = Asker(host)
    held = [hold(host, "/h") for _ in range(5)] + [hold(host, "/w?sleep=5000") for _ in range(6)]
    wait_until(lambda: [of(ask(), n)["processes"]["busy"] for n in "hw"] == [2, 2], 10, "two busy processes of each handler")
    times = []
    for _ in range(20):
        begun = time.monotonic()
        reading = ask()
        times.append(time.monotonic() - begun)
        check_counts(reading)
    assert statistics.median(times) < 0.05, times
    for name, waiting in (("h", 3), ("w", 4)):
        handler = of(reading, name)
        assert (handler["waiting"], handler["processes"]["total"]) == (waiting, 2)
        assert 0 < handler["longest_wait_ms"] < 20000
        for process in handler["process_list"]:
            assert process["state"] == "busy" and process["request"] and proc.is_alive(process["pid"])
            assert process["request_age_ms"] > 0 and process["age_ms"] > 0 and process["rss_kib"] > 0
    pids = {p["pid"] for h in reading["handlers"] for p in h["process_list"]}
    assert len(pids) == 4 and pids <= set(host.children())
    (host.scratch / "go").write_text("")
    for conn in held:
        assert conn.answer().status == 200


def test_the_counts_add_up_in_every_reading(make_host, fastcgi_program):
    """200 readings while processes start, work, die and are told to end."""
    host = make_host({"h": {"script": HELLO, "workers": {"max": 4}},
                      "parked": {**PARKED, "workers": {"max": 4, "spare": 2, "max_age": "100ms"}},
                      "zygote": {**ZYGOTE, "workers": {"max": 5, "spare": 2}},
                      "w": worker(fastcgi_program, workers={"min": 0, "max": 4, "idle_timeout": "20ms", "max_requests": 5}),
                      "slow": {"script": "sleep 30", "timeout": {"response": "60ms", "kill": "1s"}, "workers": {"max": 4}}},
                     defaults={"queue": {"max": 100, "timeout": "20s"}})
    ask, is_over = Asker(host), threading.Event()

    def load(path):
        while not is_over.is_set():
            host.request(path, timeout=30)
    threads = [threading.Thread(target=load, args=(p,)) for p in ("/h", "/h", "/parked", "/zygote", "/w", "/w?sleep=5", "/slow")]
    for t in threads:
        t.start()
    try:
        readings = [ask() for _ in range(200)]
    finally:
        is_over.set()
        for t in threads:
            t.join()
    for reading in readings:
        check_counts(reading)
    seen = {s for r in readings for h in r["handlers"] for s in STATES if h["processes"][s]}
    assert {"idle", "busy", "stopping"} <= seen, "the readings saw some of everything"
    assert len({of(r, "h")["totals"]["requests"] for r in readings}) > 5
    assert any(of(r, "zygote")["zygotes"] for r in readings)
    for name in ("parked", "zygote"):
        started = [of(r, name)["started"] for r in readings]
        assert started == sorted(started), "no count goes back"


def test_processes_that_wait_and_the_one_that_forks_them(make_host):
    """They are idle, the zygote is apart, and what they used before the request is told apart from what it used."""
    host = make_host({"parked": {**PARKED, "workers": {"max": 8, "spare": 2}}, "zygote": {**ZYGOTE, "workers": {"max": 8, "spare": 2}},
                      "cold": HELLO})
    ask = Asker(host)

    def two_wait():
        reading = ask()
        return all(of(reading, n)["processes"]["idle"] == 2 and all(p["pid"] for p in of(reading, n)["process_list"])
                   for n in ("parked", "zygote")) and reading
    check_counts(wait_until(two_wait, 20, "two that wait, each"))
    for _ in range(3):
        for path in ("/parked", "/zygote", "/cold"):
            wait_until(two_wait, 20, "two that wait, each")
            assert host.request(path).status == 200
    lines = host.wait_log(event="request", count=9)
    reading = wait_until(two_wait, 20, "two that wait, each")
    check_counts(reading)
    kinds = {"parked": "parked", "zygote": "forked", "cold": "cold"}
    for name, kind in kinds.items():
        handler, own = of(reading, name), [e for e in lines if e["handler"] == name]
        assert handler["starts"] == {k: 3 * (k == kind) for k in kinds.values()} and {start_of(e) for e in own} == {kind}
        assert (handler["ended"]["count"], handler["ended"]["waited"]) == (3, 0 if name == "cold" else 3)
        assert handler["ended"]["start_cpu_ms"] == pytest.approx(sum(e.get("start_cpu_ms") or 0 for e in own), abs=0.01)
        assert handler["ended"]["cpu_ms"] == pytest.approx(sum(e["cpu_ms"] for e in own), abs=0.01)
        assert (handler["ended"]["start_cpu_ms"] > 0) == (handler["ended"]["start_faults"] > 0) == (name != "cold")
        assert handler["cpu_ms"] >= handler["ended"]["cpu_ms"] + handler["ended"]["start_cpu_ms"] - 0.01
        (way,) = [w for w in reading["by_process"] if w["process"] == handler["process"]]
        assert way["starts"] == handler["starts"] and way["ended"] == handler["ended"]
    assert [of(reading, n)["zygotes"] for n in kinds] == [0, 1, 0]
    (zygote,) = [p for p in of(reading, "zygote")["process_list"] if p["state"] == "zygote"]
    assert proc.is_alive(zygote["pid"]) and zygote["age_ms"] > 0 and zygote["cpu_ms"] > 0
    for process in of(reading, "parked")["process_list"]:
        assert process["state"] == "idle" and process["age_ms"] > 0 and proc.is_alive(process["pid"])
    table = host.command("status", "-c", str(host.config)).stdout.decode()
    assert re.search(rf"^zygote +{zygote['pid']} zygote ", table, re.M)


def test_a_waiting_process_that_dies_is_counted_once(make_host):
    host = make_host({"parked": {**PARKED, "workers": {"max": 4, "spare": 1}}})
    ask = Asker(host)

    def idle():
        return [p["pid"] for p in of(ask(), "parked")["process_list"] if p["state"] == "idle" and p["pid"]]
    (pid,) = wait_until(idle, 20, "one that waits")
    os.kill(pid, 9)
    wait_until(lambda: pid not in idle() and idle(), 20, "another")
    handler = of(ask(), "parked")
    assert (handler["started"], handler["died"], handler["restarts"]) == (2, 1, 1)
    assert handler["ended"]["count"] == 0 == sum(handler["starts"].values())


def test_the_totals_agree_with_the_log(make_host, fastcgi_program):
    host = make_host({
        "ok": HELLO,
        "found": "printf 'Status: 302 Found\\nLocation: https://example.org/\\n\\n'",
        "own503": "printf 'Status: 503 Closed\\nContent-Type: text/plain\\n\\nno\\n'",
        "none": "exit 3",
        "short": "printf 'Content-Type: text/plain\\nContent-Length: 100\\n\\nshort'",
        "slow": {"script": "sleep 30", "timeout": {"response": "100ms", "kill": "1s"}},
        "left": {"script": "echo >> \"$SCRATCH/left\"; sleep 30", "timeout": {"kill": "1s"}},
        "full": {"script": UNTIL_GO, "workers": {"max": 1}, "queue": {"max": 1}},
        "w": worker(fastcgi_program, workers={"max": 2}),
    })
    for path in ("/ok", "/ok", "/ok", "/found", "/own503", "/none", "/short", "/slow", "/nowhere", "/w", "/w", "/w"):
        host.request(path)
    conn = hold(host, "/left")
    wait_until((host.scratch / "left").exists, 10)
    conn.close()
    running = hold(host, "/full")
    wait_until(lambda: of(status(host), "full")["processes"]["busy"] == 1, 10)
    waiting = hold(host, "/full")
    wait_until(lambda: of(status(host), "full")["waiting"] == 1, 10)
    assert host.request("/full").status == 503
    (host.scratch / "go").write_text("")
    assert running.answer().status == waiting.answer().status == 200
    running.close()
    waiting.close()
    lines = host.wait_log(event="request", count=16)
    assert len(lines) == 16
    reading = status(host)
    for handler in [*reading["handlers"], {"name": None, "totals": reading["unrouted"]}]:
        own = [e for e in lines if e["handler"] == handler["name"]]
        totals = handler["totals"]
        assert totals["requests"] == len(own), handler
        for name in CLASSES:
            assert totals[name] == sum(str(e["status"])[0] == name[0] for e in own), (handler["name"], name)
    expected = {"slow": "timeouts", "full": "refused", "none": "bad_gateway", "left": "client_gone", "short": "broken",
                "own503": "handler_errors"}
    for name, counter in expected.items():
        totals = of(reading, name)["totals"]
        assert {c: totals[c] for c in expected.values()} == {c: int(c == counter) for c in expected.values()}, (name, totals)
    assert [of(reading, n)["started"] for n in ("ok", "full", "none", "left")] == [3, 2, 1, 1]
    for name, field in (("latency_ms", "total_ms"), ("first_byte_ms", "first_byte_ms"), ("queue_ms", "queue_ms")):
        values = [e[field] for e in lines if e["handler"] == "ok"]
        assert of(reading, "ok")[name]["max"] == pytest.approx(max(values), abs=0.002)
        assert of(reading, "ok")[name]["count"] == 3
    cpu = sum(e["cpu_ms"] for e in lines if e["handler"] == "ok")
    assert of(reading, "ok")["cpu_ms"] == pytest.approx(cpu, abs=0.01)
    assert of(reading, "ok")["max_rss_kib"] == max(e["rss_kib"] for e in lines if e["handler"] == "ok")


def test_restarts_and_the_next_try(make_host, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"min": 1, "max": 1}), "dies": faulty("exit-at-start", workers={"max": 1})})
    pid = pid_of(host.request("/w"))
    os.kill(pid, 9)
    wait_until(lambda: of(status(host), "w")["restarts"] == 1, 10, "another worker")
    handler = of(status(host), "w")
    assert (handler["started"], handler["died"]) == (2, 1) and handler["next_try_ms"] is None

    def pause():
        assert host.request("/dies").status in (502, 503)
        return of(status(host), "dies")["next_try_ms"]
    assert 0 < wait_until(pause, 10, "a pause") <= 30000
    assert of(status(host), "dies")["early_deaths"] >= 1
    table = host.command("status", "-c", str(host.config)).stdout.decode()
    line = next(x for x in table.splitlines() if x.startswith("dies"))
    assert not line.endswith("-"), "the table shows the next try"


def test_figures_outlive_a_reload_that_leaves_the_handler_alone(make_host, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"min": 1, "max": 1}), "other": {"script": UNTIL_GO}})
    for _ in range(3):
        host.request("/w")
    held = hold(host, "/other")
    wait_until(lambda: of(status(host), "other")["processes"]["busy"] == 1, 10)
    changed = {"w": worker(fastcgi_program, workers={"min": 1, "max": 1}), "other": {"script": UNTIL_GO, "workers": {"max": 3}}}
    host.write(changed)
    done = host.command("reload", "-c", str(host.config))
    assert done.returncode == 0, done
    host.request("/w")
    reading = status(host)
    assert of(reading, "w")["totals"]["requests"] == 4 and reading["reloads"] == 1
    both = [h for h in reading["handlers"] if h["name"] == "other"]
    assert [(h["retired"], h["configured"]["workers"]["max"], h["processes"]["busy"]) for h in both] == [(False, 3, 0), (True, 8, 1)]
    check_counts(reading)
    (host.scratch / "go").write_text("")
    assert held.answer().status == 200
    held.close()
    wait_until(lambda: len(status(host)["handlers"]) == 2, 10, "the end of the retired one")


def test_the_table(make_host, fastcgi_program):
    host = make_host({"h": HELLO, "w": worker(fastcgi_program, workers={"min": 1, "max": 2})})
    host.request("/h")
    pid = pid_of(host.request("/w"))
    host.wait_log(event="request", count=2)
    done = host.command("status", "-c", str(host.config))
    assert done.returncode == 0 and not done.stderr
    text = done.stdout.decode()
    assert host.socket in text and str(host.relay) in text
    rows = [line.split() for line in text.splitlines()]
    titles = next(r for r in rows if r[:1] == ["HANDLER"])
    row = dict(zip(titles, next(r for r in rows if r[:2] == ["h", "per-request"])))
    assert (row["REQUESTS"], row["ERRORS"], row["MAX"], row["WAIT"]) == ("1", "0", "8", "0")
    assert ["w", str(pid), "idle"] in [r[:3] for r in rows]


def test_thousands_of_handlers(make_host):
    host = make_host({"h": HELLO}, start=False)
    text = host.config.read_text()
    more = "".join(f"  h{i}: {{command: [handlers/h]}}\n" for i in range(3000))
    host.write_text(text.replace("handlers:\n", "handlers:\n" + more))
    host.start()
    ask = Asker(host)
    reading = ask()
    assert len(reading["handlers"]) == 3001
    waits = []
    is_over = threading.Event()

    def others():
        while not is_over.is_set():
            waits.append(host.request("/h").elapsed)
    thread = threading.Thread(target=others)
    thread.start()
    for _ in range(5):
        ask()
    is_over.set()
    thread.join()
    assert statistics.median(waits) < 1, waits


def test_others_are_refused(make_host):
    """Only root and the user that serves may ask."""
    if os.geteuid() != 0:
        pytest.skip("needs another user to ask as")
    host = make_host({"h": HELLO})
    host.wait_log(event="ready")
    done = host.command("status", "-c", str(host.config), user=65534, group=65534, extra_groups=[])
    assert done.returncode == 1 and not done.stdout
    assert done.stderr.decode().count("\n") == 1 and "the user that serves" in done.stderr.decode()


def test_without_a_host(make_host):
    host = make_host({"h": HELLO}, start=False)
    for arguments in ([], ["--json"]):
        done = host.command("status", "-c", str(host.config), *arguments)
        assert done.returncode == 1 and not done.stdout
        assert done.stderr.decode().count("\n") == 1 and str(host.config) in done.stderr.decode()


def test_answered_while_the_host_stops(make_host):
    host = make_host({"h": {"script": UNTIL_GO, "timeout": {"kill": "20s"}}})
    ask = Asker(host)
    held = hold(host, "/h")
    wait_until(lambda: of(ask(), "h")["processes"]["busy"] == 1, 10)
    host.signal(15)
    reading = wait_until(lambda: (r := ask())["state"] == "draining" and r, 10, "draining")
    assert of(reading, "h")["processes"]["busy"] == 1 and reading["listeners"] == []
    (host.scratch / "go").write_text("")
    assert held.answer().status == 200
    assert host.process.wait(10) == 0


def test_a_stranger_in_the_place_of_the_host_is_named(make_host, folder):
    """Any user may bind the name while no host runs: the command says who answers."""
    host = make_host({"h": HELLO}, start=False)
    program = folder / "stranger.py"
    program.write_text(
        "import os, socket, sys\n"
        "digest = 0xcbf29ce484222325\n"
        "for c in os.path.realpath(sys.argv[1]).encode():\n"
        "    digest = ((digest ^ c) * 0x100000001b3) % (1 << 64)\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "os.setgid(65534), os.setuid(65534)\n"
        "s.bind('\\0fcgi-host/%016x' % digest)\n"
        "s.listen()\n"
        "print('ready', flush=True)\n"
        "c, _ = s.accept()\n"
        "c.recv(100)\n")
    stranger = subprocess.Popen(["/usr/bin/python3", str(program), str(host.config)], stdout=subprocess.PIPE, text=True)
    try:
        assert stranger.stdout.readline() == "ready\n"
        done = host.command("status", "-c", str(host.config))
        assert done.returncode == 1
        assert b"65534" in done.stderr and str(stranger.pid).encode() in done.stderr
    finally:
        stranger.kill()
        stranger.wait()
