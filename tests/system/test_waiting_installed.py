"""The shims are found by a host that was installed, wherever its files are, and by one that was only built."""
import shutil
import subprocess

import pytest

from lib import paths, spares

SCRIPT = "#!/usr/bin/python3\nprint('Content-Type: text/plain\\n')\nprint('fine')\n"
PROGRAMS = {"python": SCRIPT, "perl": "#!/usr/bin/perl\nprint \"Content-Type: text/plain\\n\\nfine\\n\";\n",
            "sh": "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nfine\\n'\n"}


def check(make_host, program):
    """All of them wait, with nothing said of where the shims are."""
    host = make_host({name: {"script": text, "process": "parked"} for name, text in PROGRAMS.items()}, start=False)
    host.program = str(program)
    own = host.environ
    host.environ = lambda: {name: value for name, value in own().items() if name != "FCGI_HOST_SHIMS"}
    host.start()
    for name in PROGRAMS:
        spares.wait_ready(host, name)
        assert host.request(f"/{name}/x").text == "fine\n"
        assert host.wait_log(event="request", handler=name)["start"] == "parked"


def test_a_host_that_was_only_built(make_host):
    check(make_host, paths.BUILD / "fcgi-host" / "fcgi-host")


@pytest.mark.limit(180)
def test_a_host_below_another_root(make_host, folder):
    if not (paths.BUILD / "Makefile").is_file():
        pytest.skip("the build has no Makefile")
    subprocess.run(["make", "-s", "install", f"DESTDIR={folder}/root"], cwd=paths.BUILD, check=True, capture_output=True)
    program, = [p for p in (folder / "root").rglob("fcgi-host") if p.is_file() and p.parent.name == "sbin"]
    check(make_host, program)


def test_without_its_shims_a_program_gets_a_process_for_each_request(make_host, folder):
    program = folder / "alone" / "fcgi-host"
    program.parent.mkdir()
    shutil.copy(paths.program(), program)
    host = make_host({"python": {"script": SCRIPT, "process": "parked"}}, start=False, environment={"FCGI_HOST_SHIMS": f"{folder}/nowhere"})
    host.program = str(program)
    host.start()
    assert host.request("/python/x").text == "fine\n"
    assert len(host.lines_with("/nowhere/fcgi-host-park.so: No such file or directory")) == 1
