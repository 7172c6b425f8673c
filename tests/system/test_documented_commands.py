"""Each command line that README.md, CONTRIBUTING.md, doc/ and the manual pages show is run by a test, here or where it is said below."""
import contextlib
import http.server
import json
import os
import re
import shutil
import subprocess
import threading

import pytest

import test_migration
from lib import paths
from lib.handlers import HELLO
from lib.wait import wait_until
from test_manual import usages
from test_readme import README, copy_source, command_lines, section

REPO = paths.REPO
CONTRIBUTING = (REPO / "CONTRIBUTING.md").read_text()
CHECK = (REPO / "check").read_text()
WORDS = [REPO / "README.md", REPO / "CONTRIBUTING.md", *sorted((REPO / "doc").glob("*.md"))]
MANUALS = sorted(p for p in (REPO / "doc").iterdir() if re.search(r"\.[1-8]$", p.name))
COMPARE = REPO / "doc" / "fcgi-host-compare.1"
# What begins a command, in a line of text too.
PROGRAMS = r"\./|/usr/|sudo |make\b|fcgi-host |curl |wget |systemctl |journalctl |apt|dpkg|kill |nginx |apachectl |a2en|php|spawn-fcgi |docker |doc/update-keys"
# Files, which the tests of their page write where it says, and configurations, which test_readme.py gives to who reads them.
FILES = {"README.md": {"sh"}, "from-fcgiwrap.md": {"sh"}, "from-spawn-fcgi.md": {"perl"}, "from-mod_fcgid.md": {"perl"}, "from-php-fpm.md": {"php", "ini"}}
CONFIGURATIONS = {"yaml", "nginx", "apache"}


# tests/packages builds both kinds of packages like this.
PACKAGING = ["apt-get install build-essential", "apt-get build-dep .", "dpkg-buildpackage -us -uc -b",
             "make dist", "mkdir -p ~/rpmbuild/SOURCES", "cp fcgi-host-*.tar.xz ~/rpmbuild/SOURCES", "rpmbuild -bb ../../packaging/fcgi-host.spec"]


def contributing_build():
    return command_lines(CONTRIBUTING.partition("## Build\n")[2].partition("\n## ")[0])


def contributing_table():
    """[(command, what it runs)] of the table; "the same with X" is the command before with X."""
    rows = re.findall(r"^\| (.*`.*) \| (.*) \|$", CONTRIBUTING.partition("## Test\n")[2].partition("\n## ")[0], re.M)
    commands = []
    for shown, runs in rows:
        parts = re.findall(r"`([^`]+)`", shown)
        if shown.startswith("the same"):
            pytest_line = next(c for c, _ in commands if "pytest" in c)
            options = " ".join(p for p in parts if p.startswith("-"))
            commands.append((" ".join([*(p for p in parts if "=" in p), pytest_line, options]).strip(), runs))
        else:
            commands.append((parts[0], runs))
    return commands


def manual_commands(page):
    text = page.read_text()
    literal = "".join(re.findall(r"^\.Bd -(?:literal|unfilled).*?\n(.*?)^\.Ed", text, re.M | re.S))
    return re.findall(r"^\$ (.*)$", literal, re.M) + re.findall(r"^\.D[1l] (?:\$ )?(.*)$", text, re.M)


def run_elsewhere(page):
    """The command lines of a page that a test runs one after the other, all that there are in its part of it."""
    if page.name == "README.md":
        # tests/packages, test_readme_s_first_route_works_from_the_package; test_the_first_own_route_step_by_step
        return [*PACKAGING[:3], "apt-get install ../fcgi-host_*.deb ../fcgi-host-handlers_*.deb",
                *command_lines(section("A first route of your own"))]
    if page.name == "packaging.md":
        return PACKAGING
    if page.stem in test_migration.PAGES:
        return [line for title in ("Before", "After") for line in command_lines(test_migration.part(page.stem, title))]
    return []


def test_the_programs_of_the_top_are_run_by_ci():
    """`./check`, which runs these tests, cannot be run by one of them; it runs ./quickstart."""
    first = [line.split("#")[0].strip() for line in command_lines(README.partition("\n## ")[0])]
    assert first == ["./quickstart", "./check"]
    assert re.search(r"^step quickstart \./quickstart --once$", CHECK, re.M)
    assert re.search(r'^exec ".*/check"$', (REPO / ".ci" / "run").read_text(), re.M)


@pytest.mark.parametrize("page", WORDS, ids=lambda p: p.name)
def test_no_command_line_is_left_out(page):
    text = page.read_text()
    if page.name == "ARCHITECTURE.md":      # its drawing of the processes
        text = re.sub(r"^## Processes\n\n(?:^ .*\n)+", "", text, flags=re.M)
    shown = command_lines(text)
    known = run_elsewhere(page)
    if page.name == "README.md":
        known = command_lines(README.partition("\n## ")[0]) + known
    if page.name == "CONTRIBUTING.md":
        known = contributing_build()
    assert shown == known


@pytest.mark.parametrize("page", WORDS, ids=lambda p: p.name)
def test_no_fenced_block_is_left_out(page):
    """A block of another language, or of none, may hold commands: it would need a test."""
    for language, text in re.findall(r"^```([^\n]*)\n(.*?)^```", page.read_text(), re.M | re.S):
        if language == "" and text.startswith("$ fcgi-host compare "):
            continue        # with what it says; test_every_command_about_compare
        assert language in CONFIGURATIONS | FILES.get(page.name, set()), f"no test runs this block of {language or 'no language'}:\n{text}"
        if language in ("sh", "perl"):
            assert text.startswith("#!"), f"commands, not a program:\n{text}"


@pytest.mark.parametrize("page", WORDS, ids=lambda p: p.name)
def test_no_command_in_a_sentence_is_left_out(make_host, page):
    """What a sentence names is one of the program's commands, or one of these."""
    given = usages(make_host({}, start=False))
    known = {command for command, _ in contributing_table()} | {
        "./quickstart", "./check",      # above
        "./quickstart --suite json-greeting",       # test_a_suite_is_set_up_and_its_page_written
        "make install", "make dist", "make distcheck",     # tests/packages; the last by ./check
        "systemctl edit fcgi-host.service", "systemctl reload", "systemctl disable --now fcgi-host.socket",    # tests/packages, test_systemd.py
        "systemctl restart fcgi-host.service",
        "make distclean",               # test_the_build_and_the_tests_of_contributing
        "doc/update-keys build/dev",    # the same
        "curl http://localhost/app/date",   # test_the_first_own_route_step_by_step
        "fcgi-host --help", "fcgi-host --version"}
    for text in re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)):
        if text in known or not re.match(PROGRAMS, text) or text.startswith(("/usr/share/", "/usr/lib/")) or re.fullmatch(r"[/\w.-]+", text):
            continue
        command = re.fullmatch(r"fcgi-host (\w+)(.*)", text)
        is_ours = command is not None and command[1] in given
        is_theirs = page.stem in test_migration.PAGES and not text.startswith("fcgi-host")       # options of the program before
        assert is_ours or is_theirs, f"no test runs `{text}`"
        if is_ours:
            for option in re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", command[2]):
                assert option in given[command[1]], text


def test_help_and_version(make_host):
    host = make_host({}, start=False)
    for option in ("--help", "--version"):
        done = host.command(option)
        assert done.returncode == 0 and b"fcgi-host" in done.stdout


# --- the manual pages

def run_all(commands, folder, environment):
    """{command: what it said}"""
    said = {}
    for command in commands:
        done = subprocess.run(["bash", "-eo", "pipefail", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=100)
        assert done.returncode == 0 and done.stdout, f"$ {command}\n{done.stdout}{done.stderr}"
        said[command] = done.stdout
    return said


def test_every_command_of_the_manual_pages(make_host):
    """In the order of the pages, with the file that the first example shows."""
    page = REPO / "doc" / "fcgi-host.8"
    (yaml,) = [b for b in re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", page.read_text(), re.M | re.S) if b.startswith("listen:")]
    host = make_host({}, start=False)
    host.config = host.folder / "hello.yaml"
    host.write_text(yaml.replace("unix:/run/fcgi-host/fcgi-host.sock", f"unix:{host.socket}").replace("/srv/functions", f"{host.folder}/handlers"))
    host.script("hello.sh", HELLO)
    (host.folder / "body").write_text("a body")
    host.start()
    (host.folder / "bin").mkdir()
    program = host.folder / "bin" / "fcgi-host"
    # The installed one finds its file without -c.
    program.write_text(f"#!/bin/sh\ncommand=$1; shift\nexec {host.program} \"$command\" -c {host.config} \"$@\"\n")
    program.chmod(0o755)
    environment = {**host.environ(), "PATH": f"{host.folder}/bin:/usr/bin:/bin"}
    commands = [command for manual in MANUALS if manual != COMPARE for command in manual_commands(manual)]
    assert len(commands) >= 5 and {command.split()[0] for command in commands} == {"fcgi-host"}
    said = run_all(commands, host.folder, environment)
    assert "hello\n" in said["fcgi-host call -c hello.yaml /hello"]
    (waiting,) = [json.loads(text) for command, text in said.items() if "jq" in command]
    assert waiting == {"name": "hello", "waiting": 0}
    wait_until(lambda: len(host.log(event="request")) == sum(" call " in command for command in commands), 10)


@contextlib.contextmanager
def server_of(text):
    """An HTTP server with one answer; its port."""
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.limit(300)
def test_every_command_about_compare(make_host, fastcgi_program):
    """Those of README and of its page, with fewer requests."""
    commands = re.findall(r"^\$ (fcgi-host compare .*)$", "".join(re.findall(r"^```\n(.*?)^```", README, re.M | re.S)), re.M) + manual_commands(COMPARE)
    (yaml,) = [b for b in re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", COMPARE.read_text(), re.M | re.S) if b.startswith("handlers:")]
    host = make_host({"hello": HELLO}, routes=[{"path": "/*", "handler": "hello"}])
    for name in ("hello.yaml", "fcgi-host.yaml.shown"):
        (host.folder / name).write_text(yaml.replace("/srv/hello.fcgi", str(fastcgi_program)))
    host.script("../hello.py", "#!/usr/bin/python3\nprint('Content-Type: text/plain\\n\\nhello')\n")
    (host.folder / "bin").mkdir()
    (host.folder / "bin" / "fcgi-host").symlink_to(host.program)
    environment = {**host.environ(), "PATH": f"{host.folder}/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    with server_of(b"hello\n") as port:
        said = run_all([command.replace("127.0.0.1:8000", f"127.0.0.1:{port}").replace("unix:/run/php/php-fpm.sock", f"unix:{host.socket}")
                        .replace("-c fcgi-host.yaml", "-c fcgi-host.yaml.shown") + " -n 40 --blocks 4" for command in commands], host.folder, environment)
    assert len(said) >= 4 and all("RATIO" in text for text in said.values())
    assert "<html" in (host.folder / "hello.html").read_text()


@pytest.mark.skipif(not shutil.which("go"), reason="the suite needs Go")
@pytest.mark.limit(400)
def test_a_suite_is_set_up_and_its_page_written(folder):
    """README.md's command and those of doc/results, in a copy of the source; of the suites one, with few requests."""
    source = folder / "source"
    copy_source(source)
    set_up, write_all = (line.partition("#")[0].split() for line in command_lines((source / "doc" / "results" / "README.md").read_text()))
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder), "MAKEFLAGS": "-j2", "CFLAGS": "-O1"}

    def run(command):
        done = subprocess.run(command, cwd=source, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 0, f"$ {command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout
    program, *arguments = run(set_up).splitlines()[-1].split()
    suite = source / "build" / "quickstart" / "conf" / "suites" / "json-greeting.yaml"
    assert os.access(program, os.X_OK) and arguments == ["compare", "--suite", str(suite)]
    suite.write_text(re.sub(r"^( +(?:requests|blocks):) \d+", r"\1 16", suite.read_text(), flags=re.M))
    (source / "doc" / "results" / "json-greeting.md").unlink()
    run([*write_all, "json-greeting"])
    page = (source / "doc" / "results" / "json-greeting.md").read_text()
    assert all(f"\n## {name}\n" in page for name in ("go", "node", "python")) and page.count("Published, and ours:") == 3
    assert "- command: `fcgi-host compare --suite conf/suites/json-greeting.yaml`" in page and str(folder) not in page


# --- CONTRIBUTING.md

@pytest.mark.limit(400)
def test_the_build_and_the_tests_of_contributing(folder):
    """As they stand, in a copy of the source; of the system tests one only, since it is one of them that runs here."""
    source = folder / "source"
    copy_source(source)
    lines = contributing_build()
    packages = lines.pop(0).split()
    assert packages[:2] == ["apt-get", "install"]
    subprocess.run(["dpkg-query", "-s", *packages[2:]], stdout=subprocess.DEVNULL, check=True)
    environment = {**{k: v for k, v in os.environ.items() if not k.startswith(("FCGI_HOST_", "PYTEST_", "MAKE"))},
                   "MAKEFLAGS": "-j2", "CFLAGS": "-O1", "PYTHONDONTWRITEBYTECODE": "1"}

    def run(command, cwd):
        done = subprocess.run(["bash", "-ec", command], cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 0, f"$ {command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout
    run("\n".join(lines), source)
    assert (source / "build" / "dev" / "fcgi-host" / "fcgi-host").exists()
    before = (source / "doc" / "fcgi-host.yaml.5").read_text()
    run("doc/update-keys build/dev", source)
    assert (source / "doc" / "fcgi-host.yaml.5").read_text() == before, "the page has every key as the table has it"
    table = contributing_table()
    assert len(table) == 7 and all(f"`{command}`" in CONTRIBUTING for command, _ in table if " " not in command)
    for command, _ in table:
        if command == "make check":
            assert "# FAIL:  0" in run(command, source / "build" / "dev")
        elif "-m soak" in command or "tests/packages" in command:       # they take their full time
            assert re.search(r"[1-9]\d*(/\d+)? tests collected", run(f"{command} --collect-only", source))
        elif command != "./check":
            assert "pytest tests/system" in command
            assert re.search(r"\b1 passed", run(f"{command} -p no:cacheprovider -k test_check_says_fine", source))
    run("make distclean", source / "build" / "dev")
    assert not (source / "build" / "dev" / "Makefile").exists()
    shutil.rmtree(source)
