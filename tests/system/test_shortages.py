"""Out of descriptors, or of room in a backlog: the control socket and the bridge wait without work and come back."""
import resource
import socket
import subprocess

import pytest

from lib import proc, wire
from lib.handlers import HELLO
from lib.wait import connects, free_port, stays, wait_until
from test_status import status

FILES = 64


def is_at_rest(pid):
    """No busy loop around what fails for want of a descriptor."""
    ticks = proc.cpu_ticks(pid)
    stays(lambda: proc.is_alive(pid), 1, "its life")
    return proc.cpu_ticks(pid) - ticks <= 20


def control_address(host):
    """What `fcgi-host status` connects to, by the relay's own list of sockets."""
    with open("/proc/net/unix") as f:
        names = [line.split()[-1] for line in f if "@fcgi-host/" in line]
    inodes = {t[8:-1] for t in (proc.fds(host.relay) or {}).values() if t.startswith("socket:")}
    with open("/proc/net/unix") as f:
        mine = {line.split()[-1] for line in f if "@fcgi-host/" in line and line.split()[6] in inodes}
    assert len(mine) == 1, (mine, names)
    return "\0" + mine.pop()[1:]


def test_who_asks_the_host_when_it_has_no_descriptor_left_is_answered_later(make_host):
    host = make_host({"h": HELLO}, files=(FILES, FILES))
    address = control_address(host)
    askers = []

    def has_taken_all():
        """Its last descriptor; as fast as it accepts, which the backlog is too short to outrun."""
        s = socket.socket(socket.AF_UNIX)
        s.setblocking(False)
        try:
            s.connect(address)
            askers.append(s)
        except BlockingIOError:
            s.close()
        return len(proc.fds(host.relay)) == FILES
    wait_until(has_taken_all, 10)
    assert is_at_rest(host.relay)
    for s in askers:
        s.close()
    assert status(host)["handlers"][0]["name"] == "h", "it comes back by itself"
    assert host.request("/h").text == "hello\n"


@pytest.fixture
def bridge(request):
    """bridge(host, files): a bridge on a socket that we listen on, as mod_fcgid starts it; (process, path)."""
    running = []

    def start(host, files=1024):
        path = str(host.run_folder / "bridge.sock")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(128)
            log = open(host.folder / "bridge.log", "ab")
            process = subprocess.Popen([host.program, "bridge", "-c", str(host.config)], env=host.environ(), cwd=str(host.folder), stdin=listener,
                                       stdout=log, stderr=log, start_new_session=True,
                                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))
            running.append(process)
        wait_until(lambda: len(proc.fds(process.pid) or ()) > 5, 10, "the bridge's loop")
        return process, path
    yield start
    for process in running:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def test_a_bridge_without_descriptors_waits_at_rest_and_comes_back(make_host, bridge):
    host = make_host({"h": HELLO})
    process, path = bridge(host, FILES)
    conns = [wire.Conn(path) for _ in range(FILES)]
    wait_until(lambda: len(proc.fds(process.pid)) >= FILES - 1, 10, "the last descriptor")
    assert is_at_rest(process.pid)
    for conn in conns:
        conn.close()
    assert wire.request(path, "/h").text == "hello\n"


@pytest.mark.parametrize("family", ["unix", "tcp"])
def test_a_bridge_does_not_block_when_the_hosts_backlog_is_full(make_host, bridge, family):
    """It hears a client that leaves meanwhile, and goes on once there is room."""
    port = free_port()
    host = make_host({"h": HELLO}, start=False, **({"listen": f"127.0.0.1:{port}"} if family == "tcp" else {}))
    with socket.socket(socket.AF_INET if family == "tcp" else socket.AF_UNIX) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(host.address)
        server.listen(0)
        crowd = fill(server)
        process, path = bridge(host)
        before = len(proc.fds(process.pid))
        with wire.Conn(path) as leaving:
            leaving.send(b"x")
            wait_until(lambda: len(proc.fds(process.pid)) > before, 10, "an accept")
        wait_until(lambda: len(proc.fds(process.pid)) == before, 10, "the end of who has left")
        with wire.Conn(path) as staying:
            staying.send(b"hello")
            wait_until(lambda: len(proc.fds(process.pid)) > before, 10, "an accept")
            for s in crowd:
                s.close()
            server.settimeout(15)
            while True:
                accepted, _ = server.accept()
                with accepted:
                    accepted.settimeout(1)
                    try:
                        if accepted.recv(5) == b"hello":
                            break
                    except OSError:
                        pass
    assert process.poll() is None


def fill(server):
    """Connections until the backlog takes no more."""
    crowd = []
    while True:
        s = socket.socket(server.family)
        s.settimeout(0.5)
        crowd.append(s)
        try:
            s.connect(server.getsockname())
        except OSError:
            return crowd


def test_a_bridge_starts_a_host_that_listens_on_a_port(make_host, bridge):
    port = free_port()
    host = make_host({"h": HELLO}, start=False, listen=f"127.0.0.1:{port}")
    process, path = bridge(host)
    try:
        assert wire.request(path, "/h").text == "hello\n"
    finally:
        for pid in proc.marked(host.folder):
            if b"serve" in proc._read(pid, "cmdline").split(b"\0"):
                proc.kill_quietly(pid, 15)
        wait_until(lambda: not connects(("127.0.0.1", port)), 15, "the end of the host that the bridge started")
