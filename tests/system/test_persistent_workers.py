"""Workers that serve many requests: programs that we start, unmodified, and servers that someone else runs."""
import collections
import re
import subprocess
import threading
import time

import pytest

from lib import proc, wire
from lib.handlers import HELLO, PROGRAMS, faulty, pattern, python, sha, worker
from lib.wait import connects, stays, wait_until

PID = re.compile(r"pid=(\d+) served=(\d+)")


def pid_of(answer):
    found = PID.search(answer.text)
    assert found, answer
    return int(found.group(1))


def in_parallel(count, ask):
    """Answers (or exceptions) of `count` calls at once."""
    results = [None] * count

    def one(i):
        try:
            results[i] = ask(i)
        except Exception as e:      # noqa: BLE001 - handed to the test
            results[i] = e
    threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


def test_one_worker_serves_many_requests(make_host, front, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"max": 1})})
    client = front(host)
    answers = [client.get("/w") for _ in range(10)]
    assert all(a.status == 200 and a.complete for a in answers)
    assert len({pid_of(a) for a in answers}) == 1
    assert [int(PID.search(a.text).group(2)) for a in answers] == list(range(1, 11))


def test_bodies_through_a_worker(make_host, front, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program)})
    client = front(host)
    data = pattern(3 << 20)
    for _ in range(2):
        answer = client.post("/w?echo", data)
        assert (answer.status, sha(answer.body), answer.complete) == (200, sha(data), True)
    assert client.post("/w?count", data).text == f"{3 << 20}\n"


def test_an_early_answer_of_a_worker(make_host, front, fastcgi_program):
    """The worker answers without reading the body; the next request is in order again."""
    host = make_host({"w": worker(fastcgi_program, workers={"max": 1})})
    client = front(host)
    for _ in range(3):
        answer = client.post("/w?body=5", bytes(3 << 20))
        assert (answer.status, answer.body, answer.complete) == (200, b"xxxxx", True)
        assert client.get("/w?body=3").body == b"xxx"


def leftover_host(make_host, leftover):
    script = (PROGRAMS / "leaves_stdin.py").read_text()
    return make_host({"w": {"script": script, "protocol": "fastcgi", "workers": {"max": 1}, "env": {"LEFTOVER": leftover}}})


def test_the_end_of_an_empty_body_left_unread_costs_no_connection(make_host):
    """php-cgi leaves it.  The first request that finds such a connection kept tries it, if it can be repeated."""
    host = leftover_host(make_host, "skips")
    assert host.request("/w").text == "0"
    assert host.request("/w", "POST", b"abc").text == "3"       # not on that connection
    assert [host.request("/w").text for _ in range(10)] == ["0"] * 10
    assert host.request("/w", "POST", b"abcd").text == "4"      # it is known now
    attempts = (host.scratch / "attempts").read_text().splitlines()
    assert (attempts.count("connection"), attempts.count("request"), len(attempts)) == (2, 13, 15)


def test_a_program_that_stumbles_over_it_gets_new_connections(make_host):
    host = leftover_host(make_host, "stumbles")
    assert [host.request("/w").text for _ in range(6)] == ["0"] * 6
    assert [host.request("/w", "POST", b"abc").text for _ in range(3)] == ["3"] * 3
    assert (host.scratch / "attempts").read_text().count("gave up") == 1, "it was tried once"


def test_one_word_switches_a_fastcgi_program(make_host, fastcgi_program):
    """A libfcgi program without a listener on descriptor 0 is a CGI program."""
    host = make_host({"p": worker(fastcgi_program, process="persistent"), "r": worker(fastcgi_program, process="per-request")})
    assert len({pid_of(host.request("/p")) for _ in range(3)}) == 1
    assert len({pid_of(host.request("/r")) for _ in range(3)}) == 3
    data = pattern(100_000)
    assert host.request("/r?echo", "POST", data).body == data
    assert host.request("/p?echo", "POST", data).body == data


def test_a_perl_program_runs_unmodified(make_host):
    script = """#!/usr/bin/perl
use CGI::Fast;
my $n = 0;
while (my $q = CGI::Fast->new) {
    $n++;
    print $q->header('text/plain'), "pid=$$ served=$n name=", scalar($q->param('name')) // '', "\\n";
}
"""
    host = make_host({"p": {"script": script, "protocol": "fastcgi", "workers": {"max": 1}}})
    answers = [host.request("/p", "POST", b"name=Johnny", headers=[("Content-Type", "application/x-www-form-urlencoded")]) for _ in range(3)]
    assert [a.status for a in answers] == [200] * 3 and all("name=Johnny" in a.text for a in answers)
    assert len({pid_of(a) for a in answers}) == 1


def test_a_worker_that_closes_after_every_request(make_host, front):
    """Kept connections where the program supports them, a plain new one where it does not."""
    host = make_host({"w": faulty("never-keeps")})
    client = front(host)
    answers = [client.get("/w") for _ in range(6)]
    assert [a.status for a in answers] == [200] * 6
    assert len({pid_of(a) for a in answers}) == 1
    assert len((host.scratch / "starts").read_text().split()) == 1


@pytest.mark.parametrize("fault", ["one-byte-records", "chatters", "app-status"])
def test_workers_with_odd_manners(make_host, front, fault):
    host = make_host({"w": faulty(fault)})
    body = {"one-byte-records": "abcdef", "chatters": "fine", "app-status": "whole"}[fault]
    client = front(host)
    for _ in range(2):
        answer = client.get("/w")
        assert (answer.status, answer.text, answer.complete) == (200, body, True)
    entry = host.wait_log(event="request", handler="w")
    assert entry["status"] == 200
    if fault == "chatters":
        assert host.wait_log(event="stderr")["msg"] == "before"


def test_more_front_connections_than_workers(make_host, fastcgi_program):
    """Idle kept connections hold no worker."""
    host = make_host({"w": worker(fastcgi_program, workers={"max": 1})})
    host.request("/w")
    conns = [host.connect() for _ in range(20)]
    for conn in conns:
        answer = wire.request(None, "/w", conn=conn, keep=True)
        assert answer.status == 200
        assert answer.elapsed < 1
    assert len({p for p in [pid_of(wire.request(None, "/w", conn=c, keep=True)) for c in conns]}) == 1
    for conn in conns:
        conn.close()


@pytest.mark.parametrize("name", ["nginx-kept", "mod_fcgid"])
def test_more_clients_than_workers_none_starves(make_host, make_front, fastcgi_program, name):
    host = make_host({"w": worker(fastcgi_program, workers={"max": 2}, queue={"max": 200, "timeout": "30s"})})
    client = make_front(name, host)
    answers = in_parallel(32, lambda i: client.get("/w?sleep=10"))
    assert [getattr(a, "status", a) for a in answers] == [200] * 32


def test_recycling_under_load(make_host, make_front, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"max": 2, "max_requests": 5})})
    client = make_front("nginx-kept", host)
    answers = [a for batch in in_parallel(8, lambda i: [client.post("/w", b"x" * 100) for _ in range(63)]) for a in (batch if isinstance(batch, list) else [batch])]
    statuses = collections.Counter(getattr(a, "status", repr(a)) for a in answers)
    assert statuses == {200: 504}
    served = [int(PID.search(a.text).group(2)) for a in answers]
    assert max(served) <= 5
    assert len({pid_of(a) for a in answers}) >= 504 // 5


@pytest.mark.limit(90)
def test_the_idle_limit_races_a_request(make_host, fastcgi_program):
    """A request every 0.95 to 1.05 s against an idle limit of one second; the period scaled to 0.3 s to be quick."""
    host = make_host({"w": worker(fastcgi_program, workers={"min": 0, "max": 2, "idle_timeout": "300ms"})})
    for i in range(60):
        answer = host.request("/w", "POST", b"x")
        assert answer.status == 200, f"request {i}: {answer}"
        time.sleep(0.285 + 0.0005 * i)      # the race needs this very pause


def test_idle_workers_end_and_come_back(make_host, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"min": 0, "max": 2, "idle_timeout": "300ms"})})
    first = pid_of(host.request("/w"))
    wait_until(lambda: not proc.is_alive(first), 10, "the end of the idle worker")
    assert pid_of(host.request("/w")) != first


def test_min_workers_are_there_before_the_first_request_and_stay(make_host, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"min": 2, "max": 4, "idle_timeout": "200ms"})})
    count = lambda: len([p for p in host.children() if proc.exe(p) == str(fastcgi_program)])     # noqa: E731
    wait_until(lambda: count() == 2, 10, "two workers")
    stays(lambda: count() == 2, 0.8, "the number of workers")
    pid = pid_of(host.request("/w"))
    proc.kill_quietly(pid)
    wait_until(lambda: count() == 2 and not proc.is_alive(pid), 10, "a replacement")


def test_bare_connections_start_nothing(make_host, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"min": 0, "max": 8})})
    conns = [host.connect() for _ in range(50)]
    for conn in conns[:25]:
        conn.send(wire.begin())
    stays(lambda: not host.children(), 0.5, "no worker")
    for conn in conns:
        conn.close()


def test_workers_start_as_many_as_wait(make_host, fastcgi_program):
    """Eight one-second requests at once with max: 8 take about one second in all."""
    host = make_host({"w": worker(fastcgi_program, workers={"min": 0, "max": 8})})
    started = time.monotonic()
    answers = in_parallel(8, lambda i: host.request("/w?sleep=1000"))
    assert [a.status for a in answers] == [200] * 8
    assert len({pid_of(a) for a in answers}) == 8
    assert time.monotonic() - started < 4, "one after the other it would be eight"


def test_never_more_than_max(make_host, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"min": 0, "max": 3})})
    answers = in_parallel(12, lambda i: host.request("/w?sleep=100"))
    assert [a.status for a in answers] == [200] * 12
    assert 1 <= len({pid_of(a) for a in answers}) <= 3


def test_max_counts_processes_per_request_too(make_host):
    host = make_host({"h": {"script": python("""
import fcntl
with open(os.environ['SCRATCH'] + '/now', 'a+') as f:
    fcntl.flock(f, fcntl.LOCK_EX); f.write('+'); f.flush()
    f.seek(0); t = f.read(); n = t.count('+') - t.count('-')
    fcntl.flock(f, fcntl.LOCK_UN)
time.sleep(0.2)
print('Content-Type: text/plain\\n\\n%d' % n)
with open(os.environ['SCRATCH'] + '/now', 'a+') as f:
    fcntl.flock(f, fcntl.LOCK_EX); f.write('-')
"""), "workers": {"max": 2}}})
    answers = in_parallel(8, lambda i: host.request("/h"))
    assert [a.status for a in answers] == [200] * 8
    assert max(int(a.text) for a in answers) <= 2


def test_every_worker_killed_at_once_under_load(make_host, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"min": 2, "max": 2}), "hello": HELLO})
    stop = threading.Event()
    statuses = []

    def load():
        while not stop.is_set():
            statuses.append(host.request("/w?sleep=20", "POST", b"x").status)
    threads = [threading.Thread(target=load) for _ in range(4)]
    for t in threads:
        t.start()
    try:
        wait_until(lambda: len(statuses) > 20, 10)
        victims = {p for p in host.children() if proc.exe(p) == str(fastcgi_program)}
        for pid in victims:
            proc.kill_quietly(pid)
        before = len(statuses)
        wait_until(lambda: len(statuses) > before + 40, 10)
        assert host.request("/hello").status == 200
    finally:
        stop.set()
        for t in threads:
            t.join()
    bad = [s for s in statuses if s != 200]
    assert len(bad) <= 4, f"only the requests in flight fail: {collections.Counter(statuses)}"
    assert set(bad) <= {502}
    assert not proc.zombies(host.process.pid)


def test_a_workers_stderr_is_logged_and_never_answered(make_host, front, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program)})
    answer = front(host).get("/w?stderr=300&body=4")
    assert (answer.status, answer.body) == (200, b"xxxx")
    assert len(host.wait_log(event="stderr", count=3)) == 3


def test_variables_reach_a_worker(make_host, front, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, env={"KEY": "operator"})})
    text = front(host).post("/w/a/b?env&x=1", b"abc", headers=[("Proxy", "x"), ("X-Custom", "c"), ("Authorization", "Basic eDp5")]).text
    env = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    assert (env["SCRIPT_NAME"], env["PATH_INFO"], env["CONTENT_LENGTH"]) == ("/w", "/a/b", "3")
    assert env["HTTP_X_CUSTOM"] == "c" and env["KEY"] == "operator"
    assert "HTTP_PROXY" not in env and "HTTP_AUTHORIZATION" not in env
    assert env["SCRIPT_FILENAME"] == str(fastcgi_program)


@pytest.mark.parametrize("process", ["persistent", "per-request"])
def test_script_filename_of_a_fastcgi_program_is_the_file_really_run(make_host, fastcgi_program, process):
    host = make_host({"w": worker(fastcgi_program, process=process)})
    for sent in ("/srv/www/w/extra", "proxy:fcgi://localhost/w", ""):
        text = host.request("/w?env", extra={"SCRIPT_FILENAME": sent}).text
        assert f"SCRIPT_FILENAME={fastcgi_program}\n" in text, sent


def test_a_slow_starter_costs_waiting_and_no_error(make_host):
    from lib.handlers import FAULTY_WORKER
    slow = FAULTY_WORKER.replace("is_repaired = os.path.exists", "time.sleep(1.5)\nis_repaired = os.path.exists", 1)
    host = make_host({"w": {"script": slow, "protocol": "fastcgi", "workers": {"max": 1}}})
    answers = in_parallel(3, lambda i: host.request("/w"))
    assert [a.status for a in answers] == [200] * 3


def test_the_backends_connection_is_not_opened_ahead_of_a_request(make_host, fastcgi_program):
    """libfcgi closes a connection that brings nothing within 2 s of its accept."""
    host = make_host({"w": worker(fastcgi_program, workers={"min": 1, "max": 1})})
    wait_until(host.children, 10)
    pid = host.children()[0]
    stays(lambda: len([t for t in (proc.fds(pid) or {}).values() if t.startswith("socket:")]) <= 1, 0.5, "only the listener")
    time.sleep(2.2)         # longer than libfcgi's patience
    assert host.request("/w", "POST", b"x").status == 200


# --- servers that someone else runs

@pytest.fixture
def spawned(folder, fastcgi_program):
    """The libfcgi program under spawn-fcgi, several processes behind one socket."""
    running = []

    def spawn(children=2):
        path = str(folder / f"spawned{len(running)}.sock")
        process = subprocess.Popen(["/usr/bin/spawn-fcgi", "-n", "-s", path, "-M", "0666", "-F", str(children), "--", str(fastcgi_program)]
                                   if children > 1 else ["/usr/bin/spawn-fcgi", "-n", "-s", path, "-M", "0666", "--", str(fastcgi_program)],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True, cwd=str(folder))
        running.append(process)
        wait_until(lambda: connects(path), 10)
        return path, process
    yield spawn
    for process in running:
        process.kill()
        process.wait()


def test_connect_to_workers_of_someone_else(make_host, front, spawned):
    path, _ = spawned(1)
    host = make_host({"c": {"connect": f"unix:{path}", "protocol": "fastcgi", "workers": {"max": 1}}})
    client = front(host)
    data = pattern(1 << 20)
    for _ in range(3):
        answer = client.post("/c?echo", data)
        assert (answer.status, sha(answer.body), answer.complete) == (200, sha(data), True)
    host.outsiders = tuple(proc.marked(path))


def test_connect_where_nobody_listens_is_502(make_host, front, folder):
    host = make_host({"c": {"connect": f"unix:{folder}/nobody.sock", "protocol": "fastcgi"}})
    answer = front(host).get("/c")
    assert (answer.status, answer.complete) == (502, True)
    entry = host.wait_log(event="request", handler="c")
    assert entry["reason"]
    assert any("nobody.sock" in line for line in host.log_lines())


def test_a_server_that_was_started_again_is_used_again(make_host, spawned, folder, fastcgi_program):
    path, process = spawned(1)
    host = make_host({"c": {"connect": f"unix:{path}", "protocol": "fastcgi"}})
    assert host.request("/c").status == 200
    process.kill()
    process.wait()
    assert host.request("/c", "POST", b"x").status == 502
    again = subprocess.Popen(["/usr/bin/spawn-fcgi", "-n", "-s", path, "-M", "0666", "--", str(fastcgi_program)], stdin=subprocess.DEVNULL, cwd=str(folder))
    try:
        wait_until(lambda: connects(path), 10)
        assert host.request("/c").status == 200
    finally:
        again.kill()
        again.wait()
