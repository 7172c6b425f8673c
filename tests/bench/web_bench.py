#!/usr/bin/python3
"""Requests through nginx: fcgi-host against fcgiwrap, spawn-fcgi and bare loops.

Everything runs in one go, in short blocks that take turns (A B C, C B A, and
again): only ratios of neighbours are compared, since times differ from minute to
minute.  A ratio is the median over pairs of neighbours, with the interval that
holds 95 % of the medians of resampled pairs.  What it means, and figures:
README.md here.
"""
import argparse
import collections
import contextlib
import json
import math
import os
import platform
import random
import re
import selectors
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True          # the source tree stays as it is
from web_servers import ENVIRONMENT, WORKERS, Service, Setup, request_for, run, run_time_us, wake_ups

CGI_ENVIRONMENT = {**ENVIRONMENT, "GATEWAY_INTERFACE": "CGI/1.1", "REQUEST_METHOD": "GET", "REQUEST_URI": "/hello",
                   "SCRIPT_NAME": "/hello", "SERVER_PROTOCOL": "HTTP/1.1", "SERVER_NAME": "127.0.0.1"}
STARVED_S = 5.0
PAUSE_S = 0.01          # nginx gives a kept connection up after 1000 requests: without pauses that comes soon


# Blocks, and their order.

def wrk_command(url, connections, seconds):
    return ["wrk", "-t", "1", "-c", str(connections), "-d", f"{seconds}s", "--timeout", "30s", "--latency", url]


def milliseconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text).groups()
    return float(number) * {"us": 0.001, "ms": 1, "s": 1000, "m": 60000}[unit]


def wrk_block(setup, service, what, connections, seconds):
    before = setup.services[service].cpu_us()
    text = run(*wrk_command(setup.url(what), connections, seconds))
    cpu_us = setup.services[service].cpu_us() - before
    requests = int(re.search(r"(\d+) requests in", text).group(1))
    if requests == 0:                   # kept connections may starve all of them
        return {"per_s": 0, "cpu_us": math.inf, "p50_ms": math.inf, "p99_ms": math.inf}
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    if bad:
        sys.exit(f"web_bench: {what}: {bad.group(1)} of {requests} answers are errors")
    quantile = dict(re.findall(r"(\d+)%\s+([\d.]+\w+)", text))
    return {"per_s": float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1)), "cpu_us": cpu_us / requests,
            "p50_ms": milliseconds(quantile["50"]), "p99_ms": milliseconds(quantile["99"])}


def raw_block(setup, rounds, at_once):
    text = run(setup.tool["raw_loop"], str(rounds), str(at_once), setup.tool["hello"], env=CGI_ENVIRONMENT, stdin=subprocess.DEVNULL)
    return {"cpu_us": float(re.search(r"([\d.]+) us CPU", text).group(1))}


def interleave(blocks, rounds):
    """{name: call} to {name: [result, ...]}, one result a half round."""
    results = {name: [] for name in blocks}
    for _ in range(rounds):
        for order in (list(blocks), list(reversed(blocks))):
            for name in order:
                results[name].append(blocks[name]())
    return results


def ratio(above, below, field):
    """(median of the ratios of neighbours, low, high)"""
    pairs = [a[field] / b[field] if b[field] else math.inf for a, b in zip(above, below)]
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(pairs, k=len(pairs))) for _ in range(2000))
    return statistics.median(pairs), medians[49], medians[1949]


def median(results, field):
    return statistics.median(result[field] for result in results)


# The report.

class Report:
    def __init__(self):
        self.rows, self.missed = [], 0

    def title(self, text):
        print(f"\n{text}\n")
        print(f"{'':34} {'at once':>7} {'ours':>9} {'theirs':>9} {'ratio':>6} {'95 % interval':>15}  limit")

    def row(self, what, at_once, ours, theirs=None, ratio=None, limit=None):
        """`limit` is (">=" or "<=" or ">", number), of the ratio where there is one."""
        value = ours if ratio is None else ratio[0]
        is_held = limit is None or {">=": value >= limit[1], "<=": value <= limit[1], ">": value > limit[1]}[limit[0]]
        self.missed += not is_held
        self.rows.append({"what": what, "at_once": at_once, "ours": ours, "theirs": theirs, "ratio": ratio,
                          "limit": limit, "is_held": is_held})
        print(f"{what:34} {at_once or '':>7} {number(ours):>9} {number(theirs):>9} {number(ratio and ratio[0]):>6} "
              f"{'%.2f to %.2f' % ratio[1:] if ratio else '':>15}  "
              + (f"{limit[0]} {limit[1]:g}{'' if is_held else '   MISSED'}" if limit else ""), flush=True)

    def compare(self, what, at_once, ours, theirs, field, limit=None):
        self.row(what, at_once, median(ours, field), median(theirs, field), ratio(ours, theirs, field), limit)


def number(value):
    if value is None:
        return ""
    if math.isinf(value):
        return "none"
    return f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


# What is measured.

def measure_per_request(setup, options, report):
    report.title("A process for each request: requests a second through nginx; CPU of everything behind it, us a request")
    for connections in (1, 4, 16):
        got = interleave({
            "host": lambda: wrk_block(setup, "host", "per-request", connections, options.seconds),
            "fcgiwrap": lambda: wrk_block(setup, "fcgiwrap", "fcgiwrap", connections, options.seconds),
            "loop": lambda: raw_block(setup, options.starts, connections)}, options.rounds)
        report.compare("requests/s, to fcgiwrap", connections, got["host"], got["fcgiwrap"], "per_s",
                       (">=", 1.6 if connections == 1 else 1.8))
        report.compare("CPU a request, to fcgiwrap", connections, got["host"], got["fcgiwrap"], "cpu_us",
                       ("<=", 0.4) if connections > 1 else None)
        report.compare("CPU a request, to raw_loop", connections, got["host"], got["loop"], "cpu_us",
                       ("<=", 1.15) if connections == 1 else None)
        report.compare("(CPU of raw_loop, to fcgiwrap)", connections, got["loop"], got["fcgiwrap"], "cpu_us")


def measure_persistent(setup, options, report):
    report.title(f"{WORKERS} persistent workers, kept front connections, against {WORKERS} processes of spawn-fcgi")
    for connections in (4, 16, 64):
        got = interleave({
            what: lambda what=what, service=service: wrk_block(setup, service, what, connections, options.seconds)
            for what, service in (("persistent", "host"), ("spawned", "spawned"), ("spawned-kept", "spawned-kept"))}, options.rounds)
        ours = got["persistent"]
        for theirs, name in (("spawned", "not kept"), ("spawned-kept", "kept")):
            report.compare(f"requests/s, to spawn-fcgi {name}", connections, ours, got[theirs], "per_s",
                           (">", 1) if theirs == "spawned" else None)
        for theirs, name in (("spawned", "not kept"), ("spawned-kept", "kept")):
            for field, label in (("cpu_us", "CPU us"), ("p50_ms", "p50 ms"), ("p99_ms", "p99 ms")):
                report.compare(f"{label}, to spawn-fcgi {name}", connections, ours, got[theirs], field)
        measure_starving(setup, connections, report)


def measure_starving(setup, connections, report):
    got = {what: count_starved(setup, what, connections) for what in ("persistent", "spawned", "spawned-kept")}
    for theirs, name in (("spawned", "not kept"), ("spawned-kept", "kept")):
        report.row(f"starved, to spawn-fcgi {name}", connections, got["persistent"], got[theirs], limit=("<=", 0))


def count_starved(setup, what, count):
    """Connections that ask again PAUSE_S after each answer; how many of them have waited STARVED_S at the end."""
    selector, request, asked_at, pausing = selectors.DefaultSelector(), request_for(what), {}, collections.deque()
    for _ in range(count):
        client = socket.create_connection(("127.0.0.1", setup.words["port"]))
        selector.register(client, selectors.EVENT_READ)
        pausing.append((0, client))
    end = time.monotonic() + STARVED_S + 0.2
    while time.monotonic() < end:
        while pausing and pausing[0][0] <= time.monotonic():
            client = pausing.popleft()[1]
            client.sendall(request)
            asked_at[client] = time.monotonic()
        for key, _ in selector.select(PAUSE_S / 2):
            if b"uri: " in key.fileobj.recv(65536):         # the last line of the answer
                del asked_at[key.fileobj]
                pausing.append((time.monotonic() + PAUSE_S, key.fileobj))
    starved = sum(asked <= end - STARVED_S for asked in asked_at.values())
    for key in list(selector.get_map().values()):
        key.fileobj.close()
    return starved


def measure_bodies(setup, options, report):
    report.title("Bodies: MB for a second of the relay's CPU, against a loop of read and writev")
    for direction, path, size in (("down", "/source", options.down_bytes), ("up", "/sink", options.up_bytes)):
        got = interleave({"host": lambda: body_block(setup, path, direction, size),
                          "loop": lambda: loop_block(setup, direction, size)}, max(options.rounds // 2, 1))
        report.compare(f"MB/s of CPU, {size // 1000000} MB {direction}", 1, got["host"], got["loop"], "mb_per_s", (">=", 0.7))


def body_block(setup, path, direction, size):
    before = run_time_us(setup.relay)
    run(setup.tool["body"], "call", setup.path("host.sock"), path, direction, str(size))
    return {"mb_per_s": size / (run_time_us(setup.relay) - before)}


def loop_block(setup, direction, size):
    text = run(setup.tool["body"], "loop", direction, str(size))
    return {"mb_per_s": size / float(re.search(r"([\d.]+) us CPU", text).group(1))}


def measure_exact(setup, options, report):
    report.title("Exact figures, a request: everything behind nginx")
    host = [setup.relay, *setup.spawners]
    fcgiwrap = setup.services["fcgiwrap"].living()      # it replaces those that a lost connection has ended
    count = options.starts
    for at_once in (1, 4):
        ours = perf_through(setup, host, "per-request", count, at_once)
        wrap = perf_through(setup, fcgiwrap, "fcgiwrap", count, at_once)
        loop = perf_loop(setup, count, at_once)
        for field, limit in (("page-faults", ("<=", 60)), ("context-switches", None)):
            report.row(f"{field}, and of fcgiwrap", at_once, ours[field], wrap[field], limit=limit)
            report.row(f"{field}, and of raw_loop", at_once, ours[field], loop[field])
    ours = calls_through(setup, host, "per-request", count)
    report.row("system calls, and of fcgiwrap", 1, ours, calls_through(setup, fcgiwrap, "fcgiwrap", count))
    report.row("system calls, and of raw_loop", 1, ours, calls_loop(setup, count))
    report.row("system calls, persistent", 1, calls_through(setup, host, "persistent", count))
    time.sleep(1)
    before = wake_ups(host)
    time.sleep(options.idle_s)
    report.row(f"wake-ups in {options.idle_s} s of idling", None, wake_ups(host) - before, limit=("<=", 0))


def ab_command(setup, what, count, at_once):
    return ["ab", "-q", "-n", str(count), "-c", str(at_once), setup.url(what)]


def perf_command(*more):
    return ["perf", "stat", "-x", ",", "-e", "page-faults,context-switches", *more]


def perf_figures(text, count):
    return {name: int(value) / count for value, name in re.findall(r"^(\d+),,([\w-]+)", text, re.M)}


def perf_through(setup, pids, what, count, at_once):
    return perf_figures(run(*perf_command("-p", ",".join(map(str, pids)), "--", *ab_command(setup, what, count, at_once))), count)


def perf_loop(setup, count, at_once):
    """The difference of two runs: without the start of the loop itself."""
    def figures(rounds):
        return perf_figures(run(*perf_command("--", setup.tool["raw_loop"], str(rounds), str(at_once), setup.tool["hello"]),
                                env=CGI_ENVIRONMENT, stdin=subprocess.DEVNULL), 1)
    short, long = figures(at_once), figures(at_once + count)
    return {name: (long[name] - short[name]) / count for name in long}


def calls_in(path):
    with open(path) as file:
        return next(int(line.split()[3]) for line in file if line.endswith(" total\n"))


def calls_through(setup, pids, what, count):
    path = setup.path("calls")
    strace = subprocess.Popen(["strace", "-c", "-f", "-o", path, *(word for pid in pids for word in ("-p", str(pid)))],
                              stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    for _ in pids:
        strace.stderr.readline()        # "Process N attached"
    run(*ab_command(setup, what, count, 1))
    strace.send_signal(signal.SIGINT)
    strace.communicate()
    return calls_in(path) / count


def calls_loop(setup, count):
    def calls(rounds):
        path = setup.path("calls")
        run("strace", "-c", "-f", "-o", path, setup.tool["raw_loop"], str(rounds), "1", setup.tool["hello"],
            env=CGI_ENVIRONMENT, stdin=subprocess.DEVNULL)
        return calls_in(path)
    return (calls(count + 1) - calls(1)) / count


# The machine.

def describe():
    with open("/proc/cpuinfo") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    versions = {}
    for name, command in (("nginx", ["nginx", "-v"]), ("wrk", ["wrk", "-v"]), ("fcgiwrap", None), ("spawn-fcgi", None), ("libfcgi0ldbl", None)):
        if command is None:
            command = ["dpkg-query", "-W", "-f", "${Version}", name]
        with contextlib.suppress(OSError):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            versions[name] = done.stdout.split("\n")[0].removeprefix("nginx version: nginx/").removeprefix("wrk ").split(" [")[0]
    return {"cpus": os.cpu_count(), "cpu": model.group(1) if model else platform.machine(), "kernel": platform.release(),
            "cpu_by": "cgroup" if Service.root else "/proc", "load": os.getloadavg()[0], "versions": versions}


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=os.getcwd(), help="the folder of the build (default: this one)")
    parser.add_argument("--quick", action="store_true", help="about a minute; for a look, not for figures")
    parser.add_argument("--rounds", type=int, help="rounds of a comparison: each block twice")
    parser.add_argument("--only", default="abcd", help="a: per-request, b: persistent, c: bodies, d: exact figures")
    parser.add_argument("--json", metavar="FILE", help="write all rows there, too")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    options.seconds = 1
    options.rounds = options.rounds or (1 if options.quick else 8)
    options.starts = 192 if options.quick else 480          # divided by 16
    options.idle_s = 3 if options.quick else 10
    options.down_bytes, options.up_bytes = (200_000_000, 100_000_000) if options.quick else (1_000_000_000, 500_000_000)
    return options


def main():
    options = parse_options()
    missing = [name for name in ("nginx", "wrk", "ab", "fcgiwrap", "spawn-fcgi", "perf", "strace")
               if not shutil.which(name, path=ENVIRONMENT["PATH"])]
    if missing:
        sys.exit(f"web_bench: not installed: {', '.join(missing)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))       # so that the servers are ended
    machine, report = describe(), Report()
    print(", ".join(f"{name} {value}" for name, value in {**machine, **machine["versions"]}.items() if name != "versions"))
    print(f"blocks of {' '.join(wrk_command('http://127.0.0.1:PORT/…', 'N', options.seconds))}")
    print(f"{options.rounds} rounds, each block twice a round: A B C, C B A")
    with tempfile.TemporaryDirectory(prefix="web-bench-") as folder, contextlib.closing(Setup(options, folder)) as setup:
        setup.start()
        for letter, measure in (("a", measure_per_request), ("b", measure_persistent), ("c", measure_bodies), ("d", measure_exact)):
            if letter in options.only:
                measure(setup, options, report)
    print(f"\n{report.missed} limits missed")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"machine": machine, "rows": report.rows}, file, indent=1)
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
