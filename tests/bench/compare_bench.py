#!/usr/bin/python3
"""Is `fcgi-host compare` to be trusted here?  What it means, and figures: README.md here.

g: its load generator against wrk, requests for a second of the generator's own CPU.  Ours asks the least that answers
FastCGI (fastcgi_answer.c), wrk asks nginx for `return 200`, and ours asks that too; they take turns (A B C, C B A).
a: a server against itself, many times: how often a difference is shown.
d: a server against one that spins for some microseconds more before each answer: what is found of that.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
NGINX = """
daemon off; worker_processes 1; pid nginx.pid; error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
    access_log off; keepalive_requests 1000000000;
    client_body_temp_path body; fastcgi_temp_path fastcgi; proxy_temp_path proxy; scgi_temp_path scgi; uwsgi_temp_path uwsgi;
    server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ default_type text/plain; return 200 "hello\\n"; }} }}
}}
"""
LIMIT = 0.9


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port):
    for _ in range(500):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    sys.exit(f"compare_bench: nothing listens on port {port}")


@contextlib.contextmanager
def running(*command, **more):
    process = subprocess.Popen(command, **more)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def ours(program, where, connections, requests):
    """Requests per CPU second, and per second."""
    done = subprocess.run([program, "compare", *where, "--concurrency", str(connections), "-n", str(requests), "--blocks", "8", "--json"],
                          stdout=subprocess.PIPE, check=True)
    result = json.loads(done.stdout)
    way = result["comparisons"][0]["ways"][0]
    if way["failed"]:
        sys.exit(f"compare_bench: {way['failed']} requests failed: {way['trouble']}")
    return 1000 / result["generator"]["cpu_ms"], way["requests_per_s"]


def wrk(url, connections, seconds):
    before = os.times()
    text = subprocess.run(["wrk", "-t", "1", "-c", str(connections), "-d", f"{seconds}s", url], stdout=subprocess.PIPE, text=True, check=True).stdout
    after = os.times()
    requests = int(next(line.split()[0] for line in text.splitlines() if "requests in" in line))
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return requests / cpu_s, requests / seconds


def generator(program, folder, address, options):
    port = free_port()
    url, n = f"http://127.0.0.1:{port}/", options.connections
    (folder / "nginx.conf").write_text(NGINX.format(port=port))
    ways = {"ours, FastCGI": lambda: ours(program, ["--connect", address], n, options.requests),
            "wrk, nginx": lambda: wrk(url, n, options.seconds),
            "ours, nginx": lambda: ours(program, ["--url", url], n, options.requests)}
    found = {name: [] for name in ways}
    with running(shutil.which("nginx") or "/usr/sbin/nginx", "-p", str(folder), "-c", "nginx.conf", stderr=subprocess.DEVNULL):
        wait_for(port)
        for i in range(2 * options.rounds):
            for name in list(ways) if i % 2 == 0 else reversed(list(ways)):
                found[name].append(ways[name]())
    ratios = {name: [one[0] / base[0] for one, base in zip(blocks, found["wrk, nginx"])] for name, blocks in found.items()}
    for name, blocks in found.items():
        print(f"{name:14} {statistics.median(b[0] for b in blocks):8.0f} requests a second of its CPU, {statistics.median(b[1] for b in blocks):8.0f} a second; "
              f"to wrk {statistics.median(ratios[name]):.2f} ({min(ratios[name]):.2f} to {max(ratios[name]):.2f})")
    is_met = statistics.median(ratios["ours, FastCGI"]) >= LIMIT
    print(f"limit: at least {LIMIT}: {'met' if is_met else 'MISSED'}")
    return is_met


def compared(program, addresses, requests):
    connects = [word for address in addresses for word in ("--connect", address)]
    done = subprocess.run([program, "compare", *connects, "-n", str(requests), "--blocks", "40", "--json"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["comparisons"][0]


def against_itself(program, address, runs):
    shown = sum(compared(program, [address], 2000)["noise"]["is_shown"] for _ in range(runs))
    is_met = shown <= 0.05 * runs
    print(f"against itself: a difference shown in {shown} of {runs} runs; limit: at most 5 %: {'met' if is_met else 'MISSED'}")
    return is_met


# Both servers take long enough for a processor that waits for them to fall asleep: otherwise what wakes it is found
# beside what was added.
BASE_US = 200


def added(program, build, folder, microseconds):
    paths = [str(folder / "plain.sock"), str(folder / "slower.sock")]
    with running(str(build / "tests" / "bench" / "fastcgi_answer"), paths[0], str(BASE_US)), \
            running(str(build / "tests" / "bench" / "fastcgi_answer"), paths[1], str(BASE_US + microseconds)):
        while not all(os.path.exists(path) for path in paths):
            time.sleep(0.01)
        plain, slower = compared(program, [f"unix:{path}" for path in paths], 20000)["ways"]
    found = {key: 1000 * value for key, value in slower["difference_ms"].items() if key != "is_shown"}
    is_met = abs(found["value"] - microseconds) <= 0.1 * microseconds
    print(f"added {microseconds} µs to {1000 * plain['latency_ms']['mean']:.1f}: found {found['value']:.1f} ({found['low']:.1f} to {found['high']:.1f}); "
          f"limit: within a tenth: {'met' if is_met else 'MISSED'}")
    return is_met


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=".", help="where the programs were built")
    parser.add_argument("--only", default="gad", help="which parts")
    parser.add_argument("--rounds", type=int, default=2, help="g: of there and back")
    parser.add_argument("--connections", type=int, default=64, help="g")
    parser.add_argument("--seconds", type=int, default=2, help="g: of one block of wrk")
    parser.add_argument("--requests", type=int, default=100000, help="g: of one block of ours")
    parser.add_argument("--runs", type=int, default=100, help="a")
    parser.add_argument("--added", type=int, default=50, help="d: microseconds")
    options = parser.parse_args()
    build = pathlib.Path(options.build).resolve()
    program = str(build / "fcgi-host" / "fcgi-host")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fcgi-host-bench-"))
    port, is_met = free_port(), True
    try:
        with running(str(build / "tests" / "bench" / "fastcgi_answer"), str(port)):
            wait_for(port)
            address = f"127.0.0.1:{port}"
            if "g" in options.only:
                is_met &= generator(program, folder, address, options)
            if "a" in options.only:
                is_met &= against_itself(program, address, options.runs)
            if "d" in options.only:
                is_met &= added(program, build, folder, options.added)
    finally:
        shutil.rmtree(folder)
    return not is_met


if __name__ == "__main__":
    sys.exit(main())
