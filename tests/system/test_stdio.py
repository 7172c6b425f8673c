"""protocol: stdio: a function reads its input, writes its result, and its exit status says whether that is one."""
import json
import os
import signal

import pytest

from lib import proc, wire
from lib.handlers import env_of, pattern, python, sha
from lib.wait import wait_until


def function(script, **keys):
    return {"script": script, "protocol": "stdio", **keys}


def length_of(answer):
    """mod_proxy_fcgi of late takes no program's word for the length."""
    return answer.get("Content-Length") or str(len(answer.body))


def spools(host):
    """Unlinked files that the relay has open."""
    found = []
    for fd in proc.fds(host.relay) or ():
        try:
            path = os.readlink(f"/proc/{host.relay}/fd/{fd}")
        except OSError:
            continue
        if path.endswith("(deleted)") and "/memfd:" not in path:
            found.append(f"/proc/{host.relay}/fd/{fd}")
    return found


def test_the_output_is_the_body(make_host, front):
    host = make_host({"f": function("printf 'Status: 500\\n\\n<'; cat; printf '>'")})
    answer = front(host).post("/f", b"some input")
    assert (answer.status, answer.complete) == (200, True)
    assert answer.body == b"Status: 500\n\n<some input>"
    assert answer.get("Content-Type").split(";")[0] == "text/plain"
    assert length_of(answer) == str(len(answer.body))
    entry = host.wait_log(event="request")
    assert (entry["process"], entry["status"], entry["exit"], entry["bytes_out"]) == ("per-request", 200, 0, len(answer.body))


def test_no_output_is_an_empty_answer(make_host, front):
    host = make_host({"f": function("exit 0")})
    answer = front(host).get("/f")
    assert (answer.status, answer.body, answer.complete, length_of(answer)) == (200, b"", True, "0")


def test_the_content_type_is_configured(make_host, front):
    host = make_host({"f": function("echo '{}'", content_type="application/json; charset=utf-8"), "g": function("echo")},
                     defaults={"content_type": "text/html"})
    client = front(host)
    assert client.get("/f").get("Content-Type") == "application/json; charset=utf-8"
    assert client.get("/g").get("Content-Type") == "text/html"


@pytest.mark.parametrize("script, says", [("echo half; echo sorry >&2; exit 3", "exit status 3"), ("echo half; echo sorry >&2; kill -9 $$", "signal 9"),
                                          ("echo sorry >&2; exit 1", "exit status 1")])
def test_a_failure_is_502_and_nothing_of_the_output_is_sent(make_host, front, script, says):
    host = make_host({"f": function(script)})
    answer = front(host).post("/f", b"x" * 100)
    assert (answer.status, answer.complete) == (502, True)
    assert b"half" not in answer.body
    entry = host.wait_log(event="request")
    assert entry["status"] == 502 and says in entry["reason"]
    assert host.wait_log(event="stderr")["msg"] == "sorry"


def test_variables_are_those_of_cgi(make_host, front):
    script = "cat > /dev/null; env -0"
    host = make_host({"function": function(script), "program": "printf 'Content-Type: text/plain\\n\\n'; " + script},
                     routes=[{"path": "/function/{user}", "handler": "function"}, {"path": "/program/{user}", "handler": "program"}])
    client = front(host)
    headers = [("Content-Type", "application/json"), ("X-Colour", "blue")]
    seen = {}
    for name in ("function", "program"):
        env = env_of(client.post(f"/{name}/johnny?a=b", b"{}", headers=headers))
        for varies in ("REQUEST_ID", "REMOTE_PORT", "UNIQUE_ID", "REQUEST_TIME", "SERVER_PORT"):
            env.pop(varies, None)
        seen[name] = {n: v.replace(f"/{name}", "/it") for n, v in env.items()}
    assert seen["function"] == seen["program"]
    assert (seen["function"]["PARAM_USER"], seen["function"]["HTTP_X_COLOUR"], seen["function"]["CONTENT_TYPE"]) == ("johnny", "blue", "application/json")
    assert (seen["function"]["QUERY_STRING"], seen["function"]["CONTENT_LENGTH"], seen["function"]["REQUEST_METHOD"]) == ("a=b", "2", "POST")


def test_the_answer_waits_for_the_exit_not_for_the_end_of_the_output(make_host):
    """Its output closed, it may still fail."""
    host = make_host({"f": function("echo done; exec >&-; while [ ! -e $SCRATCH/go ]; do sleep 0.02; done; exit 4")})
    with host.connect() as conn:
        conn.start(wire.variables("/f"))
        conn.send(wire.record(wire.STDIN))
        assert conn.is_quiet(0.3)
        (host.scratch / "go").touch()
        assert conn.answer().status == 502
    assert "exit status 4" in host.wait_log(event="request")["reason"]


def test_a_child_left_behind_does_not_hold_the_answer(make_host):
    host = make_host({"f": function("sleep 30 & echo $!")})
    answer = host.request("/f")
    assert answer.status == 200 and answer.elapsed < 10
    pid = int(answer.text)
    assert proc.is_alive(pid), "what outlives an answer lives on"
    os.kill(pid, signal.SIGKILL)


def test_head_has_the_length_and_no_body(make_host, front):
    host = make_host({"f": function("head -c 200000 /dev/zero", hold="1KiB")})
    answer = front(host).request("/f", "HEAD")
    assert (answer.status, answer.body, answer.complete) == (200, b"", True)
    assert answer.get("Content-Length") == ("200000" if front.name != "mod_proxy_fcgi" else None)
    host = make_host({"f": function("echo x; exit 1")})
    assert front(host).request("/f", "HEAD").status == 502


@pytest.mark.parametrize("size", [65536, 65537, 3 << 20])
def test_a_large_answer_is_held_whole(make_host, front, size):
    """In memory, then in a file without a name."""
    script = python(f"import random; out.write(random.Random(1).randbytes({size}))")
    host = make_host({"f": function(script)})
    answer = front(host).get("/f")
    assert (answer.status, answer.complete, length_of(answer)) == (200, True, str(size))
    assert sha(answer.body) == sha(pattern(size))


@pytest.mark.parametrize("size", [3 << 20, 8 << 20])
def test_a_failure_after_much_output_is_502_too(make_host, front, size):
    host = make_host({"f": function(python(f"out.write(b'x' * {size})\nout.flush()\nsys.exit(7)"))})
    answer = front(host).get("/f")
    assert (answer.status, answer.complete) == (502, True) and len(answer.body) < 1000
    wait_until(lambda: not spools(host), 5, "the end of the spool")


def test_beyond_hold_it_is_sent_as_it_comes(make_host, front):
    size = 2 << 20
    host = make_host({"f": function(python(f"import random; out.write(random.Random(1).randbytes({size}))"), hold="256KiB")})
    answer = front(host).get("/f")
    assert (answer.status, answer.complete, answer.get("Content-Length")) == (200, True, None)
    assert sha(answer.body) == sha(pattern(size))


def test_with_hold_0_every_byte_is_sent_at_once(make_host):
    host = make_host({"f": function("echo one; while [ ! -e $SCRATCH/go ]; do sleep 0.02; done; echo two", hold="0")})
    with host.connect() as conn:
        conn.start(wire.variables("/f"))
        conn.send(wire.record(wire.STDIN))
        got = b""
        while b"one" not in got:
            got += conn.read().content
        (host.scratch / "go").touch()
        assert b"two" in conn.answer().stdout


@pytest.mark.parametrize("name", ["wire", "nginx-kept", "nginx-streaming", "mod_proxy_fcgi"])
@pytest.mark.parametrize("end", ["exit 3", "kill -9 $$"])
def test_a_failure_beyond_hold_breaks_the_transfer(make_host, make_front, name, end):
    host = make_host({"f": function(f"head -c 400000 /dev/zero; sleep 0.3; {end}", hold="64KiB")})
    answer = make_front(name, host).get("/f")
    assert answer.status == 200 and not answer.complete, answer
    assert "in the body" in host.wait_log(event="request")["reason"]


def test_the_input_may_be_ignored_refused_or_large(make_host, front):
    size = 3 << 20
    host = make_host({"ignores": function("echo ok"), "closes": function("exec <&-; sleep 0.1; echo ok"), "digests": function("sha256sum | cut -c-64"),
                      "echoes": function("exec cat")})
    client = front(host)
    data = pattern(size)
    for name in ("ignores", "closes"):
        answer = client.post(f"/{name}", data)
        assert (answer.status, answer.body) == (200, b"ok\n"), (name, answer)
    assert client.post("/digests", data).text.strip() == sha(data)
    answer = client.post("/echoes", data)
    assert answer.complete and sha(answer.body) == sha(data)


def test_an_echo_beyond_hold_while_the_input_still_comes(make_host, web):
    size = 3 << 20
    host = make_host({"echoes": function("exec cat", hold="100KiB")})
    data = pattern(size)
    answer = web(host).post("/echoes", data)
    assert answer.complete and answer.status == 200 and sha(answer.body) == sha(data)


@pytest.mark.parametrize("keys, script", [({"timeout": {"response": "300ms", "kill": "300ms"}}, "echo begun; exec sleep 30"),
                                          ({"timeout": {"total": "300ms", "kill": "300ms"}}, "echo begun; exec sleep 30")])
def test_a_function_that_takes_too_long_is_504(make_host, front, keys, script):
    host = make_host({"f": function(script, **keys)})
    answer = front(host).get("/f")
    assert (answer.status, answer.complete) == (504, True)
    wait_until(lambda: not host.children(), 5)


def test_a_client_that_leaves_ends_it(make_host):
    host = make_host({"f": function("echo $$ > $SCRATCH/pid; echo begun; exec sleep 30", timeout={"kill": "500ms"})})
    with host.connect() as conn:
        conn.start(wire.variables("/f"))
        conn.send(wire.record(wire.STDIN))
        wait_until(lambda: (host.scratch / "pid").exists() and (host.scratch / "pid").read_text().strip(), 10)
    wait_until(lambda: not host.children(), 5)
    assert host.wait_log(event="request")["status"] == 499


def test_on_abort_finish_lets_it_end(make_host):
    host = make_host({"f": function("echo begun; touch $SCRATCH/begun; while [ ! -e $SCRATCH/go ]; do sleep 0.02; done; touch $SCRATCH/done", on_abort="finish")})
    with host.connect() as conn:
        conn.start(wire.variables("/f"))
        conn.send(wire.record(wire.STDIN))
        wait_until((host.scratch / "begun").exists, 10)
    (host.scratch / "go").touch()
    wait_until((host.scratch / "done").exists, 10)
    assert host.wait_log(event="request")["status"] == 499


def test_the_place_is_free_while_a_slow_client_takes_the_answer(make_host):
    """One process at a time: the next request need not wait for the first one's client."""
    host = make_host({"f": function("head -c 4000000 /dev/zero", workers={"max": 1})})
    with host.connect() as conn:
        conn.start(wire.variables("/f"))
        conn.send(wire.record(wire.STDIN))
        wait_until(lambda: spools(host), 10, "an answer that waits")
        assert len(host.request("/f").body) == 4000000
        answer = conn.answer()
        assert answer.complete and len(answer.body) == 4000000
    wait_until(lambda: not spools(host), 5)
    host.wait_log(event="request", count=2)


def test_the_file_gives_back_its_space_as_the_client_takes_it(make_host):
    size = 16 << 20
    host = make_host({"f": function(f"head -c {size} /dev/zero | tr '\\0' x")})
    with host.connect() as conn:
        conn.start(wire.variables("/f"))
        conn.send(wire.record(wire.STDIN))
        wait_until(lambda: spools(host) and not host.children(), 20)
        file = spools(host)[0]
        before = os.stat(file).st_blocks * 512
        taken = 0
        while taken < size // 2:
            taken += len(conn.read().content)
        after = os.stat(file).st_blocks * 512
        assert before > size // 2 and after <= before - size // 4
        rest = conn.answer()
        assert rest.end == (0, 0)


def test_an_answer_that_the_client_does_not_take_has_a_limit(make_host):
    host = make_host({"f": function("head -c 4000000 /dev/zero", timeout={"idle": "300ms"})})
    with host.connect() as conn:
        conn.start(wire.variables("/f"))
        conn.send(wire.record(wire.STDIN))
        entry = host.wait_log(event="request")
        assert "did not take the answer" in entry["reason"] and entry["status"] == 200
        assert not conn.answer().complete


def test_stopping_lets_a_held_answer_out(make_host):
    host = make_host({"f": function("head -c 4000000 /dev/zero")})
    conn = host.connect()
    conn.start(wire.variables("/f"))
    conn.send(wire.record(wire.STDIN))
    wait_until(lambda: spools(host) and not host.children(), 10)
    host.signal(signal.SIGTERM)
    host.wait_log(event="stopping")
    answer = conn.answer()
    assert answer.complete and len(answer.body) == 4000000
    assert host.stop() == 0


def test_scripts_can_be_functions(make_host, front):
    host = make_host({"all": {"scripts": "functions", "protocol": "stdio"}}, start=False)
    for name in ("one", "two"):
        path = host.folder / "functions" / name
        path.parent.mkdir(exist_ok=True)
        path.parent.chmod(0o755)
        path.write_text(f"#!/bin/sh\necho {name} $PATH_INFO\n")
        path.chmod(0o755)
    host.start()
    client = front(host)
    assert client.get("/all/one/x").text == "one /x\n"
    assert client.get("/all/two").text == "two\n"
    assert client.get("/all/three").status == 404


def test_every_command_knows_it(make_host):
    host = make_host({"f": function("cat; exit 0", content_type="application/json")})
    shown = host.command("check", "--print", "-c", str(host.config)).stdout.decode()
    assert "protocol: stdio" in shown and "process: per-request" in shown and "content_type: application/json" in shown and "hold: 64MiB" in shown
    assert b"/f/*" in host.command("routes", "-c", str(host.config)).stdout
    done = host.command("call", "-c", str(host.config), "-i", "-d", '{"a":1}', "/f")
    assert done.returncode == 0 and b"Content-Type: application/json" in done.stdout and done.stdout.endswith(b'{"a":1}')
    handler = json.loads(host.command("status", "--json", "-c", str(host.config)).stdout)["handlers"][0]
    assert (handler["protocol"], handler["process"]) == ("stdio", "per-request")


@pytest.mark.parametrize("keys, says", [
    ({"process": "persistent"}, "'parked' and 'zygote'"),
    ({"content_type": "plain"}, "no media type"),
    ({"content_type": "text/plain\nX-Evil: 1"}, "no header field"),
])
def test_mistakes_are_said(make_host, keys, says):
    host = make_host({"f": function("exit 0", **keys)}, start=False)
    done = host.command("check", "-c", str(host.config))
    assert done.returncode == 1 and says in done.stderr.decode() + done.stdout.decode()


def test_a_key_that_has_no_effect_is_said(make_host):
    host = make_host({"f": {"script": "exit 0", "content_type": "text/html"}}, start=False)
    done = host.command("check", "-c", str(host.config))
    assert done.returncode == 0 and "content_type has no effect" in done.stderr.decode() + done.stdout.decode()
