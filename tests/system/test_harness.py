"""The tools of these tests, tried on something that is known to work: a libfcgi program under spawn-fcgi."""
import subprocess

import pytest

from lib import logs, wire, yaml_text
from lib.handlers import pattern
from lib.wait import connects, wait_until


@pytest.fixture
def libfcgi(folder, fastcgi_program):
    path = str(folder / "s.sock")
    process = subprocess.Popen(["/usr/bin/spawn-fcgi", "-n", "-s", path, "-M", "0666", "--", str(fastcgi_program)], stdin=subprocess.DEVNULL, cwd=str(folder))
    wait_until(lambda: connects(path), 10)

    class Host:
        address = path
    yield Host
    process.kill()
    process.wait()


@pytest.mark.parametrize("name", ["wire", "nginx-kept", "nginx-streaming", "nginx-plain", "nginx-plain-streaming", "mod_proxy_fcgi", "lighttpd"])
def test_the_clients_and_web_servers_work(libfcgi, make_front, name):
    client = make_front(name, libfcgi)
    # Not an echo: nginx stops sending a body once it has seen a header, and libfcgi then waits for ever.
    answer = client.post("/x%20y?count", pattern(200_000))
    assert (answer.status or 200, answer.text, answer.complete) == (200, "200000\n", True)
    assert "QUERY_STRING=env&x=1" in client.get("/a?env&x=1").text


def test_a_dead_program_is_seen_as_a_broken_answer(libfcgi):
    answer = wire.request(libfcgi.address, "/?partial=100&exit=1")
    assert answer.body == b"half" and not answer.complete


def test_pairs_of_every_length_survive():
    sent = [(b"n" * n, b"v" * v) for n in (1, 127, 128, 300) for v in (0, 127, 128, 70_000)]
    assert wire.decode_pairs(wire.pairs(sent)) == sent
    assert wire.decode_pairs(wire.pairs(sent, wide=True)) == sent


@pytest.mark.parametrize("line, want", [
    ("time=2026-01-01T00:00:00Z level=info event=request id=a1 status=200 total_ms=1.250 signal=-", {"event": "request", "status": 200, "total_ms": 1.25, "signal": None}),
    ('event=stderr msg="a \\"b\\" \\\\ \\x1b\\n c=d"', {"event": "stderr", "msg": 'a "b" \\ \x1b\n c=d'}),
    ('event=x msg="-"', {"event": "x", "msg": "-"}),
    ('{"event": "request", "status": 200, "signal": null}', {"event": "request", "status": 200, "signal": None}),
    ("forged line", None), ("level=info id=1", None),
])
def test_log_lines_are_read(line, want):
    got = logs.parse(line)
    assert got is None if want is None else {n: got[n] for n in want} == want


def test_configurations_are_yaml():
    yaml = pytest.importorskip("yaml")
    config = {"listen": {"address": "unix:/x.sock", "mode": "0666"}, "handlers": {"a": {"command": ["a b", "$x"], "timeout": {"kill": "500ms"}, "env": {"K": "yes", "N": "7"}}},
              "routes": [{"path": "/a/*", "handler": "a"}, {"path": "/users/{id}", "handler": "a"}]}
    assert yaml.safe_load(yaml_text.block(config)) == config
