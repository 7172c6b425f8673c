"""What the client gets, and what the log says, when things go wrong."""
import os
import signal
import time

import pytest

from lib import proc, wire
from lib.handlers import HELLO, faulty, python, worker, writes
from lib.wait import wait_until
from test_persistent_workers import in_parallel

EVERY_PROCESS = True

BROKEN_FRONTS = ["wire", "nginx-kept", "nginx-streaming", "nginx-plain", "nginx-plain-streaming", "mod_proxy_fcgi", "mod_fcgid"]


def is_whole(answer, status):
    return answer.status == status and answer.complete and len(answer.body) > 0


def reason(host, **want):
    entry = host.wait_log(event="request", **want)
    assert entry["reason"], entry
    return entry


# --- the program cannot be started

@pytest.mark.parametrize("what", ["missing", "not executable", "bad interpreter", "no shebang", "a folder"])
def test_a_program_that_cannot_run_is_502(make_host, front, what):
    host = make_host({"h": HELLO, "good": HELLO}, start=False)
    program = host.folder / "handlers" / "h"
    if what == "missing":
        program.unlink()
    elif what == "not executable":
        program.chmod(0o644)
    elif what == "bad interpreter":
        program.write_text("#!/no/such/interpreter\n")
    elif what == "no shebang":
        program.write_text("echo no shebang\n")
    else:
        program.unlink()
        program.mkdir()
    host.start()
    client = front(host)
    answer = client.get("/h")
    assert is_whole(answer, 502)
    assert str(host.folder) not in answer.text, "a client learns no path"
    reason(host, handler="h", status=502)
    text = " ".join(line for line in host.log_lines() if str(program) in line)
    assert text, "the path is in the log"
    words = {"missing": "No such file", "not executable": "ermission", "bad interpreter": "/no/such/interpreter", "no shebang": "xec format", "a folder": "ermission"}
    assert words[what] in text or (what == "a folder" and "irectory" in text) or (what == "no shebang" and "#!" in text), text
    assert client.get("/good").text == "hello\n"


def test_a_missing_program_is_a_warning_at_load_and_served_once_it_is_there(make_host):
    host = make_host({"h": HELLO}, start=False)
    text = (host.folder / "handlers/h").read_text()
    (host.folder / "handlers/h").unlink()
    checked = host.command("check", "-c", str(host.config))
    assert checked.returncode == 0 and b"handlers/h" in checked.stderr + checked.stdout
    host.start()
    assert host.request("/h").status == 502
    host.script("h", text)
    assert host.request("/h").text == "hello\n"


# --- no answer to speak of

@pytest.mark.parametrize("written", [b"", b"no header at all\n", b"Content-Type: text/plain\n", b"\n\n\n", b"\xff\xfe\x00\x01" * 100],
                         ids=["nothing", "no header", "unended", "blank lines", "binary"])
def test_no_proper_header_is_502(make_host, front, written):
    host = make_host({"h": writes(written)})
    assert is_whole(front(host).get("/h"), 502)
    entry = reason(host, handler="h")
    assert entry["status"] == 502
    assert entry["exit"] is not None or entry["signal"] is not None, "exit status or signal"
    if written.startswith(b"no header"):
        assert any("no header at all" in line for line in host.log_lines()), "the first bytes, escaped"


def test_an_exit_before_any_output_is_502_with_the_status(make_host, front):
    host = make_host({"h": "echo oops >&2; exit 3"})
    assert is_whole(front(host).get("/h"), 502)
    assert reason(host, handler="h")["exit"] == 3
    host.wait_log(event="stderr")


def test_a_death_by_signal_before_any_output_is_502_with_the_signal(make_host, front):
    host = make_host({"h": "kill -SEGV $$"})
    assert is_whole(front(host).get("/h"), 502)
    entry = reason(host, handler="h")
    assert "SEGV" in str(entry["signal"]) or str(entry["signal"]) == "11"


# --- time limits

def test_timeout_response_is_504(make_host, front):
    host = make_host({"h": "sleep 60 & wait"}, defaults={"timeout": {"response": "500ms", "kill": "500ms"}})
    answer = front(host).get("/h")
    assert is_whole(answer, 504)
    assert answer.elapsed < 8
    entry = reason(host, handler="h", status=504)
    assert "response" in entry["reason"]
    wait_until(lambda: not host.children(), 5, "the end of the whole group")


def test_timeout_response_counts_from_the_end_of_the_body(make_host):
    host = make_host({"h": "wc -c > /dev/null; " + HELLO}, defaults={"timeout": {"response": "1s", "idle": "5s"}})
    with host.connect() as conn:
        conn.start(wire.variables("/h", "POST", bytes(3000)))
        for _ in range(3):
            conn.send(wire.stream(wire.STDIN, bytes(1000), end=False))
            time.sleep(0.6)         # longer in all than the limit
        conn.send(wire.record(wire.STDIN))
        assert conn.answer().text == "hello\n"


def test_timeout_idle_holds_while_a_body_comes_in(make_host):
    host = make_host({"h": "wc -c > /dev/null; " + HELLO}, defaults={"timeout": {"response": "30s", "idle": "500ms", "kill": "500ms"}})
    with host.connect() as conn:
        conn.start(wire.variables("/h", "POST", bytes(3000)))
        conn.send(wire.stream(wire.STDIN, bytes(1000), end=False))
        answer = conn.answer()
    assert not answer.complete or answer.status in (408, 504, 400)
    assert "idle" in reason(host, handler="h")["reason"]
    wait_until(lambda: not host.children(), 5)


@pytest.mark.per_request
def test_timeout_response_of_a_worker_is_504_and_another_takes_over(make_host, front):
    host = make_host({"w": faulty("hangs", timeout={"response": "500ms", "kill": "300ms"})})
    client = front(host)
    assert is_whole(client.get("/w"), 504)
    (host.scratch / "repaired").write_text("")
    assert client.get("/w").status == 200
    assert (host.scratch / "attempts").read_text().split("\n")[0].endswith("GET")
    assert len(set((host.scratch / "starts").read_text().split())) == 2, "the worker that hung is replaced"


@pytest.mark.per_request
def test_timeout_start_is_504(make_host):
    host = make_host({"w": faulty("never-accepts", timeout={"start": "700ms", "response": "700ms", "kill": "300ms"})})
    answer = host.request("/w")
    assert answer.status in (503, 504) and answer.complete
    reason(host, handler="w")


STALLS = "printf 'Content-Type: text/plain\\n\\nsome of it\\n'; exec sleep 60"
DRIPS = "printf 'Content-Type: text/plain\\n\\n'; while :; do echo drip; sleep 0.05; done"


def broken(make_host, make_front, name, handler, limits=None, path="/h"):
    """The transfer is seen as broken by a client: never as a whole answer."""
    host = make_host({"h": handler}, defaults={"timeout": {"kill": "300ms", **(limits or {})}})
    client = make_front(name, host)
    if client.is_wire:
        answer = client.get(path)
        assert answer.status in (200, 502, 504)
        assert answer.status != 200 or not answer.complete, answer
    else:
        done = client.curl(path)
        if name == "mod_fcgid" and done.code == 0 and done.status == 200:
            # It cannot break off: where no Content-Length was declared it puts its own error page behind what was sent.
            assert b"500 Internal Server Error" in done.body, f"it looks whole: {done}"
        else:
            assert done.code != 0 or done.status >= 500, f"curl took it for whole: {done}"
    wait_until(lambda: not host.children() or host.has_workers, 10, "the end of the handler")
    return host, client


@pytest.mark.parametrize("name", BROKEN_FRONTS)
def test_timeout_idle_in_the_body_is_a_broken_transfer(make_host, make_front, name):
    host, _ = broken(make_host, make_front, name, STALLS, {"idle": "500ms"})
    entry = reason(host, handler="h")
    assert "idle" in entry["reason"] and entry["bytes_out"] >= 11


@pytest.mark.parametrize("name", BROKEN_FRONTS)
def test_timeout_total_in_the_body_is_a_broken_transfer(make_host, make_front, name):
    host, _ = broken(make_host, make_front, name, DRIPS, {"total": "800ms"})
    assert "total" in reason(host, handler="h")["reason"]


@pytest.mark.parametrize("name", BROKEN_FRONTS)
@pytest.mark.parametrize("size", [20, 500_000], ids=["short", "long"])
def test_death_by_signal_in_a_body_without_length_is_a_broken_transfer(make_host, make_front, name, size):
    host, _ = broken(make_host, make_front, name, python(
        f"import signal\nout.write(b'Content-Type: text/plain\\n\\n')\nfor i in range({size} // 20): out.write(b'x' * 20)\ntime.sleep(0.1)\nos.kill(os.getpid(), signal.SIGKILL)"))
    assert str(reason(host, handler="h")["signal"]) in ("9", "KILL", "SIGKILL")


@pytest.mark.parametrize("name", BROKEN_FRONTS)
def test_less_body_than_content_length_is_a_broken_transfer(make_host, make_front, name):
    host, client = broken(make_host, make_front, name, writes(b"Content-Type: text/plain\nContent-Length: 1000\n\nonly this"))
    reason(host, handler="h")


@pytest.mark.parametrize("name", BROKEN_FRONTS)
@pytest.mark.parametrize("fault", ["dies-in-body", "hangs-in-body"])
@pytest.mark.per_request
def test_a_worker_that_fails_in_the_body_is_a_broken_transfer(make_host, make_front, name, fault):
    host, client = broken(make_host, make_front, name, faulty(fault, timeout={"idle": "500ms", "kill": "300ms"}))
    entry = reason(host, handler="h")
    if fault == "dies-in-body":
        assert str(entry["exit"]) == "7" or "7" in entry["reason"]
    (host.scratch / "repaired").write_text("")
    assert client.get("/h").status == 200


@pytest.mark.parametrize("name", ["nginx-kept", "nginx-streaming", "mod_proxy_fcgi", "mod_fcgid"])
def test_after_a_broken_transfer_the_next_request_is_fine(make_host, make_front, name):
    host = make_host({"h": STALLS, "hello": HELLO}, defaults={"timeout": {"idle": "300ms", "kill": "300ms"}})
    client = make_front(name, host)
    for _ in range(2):
        assert client.curl("/h").code != 0 or client.name == "mod_fcgid"
        answer = client.get("/hello")
        assert (answer.status, answer.text, answer.complete) == (200, "hello\n", True)


def test_mod_fcgid_makes_a_clean_500_of_a_small_answer_that_dies(make_host, make_front):
    """What its output buffer still holds is thrown away; with FcgidOutputBufferSize 0 it would be a 200 with an error page at its end."""
    host = make_host({"h": "printf 'Content-Type: text/plain\\n\\nsome of it\\n'; kill -KILL $$"})
    done = make_front("mod_fcgid", host).curl("/h")
    assert done.status == 500 and b"some of it" not in done.body, done


def test_a_bad_exit_after_a_whole_answer_is_a_whole_answer(make_host, front):
    host = make_host({"h": "printf 'Content-Type: text/plain\\n\\nwhole'; exit 5",
                      "l": "printf 'Content-Type: text/plain\\nContent-Length: 5\\n\\nwhole'; kill -KILL $$"})
    client = front(host)
    for path in ("/h", "/l"):
        answer = client.get(path)
        assert (answer.status, answer.text, answer.complete) == (200, "whole", True)
    assert host.wait_log(event="request", handler="h")["exit"] == 5
    assert str(host.wait_log(event="request", handler="l")["signal"]) in ("9", "KILL", "SIGKILL")
    app, protocol = host.request("/h").end
    assert (app, protocol) == (5, wire.COMPLETE)


# --- the connection to a worker, and its death

def attempts(host):
    path = host.scratch / "attempts"
    return path.read_text().split("\n")[:-1] if path.exists() else []


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
@pytest.mark.per_request
def test_a_worker_that_dies_before_its_first_byte_is_tried_once_more(make_host, method):
    host = make_host({"w": faulty("dies-once", workers={"max": 2})})
    answer = host.request("/w", method)
    assert (answer.status, answer.complete) == (200, True)
    assert len(attempts(host)) == 2
    pids = {a.split()[0] for a in attempts(host)}
    host.wait_log(event="request", handler="w")
    text = host.log_text()
    assert all(pid in text for pid in pids), "both pids are in the log"


@pytest.mark.per_request
def test_tried_once_more_and_not_for_ever(make_host):
    host = make_host({"w": faulty("dies-before-answer", workers={"max": 2})})
    assert is_whole(host.request("/w"), 502)
    assert len(attempts(host)) == 2


@pytest.mark.parametrize("method, body", [("POST", b"x"), ("POST", b""), ("PUT", b"x"), ("DELETE", None), ("GET", b"with a body")])
@pytest.mark.per_request
def test_a_request_that_may_have_begun_is_never_run_twice(make_host, front, method, body):
    host = make_host({"w": faulty("dies-once", workers={"max": 2})})
    answer = front(host).request("/w", method, body)
    assert is_whole(answer, 502)
    assert len(attempts(host)) == 1
    entry = reason(host, handler="w")
    assert str(entry["signal"]) in ("9", "KILL", "SIGKILL") or "9" in entry["reason"] or "KILL" in entry["reason"]


@pytest.mark.per_request
def test_a_connection_that_fails_before_any_byte_was_taken_is_tried_once_more(make_host):
    """The worker is killed while it is idle: even a POST is not lost."""
    host = make_host({"w": faulty("", workers={"min": 1, "max": 1})})
    for _ in range(5):
        answer = host.request("/w", "POST", b"x")
        assert answer.status == 200
        pid = int(answer.text.split()[0][4:])
        proc.kill_quietly(pid)
        wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 5)
    assert len(attempts(host)) == 5


@pytest.mark.parametrize("fault", ["end-only", "no-header", "wrong-version", "garbage", "overloaded", "closes-before-answer"])
@pytest.mark.per_request
def test_a_worker_that_answers_nonsense_is_502_and_hurts_nobody_else(make_host, front, fault):
    host = make_host({"w": faulty(fault), "hello": HELLO})
    client = front(host)
    answer = client.post("/w", b"x")
    assert answer.complete and answer.status in ((502, 503) if fault == "overloaded" else (502,))
    assert answer.body
    reason(host, handler="w")
    assert client.get("/hello").text == "hello\n"
    (host.scratch / "repaired").write_text("")
    assert client.get("/w").status == 200


@pytest.mark.per_request
def test_a_worker_that_answers_under_another_id(make_host):
    host = make_host({"w": faulty("wrong-id")})
    answer = host.request("/w")
    assert answer.text == "fine" or is_whole(answer, 502)
    assert b"odd" not in answer.stdout


# --- a worker that keeps dying at start

@pytest.mark.per_request
def test_a_worker_that_keeps_dying_at_start(make_host, front):
    host = make_host({"w": faulty("exit-at-start", workers={"min": 1, "max": 4}), "hello": HELLO})
    client = front(host)
    deadline = time.monotonic() + 5
    statuses = []
    while time.monotonic() < deadline:
        answer = client.get("/w")
        statuses.append(answer.status)
        assert answer.complete and answer.status in (502, 503)
        if answer.status == 503:
            assert answer.get("Retry-After") is not None and answer.elapsed < 2
        assert client.get("/hello").text == "hello\n"
        time.sleep(0.05)
    assert 503 in statuses
    starts = len((host.scratch / "starts").read_text().split())
    assert starts <= 10, f"{starts} starts in five seconds"
    told = [e for e in host.log(handler="w") if e["event"] != "request"]
    assert len(told) < 20
    assert any("3" in line for line in host.log_lines() if "w" in line)


@pytest.mark.per_request
def test_refusals_while_a_pause_runs_are_immediate(make_host):
    host = make_host({"w": faulty("exit-at-start")})
    wait_until(lambda: host.request("/w").status == 503, 20, "the pause")
    elapsed = [a.elapsed for a in (host.request("/w") for _ in range(5)) if a.status == 503]
    assert elapsed and min(elapsed) < 0.5


@pytest.mark.per_request
def test_a_repaired_program_recovers_by_itself(make_host):
    host = make_host({"w": faulty("exit-at-start")})
    wait_until(lambda: host.request("/w").status == 503, 20, "the pause")
    (host.scratch / "repaired").write_text("")
    wait_until(lambda: host.request("/w").status == 200, 40, "recovery")


# --- processes and their groups

def test_ending_a_process_means_its_whole_group(make_host):
    host = make_host({"h": "trap '' TERM; sleep 300 & (trap '' TERM; sleep 301) & wait; sleep 302"},
                     defaults={"timeout": {"response": "300ms", "kill": "300ms"}})
    assert host.request("/h").status == 504
    wait_until(lambda: not host.children(), 5, "TERM, then KILL, to the whole group")
    assert "KILL" in host.log_text() or "kill" in host.log_text()


def test_a_child_in_the_background_does_not_hold_the_answer(make_host, front):
    host = make_host({"h": "sleep 300 & echo $! > \"$SCRATCH/child\"; printf 'Content-Type: text/plain\\n\\nwhole'"})
    answer = front(host).get("/h")
    assert (answer.status, answer.text, answer.complete) == (200, "whole", True)
    assert answer.elapsed < 5
    child = int((host.scratch / "child").read_text())
    host.wait_log(event="request", handler="h")
    assert proc.is_alive(child), "after an answer that ended by itself such a child lives on"
    os.kill(child, signal.SIGKILL)


def test_a_process_that_goes_on_after_its_answer_has_timeout_idle_for_it(make_host, front):
    """It holds a place; who needs longer leaves a child in the background, or sets timeout.idle."""
    script = "sleep 300 >/dev/null 2>&1 & printf 'Content-Type: text/plain\\n\\nwhole'; exec >&- 2>&-; [ \"$QUERY_STRING\" ] || exec sleep 301; sleep 0.4; echo > \"$SCRATCH/worked\""
    host = make_host({"h": {"script": script, "workers": {"max": 1}, "timeout": {"idle": "1500ms"}}})
    client = front(host)
    answers = [client.get("/h") for _ in range(2)]
    assert [(a.status, a.text, a.complete) for a in answers] == [(200, "whole", True)] * 2
    assert answers[0].elapsed < 1.4, "nobody waits for its end"
    entry = host.wait_log(event="request", handler="h")
    assert "timeout.idle" in entry["reason"] and entry["status"] == 200
    wait_until(lambda: not host.children(), 10, "the end of its group")
    assert client.get("/h?works").text == "whole"
    wait_until((host.scratch / "worked").exists, 10, "what it does within its time")
    for pid in host.children():
        proc.kill_quietly(pid)


def test_what_a_process_wrote_before_its_end_is_never_lost(make_host, front):
    """The pipe is drained after the process has ended."""
    host = make_host({"h": python("import fcntl\nfcntl.fcntl(1, 1031, 1 << 20)\nos.write(1, b'Content-Type: text/plain\\n\\n' + b'z' * 900000)\nif not os.fork(): time.sleep(30)")})
    answer = front(host).get("/h")
    assert (answer.status, len(answer.body), answer.complete) == (200, 900_000, True)
    for pid in host.children():
        proc.kill_quietly(pid)


def test_kill_of_one_handler_leaves_the_others_alone(make_host, fastcgi_program):
    host = make_host({"a": "echo $$ > \"$SCRATCH/pid\"; sleep 30", "w": worker(fastcgi_program)})
    with host.connect() as victim, host.connect() as other:
        victim.start(wire.variables("/a"))
        victim.send(wire.record(wire.STDIN))
        other.start(wire.variables("/w?sleep=800&body=3"))
        other.send(wire.record(wire.STDIN))
        wait_until(lambda: (host.scratch / "pid").exists() and (host.scratch / "pid").read_text().strip(), 10)
        os.kill(int((host.scratch / "pid").read_text()), signal.SIGKILL)
        assert is_whole(victim.answer(), 502)
        assert other.answer().body == b"xxx"


# --- shortage

def test_too_many_processes_is_503(make_host):
    """More than the kernel lets the handlers' user start."""
    import resource
    script = python("while not os.path.exists(os.environ['SCRATCH'] + '/go'): time.sleep(0.05)\nout.write(b'Content-Type: text/plain\\n\\nhello\\n')")
    host = make_host({"h": {"script": script, "user": "nobody", "workers": {"max": 100}}, "hello": HELLO}, start=False)
    soft = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (15, soft[1]))
    try:
        host.start()
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, soft)
    conns = [host.connect() for _ in range(40)]
    for conn in conns:
        conn.start(wire.variables("/h"))
        conn.send(wire.record(wire.STDIN))
    refused = host.wait_log(event="request", timeout=20)
    assert refused["status"] in (503, 502) and refused["reason"]
    (host.scratch / "go").write_text("")
    answers = [c.answer() for c in conns]
    assert all(a.complete for a in answers)
    assert {a.status for a in answers} <= {200, 503}, {e["reason"] for e in host.log(event="request") if e["status"] not in (200, 503)}
    for conn in conns:
        conn.close()
    assert host.request("/hello").text == "hello\n"


def test_failures_of_every_kind_leave_nothing_behind(make_host, fastcgi_program):
    host = make_host({
        "empty": "", "exit": "exit 3", "header": writes(b"nonsense\n"), "slow": "sleep 60", "hello": HELLO, "missing": {"command": ["handlers/missing"]},
        "signal": "kill -KILL $$", "stall": STALLS, "late": "printf 'Content-Type: text/plain\\nContent-Length: 10\\n\\nx'",
    }, defaults={"timeout": {"response": "200ms", "idle": "200ms", "kill": "200ms"}, "workers": {"max": 4}})
    names = ["empty", "exit", "header", "slow", "missing", "signal", "stall", "late", "nowhere"]
    for batch in range(5):
        in_parallel(len(names), lambda i: host.request("/" + names[i], "POST", b"x" * 1000))
    wait_until(lambda: not host.children(), 10)
    for _ in range(5):
        assert host.request("/hello").text == "hello\n"
