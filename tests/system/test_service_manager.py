"""What systemd, or any other supervisor that speaks its protocol, hears of the host and hands to it."""
import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from lib import proc, wire
from lib.handlers import HELLO, worker
from lib.wait import wait_until

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
