"""
The system tests: a real host, real web servers, real handlers.

    /usr/bin/python3 -m pytest tests/system

FCGI_HOST_BUILD is the build folder under test (default: build/, then the tree itself), FCGI_HOST_BUILD_PLAIN
one without sanitizers for the few tests that measure memory.  Every test has a folder of its own, free
ports, and after it nothing may be left: see Host.close().
"""
import ctypes
import faulthandler
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

sys.dont_write_bytecode = True

from lib import fronts, paths, proc  # noqa: E402
from lib.host import Host, make_folder  # noqa: E402

PR_SET_CHILD_SUBREAPER = 36
LIMIT_SECONDS = 60


def pytest_configure(config):
    # Whatever loses its parent becomes our child, so that nothing can slip away.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    os.umask(0o022)


# --- no test may hang

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    mark = item.get_closest_marker("limit")
    limit = mark.args[0] if mark else LIMIT_SECONDS

    def over(_number, _frame):
        pytest.fail(f"the test took longer than {limit} s")
    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, limit, 60)     # and again, should the clean-up hang
    faulthandler.dump_traceback_later(limit + 120, exit=True)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    faulthandler.cancel_dump_traceback_later()


# --- a folder of its own for every test, short enough for a socket's path

@pytest.fixture
def folder(request):
    path = make_folder(pathlib.Path(tempfile.mkdtemp(prefix="fh-", dir=os.environ.get("TMPDIR", "/tmp"))))
    yield path
    _reap_orphans(path)
    if os.environ.get("FCGI_HOST_KEEP_FOLDERS"):
        print(f"kept: {path}")
        return
    shutil.rmtree(path, ignore_errors=True)


def _reap_orphans(folder):
    """Children that we inherited: the dead are collected, living ones of this test are a fault."""
    alive = []
    mine = {p.pid for p in getattr(subprocess, "_active", [])}
    for pid in proc.pids():
        stat = proc.stat(pid)
        if not stat or stat[1] != os.getpid() or pid in mine:
            continue
        if stat[0] == "Z":
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass
    for pid in proc.marked(folder):
        alive.append(proc.describe(pid))
        proc.kill_quietly(pid)
    assert not alive, "left after the test: " + "; ".join(alive)


@pytest.fixture(scope="session")
def session_folder():
    path = make_folder(pathlib.Path(tempfile.mkdtemp(prefix="fhs-", dir=os.environ.get("TMPDIR", "/tmp"))))
    paths.make_reachable(path)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def _needs_build():
    if paths.BUILD is None or not paths.program().is_file():
        pytest.fail("no fcgi-host program: build it, or name the build folder in FCGI_HOST_BUILD")


def pytest_generate_tests(metafunc):
    """A file with EVERY_PROCESS has its tests run for CGI programs that are started for the request, and for such
    as have waited for it."""
    if getattr(metafunc.module, "EVERY_PROCESS", False) and "make_host" in metafunc.fixturenames:
        metafunc.parametrize("cgi_process", ["per-request", "parked", "zygote"], indirect=True)


def pytest_collection_modifyitems(config, items):
    """What a process has done before its request is nothing that a web server could see: one will do."""
    def is_wanted(item):
        params = getattr(item, "callspec", None) and item.callspec.params or {}
        if params.get("cgi_process", "per-request") == "per-request":
            return True
        return not item.get_closest_marker("per_request") and not any(value in fronts.WEB[1:] for value in params.values())
    dropped = [item for item in items if not is_wanted(item)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if is_wanted(item)]


@pytest.fixture
def cgi_process(request):
    """How CGI programs live that say nothing of it."""
    process = getattr(request, "param", Host.cgi_process)
    return None if process == "per-request" else process


@pytest.fixture
def make_host(folder, session_folder, request, cgi_process):
    """A factory of hosts; each is stopped and looked over at the end of the test."""
    plain = request.node.get_closest_marker("plain")
    if plain and paths.BUILD_PLAIN is None:
        pytest.skip("FCGI_HOST_BUILD_PLAIN is not set")
    hosts = []

    def make(handlers=None, **options):
        _needs_build()
        name = options.pop("name", f"h{len(hosts)}" if hosts else "h")
        host = Host.__new__(Host)
        hosts.append(host)
        if plain:
            options.setdefault("build", paths.BUILD_PLAIN)
        host.process = None
        host.cgi_process = cgi_process
        host.__init__(folder / name, handlers or {}, **options)
        return host
    yield make
    errors = []
    for host in reversed(hosts):
        if not hasattr(host, "folder"):
            continue
        try:
            host.close()
        except AssertionError as e:
            errors.append(str(e))
    assert not errors, "\n".join(errors)


@pytest.fixture
def make_front(folder, make_host):
    """A factory of web servers (or of the raw client) before a host."""
    running = []

    def make(name, host, **options):
        front = fronts.ALL[name](folder / f"f{len(running)}", host, **options)
        running.append(front)
        return front
    yield make
    for front in reversed(running):
        front.stop()


@pytest.fixture(params=fronts.USUAL)
def front(request, make_front):
    """front(host): the same test through the raw client, nginx and Apache."""
    def make(host, **options):
        return make_front(request.param, host, **options)
    make.name = request.param
    make.kind = fronts.ALL[request.param]
    return make


@pytest.fixture(params=fronts.WEB)
def web(request, make_front):
    """The same, through real web servers only."""
    def make(host, **options):
        return make_front(request.param, host, **options)
    make.name = request.param
    make.kind = fronts.ALL[request.param]
    return make


# --- programs in C that the tests compile for themselves

def _compile(folder, name, *libraries):
    source = pathlib.Path(__file__).parent / "programs" / f"{name}.c"
    program = folder / name
    subprocess.run(["cc", "-O1", "-g", "-Wall", "-o", str(program), str(source), *libraries], check=True)
    return program


@pytest.fixture(scope="session")
def fastcgi_program(session_folder):
    """A libfcgi program that does what the query says: see programs/worker.c."""
    return _compile(session_folder, "worker", "-lfcgi")
