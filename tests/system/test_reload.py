"""A changed file is taken by a running host, and no request is lost."""
import collections
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from lib import handlers as samples
from lib import proc, wire
from lib.handlers import FAULTY_WORKER, HELLO, python
from lib.host import mode_of
from lib.wait import connects, free_port, stays, wait_until
from test_persistent_workers import in_parallel, pid_of

LONG_SECONDS = 3        # the request that runs across a reload

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


# --- writing and asking

def rewrite(host, handlers, routes=None, more_routes=(), listen=None, **top):
    """Another configuration in the place of the one that runs, whole at every moment."""
    host.top = top
    host.listen = listen or host.listen
    config, host.config = host.config, host.folder / "new.yaml"
    host.write(handlers, routes, more_routes)
    os.replace(host.config, config)
    host.config = config


def reload(host, expect=0, timeout=20):
    done = host.command("reload", "-c", str(host.config), timeout=timeout)
    assert done.returncode == expect, f"exit {done.returncode} instead of {expect}: {done.stderr.decode()}\n{host.log_text()[-3000:]}"
    assert done.stdout == b""
    return done.stderr.decode()


def hup(host):
    """HUP, and waits until it is done."""
    before = len(host.log(event="reloaded"))
    host.signal(signal.SIGHUP)
    host.wait_log(event="reloaded", count=before + 1)


def by_command(host):
    reload(host)


both_ways = pytest.mark.parametrize("take", [hup, by_command])


def worker(program, **keys):
    """Without a spare one, so that the workers are those that a test has asked for."""
    keys["workers"] = {"spare": 0, **keys.get("workers", {})}
    return samples.worker(program, **keys)


def versioned(program, version, **keys):
    return worker(program, env={"V": str(version)}, **keys)


def version_of(answer):
    found = re.search(r"^V=(.*)$", answer.text, re.M)
    assert found, answer
    return found.group(1)


def says(word):
    return HELLO.replace("hello", str(word))


def begin(host, path):
    conn = host.connect(30)
    conn.start(wire.variables(path))
    conn.send(wire.record(wire.STDIN))
    return conn


def processes_of(host, handler="w"):
    done = host.command("status", "--json", "-c", str(host.config))
    found = next(h for h in json.loads(done.stdout)["handlers"] if h["name"] == handler)
    return {**found["processes"], "waiting": found["waiting"]}


def all_workers(host, program):
    return sorted(p for p in host.children() if proc.exe(p) == str(program))


# --- what stays and what changes

@both_ways
def test_unchanged_handlers_keep_their_workers_and_changed_ones_get_new(make_host, fastcgi_program, take):
    host = make_host({"same": versioned(fastcgi_program, 1), "other": versioned(fastcgi_program, 1, workers={"min": 1, "max": 4})})
    same, other = pid_of(host.request("/same")), pid_of(host.request("/other"))
    # Another place in the file changes the handlers' numbers, which may not matter.
    rewrite(host, {"first": HELLO, "other": versioned(fastcgi_program, 2, workers={"min": 1, "max": 4}), "same": versioned(fastcgi_program, 1)})
    take(host)
    assert pid_of(host.request("/same")) == same
    assert pid_of(host.request("/other")) != other
    assert version_of(host.request("/other?env")) == "2" and version_of(host.request("/same?env")) == "1"
    assert host.request("/first").text == "hello\n"
    wait_until(lambda: not proc.is_alive(other), 10, "the end of the old worker")


@both_ways
def test_nothing_changed_changes_nothing(make_host, fastcgi_program, take):
    host = make_host({"w": worker(fastcgi_program, workers={"min": 2, "max": 2})})
    wait_until(lambda: len(all_workers(host, fastcgi_program)) == 2, 10)
    before = all_workers(host, fastcgi_program)
    inode = os.stat(host.socket).st_ino
    for _ in range(3):
        take(host)
    assert all_workers(host, fastcgi_program) == before
    assert os.stat(host.socket).st_ino == inode


def test_a_changed_default_changes_the_handlers_that_inherit_it(make_host, fastcgi_program):
    handlers = {"own": worker(fastcgi_program, workers={"max": 3}), "inherits": worker(fastcgi_program)}
    host = make_host(handlers, defaults={"workers": {"max": 4}, "timeout": {"idle": "20s"}})
    own, inherits = pid_of(host.request("/own")), pid_of(host.request("/inherits"))
    rewrite(host, handlers, defaults={"workers": {"max": 5}, "timeout": {"idle": "20s"}})
    reload(host)
    assert pid_of(host.request("/own")) == own
    assert pid_of(host.request("/inherits")) != inherits


def test_a_request_in_flight_finishes_on_the_old_configuration(make_host, front, fastcgi_program):
    """The new one answers at once meanwhile, though the only worker that was allowed is at work."""
    host = make_host({"w": versioned(fastcgi_program, 1, workers={"max": 1})})
    client = front(host)
    client.get("/w")
    got = []
    asking = threading.Thread(target=lambda: got.append(client.get(f"/w?sleep={LONG_SECONDS * 1000}&env")))
    started = time.monotonic()
    asking.start()
    wait_until(lambda: processes_of(host)["busy"] == 1, 10)
    old = host.children()[0]
    rewrite(host, {"w": versioned(fastcgi_program, 2, workers={"max": 1})})
    reload(host)
    answer = client.get("/w?env")
    assert (answer.status, version_of(answer)) == (200, "2")
    assert time.monotonic() - started < LONG_SECONDS, "the new request did not wait for the old one"
    asking.join()
    assert (got[0].status, version_of(got[0]), got[0].complete) == (200, "1", True)
    wait_until(lambda: not proc.is_alive(old), 10, "the end of the old worker")


def test_a_process_per_request_finishes_on_the_old_configuration(make_host):
    slow = "echo > \"$SCRATCH/started\"; while [ ! -e \"$SCRATCH/go\" ]; do sleep 0.05; done; printf 'Content-Type: text/plain\\n\\n%s' $V"
    host = make_host({"h": {"script": slow, "env": {"V": "1"}}})
    with begin(host, "/h") as conn:
        wait_until((host.scratch / "started").exists, 10)
        rewrite(host, {"new": says("new")})
        reload(host)
        assert host.request("/new").text == "new\n"
        assert host.request("/h").status == 404
        (host.scratch / "go").write_text("")
        assert (conn.answer().text) == "1"
    assert host.wait_log(event="request", handler="h")["status"] == 200


def test_a_body_that_is_coming_in_goes_on(make_host):
    host = make_host({"h": {"script": "printf 'Content-Type: text/plain\\n\\n%s ' $V; cat", "env": {"V": "1"}}})
    with host.connect() as conn:
        conn.start(wire.variables("/h", "POST", b"x" * 6))
        conn.send(wire.record(wire.STDIN, 1, b"abc"))
        wait_until(host.children, 10)
        rewrite(host, {"h": {"script": "printf 'Content-Type: text/plain\\n\\n%s ' $V; cat", "env": {"V": "2"}}})
        reload(host)
        conn.send(wire.record(wire.STDIN, 1, b"def"), wire.record(wire.STDIN))
        assert conn.answer().text == "1 abcdef"
    assert host.request("/h", "POST", b"").text == "2 "


@pytest.mark.parametrize("removed", [False, True])
def test_a_body_that_is_spooled_first_goes_to_the_handler_it_was_for(make_host, removed):
    """The request has not come in line yet when its handler is changed or removed."""
    old = {"h": {"script": "printf 'Content-Type: text/plain\\n\\n%s ' $V; cat", "env": {"V": "1"}, "body": {"chunked": "spool"}}}
    host = make_host(old)
    with host.connect() as conn:
        params = wire.variables("/h", "POST", b"")
        del params["CONTENT_LENGTH"]
        conn.start(params)
        conn.send(wire.record(wire.STDIN, 1, b"abc"))
        wait_until(conn.is_read, 10)
        rewrite(host, {"new": HELLO} if removed else {"h": {**old["h"], "env": {"V": "2"}}})
        reload(host)
        assert host.request("/new" if removed else "/h").status == 200
        conn.send(wire.record(wire.STDIN, 1, b"def"), wire.record(wire.STDIN))
        assert conn.answer().text == "1 abcdef"


def test_a_retry_works_after_the_pool_was_replaced(make_host):
    """The worker dies before its answer on a GET: it is tried once more, on a worker of the same configuration."""
    slow = FAULTY_WORKER.replace('note("", "died")', 'note("", "died"); time.sleep(1)', 1)
    keys = {"script": slow, "protocol": "fastcgi", "workers": {"max": 1}}
    host = make_host({"w": {**keys, "env": {"FAULT": "dies-once"}}})
    with begin(host, "/w") as conn:
        wait_until((host.scratch / "died").exists, 10)
        rewrite(host, {"w": {**keys, "env": {"FAULT": "dies-once", "V": "2"}}})
        reload(host)
        answer = conn.answer()
        assert (answer.status, answer.complete) == (200, True), host.log_text()[-3000:]
    wait_until(lambda: len(host.workers("w")) <= 1, 10, "the end of what was started for the retry")


def test_who_waits_in_line_is_served(make_host, fastcgi_program):
    host = make_host({"w": versioned(fastcgi_program, 1, workers={"max": 1})})
    host.request("/w")
    conns = [begin(host, f"/w?sleep={500 if i == 0 else 50}&env") for i in range(6)]
    wait_until(lambda: processes_of(host)["waiting"] == 5, 10)
    rewrite(host, {"w": versioned(fastcgi_program, 2, workers={"max": 1})})
    reload(host)
    assert version_of(host.request("/w?env")) == "2"
    answers = [c.answer() for c in conns]
    assert [a.status for a in answers] == [200] * 6
    assert {version_of(a) for a in answers} == {"1"}
    for conn in conns:
        conn.close()
    wait_until(lambda: len(all_workers(host, fastcgi_program)) == 1, 10, "the end of the old worker")


def test_a_removed_handlers_workers_end(make_host, fastcgi_program):
    host = make_host({"gone": worker(fastcgi_program, workers={"min": 3, "max": 3}), "hello": HELLO})
    wait_until(lambda: len(all_workers(host, fastcgi_program)) == 3, 10)
    rewrite(host, {"hello": HELLO})
    reload(host)
    assert host.request("/gone").status == 404
    wait_until(lambda: not all_workers(host, fastcgi_program), 10, "the end of the removed workers")
    assert host.request("/hello").text == "hello\n"


def test_routes_change(make_host):
    host = make_host({"a": says("a"), "b": says("b")})
    assert host.request("/a").text == "a\n"
    rewrite(host, {"a": says("a"), "b": says("b")},
            routes=[{"path": "/a", "handler": "b"}, {"path": "/c/{id}", "methods": ["GET"], "handler": "a"}])
    reload(host)
    assert host.request("/a").text == "b\n"
    assert host.request("/b").status == 404
    assert host.request("/c/1").text == "a\n"
    assert host.request("/c/1", "POST").status == 405


def test_a_kept_connection_sees_the_new_configuration(make_host):
    host = make_host({"h": says(1)})
    with host.connect() as conn:
        assert wire.request(None, "/h", conn=conn, keep=True).text == "1\n"
        rewrite(host, {"x": says(2)}, routes=[{"path": "/h", "handler": "x"}])
        reload(host)
        assert wire.request(None, "/h", conn=conn, keep=True).text == "2\n"


def test_starts_are_spread_over_the_spawners_after_a_reload_too(make_host):
    """Requests that are there at once are started by several spawners."""
    host = make_host({"h": {"script": "sleep 30", "workers": {"max": 40}}}, defaults={"timeout": {"kill": "1s"}}, spawners=4)

    def parents():
        os.kill(host.relay, signal.SIGSTOP)
        conns = [begin(host, "/h") for _ in range(12)]
        os.kill(host.relay, signal.SIGCONT)
        wait_until(lambda: len(host.workers("h")) == 12, 20)
        found = {proc.stat(p)[1] for p in host.workers("h")}
        for conn in conns:
            conn.close()
        wait_until(lambda: not host.children(), 20)
        return found
    assert len(parents()) == 4
    reload(host)
    assert len(parents()) == 4


# --- what is wrong keeps the old one

@both_ways
def test_a_broken_file_keeps_the_old_configuration_and_says_why(make_host, fastcgi_program, take):
    host = make_host({"w": versioned(fastcgi_program, 1)})
    pid = pid_of(host.request("/w"))
    text = host.config.read_text()
    host.write_text(text.replace("protocol: fastcgi", "protokol: fastcgi") + "nonsense: 1\n")
    place = re.compile(re.escape(str(host.config)) + r":\d+:\d+: .*protokol.*protocol")
    if take is hup:
        host.signal(signal.SIGHUP)
    else:
        said = reload(host, expect=1)
        assert place.search(said) and "nonsense" in said, said
        assert "\n\n" not in said and said.endswith("\n")
    host.wait_log(event="reload", msg=place)
    host.wait_log(event="reload", msg=re.compile("nonsense"))
    host.wait_log(event="reload", msg=re.compile("old configuration stays"))
    assert pid_of(host.request("/w")) == pid
    # Put right, it is taken.
    host.write_text(text.replace('V: "1"', 'V: "2"'))
    take(host)
    assert version_of(host.request("/w?env")) == "2"


@pytest.mark.parametrize("what", ["missing", "writable", "empty", "folder"])
def test_a_file_that_cannot_be_taken_at_all(make_host, what):
    host = make_host({"h": says(1)})
    text = host.config.read_text()
    if what == "missing":
        host.config.unlink()
    elif what == "writable":
        host.config.chmod(0o666)
    elif what == "empty":
        host.write_text("")
    else:
        host.config.unlink()
        host.config.mkdir()
    said = reload(host, expect=1)
    assert str(host.config) in said
    assert host.request("/h").text == "1\n"
    if what == "folder":
        host.config.rmdir()
    host.write_text(text)
    reload(host)


@pytest.mark.parametrize("what", ["missing program", "exits at once", "never accepts"])
def test_a_handler_that_cannot_start_keeps_the_old_one(make_host, fastcgi_program, what):
    host = make_host({"w": versioned(fastcgi_program, 1), "hello": says(1)})
    pid = pid_of(host.request("/w"))
    keys = {"protocol": "fastcgi", "workers": {"min": 1, "max": 2}, "timeout": {"start": "1s", "kill": "500ms"}}
    bad = {
        "missing program": {"command": ["handlers/is-not-there"], **keys},
        "exits at once": {"script": FAULTY_WORKER, "env": {"FAULT": "exit-at-start"}, **keys},
        "never accepts": {"script": FAULTY_WORKER, "env": {"FAULT": "never-accepts"}, **keys},
    }[what]
    rewrite(host, {"w": versioned(fastcgi_program, 2, workers={"min": 2, "max": 2}), "bad": bad, "hello": says(1)},
            routes=[{"path": "/w", "handler": "w"}, {"path": "/hello", "handler": "bad"}])
    said = reload(host, expect=1)
    assert "bad" in said
    assert host.request("/hello").text == "1\n"
    assert pid_of(host.request("/w")) == pid and version_of(host.request("/w?env")) == "1"
    wait_until(lambda: not host.workers("bad") and len(all_workers(host, fastcgi_program)) == 1, 10, "the end of what was tried")
    # The next one is good.
    (host.scratch / "repaired").write_text("")
    host.script("is-not-there", FAULTY_WORKER)
    reload(host)
    assert host.request("/hello").status == 200
    assert version_of(host.request("/w?env")) == "2"


def test_new_requests_are_answered_while_new_workers_start_slowly(make_host):
    slow = FAULTY_WORKER.replace("is_repaired = os.path.exists", "time.sleep(float(os.environ.get('SLOW', 0)))\nis_repaired = os.path.exists", 1)
    keys = {"script": slow, "protocol": "fastcgi", "workers": {"min": 1, "max": 1}}
    host = make_host({"w": {**keys, "env": {"SLOW": "0"}}})
    old = pid_of(host.request("/w"))
    rewrite(host, {"w": {**keys, "env": {"SLOW": "1.5"}}})
    done = host.spawn("reload", "-c", str(host.config))
    answers = []
    while done.poll() is None:
        answers.append(host.request("/w"))
        time.sleep(0.02)
    assert done.returncode == 0
    assert len(answers) > 10 and {a.status for a in answers} == {200}
    assert max(a.elapsed for a in answers) < 1
    after = host.request("/w")
    assert pid_of(after) != old and after.elapsed < 1, "the new one is ready when it takes over"


def test_a_log_that_cannot_be_opened_keeps_the_old_configuration(make_host):
    host = make_host({"h": says(1)})
    rewrite(host, {"g": says(2)}, routes=[{"path": "/h", "handler": "g"}], log={"file": "no/such/folder/log"},
            listen={"address": f"unix:{host.socket}", "mode": "0600"})
    assert "no/such/folder/log" in reload(host, expect=1)
    assert host.request("/h").text == "1\n"
    assert mode_of(host.socket) == 0o666, "its rights are as they were"


@pytest.mark.parametrize("max_processes", [1, 2, 3])
def test_new_workers_take_the_room_of_idle_ones(make_host, fastcgi_program, max_processes):
    """max_processes has no room for the new beside the old: they take turns."""
    keys = {"workers": {"min": 2, "max": 2}}
    host = make_host({"w": versioned(fastcgi_program, 1, **keys)}, max_processes=max_processes)
    wait_until(lambda: len(all_workers(host, fastcgi_program)) == min(2, max_processes), 10)
    rewrite(host, {"w": versioned(fastcgi_program, 2, **keys)}, max_processes=max_processes)
    assert "max_processes" not in reload(host)
    assert version_of(host.request("/w?env")) == "2"
    wait_until(lambda: len(all_workers(host, fastcgi_program)) == min(2, max_processes), 10)


def test_a_full_house_is_no_reason_to_refuse_a_file(make_host, fastcgi_program):
    """All that may run is busy for longer than a new worker has to start: the file is taken, and who comes waits."""
    short = {"timeout": {"start": "500ms"}}
    host = make_host({"w": versioned(fastcgi_program, 1, workers={"min": 1, "max": 2})}, max_processes=2, defaults=short)
    with begin(host, "/w?sleep=4000"), begin(host, "/w?sleep=4000"):
        wait_until(lambda: len(all_workers(host, fastcgi_program)) == 2, 10)
        rewrite(host, {"w": versioned(fastcgi_program, 2, workers={"min": 1, "max": 2})}, max_processes=2, defaults=short)
        assert "max_processes" in reload(host)
        answer = host.request("/w?env", timeout=20)
    assert (answer.status, version_of(answer)) == (200, "2")


# --- listeners

def test_listeners_are_added_and_removed(make_host):
    first, second, port = "first.sock", "second.sock", free_port()
    host = make_host({"h": HELLO})
    base = [{"address": f"unix:{host.socket}", "mode": "0666"}]
    paths = [str(host.run_folder / n) for n in (first, second)]
    rewrite(host, {"h": HELLO}, listen=base + [{"address": f"unix:{paths[0]}", "mode": "0600"}, {"address": f"127.0.0.1:{port}"}])
    reload(host)
    for address in (host.socket, paths[0], ("127.0.0.1", port)):
        assert wire.request(address, "/h").text == "hello\n"
    assert mode_of(paths[0]) == 0o600
    rewrite(host, {"h": HELLO}, listen=[{"address": f"unix:{paths[1]}", "mode": "0666"}] + base)
    reload(host)
    assert not connects(("127.0.0.1", port)) and not os.path.lexists(paths[0])
    assert wire.request(paths[1], "/h").text == wire.request(host.socket, "/h").text == "hello\n"
    rewrite(host, {"h": HELLO}, listen=base)
    reload(host)
    assert not os.path.lexists(paths[1])
    assert host.request("/h").text == "hello\n"


def test_connections_to_a_removed_listener_go_on(make_host):
    host = make_host({"h": HELLO})
    base = [{"address": f"unix:{host.socket}", "mode": "0666"}]
    path = str(host.run_folder / "second.sock")
    rewrite(host, {"h": HELLO}, listen=base + [{"address": f"unix:{path}", "mode": "0666"}])
    reload(host)
    kept = wire.Conn(path)
    host.connections.append(kept)
    assert wire.request(None, "/h", conn=kept, keep=True).text == "hello\n"
    rewrite(host, {"h": HELLO}, listen=base)
    # Who has connected and is not accepted yet is not lost either.
    os.kill(host.relay, signal.SIGSTOP)
    done = host.spawn("reload", "-c", str(host.config))
    late = [wire.Conn(path) for _ in range(20)]
    for conn in late:
        conn.start(wire.variables("/h"))
        conn.send(wire.record(wire.STDIN))
    os.kill(host.relay, signal.SIGCONT)
    assert done.wait(20) == 0
    assert [c.answer().text for c in late] == ["hello\n"] * 20
    for conn in late:
        conn.close()
    assert wire.request(None, "/h", conn=kept, keep=True).text == "hello\n"


def test_a_listener_that_cannot_be_opened_keeps_all_as_it_was(make_host):
    host = make_host({"h": says(1)})
    base = [{"address": f"unix:{host.socket}", "mode": "0666"}]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        extra = str(host.run_folder / "extra.sock")
        rewrite(host, {"h": says(2), "g": HELLO},
                listen=[{"address": f"unix:{extra}", "mode": "0666"}, {"address": f"127.0.0.1:{port}"}, {**base[0], "mode": "0600"}])
        said = reload(host, expect=1)
    assert str(port) in said
    host.listen = base
    assert not os.path.lexists(extra) and mode_of(host.socket) == 0o666
    assert host.request("/g").status == 404


def test_a_socket_file_that_was_removed_is_made_again(make_host):
    host = make_host({"h": HELLO})
    os.unlink(host.socket)
    hup(host)
    assert host.request("/h").text == "hello\n"


def test_a_socket_that_somebody_else_put_there_is_left_alone(make_host):
    host = make_host({"h": HELLO})
    os.unlink(host.socket)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(host.socket)
        other.listen()
        os.chmod(host.socket, 0o700)
        rewrite(host, {"h": HELLO}, listen={"address": f"unix:{host.socket}", "mode": "0660"})
        said = reload(host, expect=1)
        assert f"process {os.getpid()}" in said
        assert mode_of(host.socket) == 0o700
    host.keeps_socket = True


def test_an_address_widens_and_narrows_on_its_port(make_host):
    port = free_port()
    wide = [{"address": f"0.0.0.0:{port}", "allow": ["127.0.0.0/8"]}]
    host = make_host({"h": HELLO}, listen=f"127.0.0.1:{port}")
    other = ("127.0.0.2", port)
    assert host.request("/h").text == "hello\n"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(other)
    rewrite(host, {"h": HELLO}, listen=wide)
    reload(host)
    socket.create_connection(other).close()
    assert host.request("/h").text == "hello\n"
    rewrite(host, {"h": HELLO}, listen=f"127.0.0.1:{port}")
    reload(host)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(other)
    assert host.request("/h").text == "hello\n"


@needs_root
def test_owner_and_mode_change_without_a_moment_of_wider_rights(make_host):
    www = pwd.getpwnam("www-data")
    host = make_host({"h": HELLO}, start=False, listen={"address": "unix:run/host.sock", "mode": "0660", "owner": "root", "group": "root"})
    host.listen = {"address": f"unix:{host.socket}", "mode": "0660", "owner": "root", "group": "root"}
    host.start()
    looks = [("0660", "root", "root"), ("0606", "www-data", "www-data"), ("0600", "root", "www-data"), ("0666", "www-data", "root")]
    allowed = {(int(m, 8), pwd.getpwnam(u).pw_uid, 0 if g == "root" else www.pw_gid) for m, u, g in looks}
    seen, stop = collections.Counter(), threading.Event()

    def watch():
        while not stop.is_set():
            st = os.stat(host.socket)
            seen[(st.st_mode & 0o7777, st.st_uid, st.st_gid)] += 1
    watching = threading.Thread(target=watch)
    watching.start()
    try:
        inode = os.stat(host.socket).st_ino
        for _ in range(6):
            for mode, owner, group in looks:
                rewrite(host, {"h": HELLO}, listen={"address": f"unix:{host.socket}", "mode": mode, "owner": owner, "group": group})
                hup(host)
                st = os.stat(host.socket)
                assert (st.st_mode & 0o7777, st.st_uid, st.st_gid) == (int(mode, 8), pwd.getpwnam(owner).pw_uid, 0 if group == "root" else www.pw_gid)
        # Without an owner it is the host's own again.
        rewrite(host, {"h": HELLO}, listen={"address": f"unix:{host.socket}", "mode": "0666"})
        reload(host)
        assert (os.stat(host.socket).st_uid, os.stat(host.socket).st_gid) == (0, 0)
        assert os.stat(host.socket).st_ino == inode, "it stays the same socket"
    finally:
        stop.set()
        watching.join()
    # Every moment's rights are within those of one of the configurations.
    for mode, uid, gid in seen:
        assert any(uid == u and gid == g and mode & ~m == 0 for m, u, g in allowed | {(0o666, 0, 0)}), (oct(mode), uid, gid)
    assert host.request("/h").text == "hello\n"


# --- the log

def test_the_log_moves_to_another_file(make_host):
    host = make_host({"h": HELLO})
    rewrite(host, {"h": HELLO}, log={"file": "second.log", "format": "json"})
    reload(host)
    assert host.request("/h").text == "hello\n"
    host.log_file = host.folder / "second.log"
    host.baseline = {p: n + (p == host.relay) for p, n in host.baseline.items()}
    assert host.wait_log(event="request")["status"] == 200
    assert host.log_text().startswith("{")


def test_warnings_of_a_good_file_are_said_to_who_asked(make_host):
    host = make_host({"h": HELLO})
    rewrite(host, {"h": HELLO, "later": {"command": ["handlers/not-yet"]}})
    said = reload(host)
    assert "not-yet" in said and re.search(r":\d+:\d+: ", said)
    host.wait_log(event="reload", level="warning", msg=re.compile("not-yet"))


# --- the command

def test_no_host_is_one_line_and_exit_1(make_host):
    host = make_host({"h": HELLO}, start=False)
    done = host.command("reload", "-c", str(host.config))
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.count(b"\n") == 1 and str(host.config).encode() in done.stderr


def test_wrong_use_is_exit_2(make_host):
    host = make_host({"h": HELLO}, start=False)
    assert host.command("reload", "now").returncode == 2
    assert host.command("reload", "-x").returncode == 2


def test_two_reloads_asked_at_once_both_answer(make_host):
    host = make_host({"h": HELLO})
    commands = [host.spawn("reload", "-c", str(host.config)) for _ in range(5)]
    assert [c.wait(20) for c in commands] == [0] * 5


def test_what_is_written_before_the_question_is_in_the_answer(make_host):
    """The command never answers for a file that was read before it was asked."""
    host = make_host({"h": says(0)})
    host.spawn("reload", "-c", str(host.config)).wait(20)
    for i in range(1, 6):
        background = host.spawn("reload", "-c", str(host.config))
        rewrite(host, {f"h{i}": says(i)}, routes=[{"path": "/h", "handler": f"h{i}"}])
        reload(host)
        assert host.request("/h").text == f"{i}\n"
        assert background.wait(20) == 0


def connections(host):
    return sum(target.startswith("socket:") for target in proc.fds(host.relay).values())


def test_who_asked_may_leave(make_host):
    slow = FAULTY_WORKER.replace("is_repaired = os.path.exists", "time.sleep(1)\nis_repaired = os.path.exists", 1)
    host = make_host({"h": HELLO})
    rewrite(host, {"w": {"script": slow, "protocol": "fastcgi", "workers": {"min": 1, "max": 1}}})
    for _ in range(3):
        before = connections(host)
        asking = host.spawn("reload", "-c", str(host.config))
        wait_until(lambda: connections(host) > before, 10, "its question")
        asking.kill()
        asking.wait()
    host.wait_log(event="reloaded")
    assert host.request("/w").status == 200


@needs_root
def test_other_users_are_refused(make_host):
    host = make_host({"h": HELLO})
    before = len(host.log(event="reloaded"))
    done = subprocess.run(["/usr/bin/setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", host.program, "reload", "-c", str(host.config)],
                          env=host.environ(), capture_output=True, timeout=20)
    assert done.returncode == 1 and done.stderr.count(b"\n") == 1, done
    reload(host)
    assert len(host.log(event="reloaded")) == before + 1


@needs_root
def test_a_relay_that_gave_up_root_reloads(make_host):
    host = make_host({"h": says(1), "who": "printf 'Content-Type: text/plain\\n\\n'; id -un"}, user="www-data")
    host.run_folder.chmod(0o755)
    rewrite(host, {"h": says(2), "who": "printf 'Content-Type: text/plain\\n\\n'; id -un"}, user="www-data",
            routes=[{"path": "/new", "handler": "h"}, {"path": "/who", "handler": "who"}])
    reload(host)
    assert host.request("/new").text == "2\n" and host.request("/who").text == "www-data\n"
    # The user that serves may ask as well.
    done = subprocess.run(["/usr/bin/setpriv", "--reuid", "www-data", "--regid", "www-data", "--clear-groups", host.program, "reload", "-c", str(host.config)],
                          env=host.environ(), capture_output=True, timeout=20)
    assert done.returncode == 0, done


@needs_root
def test_a_relay_that_cannot_read_the_file_says_what_to_do(make_host):
    host = make_host({"h": says(1)}, user="www-data")
    host.config.chmod(0o600)
    said = reload(host, expect=1)
    assert "www-data" in said and "chgrp" in said and "chmod" in said, said
    assert host.request("/h").text == "1\n"
    shutil.chown(host.config, "root", "www-data")
    host.config.chmod(0o640)
    reload(host)


@needs_root
def test_a_relay_that_gave_up_root_has_the_sockets_rights_changed(make_host):
    www = pwd.getpwnam("www-data")
    host = make_host({"h": says(1)}, user="www-data")
    inode = os.stat(host.socket).st_ino
    for mode, owner, group in (("0660", "root", "www-data"), ("0600", "www-data", "root"), ("0666", "root", "root")):
        rewrite(host, {"h": says(1)}, user="www-data", listen={"address": f"unix:{host.socket}", "mode": mode, "owner": owner, "group": group})
        assert reload(host) == "", "and nothing to warn of"
        st = os.stat(host.socket)
        assert (st.st_mode & 0o7777, st.st_uid, st.st_gid) == (int(mode, 8), pwd.getpwnam(owner).pw_uid, 0 if group == "root" else www.pw_gid)
    assert st.st_ino == inode and host.request("/h").text == "1\n"


def serve_as_www_data(make_host, handlers):
    """A host that was never root."""
    host = make_host(handlers, start=False)
    account = pwd.getpwnam("www-data")
    for path in (host.run_folder, host.folder):
        os.chown(path, account.pw_uid, account.pw_gid)
    host.before = ["/usr/bin/setpriv", "--reuid", "www-data", "--regid", "www-data", "--clear-groups"]
    return host.start()


@needs_root
def test_rights_that_cannot_be_changed_leave_the_old_configuration(make_host):
    """The relay is who may not, or the spawner finds that it may not: then nothing is changed, the log included."""
    host = serve_as_www_data(make_host, {"h": says(1)})
    rewrite(host, {"h": says(1), "g": HELLO}, listen={"address": f"unix:{host.socket}", "mode": "0660", "owner": "root"})
    said = reload(host, expect=1)
    assert f"unix:{host.socket}: owner and mode" in said, said
    assert mode_of(host.socket) == 0o666 and host.request("/h").text == "1\n"
    assert host.request("/g").status == 404


@needs_root
def test_a_host_that_was_never_root_refuses_another_user(make_host):
    host = serve_as_www_data(make_host, {"h": says(1)})
    rewrite(host, {"h": {"script": says(2), "user": "nobody"}})
    said = reload(host, expect=1)
    assert "'user' needs root" in said and re.search(r":\d+:\d+: ", said)
    assert host.request("/h").status == 200


# --- while it stops, again and again

@pytest.mark.parametrize("delay_ms", [0, 1, 3, 10, 30, 100])
@pytest.mark.parametrize("when", ["trial", "plain"])
def test_a_reload_while_the_host_stops(make_host, fastcgi_program, delay_ms, when):
    """In whatever state the reload is: the host ends as ever, and who asked is told."""
    slow = FAULTY_WORKER.replace("is_repaired = os.path.exists", "time.sleep(5)\nis_repaired = os.path.exists", 1)
    host = make_host({"w": versioned(fastcgi_program, 1, workers={"min": 1, "max": 1}), "h": HELLO}, defaults={"timeout": {"kill": "1s"}})
    host.request("/w")
    extra = str(host.run_folder / "extra.sock")
    handlers = {"w": versioned(fastcgi_program, 2, workers={"min": 1, "max": 1})}
    if when == "trial":
        handlers["slow"] = {"script": slow, "protocol": "fastcgi", "workers": {"min": 1, "max": 1}}
    base = host.listen
    rewrite(host, handlers, listen=[base, {"address": f"unix:{extra}", "mode": "0666"}], defaults={"timeout": {"kill": "1s"}})
    asking = host.spawn("reload", "-c", str(host.config), stderr=subprocess.PIPE)
    host.signal(signal.SIGHUP)
    if when == "trial" and delay_ms == 100:
        wait_until(lambda: host.workers("slow"), 10)
    time.sleep(delay_ms / 1000)     # another moment each time
    assert host.stop() == 0
    said = asking.communicate(timeout=20)[1].decode()
    assert asking.returncode in (0, 1) and (asking.returncode == 0 or said)
    if when == "trial" and delay_ms == 100:
        assert "stopping" in said
    assert not os.path.lexists(extra) and not os.path.lexists(host.socket)


def test_a_reload_that_is_asked_for_while_the_host_drains(make_host):
    host = make_host({"h": "echo > \"$SCRATCH/started\"; while [ ! -e \"$SCRATCH/go\" ]; do sleep 0.05; done; " + HELLO}, defaults={"timeout": {"kill": "20s"}})
    with begin(host, "/h") as conn:
        wait_until((host.scratch / "started").exists, 10)
        rewrite(host, {"g": HELLO}, listen=[host.listen, {"address": f"127.0.0.1:{free_port()}"}])
        host.signal(signal.SIGTERM)
        wait_until(lambda: not connects(host.socket), 5)
        host.signal(signal.SIGHUP)
        said = reload(host, expect=1)
        assert "stopping" in said
        (host.scratch / "go").write_text("")
        assert conn.answer().text == "hello\n"
    assert host.stop() == 0


def test_a_spawner_that_is_lost_during_a_reload(make_host):
    host = make_host({"h": HELLO})
    spawner = next(p for p in host.host_pids() if p != host.relay)
    os.kill(spawner, signal.SIGSTOP)        # so that its answer does not come
    asking = host.spawn("reload", "-c", str(host.config), stderr=subprocess.PIPE)
    stays(lambda: asking.poll() is None, 0.3, "waiting")
    proc.kill_quietly(spawner)
    said = asking.communicate(timeout=20)[1].decode()
    assert asking.returncode == 1 and said
    host.expect_exit = host.process.wait(10)
    assert host.expect_exit == 1


def test_a_storm_of_reloads_ends_in_a_consistent_state(make_host, fastcgi_program):
    host = make_host({"w": versioned(fastcgi_program, 0, workers={"min": 1, "max": 2})})
    host.request("/w")
    failed = []
    for i in range(1, 51):
        rewrite(host, {"w": versioned(fastcgi_program, i, workers={"min": 1, "max": 2})})
        host.signal(signal.SIGHUP)
        if i % 5 == 0:
            failed += [a for a in [host.request("/w", "POST", b"x")] if a.status != 200]
    assert not failed
    reload(host)
    assert version_of(host.request("/w?env")) == "50"
    wait_until(lambda: len(all_workers(host, fastcgi_program)) == 1, 10, "one worker of the last configuration")
    assert proc.environ(all_workers(host, fastcgi_program)[0])[b"V"] == b"50"
    assert not proc.zombies(host.process.pid)


@pytest.mark.plain
def test_many_reloads_leave_nothing_behind(make_host, fastcgi_program):
    """Memory, descriptors and processes are back where they were, good and bad files alike."""
    def handlers(i):
        return {"same": versioned(fastcgi_program, 0), "w": versioned(fastcgi_program, i, workers={"min": 1, "max": 1}), "h": HELLO}
    host = make_host(handlers(0))
    host.request("/same")
    good = host.config.read_text

    def round_of(first, count):
        for i in range(first, first + count):
            rewrite(host, handlers(i))
            if i % 5 == 4:
                text = good()
                host.write_text(text + "nonsense: 1\n")
                reload(host, expect=1)
            else:
                reload(host)
            assert host.request("/w").status == 200 and host.request("/same").status == 200
        rewrite(host, handlers(0))
        reload(host)
        host.request("/w")

    def settled():
        return len(all_workers(host, fastcgi_program)) == 2
    round_of(1, 20)
    wait_until(settled, 10)
    descriptors, memory = host.descriptors(), {p: proc.rss_kib(p) for p in host.host_pids()}
    round_of(21, 100)
    wait_until(settled, 10)
    wait_until(lambda: host.descriptors() == descriptors, 5, f"the descriptors of before {descriptors}, now {host.descriptors()}")
    for pid, before in memory.items():
        assert proc.rss_kib(pid) - before < 512, f"process {pid} grew from {before} KiB to {proc.rss_kib(pid)} KiB in 100 reloads"


def test_a_handler_that_does_nothing_wrong_is_never_disturbed_by_others_reloads(make_host, fastcgi_program):
    """A connection to an unchanged worker, with a request in it, goes on over many reloads."""
    host = make_host({"same": worker(fastcgi_program), "w": versioned(fastcgi_program, 0)})
    pid = pid_of(host.request("/same"))
    with begin(host, "/same?sleep=1500") as conn:
        for i in range(1, 6):
            rewrite(host, {"same": worker(fastcgi_program), "w": versioned(fastcgi_program, i)})
            reload(host)
            assert version_of(host.request("/w?env")) == str(i)
        assert pid_of(conn.answer()) == pid


def test_python_handlers_under_load_lose_nothing(make_host):
    """Processes per request and reloads that change them, mixed."""
    text = python("print('Content-Type: text/plain\\n\\n%s' % os.environ['V'])")
    host = make_host({"h": {"script": text, "env": {"V": "0"}}})
    stop = threading.Event()

    def load(_):
        statuses = collections.Counter()
        while not stop.is_set():
            statuses[host.request("/h", "POST", b"x" * 1000).status] += 1
        return statuses

    def change():
        try:
            for i in range(1, 9):
                rewrite(host, {"h": {"command": ["handlers/h"], "env": {"V": str(i)}}})
                reload(host)
        finally:
            stop.set()
    changing = threading.Thread(target=change)
    changing.start()
    results = in_parallel(3, load)
    changing.join()
    assert set(sum(results, collections.Counter())) == {200}, results
    assert host.request("/h").text == "8\n"
