"""
A script of any language cannot tell whether its process was started for the request or has waited for it: the same
script, in all its ways to end, cold and parked and forked ahead.
"""
import difflib
import os
import re
import shutil
import subprocess

import pytest

from lib import spares
from lib.paths import REPO

WITNESSES = REPO / "tests" / "system" / "programs" / "witness"
WAYS = {"parked": "parked", "zygote": "forked"}


def make(make_host, program, way, line=None, **keys):
    """A host with one program under two names: cold, and that of the way.  `line` replaces the program's first."""
    host = make_host({}, start=False)
    if program == PYTHON:
        line = line or f"#!{PYTHON_PROGRAM}"
    target = host.folder / "handlers" / program.name
    shutil.copy(program, target)
    if line:
        text = program.read_text()
        target.write_text(line + text[text.index("\n"):])
    target.chmod(0o755)
    shutil.copy(WITNESSES / "process.sh", host.folder / "handlers")
    keys = {"preload": "none", **keys, "command": [str(target) if word == "SCRIPT" else word for word in keys.get("command", ["SCRIPT"])]}
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
    return line.get("start", "cold"), text, [re.sub(r"\b0x[0-9a-f]{6,}\b", "ADDRESS", s) for s in stderr], line["exit"], line["signal"]


def compare(host, way, query="", lost=None, **more):
    """`lost` is a line that is there after a cold start only."""
    cold = ask(host, "cold", query, **more)
    assert "the body" in cold[1], cold
    spares.wait_ready(host, way)
    other = ask(host, way, query, **more)
    assert (cold[0], other[0]) == ("cold", WAYS[way])
    if lost:
        assert f"\n{lost}\n" in cold[1]
        cold = (cold[0], cold[1].replace(f"{lost}\n", ""), *cold[2:])
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
    "a command": {"directory": "handlers", "command": [PYTHON_PROGRAM, "-B", "-Werror", "SCRIPT", "an argument", "-c"]},
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


# --- Perl

PERL = WITNESSES / "witness.pl"
PERL_DRESSES = {
    "env finds it": {"line": "#!/usr/bin/env perl"},
    "an option": {"line": "#!/usr/bin/perl -w"},
    "options that forbid the hook": {"line": "#!/usr/bin/perl -t"},
    "a command": {"directory": "handlers", "command": ["/usr/bin/perl", "-I/nowhere", "SCRIPT", "an argument"]},
    "its own variables": {"env": {"PERL5OPT": "-Mstrict -w", "PERL5LIB": "/nowhere", "LC_ALL": "C.UTF-8"}},
    "limits": {"limits": {"files": 64, "cpu": "20s"}},
}


@each_way
@pytest.mark.parametrize("query", ["", "die", "text", "exit", "syntax", "_exit", "signal", "errno", "use"])
def test_perl_ends_in_all_its_ways(make_host, way, query):
    compare(make(make_host, PERL, way), way, query)


@each_way
@pytest.mark.parametrize("dress", PERL_DRESSES)
def test_perl_started_in_all_its_ways(make_host, way, dress):
    compare(make(make_host, PERL, way, **PERL_DRESSES[dress]), way)


@each_way
@pytest.mark.parametrize("name", ["LANG", "LC_ALL"])
def test_perl_gets_a_request_that_steers_its_start(make_host, way, name):
    compare(make(make_host, PERL, way), way, **{name: "C.UTF-8"})


# --- Ruby

RUBY = WITNESSES / "witness.rb"
RUBY_DRESSES = {
    "env finds it": {"line": "#!/usr/bin/env ruby"},
    "options": {"line": "#!/usr/bin/ruby -wEutf-8:utf-8"},
    "options that forbid the hook": {"line": "#!/usr/bin/ruby --disable=all"},
    "a command": {"directory": "handlers", "command": ["/usr/bin/ruby", "-I/nowhere", "SCRIPT", "an argument"]},
    "its own variables": {"env": {"RUBYOPT": "-W1 -rset", "RUBYLIB": "/nowhere", "LC_ALL": "C.UTF-8"}},
    "limits": {"limits": {"files": 64, "cpu": "20s"}},
}


@each_way
@pytest.mark.parametrize("query", ["", "raise", "text", "exit", "syntax", "_exit", "signal", "throw", "interrupt", "use"])
def test_ruby_ends_in_all_its_ways(make_host, way, query):
    compare(make(make_host, RUBY, way), way, query)


@each_way
@pytest.mark.parametrize("dress", RUBY_DRESSES)
def test_ruby_started_in_all_its_ways(make_host, way, dress):
    compare(make(make_host, RUBY, way, **RUBY_DRESSES[dress]), way)


@each_way
@pytest.mark.parametrize("name", ["LANG", "LC_ALL", "HOME"])
def test_ruby_gets_a_request_that_steers_its_start(make_host, way, name):
    compare(make(make_host, RUBY, way), way, **{name: "/nowhere" if name == "HOME" else "C.UTF-8"})


# --- Node

NODE = WITNESSES / "witness.js"
NODE_DRESSES = {
    "env finds it": {"line": "#!/usr/bin/env node"},
    "an option": {"line": "#!/usr/bin/node --no-warnings"},
    "a command": {"directory": "handlers", "command": ["/usr/bin/node", "--stack-trace-limit=5", "SCRIPT", "an argument"]},
    "its own variables": {"env": {"NODE_OPTIONS": "--no-deprecation", "NODE_PATH": "/nowhere", "TZ": "Asia/Tokyo"}},
    "limits": {"limits": {"files": 64, "cpu": "20s"}},
}


@pytest.mark.parametrize("query", ["", "raise", "reject", "exit", "code", "syntax", "signal", "use"])
def test_node_ends_in_all_its_ways(make_host, query):
    compare(make(make_host, NODE, "parked"), "parked", query)


@pytest.mark.parametrize("dress", NODE_DRESSES)
def test_node_started_in_all_its_ways(make_host, dress):
    compare(make(make_host, NODE, "parked", **NODE_DRESSES[dress]), "parked")


@pytest.mark.parametrize("name", ["LANG", "TZ"])
def test_node_gets_a_request_that_steers_its_start(make_host, name):
    # Node cannot exec, so the script is a child of the process that has waited.
    compare(make(make_host, NODE, "parked"), "parked", lost="its own group", **{name: "Asia/Tokyo" if name == "TZ" else "de_DE.UTF-8"})


# --- shells

SHELL = WITNESSES / "witness.sh"


@each_way
@pytest.mark.parametrize("line", ["#!/bin/sh", "#!/bin/bash", "#!/usr/bin/env bash", "#!/bin/bash -e"])
def test_shells_started_in_all_their_ways(make_host, way, line):
    compare(make(make_host, SHELL, way, line=line), way)


@each_way
@pytest.mark.parametrize("line", ["#!/bin/sh", "#!/bin/bash"])
@pytest.mark.parametrize("query", ["exit", "undefined", "syntax", "errexit", "signal", "exec", "background"])
def test_shells_end_in_all_their_ways(make_host, way, line, query):
    compare(make(make_host, SHELL, way, line=line), way, query)


# --- PHP

PHP = WITNESSES / "witness.php"


@each_way
@pytest.mark.parametrize("query", ["", "raise", "text", "exit", "error", "warning", "session", "signal"])
def test_php_ends_in_all_its_ways(make_host, way, query):
    compare(make(make_host, PHP, way), way, query)


# --- C

@pytest.fixture(scope="module")
def c_program(session_folder):
    program = session_folder / "witness"
    subprocess.run(["cc", "-o", program, WITNESSES / "witness.c", "-pthread"], check=True)
    return program


@each_way
@pytest.mark.parametrize("query", ["", "exit", "_exit", "abort", "signal"])
def test_c_ends_in_all_its_ways(make_host, c_program, way, query):
    compare(make(make_host, c_program, way), way, query)


# --- while modules are learnt

LEARNING = {
    "python": (PYTHON, {r"^atexit \d", r"^descriptor 15 ", r"^15 "}), "perl": (PERL, {r"^open ", r"^15 "}), "ruby": (RUBY, {r'^"open"', r"^15 "}),
    "node": (NODE, {r"^listeners ", r"^open ", r" ?socket:"}),
}


@pytest.mark.parametrize("language, way", [(language, way) for language in LEARNING for way in WAYS if (language, way) != ("node", "zygote")])
def test_learning_is_seen_only_as_the_list_of_differences_says(make_host, language, way):
    program, seen = LEARNING[language]
    host = make(make_host, program, way, preload="auto")
    cold = ask(host, "cold")
    spares.wait_ready(host, way)
    learning = ask(host, way)
    assert learning[0] == WAYS[way]

    lines = [[line for line in text.splitlines() if not any(re.match(pattern, line) for pattern in seen)] for text in (cold[1], learning[1])]
    difference = "\n".join(difflib.unified_diff(*lines, "cold", way, n=0, lineterm=""))
    assert not difference, difference
    assert cold[2:] == learning[2:]
    # No child of the script gets it.
    sockets = [re.search(r"flags:\W*t?(0\d+)", line)[1] for line in learning[1].splitlines()
               if re.match(r"(15|descriptor 15 \S+)? ?socket", line)]
    assert sockets and all(int(flags, 8) & os.O_CLOEXEC for flags in sockets)
