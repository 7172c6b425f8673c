#!/usr/bin/python3
"""The load generator of `fcgi-host compare` against wrk: requests for a second of the generator's own CPU.

Ours asks the least that answers FastCGI (fastcgi_answer.c), wrk asks nginx for `return 200`, and ours asks that too.
They take turns (A B C, C B A, and again), and a ratio is of neighbours: what it means, and figures, in README.md here.
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=".", help="where the programs were built")
    parser.add_argument("--rounds", type=int, default=2, help="of there and back")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=2, help="of one block of wrk")
    parser.add_argument("--requests", type=int, default=100000, help="of one block of ours")
    options = parser.parse_args()
    build = pathlib.Path(options.build).resolve()
    program = str(build / "fcgi-host" / "fcgi-host")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fcgi-host-bench-"))
    port, fastcgi_port = free_port(), free_port()
    (folder / "nginx.conf").write_text(NGINX.format(port=port))
    try:
        with running(shutil.which("nginx") or "/usr/sbin/nginx", "-p", str(folder), "-c", "nginx.conf", stderr=subprocess.DEVNULL), \
                running(str(build / "tests" / "bench" / "fastcgi_answer"), str(fastcgi_port)):
            wait_for(port)
            wait_for(fastcgi_port)
            url, n = f"http://127.0.0.1:{port}/", options.connections
            ways = {"ours, FastCGI": lambda: ours(program, ["--connect", f"127.0.0.1:{fastcgi_port}"], n, options.requests),
                    "wrk, nginx": lambda: wrk(url, n, options.seconds),
                    "ours, nginx": lambda: ours(program, ["--url", url], n, options.requests)}
            found = {name: [] for name in ways}
            for i in range(2 * options.rounds):
                for name in list(ways) if i % 2 == 0 else reversed(list(ways)):
                    found[name].append(ways[name]())
    finally:
        shutil.rmtree(folder)
    for name, blocks in found.items():
        ratios = [one[0] / base[0] for one, base in zip(blocks, found["wrk, nginx"])]
        print(f"{name:14} {statistics.median(b[0] for b in blocks):8.0f} requests a second of its CPU, {statistics.median(b[1] for b in blocks):8.0f} a second; "
              f"to wrk {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    ratio = statistics.median(one[0] / base[0] for one, base in zip(found["ours, FastCGI"], found["wrk, nginx"]))
    print(f"limit: at least {LIMIT}: {'met' if ratio >= LIMIT else 'MISSED'}")
    return ratio < LIMIT


if __name__ == "__main__":
    sys.exit(main())
