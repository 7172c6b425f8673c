"""`fcgi-host compare`: what it measures, how it says it, and that it leaves nothing behind."""
import csv
import fcntl
import io
import json
import os
import pathlib
import pty
import re
import shlex
import signal
import socket
import struct
import subprocess
import termios

import pytest

from lib import proc
from lib.browser import chromium
from lib.handlers import HELLO
from lib.wait import free_port, wait_until
from test_status_page import ACCESS

SHORT = ("-n", "64", "--blocks", "8")
COLUMNS = ["WAY", "REQ/S", "MIN", "MEAN", "SD", "P50", "P90", "P95", "P99", "MAX", "CPU", "FAULTS", "SWITCHES", "IDLE", "FAILED", "RATIO"]


def users_of(folder):
    """Living processes whose command or environment names the folder."""
    word, found = str(folder).encode(), []
    for pid in proc.pids():
        try:
            text = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() + pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if word in text and proc.is_alive(pid):
            found.append((pid, text[:200]))
    return found


class Compare:
    """A configuration with what a test compares, and a folder for what a comparison makes."""

    def __init__(self, make_host, folder):
        self.make_host, self.folder = make_host, folder
        self.temporary = folder / "t"
        self.temporary.mkdir(mode=0o755)

    def of(self, handlers, **options):
        self.host = self.make_host(handlers, start=False, environment={"TMPDIR": str(self.temporary)}, **options)
        return self

    def run(self, *arguments, timeout=60):
        done = self.host.command("compare", "-c", str(self.host.config), *arguments, timeout=timeout)
        self.check_left()
        done.text, done.said = done.stdout.decode(), done.stderr.decode()
        return done

    def json(self, *arguments, **more):
        done = self.run("--json", *arguments, **more)
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    def wait_end(self):
        wait_until(lambda: not users_of(self.temporary), 15, "the end of all processes")

    def check_left(self):
        assert not list(self.temporary.iterdir()), "a folder was left"
        self.wait_end()
        assert not self.host.sanitizer_reports()


@pytest.fixture
def compare(make_host, folder):
    return Compare(make_host, folder)


def rows(text):
    """{way: {column: text}} of the table."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("WAY "))
    assert lines[at].split() == COLUMNS
    found = {}
    for line in lines[at + 1:]:
        if line.startswith("Times in ms"):
            break
        cells = re.split(r"\s{2,}", line.strip())
        found[cells[0]] = dict(zip(COLUMNS, cells)) if len(cells) == len(COLUMNS) else {"note": cells[1]}
    return found


def ways(result):
    [comparison] = result["comparisons"]
    return {way["name"]: way for way in comparison["ways"]}


# --- what it measures

@pytest.fixture
def fastcgi(compare, fastcgi_program):
    """The libfcgi program, which prints how it was asked: the same each time, in every way."""
    return compare.of({"app": {"command": [str(fastcgi_program)], "protocol": "fastcgi"}})


SAME = ("--path", "/app/x?body=100", "--ways", "per-request,persistent")


def test_the_table_of_a_c_program_in_both_ways(fastcgi):
    done = fastcgi.run("app", "-n", "400", "--blocks", "20", *SAME)
    assert done.returncode == 0, done
    table = rows(done.text)
    assert set(table) == {"per-request", "persistent"}
    for name, row in table.items():
        assert set(row) == set(COLUMNS), row
        order = [float(row[c]) for c in ("MIN", "P50", "P90", "P95", "P99", "MAX")]
        assert order == sorted(order) and 0 < order[0] <= float(row["MEAN"]) <= order[-1], row
        assert float(row["CPU"]) > 0 and float(row["SWITCHES"]) > 0 and row["FAILED"] == "0", row
    once, kept = table["per-request"], table["persistent"]
    assert float(once["CPU"]) > 2 * float(kept["CPU"]) and float(once["FAULTS"]) > 20 + float(kept["FAULTS"])
    assert float(once["IDLE"]) == 0 < float(kept["IDLE"])
    assert kept["RATIO"] == "1 (baseline)"
    value, low, high = map(float, re.fullmatch(r"(\S+) \((\S+) to (\S+)\)(?:, no difference shown)?", once["RATIO"]).groups())
    assert 0 < low <= value <= high
    parts = re.search(r"^A process of per-request, mean in ms: start \(fork to exec\) (\S+), exec to first byte (\S+), first byte to end (\S+), exit (\S+)\.$",
                      done.text, re.M)
    assert all(float(x) >= 0 for x in parts.groups()) and float(parts[2]) > 0
    advice = " ".join(done.text[parts.end():].split())
    assert re.search(r"Up to .+ per-request costs least, above .+ persistent", advice)
    assert "of CPU for a request and holds nothing between requests" in advice and "MiB all the time" in advice
    assert "the quickest is persistent: half of its answers come within" in advice


def test_the_exact_command_and_the_machine_are_printed(fastcgi):
    arguments = ("app", *SHORT, *SAME, "-H", "X-It's: a \"test\"")
    done = fastcgi.run(*arguments)
    command = re.search(r"^command: +(.*)$", done.text, re.M)[1]
    given = shlex.split(command)
    assert given[0] == "fcgi-host" and sorted(given[1:]) == sorted(["compare", "-c", str(fastcgi.host.config), *arguments])
    uname = os.uname()
    machine = re.search(r"^machine: +(\d+) x (.+)$", done.text, re.M)
    assert int(machine[1]) == os.cpu_count() and f"{uname.sysname} {uname.release}" in machine[2] and "GiB" in machine[2]
    assert re.search(r"^versions: fcgi-host \d", done.text, re.M) and re.search(r"^began: +\d{4}-\d\d-\d\dT\S+Z, took \d+ s$", done.text, re.M)
    assert re.search(r"^load: +closed loop, 1 at a time; GET /app/x\?body=100; connections kept$", done.text, re.M)
    assert re.search(r"^blocks: +8 of each way, in turn, there and back, of 8 requests each$", done.text, re.M)


def test_a_way_against_itself_comes_first(fastcgi):
    done = fastcgi.run("app", *SHORT, *SAME)
    assert re.search(r"^noise: +persistent against itself: \S+ \(\S+ to \S+\)", done.text, re.M)
    [comparison] = fastcgi.json("app", *SHORT, *SAME)["comparisons"]
    noise = comparison["noise"]
    assert noise["low"] <= noise["value"] <= noise["high"] and comparison["is_noisy"] == noise["is_shown"]


def test_the_baseline_and_the_ways_can_be_chosen(fastcgi):
    [comparison] = fastcgi.json("app", *SHORT, *SAME, "--baseline", "per-request")["comparisons"]
    assert comparison["baseline"] == "per-request" and comparison["ways"][-1]["ratio"]["value"] > 0
    assert set(ways(fastcgi.json("app", *SHORT, *SAME[:2], "--ways", "persistent"))) == {"persistent"}
    for arguments, words in ((("--ways", "forever"), "no process 'forever'"), (("--baseline", "native"), "baseline 'native'")):
        done = fastcgi.run("app", *arguments)
        assert done.returncode == 1 and words in done.said and not done.text


def test_processes_that_wait_are_a_way_where_a_program_can_wait(compare):
    compare.of({"hello": {"command": ["/bin/cat"], "protocol": "stdio"}})
    done = compare.run("hello", *SHORT, "--ways", "per-request,parked", "--rate", "50", "-d", "x")
    table = rows(done.text)
    assert set(table["parked"]) == set(COLUMNS) and "process of parked" not in done.text and "process of per-request" in done.text, done
    way = ways(compare.json("hello", *SHORT, "--ways", "per-request,parked", "-d", "x"))["parked"]
    assert way["starts"]["ahead"] > 0 and way["usage"]["page_faults"] > 20, "what was done ahead counts"
    assert "asks again at once" in compare.run("hello", *SHORT, "--ways", "parked", "-d", "x").text


def test_a_libfcgi_program_is_run_in_all_four_ways(fastcgi):
    result = fastcgi.json("app", "-n", "160", "--blocks", "8", *SAME[:2])
    assert {name: way["state"] for name, way in ways(result).items()} == dict.fromkeys(("per-request", "parked", "zygote", "persistent"), "measured"), result
    for name, way in ways(result).items():
        assert way["failed"] == 0 and way["requests"] == 160 and (way["starts"]["ahead"] > 0) == (name in ("parked", "zygote")), way


def test_what_would_not_wait_is_not_measured_as_if_it_did(compare):
    compare.of({"hello": HELLO})
    compare.host.environment["FCGI_HOST_SHIMS"] = str(compare.folder)
    table = rows(compare.run("hello", *SHORT, "--ways", "per-request,parked").text)
    assert table["parked"]["note"].startswith("not run: it cannot be parked: ") and "RATIO" in table["per-request"]


def test_a_cgi_script_has_its_ways_and_the_program_may_be_named_on_the_line(compare):
    compare.of({"hello": HELLO})
    assert "per-request" in rows(compare.run("hello", *SHORT).text)
    done = compare.run("--command", "handlers/hello", *SHORT)
    assert done.returncode == 0 and "per-request" in rows(done.text), done
    done = compare.run("--command", "/bin/cat", "--protocol", "stdio", "-d", "ping", *SHORT)
    assert done.returncode == 0 and "POST /, 4 bytes of body" in done.text, done


def test_an_open_loop_counts_from_the_intended_moment(fastcgi):
    done = fastcgi.run("app", "--rate", "200", "-n", "160", "--blocks", "8", "--path", "/app/x?body=1&sleep=2", *SAME[2:])
    assert done.returncode == 0 and "open loop, 200 requests a second at random moments" in done.text, done
    for row in rows(done.text).values():
        assert row["FAILED"] == "0" and float(row["REQ/S"]) > 0 and float(row["MIN"]) >= 2


def test_more_requests_at_a_time_than_a_handler_takes_are_failures(compare, fastcgi_program):
    compare.of({"app": {"command": [str(fastcgi_program)], "protocol": "fastcgi", "workers": {"max": 1}, "queue": {"max": 1}}})
    done = compare.run("app", *SHORT, "--concurrency", "8", "--ways", "persistent", "--path", "/app/x?body=1&sleep=5")
    row = rows(done.text)["persistent"]
    assert int(row["FAILED"]) > 0 and float(row["REQ/S"]) > 0
    assert re.search(r"persistent: \d+ of \d+ requests failed: an answer had status 503 instead of 200.*in no figure", done.text)


def test_a_server_that_leaves_connections_waiting_is_told_at_once(compare, fastcgi_program, folder):
    """One process of libfcgi serves one kept connection until that ends."""
    compare.of({})
    path = folder / "app.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(128)
        app = subprocess.Popen([str(fastcgi_program)], stdin=listener)
    try:
        arguments = ("--connect", f"unix:{path}", "--concurrency", "4", "--timeout", "1", *SHORT, "--path", "/?body=9")
        done = compare.run(*arguments)
        assert done.returncode == 1
        assert rows(done.text)["connect"]["note"] == ("not run: no answer within 1 s, with 4 at a time; "
                                                      "a server with fewer processes than connections needs --no-keep")
        assert rows(compare.run(*arguments, "--no-keep").text)["connect"]["FAILED"] == "0"
    finally:
        app.kill()
        app.wait()


def test_numbers_in_the_path_ask_for_different_things(compare):
    compare.of({"user": "printf 'Content-Type: text/plain\\n\\n'; echo $PARAM_ID; echo $PARAM_ID >>$SCRATCH/asked"},
               routes=[{"path": "/users/{id}", "handler": "user"}])
    assert compare.run("user", *SHORT, "--path", "/users/{7..9}").returncode == 0
    assert set((compare.host.scratch / "asked").read_text().split()) == {"7", "8", "9"}


def test_the_request_is_one_that_the_first_route_takes(compare):
    compare.of({"h": "printf 'Content-Type: text/plain\\n\\n%s %s %s' $REQUEST_METHOD $HTTP_HOST $SCRIPT_NAME$PATH_INFO >$SCRATCH/asked; cat $SCRATCH/asked"},
               routes=[{"path": "/put/{id}/*", "methods": ["PUT", "DELETE"], "host": "api.example.org", "handler": "h"}])
    for arguments, asked in (((), "PUT api.example.org /put/1/"), (("-X", "DELETE", "--path", "/put/x/y"), "DELETE api.example.org /put/x/y")):
        done = compare.run("h", *SHORT, "--ways", "per-request", *arguments)
        assert done.returncode == 0 and (compare.host.scratch / "asked").read_text().endswith(asked), done


def test_the_advice_knows_how_often_the_running_host_is_asked(fastcgi):
    host = fastcgi.host
    temporary = host.environment.pop("TMPDIR")
    host.start()
    host.environment["TMPDIR"] = temporary
    for _ in range(20):
        assert host.request("/app/x?body=1").status == 200
    host.wait_log(event="request", count=20)
    done = fastcgi.run("app", *SHORT, *SAME)
    assert re.search(r"; you now get .+ (?:a second|per .+), where that is (?:persistent|per-request)\.", " ".join(done.text.split())), done.text
    assert len(host.log(event="request")) == 20, "the running host is left alone"


# --- servers that run already, and through a web server

def test_servers_that_run_already(make_host, make_front, compare):
    other = make_host({"hello": HELLO})
    front = make_front("nginx-kept", other)
    compare.of({"hello": HELLO})
    result = compare.json("hello", *SHORT, "--ways", "per-request", "--connect", f"unix:{other.socket}", "--url", front.url("/hello/"), "--native", front.url("/hello/"))
    found = ways(result)
    assert set(found) >= {"per-request", "native", "url", "connect"} and result["comparisons"][0]["baseline"] == "native"
    for way in found.values():
        assert way["state"] == "measured" and way["failed"] == 0 and way["requests"] == 64, way
        assert way["usage"]["cpu_ms"]["all"] > 0 and way["idle"]["mib"]
    done = compare.run("--url", front.url("/hello/"), *SHORT)
    assert done.returncode == 0 and rows(done.text)["url"]["RATIO"] == "1 (baseline)", done


def test_the_server_behind_a_handler_counts_as_the_handler(make_host, compare):
    other = make_host({"hello": HELLO})
    compare.of({"passed": {"connect": f"unix:{other.socket}", "protocol": "fastcgi"}})
    way = ways(compare.json("passed", *SHORT, "--path", "/passed/", "--status", "404"))["persistent"]
    assert way["state"] == "measured" and way["usage"]["cpu_ms"]["handler"] > 0 and way["usage"]["cpu_ms"]["relay"] > 0
    assert way["idle"]["mib"]["handler"] > 0


@pytest.mark.parametrize("server", ["nginx", "apache"])
def test_through_a_private_web_server(fastcgi, server):
    result = fastcgi.json("app", "--via", server, *SHORT, *SAME, "--concurrency", "2")
    assert server in result["machine"]["web_server"].lower() and result["load"]["via"] == server
    for name in ("per-request", "persistent"):
        way = ways(result)[name]
        assert way["state"] == "measured" and way["failed"] == 0, way
        assert way["usage"]["cpu_ms"]["web server"] > 0 and way["idle"]["mib"]["web server"] > 0


# --- what goes wrong

def test_a_way_that_answers_otherwise_loses_its_figures(make_host, compare):
    other = make_host({"hello": "printf 'Content-Type: text/plain\\n\\nHello?\\n'"})
    compare.of({"hello": HELLO})
    done = compare.run("hello", *SHORT, "--connect", f"unix:{other.socket}", "--baseline", "per-request")
    table = rows(done.text)
    assert done.returncode == 0 and table["per-request"]["RATIO"] == "1 (baseline)"
    assert table["connect"] == {"note": "no figures: it answers otherwise than per-request: line 1 of the body is 'Hello?' instead of 'hello'"}
    way = ways(compare.json("hello", *SHORT, "--connect", f"unix:{other.socket}", "--baseline", "per-request"))["connect"]
    assert way["state"] == "wrong" and "latency_ms" not in way


def test_a_way_that_goes_wrong_under_load_loses_its_figures(compare):
    compare.of({"tires": "echo >>$SCRATCH/asked\nprintf 'Content-Type: text/plain\\n\\n'\n"
                         "[ $(wc -l <$SCRATCH/asked) -lt 40 ] && echo right || echo wrong\n"})
    done = compare.run("tires", *SHORT, "--ways", "per-request")
    assert done.returncode == 1 and rows(done.text)["per-request"] == {"note": "no figures: an answer had another body than the first ones"}
    assert "nothing could be measured" in done.said


def test_what_changes_from_request_to_request_is_left_out(compare):
    compare.of({"clock": "printf 'Content-Type: text/plain\\n\\nnow\\n%s\\nend\\n' $(cat /proc/sys/kernel/random/uuid)"})
    done = compare.run("clock", *SHORT)
    assert done.returncode == 0 and re.search(r"^answers: .*what changes from request to request: line 2$", done.text, re.M), done.text


@pytest.mark.parametrize("option, value, words", [
    ("--url", "http://127.0.0.1:{port}/", "url: cannot connect to http://127.0.0.1:{port}/: Connection refused"),
    ("--native", "http://127.0.0.1:{port}/", "native: cannot connect to"),
    ("--connect", "127.0.0.1:{port}", "connect: cannot connect to 127.0.0.1:{port}: Connection refused"),
    ("--connect", "unix:/nowhere/x.sock", "No such file or directory"), ("--url", "ftp://127.0.0.1/", "no URL"),
])
@pytest.mark.parametrize("with_handler", [True, False])
def test_a_server_that_is_not_there(compare, option, value, words, with_handler):
    compare.of({"hello": HELLO})
    port = free_port()
    done = compare.run(option, value.format(port=port), *SHORT, *(["hello"] if with_handler else []))
    assert done.returncode == 1 and not done.text and words.format(port=port) in done.said, done


def test_a_handler_that_is_not_there(compare):
    compare.of({"hello": HELLO})
    done = compare.run("helo")
    assert done.returncode == 1 and not done.text and "no handler 'helo', did you mean 'hello'?" in done.said
    done = compare.run("--command", "no-such-program-at-all")
    assert done.returncode == 1 and not done.text and "no program 'no-such-program-at-all'" in done.said


@pytest.mark.parametrize("script, words", [
    ("exit 3", r"not run: it answers with status 502 instead of 200; the log of its host: reason="),
    ("printf 'Status: 404\\n\\nno\\n'", r"no figures: it answers with status 404 instead of 200"),
])
def test_a_handler_that_does_not_work(compare, script, words):
    compare.of({"broken": script}, log={"format": "json", "level": "error"})
    done = compare.run("broken", *SHORT, "--ways", "per-request")
    assert done.returncode == 1 and "nothing could be measured" in done.said
    assert re.match(words, rows(done.text)["per-request"]["note"]), done.text


@pytest.mark.parametrize("arguments", [
    [], ["a", "b"], ["hello", "--command", "x"], ["hello", "-n", "0"], ["hello", "-n", "x"], ["hello", "--rate", "-1"], ["hello", "--rate", "nan"],
    ["hello", "--blocks", "1"], ["hello", "--concurrency", "0"], ["hello", "-H", "no colon"], ["hello", "--path", "x"], ["hello", "--via", "iis"],
    ["hello", "--status", "99"], ["hello", "--json", "--csv"], ["hello", "--protocol", "cgi"], ["hello", "--nonsense"], ["--suite", "x", "hello"],
    ["--suite", "x", "-n", "5"],
])
def test_a_wrong_command_line_is_told(compare, arguments):
    compare.of({"hello": HELLO})
    done = compare.host.command("compare", *arguments)
    assert done.returncode == 2 and not done.stdout and b"usage: fcgi-host compare" in done.stderr, done


# --- an interrupt

def begin(compare, *arguments):
    """A long comparison that has measured some blocks."""
    process = compare.host.spawn("compare", "-c", str(compare.host.config), *arguments, "-n", "8000", "--blocks", "400",
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def asked():
        assert process.poll() is None, process.communicate()
        return sum(path.read_bytes().count(b"event=request") for path in compare.temporary.glob("*/host-0.log"))
    wait_until(lambda: asked() > 60, 30, "requests in the first way")
    return process


def end(compare, process, number):
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    compare.check_left()
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_after_an_interrupt_there_is_what_was_measured_and_nothing_is_left(fastcgi, number):
    status, out, err = end(fastcgi, begin(fastcgi, "app", *SAME[:2], "--ways", "per-request"), number)
    assert status == 130 and "interrupted: the results are partial" in err
    assert out.count("PARTIAL: interrupted before the end") == 1


def test_an_interrupt_half_way_keeps_whole_rounds(fastcgi):
    process = begin(fastcgi, "app", *SAME, "--json", "--via", "nginx", "--baseline", "persistent")
    status, out, _ = end(fastcgi, process, signal.SIGINT)
    result = json.loads(out)
    assert status == 130 and result["is_partial"] and result["comparisons"][0]["is_partial"]
    found = ways(result)
    assert {way["state"] for way in found.values()} == {"measured"}
    assert len({len(way.get("block_mean_ms", [])) for way in found.values()}) == 1, "as many blocks of each way"


def test_no_process_is_left_when_it_is_killed_outright(fastcgi):
    process = begin(fastcgi, "app", *SAME, "--via", "nginx")
    process.kill()
    process.communicate(timeout=30)
    wait_until(lambda: not users_of(fastcgi.temporary) and not proc.marked(fastcgi.folder), 15, "the end of all processes")


# --- on a terminal

def on_terminal(host, arguments, columns):
    """What it writes to a terminal, stdout and stderr."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = host.spawn("compare", "-c", str(host.config), *arguments, stdout=slave, stderr=slave)
    os.close(slave)
    written = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            piece = b""
        if not piece:
            break
        written += piece
    os.close(master)
    assert process.wait(timeout=10) == 0, written
    return written.decode().replace("\r\n", "\n")


def test_a_terminal_shows_the_stage_and_the_time_left(fastcgi):
    text = on_terminal(fastcgi.host, ["app", *SHORT, *SAME], 200)
    for stage in ("Starting persistent", "Warming up per-request", "Measuring persistent against itself", "Measuring per-request"):
        assert f"\r\x1b[K{stage}" in text, stage
    assert re.search(r"Measuring per-request: \d+ %, \d+ s left", text)
    assert rows(text.rpartition("\x1b[K")[2])["persistent"]["FAILED"] == "0"
    assert "Measuring" not in fastcgi.run("app", *SHORT, *SAME).said


def test_on_a_narrow_terminal_figures_stand_below_each_other(fastcgi):
    text = on_terminal(fastcgi.host, ["app", *SHORT, *SAME], 80)
    table = dict(line.split(None, 1) for line in text.splitlines() if line.split(None, 1)[:1] and line.split()[0] in COLUMNS)
    assert set(table) == set(COLUMNS) and table["WAY"].split() == ["per-request", "persistent"] and table["FAILED"].split() == ["0", "0"]
    assert all(len(line) < 80 for line in text.splitlines() if line.split() and line.split()[0] in COLUMNS)


# --- other forms

def test_csv_has_a_line_for_each_way(fastcgi):
    done = fastcgi.run("app", *SHORT, *SAME, "--csv")
    comments = [line for line in done.text.splitlines() if line.startswith("#")]
    assert "fcgi-host compare" in comments[1]
    table = {row["way"]: row for row in csv.DictReader(io.StringIO("\n".join(line for line in done.text.splitlines() if not line.startswith("#"))))}
    assert set(table) == {"per-request", "persistent"}
    for row in table.values():
        assert None not in row and None not in row.values() and row["state"] == "measured" and row["requests"] == "64" and row["failed"] == "0"
        assert 0 < float(row["min_ms"]) <= float(row["p50_ms"]) <= float(row["p99_ms"]) <= float(row["max_ms"])
    assert float(table["per-request"]["ratio_low"]) <= float(table["per-request"]["ratio"]) <= float(table["per-request"]["ratio_high"])
    assert table["persistent"]["ratio"] == ""


def test_csv_of_a_way_without_figures_has_all_its_fields(compare):
    compare.of({"broken": "exit 3"})
    lines = [line for line in compare.run("broken", "--csv", "--ways", "per-request").text.splitlines() if not line.startswith("#")]
    [row] = csv.DictReader(lines)
    assert None not in row and None not in row.values() and row["state"] == "not run" and "502" in row["reason"] and row["p99_ms"] == ""


def test_json_has_every_figure(fastcgi):
    result = fastcgi.json("app", *SHORT, *SAME)
    assert result["command"].startswith("fcgi-host compare") and result["machine"]["cpus"] == os.cpu_count() and not result["is_partial"]
    assert result["load"]["kind"] == "closed" and result["generator"]["cpu_ms"] > 0
    way = ways(result)["per-request"]
    assert set(way["latency_ms"]) == {"min", "mean", "sd", "p50", "p90", "p95", "p99", "p99.9", "max"}
    assert set(way["spawn_ms"]) == {"count", "start", "first_byte", "end", "exit"} and 0 < way["spawn_ms"]["count"] <= 64
    assert way["usage"]["page_faults"] > 0 and way["idle"]["handler_processes"] == 0
    assert way["ratio"]["low"] <= way["ratio"]["value"] <= way["ratio"]["high"] and way["difference_ms"]["value"] is not None
    assert len(way["block_mean_ms"]) == 8


# --- the page

@pytest.fixture
def page(make_host, compare, fastcgi_program):
    """A page with two measured ways and one that lost its figures."""
    other = make_host({"app": "printf 'Content-Type: text/plain\\n\\n<b>other</b>\\n'"})
    compare.of({"app": {"command": [str(fastcgi_program)], "protocol": "fastcgi"}})
    done = compare.run("app", *SHORT, *SAME, "--baseline", "persistent", "--connect", f"unix:{other.socket}",
                       "--html", str(compare.folder / "page.html"))
    assert done.returncode == 0, done
    return compare.folder / "page.html"


def test_the_page_needs_nothing_from_elsewhere(page):
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>") and text.rstrip().endswith("</html>")
    assert not re.search(r"""\b(?:src|href|srcset|action)=["'](?!data:,)|@import|url\(""", text), "no address"
    assert "<script" not in text and "<b>" not in text and "&lt;b&gt;other&lt;/b&gt;" in text


@pytest.mark.limit(120)
@pytest.mark.parametrize("size, is_dark", [((1440, 900), False), ((400, 800), False), ((400, 800), True)])
def test_the_page_can_be_read_on_every_screen(page, folder, size, is_dark):
    with chromium(folder, size=size, is_dark=is_dark) as browser:
        browser.get(page.as_uri())
        assert [entry for entry in browser.get_log("browser") if entry["level"] != "DEBUG"] == []
        back = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", back)[:3])) < 200) == is_dark
        assert browser.execute_script(ACCESS.replace("getComputedStyle(e).color)", "getComputedStyle(e)[e.closest('svg') ? 'fill' : 'color'])")) == []
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out sideways"
        outside = browser.execute_script("""return [...document.querySelectorAll('svg text, svg rect, svg path')].filter(e => {
            const a = e.getBoundingClientRect(), b = e.closest('figure').getBoundingClientRect();
            return a.left < b.left || a.right > b.right || a.top < b.top || a.bottom > b.bottom }).map(e => e.outerHTML)""")
        assert outside == [], "every mark and text of a chart is within its figure"


@pytest.mark.limit(120)
def test_the_page_has_the_charts_and_the_table(page, folder):
    with chromium(folder) as browser:
        browser.get(page.as_uri())
        figures = browser.execute_script("return [...document.querySelectorAll('figure')].map(f => f.querySelector('h3').innerText)")
        assert figures == ["How long requests took", "CPU for a request", "Percentiles", "Memory held while idle"]
        assert browser.execute_script("return document.querySelectorAll('.curves .plot .curve').length") == 2
        assert browser.execute_script("return [...document.querySelectorAll('.plot > svg')].every(s => s.getAttribute('role') == 'img' && s.getAttribute('aria-label'))")
        widths = browser.execute_script("return [...document.querySelectorAll('figure:nth-of-type(3) rect')].map(r => r.getBoundingClientRect().width)")
        assert len(widths) == 10 and all(a >= b for a, b in zip(widths[::2][1:], widths[::2])), "median to longest grow"
        table = browser.execute_script("return [...document.querySelectorAll('table')[0].rows].map(r => [...r.cells].map(c => c.innerText))")
        assert [row[0] for row in table] == ["way", "per-request", "persistent", "connect"]
        assert len(table[1]) == len(table[0]) == 16 and table[2][1] == "1 (baseline)" and "answers otherwise" in table[3][2]
        levels = browser.execute_script("return [...document.querySelectorAll('h1,h2,h3')].map(h => +h.tagName[1])")
        assert levels[0] == 1 and all(b - a <= 1 for a, b in zip(levels, levels[1:])), "headings in order"


def test_a_page_that_cannot_be_written_is_told(fastcgi):
    done = fastcgi.run("app", *SHORT, *SAME, "--html", "/nowhere/page.html")
    assert done.returncode == 1 and "/nowhere/page.html: No such file or directory" in done.said and rows(done.text)
