"""What systemd, or any other supervisor that speaks its protocol, hears of the host and hands to it."""
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from lib import paths, proc, wire
from lib.handlers import HELLO, worker
from lib.wait import wait_until
from test_status import PARKED, ZYGOTE, of, start_of, status

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop to another user")

# Opens nothing itself: hands over descriptor 3 as systemd does.
HAND_OVER = ("import os, sys\nos.dup2(int(sys.argv[1]), 3)\nos.set_inheritable(3, True)\nos.closerange(4, 400)\n"
             "os.environ['LISTEN_FDS'] = '1'; os.environ['LISTEN_PID'] = str(os.getpid())\nos.execv(sys.argv[2], sys.argv[2:])\n")


class Manager:
    """The end of NOTIFY_SOCKET where messages arrive."""

    def __init__(self, folder):
        self.path = str(folder / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.bind(self.path)
        os.chmod(self.path, 0o777)

    def next(self, timeout=20):
        """(pid of the sender, {name: value}) of the next message."""
        self.socket.settimeout(timeout)
        text, control, _, _ = self.socket.recvmsg(4096, 128)
        credentials = next(data for level, kind, data in control if kind == socket.SCM_CREDENTIALS)
        return int.from_bytes(credentials[:4], "little"), dict(line.split("=", 1) for line in text.decode().splitlines())

    def nothing(self, seconds):
        self.socket.settimeout(seconds)
        with pytest.raises(TimeoutError):
            self.socket.recv(4096)


@pytest.fixture
def manager(folder):
    manager = Manager(folder)
    yield manager
    manager.socket.close()


def test_ready_is_said_when_it_listens_by_the_main_process(make_host, manager):
    host = make_host({"h": HELLO}, start=False, environment={"NOTIFY_SOCKET": manager.path})
    host.start(wait=False)
    pid, told = manager.next()
    assert told == {"READY": "1"}
    assert pid == host.process.pid, "what NotifyAccess=main asks for"
    assert wire.request(host.address, "/h").text == "hello\n", "at once"
    host.wait_listening()


@root
def test_a_relay_that_gave_up_root_is_still_heard(make_host, manager):
    host = make_host({"h": HELLO}, user="www-data", environment={"NOTIFY_SOCKET": manager.path})
    assert manager.next() == (host.process.pid, {"READY": "1"})
    os.kill(host.relay, signal.SIGHUP)
    assert "RELOADING" in manager.next()[1]
    assert manager.next()[1] == {"READY": "1"}


def test_requests_are_no_news(make_host, manager):
    host = make_host({"h": HELLO}, environment={"NOTIFY_SOCKET": manager.path})
    manager.next()
    host.request("/h")
    manager.nothing(0.5)


@pytest.mark.parametrize("text", ["the same", "handlers: ["], ids=["good", "bad"])
def test_a_reload_is_told_from_its_beginning_to_its_end(make_host, manager, text):
    host = make_host({"h": HELLO}, environment={"NOTIFY_SOCKET": manager.path})
    manager.next()
    if text != "the same":
        host.write_text(text)
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    os.kill(host.relay, signal.SIGHUP)
    _, told = manager.next()
    assert told["RELOADING"] == "1"
    assert before <= int(told["MONOTONIC_USEC"]) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    assert manager.next()[1] == {"READY": "1"}
    assert host.request("/h").text == "hello\n"


def test_stopping_is_told_with_the_time_that_it_may_take(make_host, manager):
    host = make_host({"h": HELLO}, defaults={"timeout": {"kill": "7s"}}, environment={"NOTIFY_SOCKET": manager.path})
    manager.next()
    assert host.stop() == 0
    _, told = manager.next()
    assert told["STOPPING"] == "1" and int(told["EXTEND_TIMEOUT_USEC"]) >= 7_000_000


def test_the_watchdog_hears_of_a_loop_that_turns_and_not_of_one_that_hangs(make_host, manager):
    host = make_host({"h": HELLO}, environment={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "400000"})
    assert manager.next()[1] == {"READY": "1"}
    for _ in range(3):
        assert manager.next() == (host.process.pid, {"WATCHDOG": "1"})
    os.kill(host.relay, signal.SIGSTOP)
    try:
        wait_until(lambda: proc.stat(host.relay)[0] == "T", 5, "the stop")
        drained = False
        while not drained:      # what was sent before the stop
            try:
                manager.socket.settimeout(0)
                manager.socket.recv(4096)
            except BlockingIOError:
                drained = True
        manager.nothing(1)
    finally:
        os.kill(host.relay, signal.SIGCONT)
    assert manager.next()[1] == {"WATCHDOG": "1"}


def test_handlers_hear_nothing_of_the_manager(make_host, manager):
    host = make_host({"h": "printf 'Content-Type: text/plain\\n\\n'\nenv\n"},
                     environment={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "60000000"})
    assert not re.search(r"^(NOTIFY_SOCKET|WATCHDOG_|LISTEN_)", host.request("/h").text, re.M)


def start_on(host, listener):
    """The host as systemd starts it for a socket that systemd holds."""
    with open(host.log_file, "ab") as log:
        host.process = subprocess.Popen(
            ["/usr/bin/python3", "-ISc", HAND_OVER, str(listener.fileno()), host.program, "serve", "-c", str(host.config)],
            env=host.environ(), cwd=str(host.folder), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            pass_fds=[listener.fileno()], start_new_session=True)


def test_restarts_on_a_socket_that_was_handed_over_fail_no_request(make_host, fastcgi_program):
    """What systemd does for an upgrade; tests/packages has it with systemd and the package itself."""
    host = make_host({"cgi": "cat >/dev/null\n" + HELLO, "kept": worker(fastcgi_program)}, start=False)
    host.keeps_socket = True
    failed, counts, is_over = [], {"/cgi": 0, "/kept": 0}, threading.Event()

    def ask(path):
        while not is_over.is_set():
            answer = wire.request(host.address, path, "POST", b"body", timeout=60)
            counts[path] += 1
            if answer.status != 200 or not answer.complete:
                failed.append(answer)

    threads = [threading.Thread(target=ask, args=[path]) for path in counts for _ in range(2)]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(host.socket)
        listener.listen(64)
        start_on(host, listener)
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                before = dict(counts)
                wait_until(lambda: all(counts[path] >= before[path] + 10 for path in counts), 60, "answers")
                host.signal(signal.SIGTERM)
                assert host.process.wait(30) == 0
                start_on(host, listener)
        finally:
            is_over.set()
            for thread in threads:
                thread.join()
        assert host.stop() == 0
    assert failed == [], counts


@pytest.mark.parametrize("user", [None, pytest.param("www-data", marks=root)])
def test_a_stop_leaves_a_socket_that_was_handed_over_alone(make_host, user):
    """A connection to it, only to see whether it is dead, would make systemd start the service anew."""
    host = make_host({"h": HELLO}, start=False, **({"user": user} if user else {}))
    host.keeps_socket = True
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(host.socket)
        os.chmod(host.socket, 0o666)
        listener.listen(16)
        start_on(host, listener)
        wait_until(lambda: os.path.realpath(proc.exe(host.process.pid)) == os.path.realpath(host.program), 10)
        host.wait_listening()
        assert host.request("/h").text == "hello\n"
        assert host.stop() == 0
        listener.settimeout(0)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert os.path.lexists(host.socket)


# --- the units

UNITS = ("fcgi-host.service", "fcgi-host.socket")


@pytest.fixture
def units(folder, make_host):
    """The folder of the units, as built, but with the program where the build has it."""
    host = make_host({}, start=False)
    place = folder / "units"
    place.mkdir()
    for name in UNITS:
        text = (paths.BUILD / "systemd" / name).read_text()
        text = re.sub(r"(?m)^(Exec\w+=)\S+/fcgi-host ", rf"\1{host.program} ", text)
        (place / name).write_text(re.sub(r"(?m)^Documentation=.*\n", "", text))     # the pages are not installed
    return place


def analyze(*arguments):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, env={**os.environ, "SYSTEMD_COLORS": "0", "LC_ALL": "C.UTF-8"})


def test_the_units_are_good(units):
    done = analyze("verify", *(str(units / name) for name in UNITS))
    assert done.returncode == 0 and not done.stdout + done.stderr, done


def test_what_the_service_leaves_open_is_in_the_manual(units):
    done = analyze("security", "--offline=yes", str(units / "fcgi-host.service"))
    level = float(re.search(r"Overall exposure level for fcgi-host.service: ([\d.]+)", done.stdout).group(1))
    assert level <= 3.0, done.stdout
    manual = re.search(r"^\.Sh SERVICE MANAGER\n(.*?)^\.Sh ", (paths.REPO / "doc" / "fcgi-host.8").read_text(), re.M | re.S).group(1)
    explained = set(re.findall(r"(\w+)=", "".join(re.findall(r"^\.It .*$", manual, re.M))))
    left = set(re.findall(r"^✗ (\w+)=", done.stdout, re.M)) - {"CapabilityBoundingSet", "User", "ProtectSystem"}
    assert left and left <= explained, left - explained
    given = re.search(r"^CapabilityBoundingSet=(.*)$", (units / "fcgi-host.service").read_text(), re.M).group(1).split()
    assert set(given) == set(re.findall(r"\bCAP_\w+", manual))


def nice_of(pid):
    return int(proc._read(pid, "stat").rpartition(b")")[2].split()[16])


def idle_ones(host, name):
    return [p["pid"] for p in of(status(host), name)["process_list"] if p["state"] == "idle" and p["pid"]]


@root
@pytest.mark.parametrize("before, expected", [
    (["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"], 0), ([], 0), (["nice", "-n", "3"], 3),
    (["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice", "nice", "-n", "3"], 3)], ids=["cannot raise", "can", "nicer host", "nicer host that cannot"])
def test_a_process_that_waits_has_the_priority_of_one_that_is_started_for_its_request(make_host, before, expected):
    """Whoever cannot raise a priority does not lower it either, as root without CAP_SYS_NICE."""
    nice = "printf 'Content-Type: text/plain\\n\\n'; nice\n"
    host = make_host({"parked": {"script": nice, "process": "parked"}, "zygote": {"script": nice, "process": "zygote"}, "cold": nice,
                      "other": {"script": nice, "process": "parked", "user": "nobody"}}, before=before)
    for name in ("parked", "zygote", "other"):
        (pid,) = wait_until(lambda: idle_ones(host, name), 20, "one that waits")
        assert nice_of(pid) == expected, name
    for name in ("parked", "zygote", "other", "cold"):
        assert host.request(f"/{name}").text.strip() == str(expected), name
    starts = {e["handler"]: start_of(e) for e in host.wait_log(event="request", count=4)}
    assert starts == {"parked": "parked", "zygote": "forked", "other": "parked", "cold": "cold"}


def as_in_the_unit(units):
    """The capabilities and privileges that the unit leaves, without systemd."""
    text = (units / "fcgi-host.service").read_text()
    assert "NoNewPrivileges=yes" in text
    given = re.search(r"^CapabilityBoundingSet=(.*)$", text, re.M).group(1).lower().replace("cap_", "").split()
    return ["setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all," + ",".join(f"+{name}" for name in given)]


ALL_WAYS = {"cold": HELLO, "parked": {**PARKED, "user": "nobody", "limits": {"cpu": "10s"}},
            "zygote": {**ZYGOTE, "user": "nobody", "limits": {"cpu": "10s"}}, "function": {"script": "cat", "protocol": "stdio"}}


@root
def test_all_ways_of_running_work_with_what_the_unit_leaves(make_host, units, fastcgi_program):
    host = make_host({**ALL_WAYS, "w": worker(fastcgi_program, workers={"min": 1}, user="nobody")}, user="www-data", before=as_in_the_unit(units))
    for name in ("parked", "zygote"):
        wait_until(lambda: idle_ones(host, name), 20, "one that waits")
    for name in (*ALL_WAYS, "w"):
        assert host.request(f"/{name}").status == 200, name
    starts = {e["handler"]: start_of(e) for e in host.wait_log(event="request", count=5)}
    assert starts == {"cold": "cold", "parked": "parked", "zygote": "forked", "function": "cold", "w": None}
    reading = status(host)
    for process in of(reading, "parked")["process_list"] + of(reading, "w")["process_list"]:
        assert process["rss_kib"] > 0, "of other users too"
    assert host.command("reload", "-c", str(host.config)).returncode == 0


def calls_of(group):
    """The system calls of a group of systemd's, and of those in it."""
    calls = set()
    for word in analyze("syscall-filter", group).stdout.split("\n")[1:]:
        word = word.strip()
        calls |= calls_of(word) if word.startswith("@") else {word} if word and not word.startswith("#") else set()
    return calls


@root
@pytest.mark.limit(120)
def test_no_system_call_is_one_that_the_unit_forbids(make_host, units, fastcgi_program, folder):
    (given,) = re.findall(r"^SystemCallFilter=(.*)$", (units / "fcgi-host.service").read_text(), re.M)
    allowed = set().union(*(calls_of(word) if word.startswith("@") else {word} for word in given.split()))
    assert len(allowed) > 200
    trace = folder / "trace"
    trace.mkdir()
    # Of the build without sanitizers, which make calls of their own.
    host = make_host({**ALL_WAYS, "w": worker(fastcgi_program, workers={"min": 1}, user="nobody")}, user="www-data", build=paths.BUILD_PLAIN, start=False,
                     before=["strace", "-D", "-ff", "-qq", "-e", "signal=none", "-o", str(trace / "of")])
    host.start()
    for name in (*ALL_WAYS, "w"):
        assert host.request(f"/{name}").status == 200, name
    assert host.command("reload", "-c", str(host.config)).returncode == 0
    host.stop()
    text = "\n".join(path.read_text(errors="replace") for path in trace.iterdir())
    made = set(re.findall(r"^(\w+)\(", text, re.M))
    assert {"execve", "setpriority", "epoll_wait", "accept4"} <= made
    assert made <= allowed, sorted(made - allowed)
