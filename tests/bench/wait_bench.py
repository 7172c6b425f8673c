#!/usr/bin/python3
"""A new process for each request, at what latency?  per-request, parked, zygote and, where
the program can be that, persistent, in one run.

The ways take turns for every request, or every few, so that only neighbours are
compared: a ratio is the median over pairs, with the interval that holds 95 % of
the medians of resampled pairs.  What it means, and figures: README.md here.
"""
import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import statistics
import struct
import sys
import tempfile
import time

sys.dont_write_bytecode = True          # the source tree stays as it is
from web_bench import Report, milliseconds, number, ratio
from web_servers import NGINX_BEGIN, SOURCE, Service, connects, free_port, run, wait_until

COLD, PARKED, ZYGOTE, PERSISTENT = WAYS = ("per-request", "parked", "zygote", "persistent")
GAPS_MS = (1, 10, 100, 1000)
SPARE = 4
BLOCK = 10                      # requests of one way in a row, where the gap is too short for turns

PYTHON = """#!/usr/bin/python3
import datetime, email.message, json, logging, urllib.request, uuid
import os
print("Content-Type: text/plain\\n\\nHello from Python")
print(os.getpid(), uuid.uuid4(), datetime.date.today().isoformat())
"""
PERL = """#!/usr/bin/perl
use strict; use warnings; use CGI;
my $q = CGI->new;
print $q->header("text/plain"), "Hello from Perl\\n", $q->request_method, "\\n";
"""
PERL_FAST = """#!/usr/bin/perl
use strict; use warnings; use CGI::Fast;
while (my $q = CGI::Fast->new) {
	print $q->header("text/plain"), "Hello from Perl\\n", $q->request_method, "\\n";
}
"""
SHELL = "#!/bin/sh\necho 'Content-Type: text/plain'\necho\necho 'Hello from sh'\necho $REQUEST_METHOD\n"
RUBY = "#!/usr/bin/ruby\nputs \"Content-Type: text/plain\\n\\nHello from Ruby\", ENV['REQUEST_METHOD']\n"
NODE = "#!/usr/bin/node\nconsole.log('Content-Type: text/plain\\n\\nHello from Node\\n' + process.env.REQUEST_METHOD);\n"
PHP = "#!/usr/bin/php-cgi\n<?php header('Content-Type: text/plain'); echo \"Hello from PHP\\n\", $_SERVER['REQUEST_METHOD'], \"\\n\";\n"


class Subject:
    """A program; `files` are what is run for a way that has a text of its own."""

    def __init__(self, name, ways, text=None, persistent=None, interpreter=None):
        self.name, self.ways, self.text, self.persistent, self.interpreter = name, ways, text, persistent, interpreter

    def route(self, way):
        return f"{self.name}-{way}"


SUBJECTS = [
    Subject("c", WAYS),
    Subject("shell", WAYS[:3], SHELL),
    Subject("perl", WAYS, PERL, PERL_FAST, "/usr/bin/perl"),
    Subject("python", WAYS[:3], PYTHON, interpreter="/usr/bin/python3"),
    Subject("ruby", WAYS[:3], RUBY, interpreter="/usr/bin/ruby"),
    Subject("node", WAYS[:2], NODE, interpreter="/usr/bin/node"),
    Subject("php", WAYS, PHP, "", "/usr/bin/php-cgi"),
]

NGINX = NGINX_BEGIN + """\
    server {{
        listen 127.0.0.1:{port};
        location / {{ include fcgi-host/fcgi-host-streaming.conf; }}
    }}
}}
"""


# What is measured.

class Setup:
    def __init__(self, options, folder):
        self.folder, self.port = folder, free_port()
        self.host = os.path.join(options.build, "fcgi-host/fcgi-host")
        self.hello = os.path.join(options.build, "handlers/c/hello")
        self.shims = os.path.join(options.build, "handlers/shims/lib")
        for path in (self.host, self.hello, os.path.join(self.shims, "fcgi-host-park.so")):
            if not os.access(path, os.R_OK):
                sys.exit(f"wait_bench: {path} is not there: give the folder of the build with --build")
        wanted = [s for s in SUBJECTS if not options.only or s.name in options.only.split(",")]
        self.subjects = [s for s in wanted if s.interpreter is None or os.access(s.interpreter, os.X_OK)]
        for subject in set(wanted) - set(self.subjects):
            print(f"{subject.name}: {subject.interpreter} is not there, left out")
        self.services = {}

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text, mode=0o644):
        with open(self.path(name), "w") as file:
            file.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def handler(self, subject, way):
        text = subject.persistent if way == PERSISTENT and subject.persistent else subject.text
        program = self.write(f"{subject.route(way)}.cgi", text, 0o755) if text else self.hello
        command = f'["{subject.interpreter}"]' if way == PERSISTENT and subject.persistent == "" else f'["{program}"]'
        keys = f"command: {command}, process: {way}, protocol: {'fastcgi' if way == PERSISTENT else 'cgi'}"
        workers = "{min: 4, max: 4}" if way == PERSISTENT else f"{{max: 64, spare: {SPARE}}}"
        more = ""
        if subject.name == "php":       # php-cgi wants to be told the script by the web server, and that it may
            more = f", env: {{SCRIPT_FILENAME: \"{self.path(subject.route(COLD) + '.cgi')}\"}}"
        return f"  {subject.route(way)}: {{{keys}, workers: {workers}{more}}}\n"

    def configuration(self):
        pairs = [(s, way) for s in self.subjects for way in s.ways]
        return (f'listen: {{address: "unix:{self.folder}/host.sock", mode: "0666"}}\n'
                f'log: {{file: "{self.folder}/host.log", level: info}}\nhandlers:\n'
                + "".join(self.handler(s, way) for s, way in pairs) + "routes:\n"
                + "".join(f"  - {{path: /{s.route(way)}, handler: {s.route(way)}}}\n" for s, way in pairs))

    def start(self):
        os.chmod(self.folder, 0o755)
        os.symlink(os.path.join(SOURCE, "nginx"), self.path("fcgi-host"))
        os.environ["FCGI_HOST_SHIMS"] = self.shims
        host = self.services["host"] = Service("host")
        host.start("/usr/bin/env", f"FCGI_HOST_SHIMS={self.shims}", self.host, "serve", "-c",
                   self.write("host.yaml", self.configuration()))
        wait_until(lambda: connects(self.path("host.sock")), "the host to listen")
        nginx = self.services["nginx"] = Service("nginx")
        nginx.start("nginx", "-e", self.path("nginx-error.log"), "-c",
                    self.write("nginx.conf", NGINX.format(folder=self.folder, port=self.port)))
        wait_until(lambda: self.is_up(), "nginx to listen")

    def is_up(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def close(self):
        for service in self.services.values():
            service.stop()

    def wait_quiet(self):
        """Until nothing is being started any more: the host's CPU time stands still."""
        end = time.monotonic() + 5
        before = -1
        while (now := self.services["host"].cpu_us()) - before > 200 and time.monotonic() < end:
            before = now
            time.sleep(0.03)


# The clients: a request is (first byte, end), in seconds.

class Through:
    """One kept connection to nginx."""

    def __init__(self, setup):
        self.socket = socket.create_connection(("127.0.0.1", setup.port), 30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, route):
        started = time.perf_counter()
        self.socket.sendall(f"GET /{route} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        data = self.socket.recv(65536)
        first = time.perf_counter()
        while not data.endswith(b"0\r\n\r\n"):
            piece = self.socket.recv(65536)
            if not piece:
                sys.exit(f"wait_bench: /{route}: the connection broke: {data[-300:]!r}")
            data += piece
        end = time.perf_counter()
        if not data.startswith(b"HTTP/1.1 200") or b"Hello from" not in data:
            sys.exit(f"wait_bench: /{route}: {data[:300]!r}")
        return first - started, end - started


def record(kind, content):
    return struct.pack(">BBHHBx", 1, kind, 1, len(content), 0) + content


class Direct:
    """One kept FastCGI connection to the host."""

    def __init__(self, setup):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(setup.path("host.sock"))

    @staticmethod
    def message(route):
        variables = {"REQUEST_METHOD": "GET", "SCRIPT_NAME": f"/{route}", "REQUEST_URI": f"/{route}", "QUERY_STRING": "",
                     "SERVER_PROTOCOL": "HTTP/1.1", "SERVER_NAME": "localhost", "SERVER_PORT": "80", "HTTP_HOST": "localhost",
                     "REMOTE_ADDR": "127.0.0.1", "GATEWAY_INTERFACE": "CGI/1.1"}
        params = b"".join(bytes([len(n), len(v)]) + n.encode() + v.encode() for n, v in variables.items())
        return record(1, b"\0\1\1\0\0\0\0\0") + record(4, params) + record(4, b"") + record(5, b"")

    def ask(self, route):
        message = self.message(route)
        started = time.perf_counter()
        self.socket.sendall(message)
        data = self.socket.recv(65536)
        first = time.perf_counter()
        while not self.is_whole(data):
            data += self.socket.recv(65536)
        end = time.perf_counter()
        if b"Hello from" not in data:
            sys.exit(f"wait_bench: /{route}: {data[:300]!r}")
        return first - started, end - started

    @staticmethod
    def is_whole(data):
        at = 0
        while at + 8 <= len(data):
            kind, (length, padding) = data[at + 1], struct.unpack(">HB", data[at + 4:at + 7])
            at += 8 + length + padding
            if kind == 3:
                return at <= len(data)
        return False


# Blocks.

def in_turns(client, routes, gap_ms, rounds):
    """One request each, round after round; a route is asked again after the gap."""
    results = {route: [] for route in routes}
    for number_ in range(rounds):
        due = time.perf_counter() + gap_ms / 1000
        for route in routes if number_ % 2 == 0 else reversed(routes):
            results[route].append(client.ask(route))
        time.sleep(max(0, due - time.perf_counter()))
    return results


def in_blocks(setup, client, routes, gap_ms, rounds, cpu):
    """A few requests with the gap before each; then the next route, when all that the last ones caused is done."""
    results = {route: [] for route in routes}
    for number_ in range(rounds):
        for route in routes if number_ % 2 == 0 else reversed(routes):
            before = setup.services["host"].cpu_us()
            for _ in range(BLOCK):
                time.sleep(gap_ms / 1000)
                results[route].append(client.ask(route))
            setup.wait_quiet()
            cpu.setdefault(route, []).append((setup.services["host"].cpu_us() - before) / BLOCK)
    return results


def of_blocks(results, field, size):
    """The median of each block, so that blocks make the pairs."""
    values = [r[field] * 1000 for r in results]
    return [{"ms": statistics.median(values[i:i + size])} for i in range(0, len(values), size)]


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * q))]


class Table:
    def __init__(self, report):
        self.report, self.rows = report, []

    def title(self, text):
        print(f"\n{text}\n\n{'':22} {'first byte':>19} {'end':>19}   to per-request (95 %)\n"
              f"{'':22} {'median':>9} {'99 %':>9} {'median':>9} {'99 %':>9}")

    def subject(self, subject, results, front, gap_ms, size):
        for way in subject.ways:
            got = results[subject.route(way)]
            figures = [f([r[field] * 1000 for r in got]) for field in (0, 1)
                       for f in (statistics.median, lambda v: quantile(v, 0.99))]
            times = ratio(of_blocks(results[subject.route(COLD)], 0, size), of_blocks(got, 0, size), "ms")
            self.rows.append({"subject": subject.name, "way": way, "front": front, "gap_ms": gap_ms, "first_ms": figures[:2],
                              "end_ms": figures[2:], "quicker": times, "requests": len(got)})
            shown = "" if way == COLD else f"{times[0]:.1f} times quicker ({times[1]:.1f} to {times[2]:.1f})"
            print(f"{subject.name + ' ' + way:22} " + " ".join(f"{number(f):>9}" for f in figures) + f"   {shown}", flush=True)


def measure(setup, options, table):
    """{(front, gap): {route: [(first, end)]}}, and the CPU of each request."""
    results, cpu = {}, {}
    for front, client in (("nginx", Through(setup)), ("direct", Direct(setup))):
        for subject in setup.subjects:          # learns its modules, and settles
            for way in subject.ways:
                for _ in range(3):
                    client.ask(subject.route(way))
        setup.wait_quiet()
        for gap_ms in options.gaps:
            got = results[front, gap_ms] = {}
            is_turns = gap_ms >= 100
            groups = [setup.subjects] if gap_ms >= 1000 else [[s] for s in setup.subjects]
            for group in groups:
                routes = [s.route(way) for s in group for way in s.ways]
                if is_turns:
                    got.update(in_turns(client, routes, gap_ms, options.turns_long if gap_ms >= 1000 else options.turns))
                else:
                    got.update(in_blocks(setup, client, routes, gap_ms, options.blocks, cpu))
            table.title(f"{front}, {gap_ms} ms between requests: ms")
            for subject in setup.subjects:
                table.subject(subject, got, front, gap_ms, 1 if is_turns else BLOCK)
    return results, cpu


def saturate(setup, options):
    """{route: [requests a second]}; wrk keeps 16 requests under way."""
    per_s = {}
    for _ in range(options.saturations):
        for subject in setup.subjects:
            for way in subject.ways:
                text = run("wrk", "-t", "1", "-c", "16", "-d", "1s", "--timeout", "30s", f"http://127.0.0.1:{setup.port}/{subject.route(way)}")
                per_s.setdefault(subject.route(way), []).append(float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1)))
            setup.wait_quiet()
    print("\nnginx, 16 at a time: requests a second\n")
    for subject in setup.subjects:
        print(f"{subject.name:10} " + "   ".join(f"{way} {number(statistics.median(per_s[subject.route(way)]))}" for way in subject.ways), flush=True)
    return per_s


# What must hold.

def holds(setup, report, results, cpu, gaps):
    names = {s.name for s in setup.subjects}
    report.title("What must hold (ours, theirs: ms, or us of CPU a request)")

    def compare(what, front, gap, above, below, field, limit):
        got = results.get((front, gap))
        if got is not None:
            size = 1 if gap >= 100 else BLOCK
            report.compare(f"{what}, {front}, {gap} ms", None, of_blocks(got[above], field, size), of_blocks(got[below], field, size), "ms", limit)
    for gap in gaps:
        # What is started ahead takes as long as a start: at less than that between requests it is used up.
        held, is_long = gap in (10, 100), gap in (100, 1000)
        for way in ("parked", "zygote") if "c" in names else ():
            compare(f"C {way} to persistent", "nginx", gap, f"c-{way}", "c-persistent", 1, ("<=", 2) if held else None)
        for way in ("parked", "zygote") if "python" in names else ():
            compare(f"Python cold to {way}", "nginx", gap, "python-per-request", f"python-{way}", 0,
                    (">=", 20) if (held if way == ZYGOTE else is_long) else None)
        if "node" in names:
            compare("Node cold to parked", "nginx", gap, "node-per-request", "node-parked", 0, (">=", 20) if is_long else None)
    if "python" in names and cpu:
        pair = [[{"us": us} for us in cpu[f"python-{way}"]] for way in (COLD, ZYGOTE)]
        report.compare("CPU, Python cold to zygote", None, *pair, "us", (">=", 5))
    for route, values in sorted(cpu.items()):
        print(f"CPU a request, {route:24} {number(statistics.median(values)):>9} us")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", default=os.getcwd(), help="folder of the build (default: here)")
    parser.add_argument("--quick", action="store_true", help="a look: few requests")
    parser.add_argument("--only", help="of " + ",".join(s.name for s in SUBJECTS))
    parser.add_argument("--gaps", default=",".join(map(str, GAPS_MS)), help="ms between requests")
    parser.add_argument("--json", help="write all figures to this file")
    options = parser.parse_args()
    options.gaps = [int(gap) for gap in options.gaps.split(",")]
    options.blocks, options.turns, options.turns_long, options.saturations = (2, 6, 3, 1) if options.quick else (6, 30, 20, 2)
    for tool in ("nginx", "wrk"):
        if shutil.which(tool) is None:
            sys.exit(f"wait_bench: {tool} is not there")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = tempfile.mkdtemp(prefix="wait-bench-")
    setup = Setup(options, folder)
    report = Report()
    table = Table(report)
    try:
        setup.start()
        results, cpu = measure(setup, options, table)
        per_s = saturate(setup, options)
        holds(setup, report, results, cpu, options.gaps)
    finally:
        setup.close()
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"latencies": table.rows, "holds": report.rows, "cpu_us": cpu, "per_s": per_s}, file, indent=1)
    sys.exit(1 if report.missed else 0)


if __name__ == "__main__":
    main()
