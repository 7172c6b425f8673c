"""Completion in the real shells: a person types and presses TAB."""
import contextlib
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import time

import pytest

from lib import paths, proc
from lib.wait import wait_until

COMPLETIONS = paths.REPO / "completions"
CONFIG = """\
handlers:
  first: {command: /bin/true}
  second-one: {command: /bin/true}
routes:
  - {path: /alpha, handler: first}
  - {path: /beta/*, handler: second-one}
"""
# The installed program, and a command that takes a handler.
WRAPPER = """#!/bin/sh
[ "$1" != --help ] || { "%(program)s" --help; echo '  fcgi-host trial [-c FILE] [--runs COUNT] HANDLER'; exit; }
exec "%(program)s" "$@"
"""
STARTS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "PS1='% '; bind 'set enable-bracketed-paste off'; . {0}/fcgi-host"),
    "zsh": (["zsh", "-f", "-i"], "PS1='%% '; fpath=({0} $fpath); autoload -U compinit; compinit -u -D; unsetopt beep; setopt list_rows_first"),
    "fish": (["fish", "--no-config", "-i"], None),
}
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b[=>]|\x1b\][^\x07]*\x07|[\x00\x07]")


class Typist:
    """A shell on a terminal of its own."""

    def __init__(self, command, environment, folder):
        self.shown = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environment)

    def type(self, text):
        self.shown = ""
        os.write(self.fd, text.encode())

    def sees(self, *words, timeout=20):
        """Waits until all the words are on the screen."""
        deadline = time.monotonic() + timeout
        while not all(re.search(rf"(?<![\w/-]){re.escape(word)}(?![\w-])", self.shown) for word in words):
            ready, _, _ = select.select([self.fd], [], [], max(0, deadline - time.monotonic()))
            assert ready, (words, self.shown)
            self.shown = ESCAPES.sub("", self.shown + os.read(self.fd, 65536).decode(errors="replace"))
        return self.shown

    def close(self):
        os.close(self.fd)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        wait_until(self._have_others_gone, 10, "the end of the shell's own children")

    def _have_others_gone(self):
        """A completion may still be at work, in a group of its own."""
        left = [int(p.name) for p in pathlib.Path("/proc").glob("[0-9]*") if self._session(p) == self.pid]
        for pid in left:
            proc.kill_quietly(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)             # it may be ours by now
        return not left

    @staticmethod
    def _session(process):
        try:
            return int((process / "stat").read_bytes().rpartition(b")")[2].split()[3])
        except OSError:
            return None


@pytest.fixture
def home(folder):
    (folder / "bin").mkdir()
    wrapper = folder / "bin" / "fcgi-host"
    wrapper.write_text(WRAPPER % {"program": paths.program()})
    wrapper.chmod(0o755)
    (folder / "own.yaml").write_text(CONFIG)
    return folder


def environment(home):
    return {"PATH": f"{home}/bin:/usr/bin:/bin", "HOME": str(home), "TERM": "dumb", "LC_ALL": "C.UTF-8", "COLUMNS": "200"}


@pytest.fixture(params=["bash", "zsh"])
def typist(request, home):
    if not shutil.which(request.param):
        pytest.skip(f"{request.param} is not installed")
    command, begin = STARTS[request.param]
    shell = Typist(command, environment(home), home)
    shell.type(begin.format(COMPLETIONS) + "; echo now-$((40 + 2))\n")
    shell.sees("now-42")
    yield shell
    shell.close()


@pytest.mark.parametrize("typed, offered", [
    ("fcgi-host ", ["serve", "reload", "status", "check", "trial"]),
    ("fcgi-host call -", ["-c", "-X", "--connect"]),
    ("fcgi-host trial -c own.yaml ", ["first", "second-one"]),
    ("fcgi-host trial -c own.yaml --runs 3 ", ["first", "second-one"]),
    ("fcgi-host call -X P", ["POST", "PUT", "PATCH"]),
    ("fcgi-host call -c own.yaml /", ["/alpha", "/beta/"]),
    ("fcgi-host routes -c own.yaml GET /", ["/alpha", "/beta/"]),
], ids=["commands", "options", "handlers", "handlers after an option", "methods", "paths", "second word"])
def test_two_tabs_list_what_may_come(typist, typed, offered):
    typist.type(typed + "\t\t")
    typist.sees(*offered)


@pytest.mark.parametrize("typed, line", [
    ("fcgi-host rel", "fcgi-host reload"),
    ("fcgi-host check --p", "fcgi-host check --print"),
    ("fcgi-host check -c ow", "fcgi-host check -c own.yaml"),
    ("fcgi-host trial -c own.yaml sec", "fcgi-host trial -c own.yaml second-one"),
], ids=["command", "option", "file", "handler"])
def test_a_tab_completes_what_is_clear(typist, typed, line):
    typist.type(typed + "\t")
    typist.sees(line)


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
@pytest.mark.parametrize("typed, offered, exact", [
    ("fcgi-host ", {"serve", "reload", "status", "check", "trial", "--help"}, False),
    ("fcgi-host call -", {"-c", "-X", "-H", "-d", "-i", "--connect"}, True),
    ("fcgi-host trial -c own.yaml ", {"first", "second-one"}, True),
    ("fcgi-host trial -c own.yaml --runs 3 ", {"first", "second-one"}, True),
    ("fcgi-host call -X P", {"POST", "PUT", "PATCH"}, True),
    ("fcgi-host call -c own.yaml /", {"/alpha", "/beta/"}, True),
    ("fcgi-host routes -c own.yaml GET /", {"/alpha", "/beta/"}, True),
    ("fcgi-host check -c ow", {"own.yaml"}, True),
])
def test_fish_offers_what_may_come(home, typed, offered, exact):
    # `complete -C` is what fish itself asks at a TAB.
    done = subprocess.run(["fish", "--no-config", "-c", f"source {COMPLETIONS}/fcgi-host.fish; complete -C {typed!r}"], env=environment(home),
                          cwd=home, capture_output=True, text=True, timeout=30)
    found = {line.split("\t")[0] for line in done.stdout.splitlines()}
    assert offered <= found and (found == offered or not exact), (found, done.stderr)
