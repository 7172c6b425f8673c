"""Suites of comparisons: those that are shipped, and what `fcgi-host compare --suite` makes of a suite file."""
import json
import os
import re
import signal
import subprocess

import pytest

from lib import paths, suite_programs, yaml_text
from lib.handlers import HELLO
from lib.host import install_script
from lib.wait import wait_until
from test_compare import Compare, rows

SHIPPED = sorted(p.name.removesuffix(".yaml.in") for p in (paths.REPO / "conf" / "suites").glob("*.yaml.in"))

# Answers every request with the same greeting: --port N, or as a CGI program.
SERVER = """#!/usr/bin/python3 -IS
import os, sys
if "REQUEST_METHOD" in os.environ:
    print("Content-Type: text/plain\\n\\nhello " + os.environ.get("WHO", "nobody"))
    sys.exit()
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = ("hello " + os.environ.get("WHO", "nobody") + "\\n").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_request(self, *_):
        pass
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""

# Says who is greeted, and leaves a note when it is told to take everything down.
SETUP = """#!/bin/sh
touch "$FCGI_HOST_SETUP_DIR/mine"
echo WHO=world
echo ready
cat >/dev/null
[ -e "$FCGI_HOST_SETUP_DIR/mine" ] && echo down >>{folder}/taken-down
"""


class Suite:
    """A folder with a suite file and its programs, and what `compare --suite` says of it."""

    def __init__(self, make_host, folder):
        self.compare = Compare(make_host, folder).of({"hello": HELLO})
        self.folder = folder
        self.file = folder / "suite.yaml"
        install_script(folder, "server", SERVER)
        install_script(folder, "setup", SETUP.format(folder=folder))

    def write(self, suite):
        text = suite if isinstance(suite, str) else yaml_text.block(suite) + "\n"
        self.file.write_text(text)
        self.file.chmod(0o644)

    def run(self, suite, *arguments, timeout=60):
        self.write(suite)
        done = self.compare.host.command("compare", "--suite", str(self.file), *arguments, timeout=timeout)
        self.compare.check_left()
        done.text, done.said = done.stdout.decode(), done.stderr.decode()
        return done

    def taken_down(self):
        return (self.folder / "taken-down").exists()


@pytest.fixture
def suite(make_host, folder):
    return Suite(make_host, folder)


def tiny(**more):
    """Two groups, a setup, a native server, and published figures."""
    served = {"server": {"command": ["server", "{port}"]}, "url": "http://127.0.0.1:{port}"}
    return {
        "suite": "tiny", "title": "A greeting", "question": "Which way?", "published": {"note": "elsewhere, long ago"}, "setup": ["./setup"],
        "load": {"requests": 32, "blocks": 8, "concurrency": 2, "path": "/hello", "expect": {"status": 200, "contains": "hello world"}},
        "groups": {
            "one": {"baseline": "native", "ways": {
                "per-request": {"title": "a process each time", "handler": {"command": "server"}, "published": {"mean_ms": 12, "p99_ms": 30}},
                "native": {**served, "published": {"mean_ms": 4}},
            }},
            "two": {"baseline": "native", "ways": {
                "own": {"handler": {"command": "server", "env": {"WHO": "world and all"}}, "requests": 16, "published": {"ratio": 7}},
                "native": served,
            }},
        }, **more,
    }


def tables(text):
    """{group: (table, text of the group)}"""
    parts = re.split(r"^== (\S+)$", text, flags=re.M)
    return {name: (rows(part), part) for name, part in zip(parts[1::2], parts[2::2])}


# --- a suite of the test's own

def test_a_suite_is_run_to_its_end(suite):
    given = tiny()
    given["groups"]["two"]["answers"] = "any"
    done = suite.run(given)
    assert done.returncode == 0 and not done.said, done
    assert done.text.startswith("tiny: A greeting\nWhich way?\n")
    assert re.search(r"^published: +elsewhere, long ago$", done.text, re.M)
    found = tables(done.text)
    assert list(found) == ["one", "two"]
    table, text = found["one"]
    assert table["native"]["RATIO"] == "1 (baseline)" and table["per-request"]["FAILED"] == "0"
    assert re.fullmatch(r"\S+ \(\S+ to \S+\).*", table["per-request"]["RATIO"])
    assert "  per-request: a process each time\n" in text
    assert re.search(r"^  per-request: mean 12\.0 ms p99 30\.0 ms ratio 3\.00; ours \d+ requests a second, mean \S+ ms, p99 \S+ ms, ratio \S+$", text, re.M), text
    assert re.search(r"^  native: mean 4\.00 ms; ours", text, re.M)
    table, text = found["two"]
    assert re.search(r"^  own: ratio 7\.00; ours", text, re.M) and table["own"]["FAILED"] == "0"
    assert suite.taken_down()


def test_its_figures_as_json(suite):
    given = tiny()
    given["groups"]["two"]["answers"] = "any"
    result = json.loads(suite.run(given, "--json").stdout)
    assert result["suite"] == "tiny" and [c["name"] for c in result["comparisons"]] == ["one", "two"]
    one, two = ({way["name"]: way for way in c["ways"]} for c in result["comparisons"])
    assert one["per-request"]["published"] == {"mean_ms": 12, "p99_ms": 30, "ratio": 3}
    assert one["native"]["state"] == "measured" and one["native"]["requests"] == 32
    assert two["own"]["requests"] == 16 and two["own"]["published"]["ratio"] == 7


def test_the_setup_names_what_handlers_and_servers_see_and_their_own_wins(suite):
    """`own` greets someone else than the setup says, and only its group is wrong for that."""
    found = tables(suite.run(tiny()).text)
    assert found["one"][0]["per-request"]["FAILED"] == "0"
    assert "hello world and all" in found["two"][0]["own"]["note"]


def test_a_fastcgi_server_on_a_socket_of_the_suite(suite, fastcgi_program):
    install_script(suite.folder, "listen", f"""#!/usr/bin/python3 -IS
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(64)
os.dup2(s.fileno(), 0)
os.execv("{fastcgi_program}", ["{fastcgi_program}"])
""")
    given = tiny(setup=["./setup"])
    given["load"] = {"requests": 32, "blocks": 8, "path": "/hello?body=10"}
    given["groups"] = {"g": {"baseline": "connect", "answers": "any", "ways": {
        "connect": {"server": {"command": ["listen", "{socket}"]}, "connect": "unix:{socket}"},
        "persistent": {"handler": {"command": str(fastcgi_program), "protocol": "fastcgi"}}}}}
    table = tables(suite.run(given).text)["g"][0]
    assert table["connect"]["RATIO"] == "1 (baseline)" and table["persistent"]["FAILED"] == "0", table


# --- what does not run

def notes(suite, **ways):
    """What the table says of these ways beside one that runs."""
    given = tiny()
    given["groups"] = {"g": {"baseline": "ours", "ways": {"ours": {"handler": {"command": "server"}}, **ways}}}
    done = suite.run(given)
    assert done.returncode == 0 and not done.said, done
    table = tables(done.text)["g"][0]
    assert table["ours"]["RATIO"] == "1 (baseline)"
    return {name: table[name].get("note") for name in ways}


def test_what_is_not_installed_is_named_with_its_package(suite):
    url = {"url": "http://127.0.0.1:{port}", "server": {"command": ["server", "{port}"]}}
    found = notes(suite,
                  program={"handler": {"command": "server"}, "needs": {"no-such-program-at-all": "such-a-package"}},
                  path={**url, "needs": {"/no/such/program": "such-a-package, then make it"}},
                  relative={**url, "needs": {"./not-built": "a-compiler"}},
                  pattern={**url, "needs": {"/no/*/such.so": "such-a-library"}},
                  built={"handler": {"command": "./not-built"}, "needs": {"./not-built": "a-compiler, then make"}},
                  there={**url, "needs": {"sh": "dash", "/bin/sh": "dash", "/bin/s?": "dash", "./server": "nothing"}})
    assert found == {
        "program": "not run: no-such-program-at-all is not installed (Debian: such-a-package)",
        "path": "not run: /no/such/program is not installed (Debian: such-a-package, then make it)",
        "relative": f"not run: {suite.folder}/not-built is not installed (Debian: a-compiler)",
        "pattern": "not run: /no/*/such.so is not installed (Debian: such-a-library)",
        "built": f"not run: {suite.folder}/not-built is not installed (Debian: a-compiler, then make)",
        "there": None,
    }


def test_ways_that_do_not_run_leave_the_others(suite):
    install_script(suite.folder, "fails", "#!/bin/sh\necho 'there is no disk' >&2\nexit 3\n")
    static = suite.folder / "static"
    (suite.folder / "static.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["cc", "-static", "-o", str(static), str(suite.folder / "static.c")], check=True)
    found = notes(suite,
                  parked={"handler": {"command": "static", "process": "parked"}},
                  scgi={"handler": {"command": "server", "protocol": "scgi"}},
                  fails={"server": {"command": ["fails"]}, "url": "http://127.0.0.1:{port}"},
                  silent={"handler": {"command": "fails"}},
                  other={"handler": {"command": "server", "env": {"WHO": "someone"}}})
    assert re.fullmatch(rf"not run: cannot be process: parked: {static} is linked statically.*", found["parked"])
    assert found["scgi"] == "not run: 'scgi' is not yet supported"
    assert re.fullmatch(r"not run: .*/fails ended with exit status 3: there is no disk", found["fails"])
    assert re.match(r"not run: it answers with status 502 instead of 200; the log of its host: reason=", found["silent"])
    assert re.match(r"no figures: its answer does not contain 'hello world'", found["other"])


@pytest.mark.parametrize("script, words", [
    ("echo 'no database here' >&2; exit 4", "the setup ended with exit status 4: no database here"),
    ("echo WHO=world; exit 0", "the setup ended with exit status 0"),
    ("echo nonsense; echo ready; cat", "the setup printed 'nonsense', which is no NAME=VALUE"),
])
def test_a_setup_that_fails_is_told_and_nothing_is_run(suite, script, words):
    install_script(suite.folder, "setup", "#!/bin/sh\n" + script + "\n")
    done = suite.run(tiny())
    assert done.returncode == 1 and not done.text and words in done.said, done


def test_a_setup_that_is_not_there_is_told(suite):
    done = suite.run(tiny(setup=["./no-such-setup"]))
    assert done.returncode == 1 and not done.text and "no-such-setup cannot be started: No such file or directory" in done.said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_takes_the_setup_down(suite, number):
    given = tiny()
    given["load"].update(requests=8000, blocks=400)
    suite.write(given)
    process = suite.compare.host.spawn("compare", "--suite", str(suite.file), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: any(b"event=request" in p.read_bytes() for p in suite.compare.temporary.glob("*/host-*.log")), 30, "a request")
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    suite.compare.check_left()
    assert process.returncode == 130 and b"interrupted: the results are partial" in err and b"PARTIAL" in out
    assert suite.taken_down()


# --- mistakes in the file

def test_every_mistake_is_told_with_line_and_column(suite):
    done = suite.run("""\
suite: tiny
title: A greeting
question: Which way?
load: {requests: 32, blocks: 7, conccurrency: 3}
groups:
  one:
    baseline: nativ
    ways:
      native:
        url: ftp://127.0.0.1
      other:
        handler: {comand: server}
      third:
        title: nothing
""")
    assert done.returncode == 1 and not done.text
    assert done.said.splitlines() == [f"{suite.file}:{line}" for line in (
        "4:30: load.blocks: is odd: blocks come in pairs, of which one is run in reverse order",
        "4:33: load: there is no key 'conccurrency', did you mean 'concurrency'?",
        "7:15: groups.one.baseline: there is no way 'nativ', did you mean 'native'?",
        "10:14: groups.one.ways.native.url: 'ftp://127.0.0.1' is no URL such as http://127.0.0.1:{port}/hello",
        "12:18: groups.one.ways.other.handler: needs one of 'command', 'scripts' and 'connect'",
        "12:19: groups.one.ways.other.handler: there is no key 'comand', did you mean 'command'?",
        "14:9: groups.one.ways.third: needs one of 'handler', 'url' and 'connect'",
    )]


def test_a_file_that_others_may_write_is_refused(suite):
    suite.write(tiny())
    suite.file.chmod(0o666)
    done = suite.compare.host.command("compare", "--suite", str(suite.file))
    assert done.returncode == 1 and b"lets others than its owner write it" in done.stderr


def test_a_suite_goes_with_no_other_load(suite):
    done = suite.run(tiny(), "-n", "5")
    assert done.returncode == 2 and "--suite goes with" in done.said


# --- the document

FORMAT = (paths.REPO / "conf" / "suites" / "README.md").read_text()


def test_the_example_of_the_format_is_a_good_suite(suite):
    example = re.search(r"^```yaml\n(.*?)^```", FORMAT, re.M | re.S)[1].replace("@PROGRAMS@", str(suite.folder))
    done = suite.run(example.replace("[/path/of/setup-program, argument]", "./setup"))
    assert done.returncode == 1 and done.said == "fcgi-host compare: nothing could be measured\n", done
    assert {row["note"].split(":")[0] for row in tables(done.text)["go"][0].values()} == {"not run"} and suite.taken_down()


def test_the_format_has_every_key():
    def rows_of(source, table):
        text = (paths.REPO / "fcgi-host" / "compare" / source).read_text()
        return set(re.findall(r'\.name = "(\w+)"', re.search(rf"{table}\[\] = {{(.*?)^}};", text, re.M | re.S)[1]))
    loads = re.search(r"^## Keys of `load`\n(.*?)^## ", FORMAT, re.M | re.S)[1]
    assert set(re.findall(r"^\| `(\w+)`", loads, re.M)) == rows_of("suite_request.c", "load_rows")
    for table in ("way_rows", "group_rows", "server_rows", "published_rows"):
        for key in rows_of("suite_ways.c", table):
            assert f"`{key}`" in FORMAT, key
    for key in rows_of("suite.c", "rows"):
        assert f"`{key}`" in FORMAT, key


# --- pages of results

def test_a_page_of_results_says_how_it_was_made_and_no_place_of_the_machine(suite):
    build = suite.folder / "build"
    for name in ("fcgi-host", "conf/suites"):
        (build / name).mkdir(parents=True, mode=0o755)
    (build / "fcgi-host" / "fcgi-host").symlink_to(paths.program())
    given = tiny()
    given["setup"] = [str(suite.folder / "setup")]
    given["groups"]["two"]["ways"]["missing"] = {"handler": {"command": str(build / "no-such-program")}}
    text = yaml_text.block(given).replace("command: server", f"command: {suite.folder}/server").replace("[server", f"[{suite.folder}/server")
    (build / "conf/suites/tiny.yaml").write_text(text + "\n")
    out = suite.folder / "out"
    out.mkdir()
    done = subprocess.run([paths.REPO / "doc/results/run-suites", "-o", out, build, "tiny"], env={**suite.compare.host.environ(), "PATH": os.environ["PATH"]},
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=50)
    suite.compare.check_left()
    assert done.returncode == 0, done
    page = (out / "tiny.md").read_text()
    assert page.startswith("# tiny: A greeting\n\nWhich way?\n\n- machine: ")
    assert "\n- command: `fcgi-host compare --suite conf/suites/tiny.yaml`\n" in page
    assert re.search(r"^- began: \d{4}-\d\d-\d\dT", page, re.M) and re.search(r"^- versions: fcgi-host .*Python 3\.", page, re.M)
    assert re.findall(r"^## (.*)\n\n```\nanswers:", page, re.M) == ["one", "two"] and page.count("```") == 4
    assert "Published, and ours:" in page and re.search(r"^missing +not run: .*no-such-program", page, re.M)
    assert str(build) not in page and str(suite.compare.temporary) not in page and os.uname().nodename not in page.split()


def test_without_a_build_it_says_how_it_is_used(suite):
    done = subprocess.run([paths.REPO / "doc/results/run-suites"], capture_output=True)
    assert done.returncode == 2 and b"usage: doc/results/run-suites" in done.stderr


# --- those that are shipped

def source_of(name):
    return (paths.REPO / "conf" / "suites" / f"{name}.yaml.in").read_text()


def test_five_suites_are_shipped():
    assert SHIPPED == ["burst", "hello-servers", "hello-web", "json-greeting", "user-lookup"]
    listed = re.findall(r"^\| `([a-z-]+)` \|", (paths.REPO / "conf/suites/README.md").read_text(), re.M)
    assert sorted(name for name in listed if name in SHIPPED) == SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_what_a_suite_runs_is_there_or_is_built_for_it(name):
    text = source_of(name)
    scripts = set(re.findall(r"@SCRIPTS@/([\w./-]+)", text))
    programs = set(re.findall(r"@PROGRAMS@/([\w./-]+)", text))
    assert scripts | programs
    for script in scripts:
        assert os.access(paths.REPO / "handlers" / script, os.R_OK), script
    rule = re.search(rf"^suite-{name}:(.*)$", (paths.REPO / "handlers/local.mk").read_text(), re.M)[1]
    assert {word.removeprefix("%D%/") for word in rule.split()} == programs


@pytest.mark.parametrize("name", SHIPPED)
def test_the_packages_that_a_suite_names_are_installed_for_it(name):
    """By ./quickstart --suite and, for these tests, by ./check."""
    named = set()
    for needs in re.findall(r"^ +needs: \{(.*)\}", source_of(name), re.M):
        for package in re.findall(r': "?([^",]+)(?:, then make suite-([\w-]+))?"?', needs):
            named.update(package[0].split())
            assert package[1] in ("", name), needs
    quick = set(re.search(rf"^{name}\) suite_packages=\((.*)\) ;;$", (paths.REPO / "quickstart").read_text(), re.M)[1].split())
    checked = set(re.search(r"^need_packages (.*?) \|\| exit 1$", (paths.REPO / "check").read_text(), re.M | re.S)[1].replace("\\\n", " ").split())
    assert named and named <= quick, named - quick
    assert quick - {"g++", "util-linux"} <= checked, quick - checked


@pytest.mark.plain        # a program with a sanitizer in it cannot be parked
@pytest.mark.limit(300)
@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_suite_comes_to_its_end(suite, name):
    """With few requests: every way answers as all others do, or is not run for a reason that is known."""
    build = paths.BUILD_PLAIN
    suite_programs.build_suite(build, name)
    text = (build / "conf" / "suites" / f"{name}.yaml").read_text()
    text = re.sub(r"^( +requests:) \d+", r"\1 16", text, flags=re.M)
    text = re.sub(r"^( +blocks:) \d+", r"\1 4", text, flags=re.M)
    text = re.sub(r"^( +concurrency:) \d+", r"\1 4", text, flags=re.M)
    text = re.sub(r"\./user-lookup-database", str(build / "conf/suites/user-lookup-database"), text)
    done = suite.run(text, "--json", timeout=280)
    assert done.returncode == 0, done
    result = json.loads(done.text)
    assert result["suite"] == name
    for group in result["comparisons"]:
        for way in group["ways"]:
            where = f"{group['name']}.{way['name']}: {way.get('reason')}"
            if way["state"] == "measured":
                assert way["failed"] == 0, where
            else:
                assert way["state"] == "not run" and suite_programs.is_excuse(way["reason"]), where
    assert any(way["published"] for group in result["comparisons"] for way in group["ways"])
