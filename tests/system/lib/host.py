"""One fcgi-host under test: its folder, configuration, handlers, log and end."""
import os
import pathlib
import re
import resource
import signal
import stat
import subprocess
import time

from . import logs, paths, proc, wire, yaml_text
from .wait import connects, wait_until

SANITIZER_WORDS = re.compile(r"(AddressSanitizer|LeakSanitizer|UndefinedBehaviorSanitizer|runtime error:)")


def sanitizer_environment(folder):
    log = f"{folder}/sanitizer/report"
    return {
        "ASAN_OPTIONS": f"log_path={log}:exitcode=99:detect_leaks=1:allocator_may_return_null=1",
        "LSAN_OPTIONS": f"log_path={log}:exitcode=99",
        "UBSAN_OPTIONS": f"log_path={log}:print_stacktrace=1",
    }


def make_folder(path):
    """A folder that web servers' and handlers' users can reach."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o755)
    return path


def install_script(folder, name, text):
    if not text.startswith("#!"):
        text = "#!/bin/sh\n" + text
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


class Host:
    """
    handlers: {name: shell text, or {script: text, any handler key: value}}.  A handler gets the
    route /name/*; `routes` replaces all of these, `more_routes` adds.  Other keywords are top-level keys.
    """

    cgi_process = os.environ.get("FCGI_HOST_TEST_PROCESS")     # how CGI programs live that say nothing of it

    def __init__(self, folder, handlers, routes=None, more_routes=(), build=None, listen=None, start=True,
                 environment=None, close_standard=False, pass_fds=(), stdin=None, files=None, before=(), **top):
        self.folder = make_folder(pathlib.Path(folder))
        make_folder(self.folder / "handlers")
        reports = make_folder(self.folder / "sanitizer")
        reports.chmod(0o1777)
        self.scratch = make_folder(self.folder / "scratch")
        self.scratch.chmod(0o1777)
        self.run_folder = make_folder(self.folder / "run")
        self.program = str(paths.program(build))
        self.build = build
        self.config = self.folder / "fcgi-host.yaml"
        self.log_file = self.folder / "host.log"
        self.socket = str(self.run_folder / "host.sock")
        self.environment = dict(environment or {})
        self.close_standard, self.pass_fds, self.stdin = close_standard, pass_fds, stdin
        self.files = files          # (soft, hard) limit of descriptors
        self.before = list(before)  # a command that runs the host, such as `ip netns exec NAME`
        self.connections = []
        self.process = None
        self.baseline = None
        self.exit_status = None
        self.expect_exit = 0
        self.was_killed = False
        self.has_workers = False
        self.pid_of_relay = None
        self.top = top
        self.listen = listen
        self.write(handlers, routes, more_routes)
        if start:
            self.start()

    # --- configuration

    def write(self, handlers, routes=None, more_routes=()):
        table = {}
        for name, given in handlers.items():
            keys = {"script": given} if isinstance(given, str) else dict(given)
            text = keys.pop("script", None)
            if text is not None:
                self.script(name, text)
                keys = {"command": [f"handlers/{name}"], **keys}
            if self.cgi_process and "process" not in keys and "command" in keys and keys.get("protocol", "cgi") == "cgi":
                keys["process"] = self.cgi_process
            if keys.get("process") in ("persistent", "parked", "zygote") or "connect" in keys or (
                    keys.get("protocol") == "fastcgi" and keys.get("process") != "per-request"):
                self.has_workers = True
            table[name] = keys
        self.count_waiting(table)
        if routes is None:
            routes = [{"path": f"/{name}/*", "handler": name} for name in table]
        defaults = dict(self.top.pop("defaults", {}))
        defaults["env"] = {"FCGI_HOST_TEST": str(self.folder), "SCRATCH": str(self.scratch), **defaults.get("env", {})}
        self.listen = self.listen or {"address": f"unix:{self.socket}", "mode": "0666"}
        config = {
            "listen": self.listen, **self.top, "defaults": defaults, "handlers": table, "routes": list(routes) + list(more_routes),
        }
        self.write_text(yaml_text.block(config) + "\n")

    def count_waiting(self, table):
        """How many processes will wait where `cgi_process` says how all of them live; None where it does not."""
        self.waiting = None
        modes = {keys.get("process") for keys in table.values()}
        if self.cgi_process in ("parked", "zygote") and modes == {self.cgi_process}:
            self.waiting = sum(keys.get("workers", {}).get("spare", 1) + (self.cgi_process == "zygote") for keys in table.values())

    def write_text(self, text):
        self.config.write_text(text)
        self.config.chmod(0o644)

    def script(self, name, text):
        return install_script(self.folder / "handlers", name, text)

    # --- running

    @property
    def address(self):
        """Where a raw client connects: a path or (host, port)."""
        first = self.listen[0] if isinstance(self.listen, list) else self.listen
        text = first["address"] if isinstance(first, dict) else first
        if text.startswith("unix:"):
            return text[5:]
        host, _, port = text.rpartition(":")
        return ("127.0.0.1" if host in ("0.0.0.0", "") else host.strip("[]"), int(port))

    def environ(self):
        return {"PATH": "/usr/bin:/bin", "FCGI_HOST_TEST": str(self.folder), "FCGI_HOST_SHIMS": str(paths.shims(self.build)),
                **sanitizer_environment(self.folder), **self.environment}

    def spawn(self, *arguments, **popen):
        """The program with these arguments; stderr goes to the log file unless said."""
        if "stderr" not in popen:
            popen["stderr"] = open(self.log_file, "ab")
        return subprocess.Popen([self.program, *arguments], env=self.environ(), cwd=str(self.folder), **popen)

    def start(self, wait=True):
        def before():
            if self.files:
                resource.setrlimit(resource.RLIMIT_NOFILE, self.files)
            if self.close_standard:
                for fd in (0, 1, 2):
                    os.close(fd)
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(
                [*self.before, self.program, "serve", "-c", str(self.config)], env=self.environ(), cwd=str(self.folder),
                stdin=self.stdin or subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=self.pass_fds,
                start_new_session=True, preexec_fn=before if self.close_standard or self.files else None)
        self.exit_status = None
        if wait:
            self.wait_listening()
        return self

    def wait_listening(self):
        def listens():
            if self.process.poll() is not None:
                self.expect_exit = self.process.returncode      # told here, not once more at the end
            assert self.process.poll() is None, f"the host ended with {self.process.returncode} at start:\n{self.log_text()}"
            return connects(self.address)
        wait_until(listens, 20, "listening")
        self.pid_of_relay = self.find_relay()
        if self.waiting is not None:
            self._settle()
        elif not self.has_workers:
            wait_until(lambda: self.descriptors() is not None and self._is_steady(), 5, "a steady number of descriptors")
        self.baseline = self.descriptors()

    def _settle(self):
        """Some programs of the tests are not there, or cannot wait: then nothing comes."""
        def is_settled():
            now = self.descriptors()
            spawners = [n for pid, n in now.items() if pid != self.relay]
            return len(self.children(waiting=True)) == self.waiting and sum(spawners) == 5 * len(spawners) + self.waiting
        deadline = time.monotonic() + 2
        while not is_settled() and time.monotonic() < deadline:
            time.sleep(0.01)

    def _is_steady(self):
        first = self.descriptors()
        time.sleep(0.02)
        # A spawner that has not run yet still has what it was forked with; in the end all have the same.
        # A listener that was handed over takes connections before there is a spawner.
        return first == self.descriptors() and len(first) > 1 and len({n for pid, n in first.items() if pid != self.pid_of_relay}) <= 1

    def host_pids(self):
        """Relay and spawners: everything below us that is this very program."""
        own = os.path.realpath(self.program)
        return [p for p in [self.process.pid, *proc.descendants(self.process.pid)]
                if os.path.realpath(proc.exe(p) or "/") == own and b"serve" in proc._read(p, "cmdline")]

    def find_relay(self):
        address = self.address
        if isinstance(address, str):
            pid = proc.listener_of(address)
            # A listener that was handed over was made by someone else.
            return pid if pid in self.host_pids() else self.process.pid
        found = proc.holders(proc.tcp_inodes(address[1]), self.host_pids())
        assert len(found) == 1, f"exactly one process holds the listener, found {found}"
        return found[0]

    @property
    def relay(self):
        return self.pid_of_relay

    def descriptors(self):
        return {p: len(proc.fds(p) or ()) for p in self.host_pids()}

    def children(self, waiting=False):
        """Living handler processes, whole groups: those of requests, or those that wait for one."""
        def is_one(pid):
            environ = proc._read(pid, "environ")
            return b"FCGI_HOST_TEST=" in environ and (b"\0FCGI_HOST_PARK=" in b"\0" + environ or
                                                     b"\0FCGI_HOST_ZYGOTE=" in b"\0" + environ) == waiting
        return [p for p in proc.marked(self.folder) if os.path.realpath(proc.exe(p) or "/") != os.path.realpath(self.program)
                and is_one(p) and p not in self.outsiders]

    outsiders = ()

    def workers(self, name):
        """Pids running the program of handler `name`."""
        path = str(self.folder / "handlers" / name).encode()
        return sorted(p for p in proc.marked(self.folder) if path in proc._read(p, "cmdline").split(b"\0"))

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self, timeout=20):
        """TERM; returns the exit status."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.exit_status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            report = "\n".join(proc.describe(p) for p in [self.process.pid, *proc.descendants(self.process.pid)])
            self.kill()
            raise AssertionError(f"the host did not end within {timeout} s after TERM:\n{report}")
        return self.exit_status

    def kill(self):
        self.was_killed = True
        proc.kill_quietly(self.process.pid)
        self.process.wait(10)

    # --- asking

    def request(self, path="/", method="GET", body=None, **more):
        return wire.request(self.address, path, method, body, **more)

    def connect(self, timeout=15):
        conn = wire.Conn(self.address, timeout)
        self.connections.append(conn)
        return conn

    def command(self, *arguments, timeout=20, **more):
        more.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([self.program, *arguments], env=self.environ(), cwd=str(self.folder), capture_output=True,
                              timeout=timeout, **more)

    # --- the log

    def log_text(self):
        return self.log_file.read_text(errors="surrogateescape") if self.log_file.exists() else ""

    def log_lines(self):
        """All but what the configuration's reader said before the log was open."""
        return [line for line in self.log_text().split("\n") if line and not line.startswith(f"{self.config}:")]

    def log(self, **want):
        return logs.select([e for e in map(logs.parse, self.log_lines()) if e], **want)

    def lines_with(self, text):
        return [line for line in self.log_lines() if text in line]

    def wait_log(self, timeout=10, count=1, **want):
        """The first (or with count, the list of) matching lines, once they are there."""
        def there():
            found = self.log(**want)
            return found if len(found) >= count else None
        try:
            found = wait_until(there, timeout)
        except AssertionError:
            raise AssertionError(f"no {count} log line(s) with {want} within {timeout} s; the log has:\n{self.log_text()[-6000:]}") from None
        return found[0] if count == 1 else found

    # --- what every test leaves behind

    def check_idle(self, timeout=5):
        """Nothing is left of the requests: no descriptor, zombie or per-request process."""
        if not self.is_running():
            return
        wait_until(lambda: not proc.zombies(self.process.pid), timeout, "reaping every child")
        if self.waiting is not None:
            self._check_idle_with_waiting(timeout)
        if self.has_workers:
            return
        try:
            wait_until(lambda: self.descriptors() == self.baseline, timeout)
        except AssertionError:
            now = {p: proc.fds(p) for p in self.host_pids()}
            raise AssertionError(f"descriptors are not back to where they were: at start {self.baseline}, now {now}") from None

    def _check_idle_with_waiting(self, timeout):
        """Whose control a spawner holds changes, and fewer may wait than at the start; more may not."""
        def is_back():
            now = self.descriptors()
            return now.get(self.relay, 0) <= self.baseline.get(self.relay, 0) and sum(now.values()) <= sum(self.baseline.values())
        try:
            wait_until(is_back, timeout)
        except AssertionError:
            now = {p: proc.fds(p) for p in self.host_pids()}
            raise AssertionError(f"more descriptors than at start, {self.baseline}: {now}") from None

    def check_gone(self):
        def left():
            return self.children() + self.children(waiting=True)
        wait_until(lambda: not left(), 5, "the end of every handler process: " + "; ".join(proc.describe(p) for p in left()))
        first = self.listen[0] if isinstance(self.listen, list) else self.listen
        text = first["address"] if isinstance(first, dict) else first
        if text.startswith("unix:") and not self.was_killed and not self.keeps_socket:
            assert not os.path.lexists(text[5:]), "the socket file is still there"

    keeps_socket = False

    def sanitizer_reports(self):
        found = "".join(p.read_text(errors="replace") for p in sorted((self.folder / "sanitizer").glob("*")))
        return found + "\n".join(line for line in self.log_lines() if SANITIZER_WORDS.search(line))

    def close(self, check=True):
        """The end of every test."""
        errors = []

        def attempt(step):
            try:
                step()
            except Exception as e:      # noqa: BLE001 - all are reported together
                errors.append(str(e))
        for conn in self.connections:
            conn.close()
        if self.process is not None:
            if check:
                attempt(self.check_idle)
            attempt(self.stop)
            if check and not self.was_killed and self.exit_status is not None and self.exit_status != self.expect_exit:
                errors.append(f"exit status {self.exit_status} instead of {self.expect_exit}")
            if check:
                attempt(self.check_gone)
        for pid in proc.marked(self.folder):
            proc.kill_quietly(pid)
        reports = self.sanitizer_reports()
        if reports:
            errors.append("sanitizer:\n" + reports)
        if errors and check:
            raise AssertionError("\n".join(errors) + "\nlog:\n" + self.log_text()[-4000:])


def mode_of(path):
    return stat.S_IMODE(os.lstat(path).st_mode)
