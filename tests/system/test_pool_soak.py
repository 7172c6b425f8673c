"""
Pools under load, failures and reloads, for as long as it takes to see what leaks, starves or stays broken.

How long: FCGI_HOST_SOAK_SECONDS of reloads under load (20 unless said; 60 is the full minute),
FCGI_HOST_OVERLOAD_SECONDS of three times what can be served (10; 30 in full), FCGI_HOST_CRASH_SECONDS of a crash
loop (8; 60 in full).
"""
import collections
import os
import random
import re
import statistics
import threading
import time

import pytest

from lib import proc, wire
from lib.handlers import HELLO
from lib.wait import wait_until
from test_persistent_workers import in_parallel, pid_of
from test_reload import all_workers, reload, rewrite, says, versioned, worker
from test_status import STATES, status

FAILURES = 2000
CLIENTS = 8

SOAK_SECONDS = float(os.environ.get("FCGI_HOST_SOAK_SECONDS", 20))
RELOAD_EVERY_SECONDS = 0.2
GROWTH_KIB = 1024           # of a process, over all the reloads

OVERLOAD_SECONDS = float(os.environ.get("FCGI_HOST_OVERLOAD_SECONDS", 10))
OVERLOAD = 3                # times capacity
THROUGHPUT = 0.9            # of capacity, at least
SERVICE_MS = 100            # a request's time with its worker: capacity is then not the machine's
WORKERS = 4

CRASH_SECONDS = float(os.environ.get("FCGI_HOST_CRASH_SECONDS", 8))
RACE_SECONDS = 20

pytestmark = [pytest.mark.soak, pytest.mark.limit(100 + max(SOAK_SECONDS, OVERLOAD_SECONDS, CRASH_SECONDS))]


def is_told(answer):
    """An answer or a transfer that is seen as broken, never a silence that looks whole."""
    return answer.status is not None or not answer.complete


# --- 2,000 failures

def hang_up(host, path, after):
    with wire.Conn(host.address) as conn:
        whole = wire.begin() + wire.stream(wire.PARAMS, wire.pairs(wire.variables(path, "POST", b"x" * 100))) + wire.record(wire.STDIN, 1, b"x" * 50)
        conn.send(whole[:after])
    return "hung up"


def ways_to_fail(host):
    """name: (what to do, the statuses that may come of it; None is a broken transfer or our own hanging up)"""
    ask = host.request
    return {
        "dies before the answer": (lambda: ask("/w?raise=9", "POST", b"x"), {502, 503}),
        "dies twice on a GET": (lambda: ask("/w?exit=3"), {502, 503}),
        "dies in the answer": (lambda: ask("/w?partial=100&raise=9"), {200, 502, 503}),
        "dies in an endless answer": (lambda: ask("/w?header&body=70000&raise=11"), {200, 502, 503}),
        "is killed, per request": (lambda: ask("/die"), {502, 503}),
        "says nothing": (lambda: ask("/silent"), {502, 503}),
        "bad header": (lambda: ask("/bad"), {502, 503}),
        "too slow": (lambda: ask("/slow?sleep=20000"), {502, 503, 504}),       # 502: killed, and once more when it was tried again
        "too slow, per request": (lambda: ask("/slowly"), {503, 504}),
        "stops in the body": (lambda: ask("/stops"), {200, 503, 504}),
        "client gone in the variables": (lambda: hang_up(host, "/w", random.randrange(1, 300)), None),
        "client gone in the body": (lambda: hang_up(host, "/w?sleep=50&count", 10_000), None),
        "line full": (lambda: ask("/narrow"), {200, 503}),
        "no program": (lambda: ask("/missing"), {502, 503}),
        "no route": (lambda: ask("/nowhere"), {404}),
        "body too large": (lambda: ask("/small", "POST", b"x" * 2000), {413}),
    }


def test_two_thousand_failures_leave_nothing_behind(make_host, fastcgi_program):
    quick = {"response": "60ms", "kill": "200ms", "idle": "100ms"}
    host = make_host({
        "w": worker(fastcgi_program, workers={"max": 4, "idle_timeout": "500ms"}),
        "slow": worker(fastcgi_program, workers={"max": 4, "idle_timeout": "500ms"}, timeout=quick),
        "die": "kill -9 $$", "silent": "exit 3", "bad": "echo no header here", "small": {"script": HELLO, "body": {"max": "1KiB"}},
        "slowly": {"script": "exec sleep 20", "timeout": quick},
        "stops": {"script": "printf 'Content-Type: text/plain\\n\\nsome'; exec sleep 20", "timeout": quick},
        "narrow": {"script": "sleep 0.02; " + HELLO, "workers": {"max": 1}, "queue": {"max": 0}},
        "missing": {"command": ["handlers/is-not-there"]},
    })

    def is_quiet():
        return not host.children() and not proc.zombies(host.process.pid)
    for path in ("/w", "/slow", "/small"):
        assert host.request(path).status == 200
    wait_until(is_quiet, 10, "the end of the first workers")
    before = host.descriptors()

    ways = ways_to_fail(host)
    todo = [name for name in ways for _ in range(FAILURES // len(ways))]
    random.Random(3).shuffle(todo)
    wrong, seen, lock, stop = [], collections.Counter(), threading.Lock(), threading.Event()

    def client(number):
        for name in todo[number::CLIENTS]:
            act, allowed = ways[name]
            answer = act()
            if allowed is None:
                continue
            with lock:
                seen[name, answer.status] += 1
                if not is_told(answer) or (answer.status not in allowed and answer.status is not None):
                    wrong.append((name, answer))

    def kill_some():
        while not stop.wait(0.1):
            workers = all_workers(host, fastcgi_program)
            if workers:
                proc.kill_quietly(random.choice(workers))
    killing = threading.Thread(target=kill_some)
    killing.start()
    failures = [r for r in in_parallel(CLIENTS, client) if r is not None]
    stop.set()
    killing.join()
    assert not failures and not wrong, (failures, wrong[:5])
    for name, (_, allowed) in ways.items():
        statuses = {s for n, s in seen if n == name}
        assert allowed is None or statuses & (allowed - {200, 503}) or "line" in name or None in statuses or 200 in statuses, (name, statuses)

    wait_until(is_quiet, 20, "the end of every process: " + "; ".join(map(proc.describe, host.children())))
    wait_until(lambda: host.descriptors() == before, 10, f"the descriptors of the start: {before}, now {host.descriptors()}")
    for handler in status(host)["handlers"]:
        assert {handler["processes"][s] for s in STATES} == {0} and handler["waiting"] == 0, handler
    # A pause after early deaths may be running; then it is as at the start.
    wait_until(lambda: host.request("/w").status == 200, 35, "an answer")
    assert [host.request(path).status for path in ("/w", "/small") for _ in range(10)] == [200] * 20


# --- reloads under load

@pytest.mark.parametrize("seconds", [5, pytest.param(SOAK_SECONDS, marks=pytest.mark.plain)])
def test_reloads_under_load_lose_no_request(make_host, make_front, fastcgi_program, seconds):
    """The short one with whatever build is tested, the long one where memory can be measured."""
    measures = seconds == SOAK_SECONDS

    def handlers(version):
        return {"same": versioned(fastcgi_program, 0, workers={"max": 4}), "w": versioned(fastcgi_program, version, workers={"min": 2, "max": 4}),
                "h": {"command": ["handlers/h"], "env": {"V": str(version)}}}
    host = make_host({**handlers(0), "h": {"script": "n=$(wc -c); printf 'Content-Type: text/plain\\n\\n%s\\n' $n", "env": {"V": "0"}}})
    client = make_front("nginx-kept", host)
    stop, bad = threading.Event(), []
    counts = collections.Counter()

    def load(number):
        size = 0
        while not stop.is_set():
            size = (size + 7919) % 40_000
            path = ("/w?count", "/same?count", "/h", "/w?sleep=150&count")[(size + number) % 4]
            answer = client.post(path, b"x" * size)
            counts[path] += 1
            if (answer.status, answer.text.strip(), answer.complete) != (200, str(size), True):
                bad.append((path, size, answer))

    def change():
        deadline, version = time.monotonic() + seconds, 0
        memory = None
        while time.monotonic() < deadline:
            version += 1
            started = time.monotonic()
            rewrite(host, handlers(version))
            reload(host)
            if memory is None and time.monotonic() > deadline - seconds * 0.75:
                memory = {p: proc.rss_kib(p) for p in host.host_pids()}
            time.sleep(max(0, RELOAD_EVERY_SECONDS - (time.monotonic() - started)))
        return memory, str(version)
    threads = [threading.Thread(target=load, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    try:
        memory, version = change()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not bad, f"{len(bad)} of {sum(counts.values())}: {bad[:5]}\n{host.log_text()[-3000:]}"
    assert min(counts.values()) > seconds, counts
    assert len(host.log(event="reloaded")) >= seconds / RELOAD_EVERY_SECONDS / 4

    def versions():
        return {proc.environ(p).get(b"V", b"").decode() for p in all_workers(host, fastcgi_program)}
    wait_until(lambda: versions() <= {"0", version} and len(all_workers(host, fastcgi_program)) <= 8 and not host.workers("h"), 10,
               f"the end of the workers of before; last is {version}, there are {versions()}")
    assert not proc.zombies(host.process.pid)
    if measures:
        grown = {p: proc.rss_kib(p) - kib for p, kib in memory.items()}
        assert max(grown.values()) < GROWTH_KIB, grown


# --- more than can be served

def test_three_times_what_can_be_served(make_host, fastcgi_program):
    """Open loop: requests come whether the ones before are answered or not."""
    limit = 0.5
    host = make_host({"w": worker(fastcgi_program, workers={"min": WORKERS, "max": WORKERS}, queue={"max": 1000, "timeout": "500ms"})})
    wait_until(lambda: len(all_workers(host, fastcgi_program)) == WORKERS, 10)
    path = f"/w?sleep={SERVICE_MS}"
    idle = statistics.median(host.request("/w").elapsed for _ in range(20))

    def closed(_):
        deadline, count = time.monotonic() + 2, 0
        while time.monotonic() < deadline:
            count += host.request(path).status == 200
        return count
    capacity = sum(in_parallel(WORKERS, closed)) / 2
    answers, threads = [], []
    started = time.monotonic()
    for i in range(int(capacity * OVERLOAD * OVERLOAD_SECONDS)):
        time.sleep(max(0, started + i / (capacity * OVERLOAD) - time.monotonic()))
        threads.append(threading.Thread(target=lambda: answers.append((time.monotonic() - started, host.request(path)))))
        threads[-1].start()
    for thread in threads:
        thread.join()
    statuses = collections.Counter(a.status for _, a in answers)
    assert set(statuses) == {200, 503} and len(answers) == len(threads), statuses
    assert all(a.get("Retry-After") for _, a in answers if a.status == 503)
    slowest = {s: max(a.elapsed for _, a in answers if a.status == s) for s in statuses}
    assert slowest[503] < limit + 0.25 and slowest[200] < limit + SERVICE_MS / 1000 + 0.25, slowest
    throughput = statuses[200] / OVERLOAD_SECONDS
    # Steady, too: no second without its share (of the whole ones, after the line has filled).
    ends = collections.Counter(int(at) for at, a in answers if a.status == 200)
    assert all(ends[second] > THROUGHPUT / 2 * capacity for second in range(1, int(OVERLOAD_SECONDS))), ends
    assert len(host.log(event="request", status=503)) == statuses[503], "each was refused by the host, none by the kernel"
    assert throughput > THROUGHPUT * capacity, f"{throughput:.1f} of {capacity:.1f} a second"
    after = statistics.median(host.request("/w").elapsed for _ in range(20))
    assert after < 2 * idle + 0.005, f"{after * 1000:.2f} ms, {idle * 1000:.2f} ms before"
    assert len(all_workers(host, fastcgi_program)) == WORKERS


# --- deaths

def test_all_workers_killed_again_and_again_under_load(make_host, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"min": WORKERS, "max": WORKERS}), "hello": HELLO})
    wait_until(lambda: len(all_workers(host, fastcgi_program)) == WORKERS, 10)
    stop, answers = threading.Event(), []

    def load(_):
        while not stop.is_set():
            answers.append((time.monotonic(), host.request("/w?sleep=20", "POST", b"x")))
    threads = [threading.Thread(target=load, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    rounds, outages = 5, []
    try:
        for _ in range(rounds):
            have = len(answers)
            wait_until(lambda: len(answers) > have + 50, 10)
            for pid in all_workers(host, fastcgi_program):
                proc.kill_quietly(pid)
            killed = time.monotonic()
            wait_until(lambda: [t for t, a in answers[-50:] if t > killed and a.status == 200], 10, "an answer")
            outages.append(time.monotonic() - killed)
            assert host.request("/hello").status == 200
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert max(outages) < 1, outages
    statuses = collections.Counter(a.status for _, a in answers)
    assert set(statuses) <= {200, 502}, statuses
    assert statuses[502] <= rounds * WORKERS, f"only what was in flight fails: {statuses}"
    wait_until(lambda: len(all_workers(host, fastcgi_program)) == WORKERS, 10)
    assert not proc.zombies(host.process.pid)


def most_starts(seconds):
    """Of a program that dies at once: the pauses double from half a second up to thirty; jitter makes them only longer."""
    at, pause, count = 0.0, 0.5, 1
    while at + pause < seconds:
        at, pause, count = at + pause, min(pause * 2, 30), count + 1
    return count


def test_a_crash_loop(make_host, fastcgi_program):
    """The pauses double, so that the first minute has at most ten starts; the rest of the host does not notice."""
    host = make_host({"bad": {"script": f"echo >> \"$SCRATCH/starts\"; [ -e \"$SCRATCH/repaired\" ] || exit 3; exec {fastcgi_program}",
                              "protocol": "fastcgi", "workers": {"min": 1, "max": 4}}, "hello": HELLO, "w": worker(fastcgi_program)})
    host.request("/w")
    before = statistics.median(host.request("/hello").elapsed for _ in range(10))
    deadline = time.monotonic() + CRASH_SECONDS
    answers, others = [], []
    while time.monotonic() < deadline:
        answers.append(host.request("/bad"))
        others.append(host.request("/hello"))
        assert host.request("/w").status == 200
        time.sleep(0.02)
    assert {a.status for a in answers} == {503} and all(int(a.get("Retry-After")) >= 1 for a in answers)
    assert statistics.median(a.elapsed for a in answers) < 0.05
    assert {a.status for a in others} == {200}
    assert statistics.median(a.elapsed for a in others) < 2 * before + 0.01
    pauses = [int(re.search(r"(\d+) ms", e["msg"]).group(1)) for e in host.log(event="worker_pause")]
    starts = (host.scratch / "starts").read_text().count("\n")
    assert len(pauses) >= 4 and starts <= most_starts(CRASH_SECONDS + 2), (pauses, starts)
    below_the_most = [(a, b) for a, b in zip(pauses, pauses[1:]) if b < 20_000]
    assert all(a < b and 1.6 * a <= b <= 2.4 * a for a, b in below_the_most), pauses
    assert max(pauses) <= 30_000
    at, count = 0, 1        # the starts of the first minute, were it to go on like this
    for pause in pauses + [min(pauses[-1] * 2 ** i, 30_000) for i in range(1, 12)]:
        at += pause
        count += at < 60_000
    assert count <= 10, pauses
    assert len([e for e in host.log() if e["event"] != "request"]) < 20
    (host.scratch / "repaired").write_text("")
    wait_until(lambda: host.request("/bad").status == 200, pauses[-1] * 2.2 / 1000 + 5, "the recovery")
    assert [host.request("/bad").status for _ in range(5)] == [200] * 5


# --- neighbours

def test_a_greedy_handler_does_not_slow_another(make_host, make_front, fastcgi_program):
    """Fifty hanging requests, at work and in line; through nginx, which keeps connections for all of them."""
    host = make_host({"greedy": worker(fastcgi_program, workers={"max": 8}, queue={"timeout": "60s"}, timeout={"response": "60s"}),
                      "w": worker(fastcgi_program), "hello": HELLO}, defaults={"timeout": {"kill": "1s"}})
    client = make_front("nginx-kept", host)

    def latency(path):
        return statistics.median(client.get(path).elapsed for _ in range(30))
    latency("/w")
    before = {path: latency(path) for path in ("/w", "/hello")}
    conns = [host.connect() for _ in range(50)]
    for conn in conns:
        conn.start(wire.variables("/greedy?sleep=30000"))
        conn.send(wire.record(wire.STDIN))
    wait_until(lambda: len(all_workers(host, fastcgi_program)) == 9, 10, "eight workers of the greedy handler")
    after = {path: latency(path) for path in before}
    assert all(after[path] < 1.5 * before[path] + 0.005 for path in before), (before, after)
    for conn in conns:
        conn.close()
    wait_until(lambda: len(host.log(event="request", handler="greedy")) == 50, 10)


def test_the_idle_limit_races_requests(make_host, fastcgi_program):
    """A request every 0.95 to 1.05 s, as the last worker is about to go."""
    host = make_host({"w": worker(fastcgi_program, workers={"min": 0, "max": 2, "idle_timeout": "1s"})})
    deadline, i = time.monotonic() + RACE_SECONDS, 0
    pids = set()
    while time.monotonic() < deadline:
        answers = [host.request("/w", "POST", b"x")]
        assert answers[0].status == 200, f"request {i}: {answers}"
        pids.add(pid_of(answers[0]))
        time.sleep(0.95 + 0.1 * (i * 7 % 20) / 20)      # the race needs this very pause
        i += 1
    assert len(pids) > 1, "some of them were the first after the end of a worker"


def test_a_reload_in_the_middle_of_everything(make_host, fastcgi_program):
    """Crashing, hanging, waiting and good requests, a reload each time: the good ones do not notice."""
    def handlers(version):
        return {"w": versioned(fastcgi_program, version, workers={"max": 2}), "same": versioned(fastcgi_program, 0),
                "bad": versioned(fastcgi_program, version, workers={"max": 2}, timeout={"response": "300ms", "kill": "300ms"})}
    host = make_host({**handlers(0), "hello": says("hi")})
    host.top = {}
    stop, bad = threading.Event(), []

    def good(path, expected):
        while not stop.is_set():
            answer = host.request(path, "POST", b"abc")
            if (answer.status, answer.text) != (200, expected):
                bad.append((path, answer))

    def evil(path):
        while not stop.is_set():
            host.request(path)
    threads = [threading.Thread(target=good, args=("/w?count", "3\n")), threading.Thread(target=good, args=("/same?echo", "abc")),
               *(threading.Thread(target=evil, args=(p,)) for p in ("/bad?raise=9", "/bad?sleep=5000", "/bad?partial=5&exit=1"))]
    for thread in threads:
        thread.start()
    try:
        for version in range(1, 21):
            rewrite(host, {**handlers(version), "hello": {"command": ["handlers/hello"]}})
            reload(host)
            assert host.request("/hello").text == "hi\n"
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not bad, bad[:5]
    wait_until(lambda: len(all_workers(host, fastcgi_program)) <= 8, 10)
    assert not proc.zombies(host.process.pid)
