"""
parked and zygote, from the host's side: how many wait, how they are replaced, what the log says, what happens when
they are not to be had.  What a script sees of it: test_waiting_languages.py.
"""
import errno
import os
import re
import shutil
import signal
import subprocess
import threading

import pytest

from lib import proc, wire
from lib.handlers import python
from lib.spares import status_of, wait_ready, waiting, zygotes
from lib.wait import wait_until

START = {"parked": "parked", "zygote": "forked"}
each_way = pytest.mark.parametrize("way", START)

PID = "printf 'Content-Type: text/plain\\n\\n%s' $$\n"


def starts(host, count, **want):
    """How the requests so far got their processes."""
    return [e.get("start", "cold") for e in (host.wait_log(event="request", count=count, **want) if count > 1 else
                                 [host.wait_log(event="request", **want)])]


def compile_c(folder, name, text, *options):
    (folder / f"{name}.c").write_text(text)
    program = folder / name
    subprocess.run(["cc", "-O1", "-Wall", "-o", str(program), str(folder / f"{name}.c"), *options], check=True)
    program.chmod(0o755)
    return program


# --- those that wait

@each_way
def test_as_many_wait_as_the_file_says_and_each_serves_one_request(make_host, way):
    host = make_host({"h": {"script": PID, "process": way, "workers": {"spare": 3}}})
    served = []
    for _ in range(4):
        before = wait_ready(host, "h", 3)
        assert len(before) == 3
        pid = int(host.request("/h").text)
        assert pid in before
        served.append(pid)
    assert len(set(served)) == 4
    assert starts(host, 4) == [START[way]] * 4
    wait_until(lambda: status_of(host, "h")["ended"]["waited"] == 4, 10, "the accounts of all four")
    assert status_of(host, "h")["starts"] == {"cold": 0, "parked": 0, "forked": 0, START[way]: 4}


@each_way
def test_start_and_request_are_accounted_apart(make_host, way):
    burn = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done\n"
    host = make_host({"h": {"script": burn + PID, "process": way}, "cold": {"script": burn + PID}})
    wait_ready(host, "h")
    host.request("/h")
    host.request("/cold")
    cold, line = host.wait_log(event="request", handler="cold"), host.wait_log(event="request", handler="h")
    assert not {"start", "start_cpu_ms", "start_faults"} & set(cold)
    assert line["start"] == START[way]
    assert line["start_cpu_ms"] > 0 and line["start_faults"] > 0 and line["cpu_ms"] > 0
    assert line["faults"] < cold["faults"]
    ended = wait_until(lambda: status_of(host, "h")["ended"]["waited"] == 1 and status_of(host, "h")["ended"], 10)
    assert ended["cpu_ms"] == pytest.approx(line["cpu_ms"], abs=0.01)
    assert ended["start_cpu_ms"] == pytest.approx(line["start_cpu_ms"], abs=0.01)
    assert (ended["faults"], ended["start_faults"]) == (line["faults"], line["start_faults"])


GATE = """
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void wait_at_gate(void)
{
	if (getenv("FCGI_HOST_PARK") || getenv("FCGI_HOST_ZYGOTE"))
		while (access(getenv("GATE"), F_OK) != 0)
			usleep(1000);
}
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="who is not root cannot raise the priority again")
@each_way
def test_it_starts_behind_those_that_work_and_has_its_priority_when_it_waits(make_host, folder, way):
    gate = compile_c(folder, "gate.so", GATE, "-shared", "-fPIC")
    host = make_host({"h": {"script": "exec nice\n".replace("exec", "printf 'Content-Type: text/plain\\n\\n'; exec"), "process": way,
                            "env": {"LD_PRELOAD": str(gate), "GATE": str(folder / "open")}}})

    def nice(pid):
        return int(proc._read(pid, "stat").rpartition(b")")[2].split()[16])
    own = os.nice(0)
    pid, = wait_until(lambda: host.children(waiting=True), 10)
    assert nice(pid) == min(own + 10, 19)
    (folder / "open").touch()
    pid, = wait_ready(host, "h")
    assert nice(pid) == own
    assert host.request("/h").text == f"{own}\n"


@each_way
def test_who_waits_sees_nothing_of_it(make_host, way):
    script = python("""
out.write(b'Content-Type: text/plain\\n\\n')
for place in (dict(os.environb), dict(e.split(b'=', 1) for e in open('/proc/self/environ', 'rb').read().split(b'\\0') if e)):
    for name, value in sorted(place.items()):
        if name != b'REQUEST_ID':
            out.write(name + b'=' + value + b'\\n')
print(sorted(os.listdir('/proc/self/fd'), key=int), sys.argv, os.getcwd(), os.getpgrp() == os.getpid(), os.getsid(0) == os.getpid())
import signal
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), [s.name for s in signal.Signals if signal.getsignal(s) == signal.SIG_IGN])
""")
    host = make_host({"h": {"script": script, "process": way}, "cold": script},
                     routes=[{"path": "/h", "handler": "h"}, {"path": "/cold", "handler": "cold"}])
    wait_ready(host, "h")
    cold, other = host.request("/cold").text, host.request("/h").text
    assert starts(host, 2) == ["cold", START[way]]
    assert other == cold.replace("/cold", "/h").replace("handlers/cold", "handlers/h")
    assert "['0', '1', '2'" in other and "LD_PRELOAD" not in other and "FCGI_HOST_PARK" not in other


@pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root")
@each_way
def test_user_directory_and_limits_are_those_of_a_cold_start(make_host, way):
    script = "printf 'Content-Type: text/plain\\n\\n'; id; pwd; ulimit -a; ulimit -Ha; umask\n"
    keys = {"script": script, "user": "nobody", "directory": "/usr",
            "limits": {"memory": "64MiB", "cpu": "3s", "files": 20, "processes": 100}}
    host = make_host({"h": {**keys, "process": way}, "cold": keys})
    wait_ready(host, "h")
    cold, other = host.request("/cold").text, host.request("/h").text
    assert starts(host, 2) == ["cold", START[way]]
    assert "(nobody)" in cold and "/usr" in cold
    assert other == cold


def test_what_a_zygote_forks_counts_against_no_request(make_host):
    host = make_host({"h": {"script": PID, "process": "zygote", "limits": {"cpu": "1s"}}})
    wait_ready(host, "h")
    zygote, = zygotes(host, "h")
    limits = re.search(r"Max cpu time +(\S+)", proc._read(zygote, "limits").decode()).group(1)
    own = re.search(r"Max cpu time +(\S+)", proc._read(os.getpid(), "limits").decode()).group(1)
    assert limits == own


# --- the end of an answer

ENDS = {
    "declared length": "printf 'Content-Type: text/plain\\nContent-Length: 5\\n\\nhello'",
    "closed stdout": "printf 'Content-Type: text/plain\\n\\nhello'; exec >&-",
}


@each_way
@pytest.mark.parametrize("end", ENDS)
def test_an_answer_does_not_wait_for_the_end_of_its_process(make_host, way, end):
    host = make_host({"h": {"script": ENDS[end] + "\nwhile [ ! -e \"$SCRATCH/go\" ]; do sleep 0.02; done\n", "process": way}})
    wait_ready(host, "h")
    answer = host.request("/h")
    assert (answer.text, answer.complete) == ("hello", True)
    assert host.children(), "the process is still there"
    wait_ready(host, "h")               # the next one does not wait for it either
    (host.scratch / "go").touch()
    line = host.wait_log(event="request")
    assert (line["start"], line["exit"]) == (START[way], 0)


# --- when there are not enough

@each_way
def test_more_requests_than_wait_get_their_processes_all_the_same(make_host, way):
    wait_here = "echo > \"$SCRATCH/$$\"; while [ ! -e \"$SCRATCH/go\" ]; do sleep 0.02; done\n"
    host = make_host({"h": {"script": wait_here + PID, "process": way, "workers": {"spare": 1, "max": 6}}})
    wait_ready(host, "h")
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(host.request("/h"))) for _ in range(6)]
    for t in threads:
        t.start()
    wait_until(lambda: len(list(host.scratch.iterdir())) == 6, 20, "six processes at work")
    (host.scratch / "go").touch()
    for t in threads:
        t.join()
    assert [a.status for a in answers] == [200] * 6 and len({a.text for a in answers}) == 6
    how = starts(host, 6)
    assert START[way] in how and set(how) <= {START[way], "cold"}


def test_what_was_forked_for_a_rush_is_ended_after_it(make_host):
    """Those for whom they were forked had got other processes by then."""
    host = make_host({"h": {"script": "[ -e \"$SCRATCH/go\" ] || sleep 0.3\n" + PID, "process": "zygote"}})
    wait_ready(host, "h")
    zygote, = zygotes(host, "h")
    os.kill(zygote, signal.SIGSTOP)
    threads = [threading.Thread(target=host.request, args=("/h",)) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert starts(host, 6).count("cold") == 5
    before = status_of(host, "h")["processes"]["starting"]
    assert before > 1
    os.kill(zygote, signal.SIGCONT)
    wait_until(lambda: status_of(host, "h")["processes"]["starting"] == 0, 10, "the end of all starts")
    wait_until(lambda: len(waiting(host, "h")) == 1 and len(host.children(waiting=True)) == 2, 10, "the zygote and one that waits")


@each_way
def test_one_that_is_killed_while_it_waits_costs_no_request(make_host, way):
    host = make_host({"h": {"script": PID, "process": way}})
    for _ in range(5):
        pid = wait_ready(host, "h")[0]
        os.kill(pid, signal.SIGKILL)
        answer = host.request("/h")
        assert answer.status == 200 and int(answer.text) != pid
    wait_ready(host, "h")
    assert host.request("/h").status == 200


def test_a_zygote_that_crashes_is_per_request_until_there_is_another(make_host):
    host = make_host({"h": {"script": PID, "process": "zygote"}})
    wait_ready(host, "h")
    first, = zygotes(host, "h")
    os.kill(first, signal.SIGSEGV)
    line = host.wait_log(event="spare_pause")
    assert f"pid {first} was the zygote and ended" in line["msg"]
    answers = [host.request("/h") for _ in range(3)]
    assert [a.status for a in answers] == [200] * 3
    assert not [e for e in host.log(event="request") if e["status"] != 200]
    wait_until(lambda: zygotes(host, "h") not in ([], [first]), 20, "another zygote")
    wait_ready(host, "h")
    host.request("/h")
    assert starts(host, 4)[-1] == "forked"


def test_a_zygote_is_renewed_after_so_many_forks(make_host):
    host = make_host({"h": {"script": PID, "process": "zygote", "workers": {"max_requests": 3}}})
    wait_ready(host, "h")
    first, = zygotes(host, "h")
    for _ in range(8):
        wait_ready(host, "h")
        assert host.request("/h").status == 200
    wait_until(lambda: first not in zygotes(host, "h"), 10, "the end of the first")
    assert starts(host, 8) == ["forked"] * 8


@each_way
def test_those_that_wait_are_renewed_when_they_are_old(make_host, way):
    host = make_host({"h": {"script": PID, "process": way, "workers": {"max_age": "300ms"}}})
    before = wait_ready(host, "h")
    wait_until(lambda: (now := waiting(host, "h")) and not set(now) & set(before), 20, "younger ones")
    host.request("/h")
    assert host.wait_log(event="request")["start"] == START[way]


# --- who cannot wait

def refusal(host):
    result = host.command("check", "-c", str(host.config))
    assert result.returncode == 1
    return result.stderr.decode() + result.stdout.decode()


@each_way
def test_a_static_program_is_refused_at_load(make_host, folder, way):
    program = compile_c(folder, "static", "int main(void) { return 0; }\n", "-static")
    host = make_host({"h": {"command": [str(program)], "process": way}}, start=False)
    assert f"cannot be process: {way}: {program} is linked statically" in refusal(host)


@each_way
def test_a_setuid_program_is_refused_at_load(make_host, folder, way):
    program = compile_c(folder, "setuid", "int main(void) { return 0; }\n")
    program.chmod(0o4755)
    host = make_host({"h": {"command": [str(program)], "process": way}}, start=False)
    assert f"cannot be process: {way}: {program} is setuid" in refusal(host)


def test_a_runtime_with_threads_is_refused_as_a_zygote_at_load(make_host):
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node here")
    host = make_host({"h": {"script": f"#!{node}\n", "process": "zygote"}}, start=False)
    text = refusal(host)
    assert "cannot be process: zygote" in text and "threads" in text and "'parked' is its fast way" in text


THREAD = """
#include <pthread.h>
#include <unistd.h>
static void *run(void *ctx) { for (;;) pause(); return ctx; }
__attribute__((constructor)) static void start(void) { pthread_t t; pthread_create(&t, NULL, run, NULL); }
"""


def test_a_program_that_has_threads_before_its_main_is_not_forked(make_host, folder):
    library = compile_c(folder, "thread.so", THREAD, "-shared", "-fPIC", "-lpthread")
    host = make_host({"h": {"script": "#!/usr/bin/python3 -IS\nprint('Content-Type: text/plain\\n\\nhello')\n", "process": "zygote",
                            "env": {"LD_PRELOAD": str(library)}}})
    line = host.wait_log(event="spare")
    assert "handler h: cannot be process: zygote: more than one thread" in line["msg"] and "every request gets a process" in line["msg"]
    answers = [host.request("/h") for _ in range(3)]
    assert [a.text for a in answers] == ["hello\n"] * 3
    assert starts(host, 3) == ["cold"] * 3
    assert len(host.log(event="spare")) == 1, "it is said once"


@each_way
def test_a_program_that_does_not_wait_is_per_request(make_host, way):
    """Its library is taken away before it is there."""
    script = "#!/usr/bin/env -i /bin/sh\nprintf 'Content-Type: text/plain\\n\\nhello'\n"
    host = make_host({"h": {"script": script.replace("env -i", "env -S -i"), "process": way}})
    wait_until(lambda: host.log(event="spare") or host.log(event="spare_pause"), 10)
    assert [host.request("/h").text for _ in range(3)] == ["hello"] * 3
    assert starts(host, 3) == ["cold"] * 3


# --- a changed program

def overwrite(path, text):
    """In one write of the same length, so that it is never half a script."""
    try:
        with open(path, "r+") as f:
            f.write(text)
    except OSError as e:
        assert e.errno == errno.ETXTBSY         # it is being executed at this moment
        return False
    return True


@each_way
@pytest.mark.parametrize("how", ["rename", "overwrite"])
@pytest.mark.parametrize("kind", ["sh", "python"])
def test_no_request_that_comes_later_gets_the_old_text(make_host, way, how, kind):
    def text(version):
        if kind == "sh":
            return f"#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n{version:06}'\n"
        return f"#!/usr/bin/python3\nprint('Content-Type: text/plain\\n\\n{version:06}', end='')\n"
    host = make_host({"h": {"script": text(0), "process": way, "workers": {"spare": 2, "max": 16}}})
    wait_ready(host, "h")
    path, new = host.folder / "handlers" / "h", host.folder / "handlers" / "new"
    current, late, bad, stop = [0], [], [], threading.Event()

    def ask():
        while not stop.is_set():
            least = current[0]
            answer = host.request("/h")
            if answer.status != 200 or not answer.text.isdigit():
                bad.append((answer.status, answer.text))
            elif int(answer.text) < least:
                late.append((least, answer.text))
    threads = [threading.Thread(target=ask) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        for version in range(1, 31):
            if how == "rename":
                new.write_text(text(version))
                new.chmod(0o755)
                os.rename(new, path)
            else:
                wait_until(lambda: overwrite(path, text(version)), 10)
            current[0] = version
            seen = len(host.log_lines())
            wait_until(lambda: len(host.log_lines()) > seen + 3, 20)
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert not late, f"old text: {late}"
    # A kernel does not execute what is open for writing: that is so for every process.
    assert how == "overwrite" or not bad, f"failed: {bad}"
    assert all(status == 502 for status, _ in bad), f"failed: {bad}"
    wait_ready(host, "h")
    assert host.request("/h").text == "000030"
    assert START[way] in starts(host, 3)


@each_way
def test_a_compiled_program_that_was_replaced_is_not_served_any_more(make_host, folder, way):
    source = '#include <stdio.h>\nint main(void) {{ printf("Content-Type: text/plain\\n\\n{}"); return 0; }}\n'
    program = compile_c(folder, "one", source.format("one"))
    other = compile_c(folder, "two", source.format("two"))
    host = make_host({"h": {"command": [str(program)], "process": way}})
    wait_ready(host, "h")
    assert host.request("/h").text == "one"
    wait_ready(host, "h")
    os.rename(other, program)
    assert host.request("/h").text == "two"
    wait_ready(host, "h")
    assert host.request("/h").text == "two"
    assert starts(host, 3)[-1] == START[way]


# --- reload and the end

@each_way
def test_a_reload_replaces_those_of_a_handler_that_changed_and_keeps_the_others(make_host, way):
    show = "printf 'Content-Type: text/plain\\n\\n%s' \"$WORD\"\n"
    host = make_host({}, start=False)
    keys = {"command": [str(host.script("show", show))], "process": way}
    handlers = {"a": {**keys, "env": {"WORD": "old"}}, "b": {**keys, "env": {"WORD": "same"}}}
    host.write(handlers)
    host.start()
    before_a, before_b = wait_ready(host, "a"), wait_ready(host, "b")
    handlers["a"]["env"] = {"WORD": "new"}
    host.write(handlers)
    assert host.command("reload", "-c", str(host.config)).returncode == 0
    wait_until(lambda: set(before_a).isdisjoint(proc.pids()), 10, "the end of those with the old variables")
    wait_ready(host, "a")
    assert waiting(host, "b") == before_b
    assert (host.request("/a").text, host.request("/b").text) == ("new", "same")
    assert starts(host, 2) == [START[way]] * 2


@each_way
def test_a_stop_ends_those_that_wait(make_host, way):
    host = make_host({"h": {"script": PID, "process": way, "workers": {"spare": 4}}})
    wait_ready(host, "h", 4)
    assert len(host.children(waiting=True)) == 4 + (way == "zygote")
    assert host.stop() == 0
    assert not host.children(waiting=True)


@each_way
def test_a_host_that_is_killed_takes_those_that_wait_with_it(make_host, way):
    host = make_host({"h": {"script": "echo > \"$SCRATCH/on\"; sleep 300", "process": way, "workers": {"spare": 3}}})
    wait_ready(host, "h", 3)
    with host.connect() as conn:
        conn.start(wire.variables("/h"))
        conn.send(wire.record(wire.STDIN))
        wait_until((host.scratch / "on").exists, 10)
        host.kill()
    wait_until(lambda: not host.children() and not host.children(waiting=True), 5, "the end of all of them")


@each_way
def test_spawners_that_are_killed_take_those_that_wait_with_them(make_host, way):
    host = make_host({"h": {"script": PID, "process": way, "workers": {"spare": 3}}})
    wait_ready(host, "h", 3)
    host.expect_exit = None
    host.was_killed = True
    for pid in host.host_pids():
        if pid != host.relay:
            proc.kill_quietly(pid)
    wait_until(lambda: not host.children(waiting=True), 5, "the end of all of them")


# --- accounts

@each_way
def test_those_that_wait_make_room_for_requests_of_others(make_host, way):
    host = make_host({"a": {"script": PID, "process": way, "workers": {"spare": 4}}, "b": PID}, max_processes=4)
    wait_until(lambda: len(host.children(waiting=True)) == 4, 10, "all that there may be")
    assert host.request("/b").status == 200
    assert host.request("/a").status == 200
    assert len(host.children(waiting=True)) <= 4


@each_way
def test_variables_that_a_hand_over_cannot_take_mean_a_cold_start(make_host, way):
    host = make_host({"h": {"script": "printf 'Content-Type: text/plain\\n\\n%s' ${#HTTP_A}${#HTTP_C}", "process": way}},
                     params={"max": "512KiB"})
    wait_ready(host, "h")
    many = {f"HTTP_{n}": "x" * 60_000 for n in "ABC"}
    assert host.request("/h", extra=many).text == "6000060000"
    one = {"HTTP_A": "x" * 140_000}
    wait_ready(host, "h")
    assert host.request("/h", extra=one).status == 431
    wait_ready(host, "h")
    assert host.request("/h").text == "00"
    assert starts(host, 3)[-1] == START[way]
