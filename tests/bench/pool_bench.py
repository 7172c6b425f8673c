#!/usr/bin/python3
"""Pools: 10,000 routes at rest, a PHP page under PHP-FPM and under our workers, and recycling under load.

    tests/bench/pool_bench.py [--build FOLDER] [--rounds N] [--only rpc]
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from web_bench import Report, describe, interleave, median, wrk_block
from web_servers import ENVIRONMENT, NGINX_BEGIN, Service, SOURCE, children_of, free_port, run, wait_until, wake_ups, connects

ROUTES = 10_000
WORKERS = 4
RECYCLED = 8
PAGE = '<?php header("Content-Type: text/plain"); echo "Hello from PHP ", getmypid(), "\\n";\n'

HOST = """\
listen: {{address: "unix:{folder}/host.sock", mode: "0666"}}
log: {{file: "{folder}/host.log", level: info}}
handlers:
  php: {{command: [/usr/bin/php-cgi], protocol: fastcgi, queue: {{max: 1000}}, env: {{SCRIPT_FILENAME: "{folder}/page.php", PHP_FCGI_MAX_REQUESTS: "0"}},
         workers: {{min: {workers}, max: {workers}, spare: 0}}}}
  recycled: {{command: ["{hello}"], protocol: fastcgi,
         workers: {{min: {recycled}, max: {recycled}, spare: 0, max_requests: 100, jitter: 20%}}}}
routes:
  - {{path: /php, handler: php}}
  - {{path: /recycled, handler: recycled}}
"""
FPM = """\
[global]
error_log = {folder}/fpm.log
daemonize = no
[www]
user = nobody
group = nogroup
listen = {folder}/fpm.sock
listen.mode = 0666
pm = static
pm.max_children = {workers}
"""
NGINX = NGINX_BEGIN + """\
    server {{
        listen 127.0.0.1:{port};
        location /php {{ include fcgi-host/fcgi-host.conf; }}
        location /recycled {{ include fcgi-host/fcgi-host.conf; }}
        location /fpm {{
            include fcgi-host/fcgi-host.params;
            fastcgi_param SCRIPT_FILENAME {folder}/page.php;
            fastcgi_pass unix:{folder}/fpm.sock;
        }}
    }}
}}
"""


class PoolSetup:
    def __init__(self, build, folder):
        self.folder = folder
        self.host = os.path.join(build, "fcgi-host/fcgi-host")
        self.words = {"folder": folder, "hello": os.path.join(build, "handlers/c/hello"), "workers": WORKERS,
                      "recycled": RECYCLED, "port": free_port()}
        self.services = {}
        os.chmod(folder, 0o755)

    def path(self, name):
        return os.path.join(self.folder, name)

    def url(self, what):
        return f"http://127.0.0.1:{self.words['port']}/{what}"

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)

    def serve(self, name, *command, **more):
        service = self.services[name] = Service(name)
        service.start(*command, **more)
        return service

    def start(self):
        os.symlink(os.path.join(SOURCE, "nginx"), self.path("fcgi-host"))
        self.write("page.php", PAGE)
        for name, text in (("host.yaml", HOST), ("fpm.conf", FPM), ("nginx.conf", NGINX)):
            self.write(name, text.format(**self.words))
        run(self.host, "check", "-c", self.path("host.yaml"))
        self.serve("host", self.host, "serve", "-c", self.path("host.yaml"))
        self.serve("fpm", glob.glob("/usr/sbin/php-fpm*")[0], "-F", "-y", self.path("fpm.conf"), "-c", "/dev/null",
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name in ("host", "fpm"):
            wait_until(lambda: connects(self.path(name + ".sock")), f"{name} to listen")
        self.serve("nginx", "nginx", "-e", self.path("nginx-error.log"), "-c", self.path("nginx.conf"))
        wait_until(lambda: subprocess.run(["curl", "-sf", "-o", "/dev/null", self.url("php")]).returncode == 0, "nginx")

    def close(self):
        for service in self.services.values():
            service.stop()

    def status(self, handler):
        text = subprocess.run([self.host, "status", "--json", "-c", self.path("host.yaml")], env=ENVIRONMENT, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True).stdout
        return next(h for h in json.loads(text)["handlers"] if h["name"] == handler)


def rss_kib(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))


def start_with(setup, name, count):
    """(milliseconds until it listens, the process) of a host with `count` routes."""
    routes = "".join(f"  - {{path: /route/{i}/*, handler: h}}\n" for i in range(count))
    setup.write(f"{name}.yaml", f'listen: "unix:{setup.path(name)}.sock"\nlog: {{file: "{setup.path(name)}.log"}}\n'
                f"handlers: {{h: {{command: [/bin/true]}}}}\nroutes:\n{routes}")
    begun = time.monotonic()
    service = setup.serve(name, setup.host, "serve", "-c", setup.path(f"{name}.yaml"))
    while not connects(setup.path(name + ".sock")):
        if time.monotonic() > begun + 10:
            sys.exit("pool_bench: a host with many routes does not listen")
        time.sleep(0.001)
    return (time.monotonic() - begun) * 1000, service


def measure_routes(setup, report):
    report.title(f"{ROUTES} routes and no traffic")
    few_ms, few = start_with(setup, "few", 1)
    many_ms, many = start_with(setup, "many", ROUTES)
    relay = many.pids[0]
    report.row("ms until it listens", None, many_ms, few_ms, None, ("<=", 100))
    report.row("bytes of the relay a route", None, (rss_kib(relay) - rss_kib(few.pids[0])) * 1024 / ROUTES)
    pids = [relay, *children_of(relay)]
    time.sleep(1)               # what the start left to do
    before = wake_ups(pids)
    time.sleep(10)              # the time over which nothing must happen
    report.row("wake-ups in 10 s, all processes", None, wake_ups(pids) - before, None, None, ("<=", 0))


def measure_php(setup, options, report):
    report.title(f"One PHP page: {WORKERS} php-cgi workers of ours against PHP-FPM with {WORKERS}, both behind nginx")
    for at_once in (4, 16, 64):
        results = interleave({"ours": lambda: wrk_block(setup, "host", "php", at_once, 1),
                              "fpm": lambda: wrk_block(setup, "fpm", "fpm", at_once, 1)}, options.rounds)
        report.compare("requests/s, to PHP-FPM", at_once, results["ours"], results["fpm"], "per_s", (">=", 1))
        report.compare("p50 ms, to PHP-FPM", at_once, results["ours"], results["fpm"], "p50_ms")
        report.compare("p99 ms, to PHP-FPM", at_once, results["ours"], results["fpm"], "p99_ms", ("<=", 1))
        report.compare("CPU us, to PHP-FPM", at_once, results["ours"], results["fpm"], "cpu_us")


def measure_recycling(setup, options, report):
    report.title(f"{RECYCLED} workers, max_requests 100, jitter 20 %: recycling all the time")
    ready = []
    load = subprocess.Popen(["wrk", "-t", "1", "-c", str(RECYCLED), "-d", "8s", "--latency", setup.url("recycled")], env=ENVIRONMENT,
                            stdout=subprocess.PIPE, text=True)
    while load.poll() is None:
        processes = setup.status("recycled")["processes"]
        ready.append(processes["idle"] + processes["busy"])
    text = load.stdout.read()
    results = [wrk_block(setup, "host", "recycled", RECYCLED, 2) for _ in range(options.rounds)]
    errors = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    report.row("errors", RECYCLED, int(errors.group(1)) if errors else 0, None, None, ("<=", 0))
    report.row(f"fewest ready, of {len(ready)} readings", RECYCLED, min(ready), None, None, (">=", RECYCLED - 1))
    report.row("requests/s", RECYCLED, median(results, "per_s"))
    report.row("p50 ms", RECYCLED, median(results, "p50_ms"))
    report.row("p99 ms", RECYCLED, median(results, "p99_ms"))
    report.row("p99 to p50", RECYCLED, median(results, "p99_ms") / median(results, "p50_ms"), None, None, ("<=", 3))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=os.getcwd(), help="the folder of the build (default: this one)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of a comparison: each block twice")
    parser.add_argument("--only", default="rpc", help="r: routes, p: PHP, c: recycling")
    options = parser.parse_args()
    report = Report()
    print(describe())
    with tempfile.TemporaryDirectory(prefix="pool-bench-") as folder:
        setup = PoolSetup(options.build, folder)
        try:
            if "r" in options.only:
                measure_routes(setup, report)
            if set("pc") & set(options.only):
                setup.start()
            if "p" in options.only:
                measure_php(setup, options, report)
            if "c" in options.only:
                measure_recycling(setup, options, report)
        finally:
            setup.close()
    print(f"\n{report.missed} limits missed" if report.missed else "\nall limits held")
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
