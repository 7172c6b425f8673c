"""fcgi-host bridge: many copies under mod_fcgid or spawn-fcgi, one host, one set of workers."""
import os
import pwd
import re
import signal
import socket
import subprocess
import threading

import pytest

from lib import proc, wire
from lib.handlers import ENVIRON, HELLO, env_of, pattern, sha, worker
from lib.wait import connects, wait_until
from test_persistent_workers import in_parallel, pid_of


def serving(folder):
    """Pids of hosts (relay and spawners) of this folder, whoever started them."""
    return [p for p in proc.marked(folder) if b"fcgi-host\0serve" in proc._read(p, "cmdline") or (b"serve" in proc._read(p, "cmdline").split(b"\0"))]


@pytest.fixture
def bridges():
    """bridge(host, name): a raw address that a bridge under spawn-fcgi answers."""
    running = []

    def start(host, name="bridge"):
        path = str(host.run_folder / f"{name}.sock")
        log = open(host.folder / "bridge.log", "ab")
        process = subprocess.Popen(["/usr/bin/spawn-fcgi", "-n", "-s", path, "-M", "0666", "--", host.program, "bridge", "-c", str(host.config)],
                                   env=host.environ(), cwd=str(host.folder), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        running.append(process)
        wait_until(lambda: connects(path), 10, "the bridge")
        return path, process
    yield start
    for process in running:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def test_a_bridge_passes_requests_on(make_host, bridges):
    host = make_host({"env": ENVIRON, "digest": "printf 'Content-Type: text/plain\\n\\n'; sha256sum | cut -c1-64 | tr -d '\\n'"})
    path, _ = bridges(host)
    env = env_of(wire.request(path, "/env/a?x=1"))
    assert (env["SCRIPT_NAME"], env["PATH_INFO"], env["QUERY_STRING"]) == ("/env", "/a", "x=1")
    data = pattern(3 << 20)
    assert wire.request(path, "/digest", "POST", data).text == sha(data)


def test_many_bridges_share_one_set_of_workers(make_host, bridges, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"max": 1})})
    paths = [bridges(host, f"b{i}")[0] for i in range(4)]
    assert len({pid_of(wire.request(p, "/w")) for p in paths for _ in range(3)}) == 1


def test_a_bridge_stops_on_term_at_once_when_idle(make_host, bridges):
    host = make_host({"h": HELLO})
    path, process = bridges(host)
    assert wire.request(path, "/h").text == "hello\n"
    process.terminate()
    process.wait(5)
    assert host.request("/h").text == "hello\n", "the host stays"


def test_a_bridge_finishes_its_request_before_it_stops(make_host, bridges):
    host = make_host({"h": "echo > \"$SCRATCH/started\"; sleep 1; " + HELLO})
    path, process = bridges(host)
    with wire.Conn(path) as conn:
        conn.start(wire.variables("/h"))
        conn.send(wire.record(wire.STDIN))
        wait_until((host.scratch / "started").exists, 10)
        process.terminate()
        assert conn.answer().text == "hello\n"
    process.wait(5)


def test_a_client_lost_behind_a_bridge_is_lost_to_the_host(make_host, bridges):
    host = make_host({"h": "echo > \"$SCRATCH/started\"; exec sleep 60"}, defaults={"timeout": {"kill": "300ms"}})
    path, _ = bridges(host)
    with wire.Conn(path) as conn:
        conn.start(wire.variables("/h"))
        conn.send(wire.record(wire.STDIN))
        wait_until((host.scratch / "started").exists, 10)
    wait_until(lambda: not host.children(), 10, "the end of the handler")


def test_a_broken_transfer_is_broken_behind_a_bridge(make_host, bridges):
    host = make_host({"h": "printf 'Content-Type: text/plain\\nContent-Length: 100\\n\\nshort'"})
    path, _ = bridges(host)
    assert not wire.request(path, "/h").complete


@pytest.mark.limit(90)
def test_bridges_start_the_host_if_none_runs_and_only_one(make_host, bridges, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"max": 1})}, start=False)
    paths, processes = zip(*[bridges(host, f"b{i}") for i in range(4)])
    try:
        answers = in_parallel(8, lambda i: wire.request(paths[i % 4], "/w"))
        assert [getattr(a, "status", a) for a in answers] == [200] * 8
        assert len({pid_of(a) for a in answers}) == 1, "one host, one set of workers"
        assert proc.listener_of(host.socket) in serving(host.folder)
        wait_until(lambda: not any(proc.zombies(process.pid) for process in processes), 10, "the end of those that lost the race")
        _stop_hosts(host)
        wait_until(lambda: not any(proc.zombies(process.pid) for process in processes), 10, "the end of the one that won")
        assert wire.request(paths[0], "/w").status == 200, "another is started"
    finally:
        _stop_hosts(host)


def _stop_hosts(host):
    pid = proc.listener_of(host.socket)
    if pid:
        # Copies that lost the race for the socket may still be on their way out.
        wait_until(lambda: all(p == pid or (proc.stat(p) or (0, pid))[1] == pid for p in serving(host.folder)), 15, "one host alone")
        proc.kill_quietly(pid, signal.SIGTERM)
    wait_until(lambda: not serving(host.folder), 15, "the end of the host that a bridge started")
    assert not os.path.lexists(host.socket)


@pytest.mark.limit(90)
def test_under_mod_fcgid_the_host_is_started_too(make_host, make_front, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"max": 2})}, start=False)
    account = pwd.getpwnam("www-data")
    os.chown(host.run_folder, account.pw_uid, account.pw_gid)
    client = make_front("mod_fcgid", host)
    try:
        answers = in_parallel(8, lambda i: client.get("/w"))
        assert [getattr(a, "status", a) for a in answers] == [200] * 8, client.said()
        assert len({pid_of(a) for a in answers}) <= 2
        client.stop()
        assert serving(host.folder), "the host outlives the web server that had it started"
    finally:
        client.stop()
        _stop_hosts(host)


def test_any_number_of_copies_under_mod_fcgid(make_host, make_front, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"max": 2})})
    client = make_front("mod_fcgid", host)
    answers = in_parallel(12, lambda i: client.get("/w?sleep=100"))
    assert [getattr(a, "status", a) for a in answers] == [200] * 12
    assert len({pid_of(a) for a in answers}) <= 2
    copies = [p for p in proc.descendants(client.process.pid) if b"bridge" in proc._read(p, "cmdline")]
    assert len(copies) > 1


@pytest.mark.limit(120)
@pytest.mark.parametrize("name", ["mod_fcgid", "mod_proxy_fcgi"])
def test_a_graceful_restart_of_apache_loses_no_request(make_host, make_front, fastcgi_program, name):
    host = make_host({"w": worker(fastcgi_program, workers={"max": 4}), "h": "cat >/dev/null; sleep 0.1; " + HELLO})
    client = make_front(name, host)
    stop, results, unanswered = threading.Event(), [], []

    def load(i):
        while not stop.is_set():
            try:
                results.append(client.request("/w?sleep=30&count" if i % 2 else "/h", "POST", b"0123456789", timeout=15))
            except TimeoutError as e:
                unanswered.append(e)
    threads = [threading.Thread(target=load, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    try:
        for _ in range(3):
            before = len(results)
            wait_until(lambda: len(results) > before + 20, 30)
            generation = len(re.findall("resuming normal operations", client.error_log.read_text()))
            client.process.send_signal(signal.SIGUSR1)
            wait_until(lambda: len(re.findall("resuming normal operations", client.error_log.read_text())) > generation, 20, "the restart")
        before = len(results)
        wait_until(lambda: len(results) > before + 20, 30)
    finally:
        stop.set()
        for t in threads:
            t.join()
    bad = [r for r in results if r.status != 200 or not r.complete]
    assert not bad, f"{len(bad)} of {len(results)}: {bad[:3]}"
    # mod_fcgid's own: a child of before the restart waits for ever for a process manager that has gone.
    assert not unanswered or name == "mod_fcgid", f"{len(unanswered)} without an answer besides {len(results)}"
    wait_until(lambda: len(host.log(event="request")) >= len(results), 10, "the lines of all")
    assert len(host.log(event="request")) == len(results), "whatever reached us was answered"


def test_a_bridge_with_a_broken_configuration_says_so(make_host):
    host = make_host({"h": HELLO}, start=False)
    host.write_text("handlers: [\n")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(host.run_folder / "bridge.sock"))
        listener.listen()
        done = host.command("bridge", "-c", str(host.config), stdin=listener)
    assert done.returncode == 1 and str(host.config).encode() in done.stderr


def test_a_bridge_outside_a_web_server_says_what_it_is_for(make_host):
    host = make_host({"h": HELLO}, start=False)
    done = host.command("bridge", "-c", str(host.config))
    assert done.returncode in (1, 2) and done.stderr
