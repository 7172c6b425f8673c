"""
A script of any language cannot tell whether its process was started for the request or has waited for it: the same
script, in all its ways to end, cold and parked and forked ahead.
"""
import difflib
import os
import re

import pytest

from lib import spares
from lib.paths import REPO

WITNESSES = REPO / "tests" / "system" / "programs" / "witness"
WAYS = {"parked": "parked", "zygote": "forked"}


def make(make_host, program, way, line=None, **keys):
    """A host with one program under two names: cold, and that of the way.  `line` replaces the program's first."""
    host = make_host({}, start=False)
    text = program.read_text()
    if line or program == PYTHON:
        line = line or f"#!{PYTHON_PROGRAM}"
        text = line + text[text.index("\n"):]
    host.script(program.name, text)
    keys = {"command": [f"handlers/{program.name}"], "preload": "none", **keys}
    host.write({"cold": {**keys, "process": "per-request"}, way: {**keys, "process": way}})
    return host.start()


def ask(host, name, query="", body=b"the body\n", **variables):
    """What the client got, what went to stderr, how it ended."""
    before = len(host.log(event="request", handler=name))
    answer = host.request(f"/{name}/way?{query}", "POST", body, extra=variables)
    line = host.wait_log(event="request", handler=name, count=before + 1)[before] if before else \
        host.wait_log(event="request", handler=name)
    stderr = [e["msg"] for e in host.log(event="stderr", id=line["id"])]
    text = answer.body.decode("utf-8", "surrogateescape")
    for own, usual in ((line["id"], "ID"), (f"/{name}", "/cold")):
        text = text.replace(str(own), usual)
    text = re.sub(r"\b0x[0-9a-f]{6,}\b", "ADDRESS", text)
    return line["start"], text, [re.sub(r"\b0x[0-9a-f]{6,}\b", "ADDRESS", s) for s in stderr], line["exit"], line["signal"]


def compare(host, way, query="", **more):
    cold = ask(host, "cold", query, **more)
    spares.wait_ready(host, way)
    other = ask(host, way, query, **more)
    assert (cold[0], other[0]) == ("cold", WAYS[way])
    difference = "\n".join(difflib.unified_diff(cold[1].splitlines(), other[1].splitlines(), "cold", way, n=0, lineterm=""))
    assert not difference, difference
    assert cold[2:] == other[2:]


each_way = pytest.mark.parametrize("way", WAYS)


# --- Python

# Another Python's can be named, to see whether it behaves the same.
PYTHON_PROGRAM = os.environ.get("FCGI_HOST_TEST_PYTHON", "/usr/bin/python3")
PYTHON = WITNESSES / "witness.py"
PYTHON_DRESSES = {
    "env finds it": {"line": "#!/usr/bin/env python3"},
    "an option": {"line": f"#!{PYTHON_PROGRAM} -u"},
    "options that forbid the hook": {"line": f"#!{PYTHON_PROGRAM} -sE"},
    "isolated": {"line": f"#!{PYTHON_PROGRAM} -I"},
    "without site": {"line": f"#!{PYTHON_PROGRAM} -S"},
    "a command": {"command": [PYTHON_PROGRAM, "-B", "-Werror", "handlers/witness.py", "an argument", "-c"]},
    "its own variables": {"env": {"PYTHONPATH": "/nowhere:/tmp", "PYTHONUNBUFFERED": "1", "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"}},
    "a directory and limits": {"directory": "/", "limits": {"files": 64, "cpu": "20s"}},
}


@each_way
@pytest.mark.parametrize("query", ["", "raise", "text", "exit", "syntax", "_exit", "signal", "interrupt"])
def test_python_ends_in_all_its_ways(make_host, way, query):
    compare(make(make_host, PYTHON, way), way, query)


@each_way
@pytest.mark.parametrize("dress", PYTHON_DRESSES)
def test_python_started_in_all_its_ways(make_host, way, dress):
    compare(make(make_host, PYTHON, way, **PYTHON_DRESSES[dress]), way)


@each_way
@pytest.mark.parametrize("name", ["LANG", "LC_ALL", "TZ", "HOME"])
def test_python_gets_a_request_that_steers_its_start(make_host, way, name):
    host = make(make_host, PYTHON, way)
    compare(host, way, **{name: {"TZ": "Asia/Tokyo", "HOME": "/nowhere"}.get(name, "POSIX")})
