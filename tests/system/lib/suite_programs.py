"""The programs of the suites: what they need to be there, and how they are built."""
import fcntl
import glob
import os
import re
import shutil
import subprocess

import pytest

from . import paths

# A program's folder or file, what must be there to build or run it, and the Debian package that has that.
NEEDS = {
    "go/": [("go", "golang-go")],
    "go/bin/hello-world-echo": [("/usr/share/gocode/src/github.com/labstack/echo", "golang-github-labstack-echo-dev")],
    "go/bin/user": [("/usr/share/gocode/src/github.com/lib/pq", "golang-github-lib-pq-dev")],
    "cpp/": [("c++", "g++"), ("/usr/include/httplib.h", "libcpp-httplib-dev")],
    "c/user": [("/usr/include/postgresql/libpq-fe.h", "libpq-dev")],
    "node/": [("/usr/bin/node", "nodejs")],
    "lua/": [("/usr/bin/lua5.1", "lua5.1")],
    "lua/hello-world-http.lua": [("/usr/lib/*/lua/5.1/luv.so", "lua-luv")],
    "lua/hello-world.lua": [("/usr/bin/wsapi.fcgi", "lua-wsapi-fcgi")],
    "python/hello-world-flask.py": [("/usr/lib/python3/dist-packages/flask", "python3-flask")],
    "python/user.py": [("/usr/lib/python3/dist-packages/psycopg2", "python3-psycopg2")],
    "python/user-flask.py": [("/usr/lib/python3/dist-packages/psycopg2", "python3-psycopg2"),
                             ("/usr/lib/python3/dist-packages/flask", "python3-flask")],
}


def missing(program):
    """The packages that this one wants and that are not installed."""
    return [package for prefix, needs in NEEDS.items() if program == prefix or (prefix.endswith("/") and program.startswith(prefix))
            for what, package in needs if not (glob.glob(what) if "/" in what else shutil.which(what))]


def _make(build, *targets):
    """One at a time: tests run side by side."""
    with open(build / "Makefile") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(["make", "-s", *targets], cwd=build, capture_output=True, timeout=280,
                              env={**os.environ, "MAKEFLAGS": ""})
    assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")[-4000:]


def path_of(program):
    """The path of a program, built if it must be; skips the test where something is missing."""
    lacking = missing(program)
    if lacking:
        pytest.skip("not installed: " + " ".join(lacking))
    if program.endswith((".py", ".js", ".lua")):
        return paths.REPO / "handlers" / program
    _make(paths.BUILD, f"handlers/{program}")
    return paths.BUILD / "handlers" / program


def build_suite(build, name):
    """Those of its programs that can be built here."""
    rule = re.search(rf"^suite-{name}:(.*)$", (paths.REPO / "handlers/local.mk").read_text(), re.M)[1]
    programs = [word.removeprefix("%D%/") for word in rule.split()]
    _make(build, f"conf/suites/{name}.yaml", "conf/suites/user-lookup-database", *(f"handlers/{p}" for p in programs if not missing(p)))


def is_excuse(reason):
    """Is that why a way of a shipped suite may be left out? Of few requests in a row none may find a process that waits."""
    return re.search(r" is not installed \(Debian: |is linked statically|none of its processes waited", reason) is not None
