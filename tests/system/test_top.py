"""`fcgi-host top`: the figures of `status`, alive, in a terminal."""
import os
import re
import signal

import pytest

from lib.handlers import HELLO, worker
from lib.terminal import Terminal
from lib.wait import wait_until
from test_status import PARKED, UNTIL_GO, ZYGOTE, hold, of, status
from test_status_page import LONG_NAME


@pytest.fixture
def make_top():
    running = []

    def make(host, *arguments, **options):
        top = Terminal([host.program, "top", "-c", str(host.config), *arguments], host.environ(), **options)
        running.append(top)
        return top
    yield make
    for top in running:
        top.close()


def rows_of(lines):
    """{handler: {title: cell}} by where the titles stand."""
    head = next((i for i, line in enumerate(lines) if line.startswith("HANDLER")), None)
    if head is None:
        return {}
    titles = re.findall(r"\S+", lines[head].replace("LAST SECONDS", ""))
    rows = {}
    for line in lines[head + 1:]:
        cells = line.split()
        if not cells or line.startswith(("RECENT", "q quit")):
            break
        rows[cells[0]] = dict(zip([t.rstrip("v^") for t in titles], cells))
    return rows


def test_it_shows_what_status_says_and_goes_with_q(make_host, make_top, fastcgi_program):
    host = make_host({"h": HELLO, "w": worker(fastcgi_program, workers={"min": 1, "max": 3}), "none": "exit 3"})
    for path in ("/h", "/w", "/w", "/none"):
        host.request(path)
    host.wait_log(event="request", count=4)
    top = make_top(host, columns=180)
    lines = top.wait_for(lambda lines: set(rows_of(lines)) == {"h", "w", "none"} and lines)
    assert "running" in lines[0] and str(host.relay) in lines[0] and lines[-1].startswith("q quit")
    rows, reading = rows_of(lines), status(host)
    for name, row in rows.items():
        handler = of(reading, name)
        assert (row["PROCESS"], row["MAX"]) == (handler["process"], str(handler["configured"]["workers"]["max"]))
        assert row["REQUESTS"] == str(handler["totals"]["requests"])
        assert float(row["P95"].removesuffix("ms")) == pytest.approx(handler["latency_ms"]["p95"], abs=0.51)
    assert [rows[n]["FAILED"] for n in ("h", "w", "none")] == ["0", "0", "1"]
    failure = next(line for line in lines if reading["failures"][0]["id"] in line)
    assert "bad_gateway" in failure and "/none" in failure and "exit status 3" in failure
    top.type(b"q")
    assert top.wait_end() == 0
    assert top.is_restored(), "the terminal is as it was"


def test_it_is_alive(make_host, make_top):
    host = make_host({"h": {"script": UNTIL_GO, "workers": {"max": 1}, "queue": {"max": 5}}, "other": HELLO})
    top = make_top(host)
    top.wait_for(lambda lines: rows_of(lines).get("h", {}).get("WAIT") == "0")
    held = [hold(host, "/h") for _ in range(3)]
    top.wait_for(lambda lines: (rows_of(lines)["h"]["BUSY"], rows_of(lines)["h"]["WAIT"]) == ("1", "2"), what="a busy process and two that wait")
    (host.scratch / "go").write_text("")
    for conn in held:
        assert conn.answer().status == 200
        conn.close()
    top.wait_for(lambda lines: (rows_of(lines)["h"]["BUSY"], rows_of(lines)["h"]["WAIT"]) == ("0", "0"))
    for _ in range(30):
        host.request("/other")
    top.wait_for(lambda lines: float(rows_of(lines)["other"]["REQ/S"]) > 1, what="a rate")


def test_it_takes_a_new_size(make_host, make_top):
    host = make_host({f"handler-{i}": HELLO for i in range(12)})
    top = make_top(host, columns=60, lines=12)
    lines = top.wait_for(lambda lines: len(rows_of(lines)) == 7 and lines)
    assert all(len(line) <= 60 for line in lines) and "P99" not in lines[3]
    top.resize(180, 40)
    lines = top.wait_for(lambda lines: len(rows_of(lines)) == 12 and lines, what="all rows on a larger screen")
    assert "REQUESTS" in lines[3] and lines[39].startswith("q quit")
    top.resize(30, 8)
    top.wait_for(lambda lines: len(rows_of(lines)) == 3 and lines[7].startswith("q quit"), what="a small screen")
    for size in ((10, 3), (1, 1), (300, 100)):
        top.resize(*size)
    top.wait_for(lambda lines: len(rows_of(lines)) == 12, what="all rows again")
    top.type(b"q")
    assert top.wait_end() == 0


def test_processes_that_wait_and_their_zygote(make_host, make_top):
    host = make_host({"parked": PARKED, "zygote": {**ZYGOTE, "workers": {"spare": 2}}, "cold": HELLO})
    wait_until(lambda: of(status(host), "parked")["processes"]["idle"] == 1 and of(status(host), "zygote")["processes"]["idle"] == 2, 20)
    for path in ("/parked", "/zygote", "/cold"):
        assert host.request(path).status == 200
    host.wait_log(event="request", count=3)
    top = make_top(host, columns=180)

    def counts(lines, name):
        row = rows_of(lines).get(name, {})
        return [row.get(title) for title in ("IDLE", "ALL", "COLD", "AHEAD")]
    top.wait_for(lambda lines: counts(lines, "parked") == ["1", "1", "0", "1"], what="one that waits")
    lines = top.wait_for(lambda lines: counts(lines, "zygote") == ["2", "2+1", "0", "1"] and lines, what="two that wait, and a zygote")
    assert counts(lines, "cold") == ["0", "0", "1", "0"]
    rows = rows_of(lines)
    assert rows["cold"]["STARTCPU"] == "-" and all(rows[n]["STARTCPU"].endswith("ms") for n in ("parked", "zygote"))


@pytest.mark.parametrize("columns, lines", [(80, 24), (120, 40), (40, 10)])
def test_a_long_name_leaves_room_for_the_figures(make_host, make_top, columns, lines):
    host = make_host({"short": HELLO, LONG_NAME: HELLO, "none": "exit 3"})
    host.request(f"/none/{'long/' * 30}")
    host.wait_log(event="request", count=1)
    top = make_top(host, columns=columns, lines=lines)
    shown = top.wait_for(lambda lines: len(rows_of(lines)) >= 2 and lines)
    assert len(shown) == lines and all(len(line) <= columns for line in shown)
    room = max(10, columns // 4)
    name = next(line for line in shown if line.startswith("a-handler"))[:room]
    assert name == LONG_NAME[:room - 1] + "~"
    titles = shown[3].split()
    assert {"BUSY", "IDLE", "ALL"} <= set(titles) and ("FAILED" in titles) == (columns >= 80) and ("P99" in titles) == (columns >= 120)
    top.resize(260, 20)
    top.wait_for(lambda lines: LONG_NAME in rows_of(lines), what="the whole name where there is room")


def test_what_clients_send_does_not_drive_the_terminal(make_host, make_top):
    host = make_host({"none": "exit 3"})
    host.request("/none/\x1b[2J\x1b[31m\x07\r\nforged\x9b2J")
    host.request("/none/%1b]0;title%07%c2%9b2J/%e6%bc%a2%e5%ad%97")
    host.wait_log(event="request", count=2)
    top = make_top(host, columns=150)
    lines = top.wait_for(lambda lines: any("RECENT" in line for line in lines) and lines)
    assert [line.split()[1] for line in lines if line.startswith(("0", "1", "2"))][1:] == ["bad_gateway"] * 2 and rows_of(lines)["none"]["FAILED"] == "2"
    assert b"\x1b[2J/" not in top.written and b"\x1b]0;title" not in top.written and b"\xc2\x9b" not in top.written and b"\x07" not in top.written


@pytest.mark.parametrize("term", ["vt100", "xterm-mono", "linux"])
def test_other_terminals(make_host, make_top, term):
    """Without colours too."""
    host = make_host({"none": "exit 3"})
    host.request("/none")
    host.wait_log(event="request", count=1)
    top = make_top(host, term=term)
    lines = top.wait_for(lambda lines: rows_of(lines).get("none", {}).get("FAILED") == "1" and lines)
    assert lines[-1].startswith("q quit")
    if term != "linux":
        assert not re.search(rb"\x1b\[[0-9;]*3[0-7]m", top.written), "no colours where there are none"
    top.type(b"q")
    assert top.wait_end() == 0 and top.is_restored()


def test_it_scrolls(make_host, make_top):
    host = make_host({f"handler-{i:02}": HELLO for i in range(20)})
    top = make_top(host, lines=10)
    top.wait_for(lambda lines: list(rows_of(lines)) == [f"handler-{i:02}" for i in range(5)])
    top.type(b"\x1bOB")          # down
    top.wait_for(lambda lines: list(rows_of(lines))[:1] == ["handler-01"])
    top.type(b"\x1b[6~" * 9)     # page down
    top.wait_for(lambda lines: list(rows_of(lines)) == [f"handler-{i:02}" for i in range(15, 20)], what="the end, and no further")
    top.type(b"\x1b[5~" * 9)
    top.wait_for(lambda lines: list(rows_of(lines))[:1] == ["handler-00"])


def test_it_sorts(make_host, make_top):
    host = make_host({"b": HELLO, "c": HELLO, "a": HELLO})
    for name, count in (("a", 1), ("b", 3), ("c", 2)):
        for _ in range(count):
            host.request(f"/{name}")
    host.wait_log(event="request", count=6)
    top = make_top(host, columns=180)
    top.wait_for(lambda lines: "".join(rows_of(lines)) == "bca", what="the order of the file")
    top.type(b">")
    top.wait_for(lambda lines: "".join(rows_of(lines)) == "abc" and "HANDLERv" in lines[3], what="by name")
    top.type(b"r")
    top.wait_for(lambda lines: "".join(rows_of(lines)) == "cba" and "HANDLER^" in lines[3], what="reversed")
    top.type(b"r<")              # the last column, the number of requests
    top.wait_for(lambda lines: "".join(rows_of(lines)) == "bca" and "vREQUESTS" in lines[3], what="by requests")
    top.type(b"f")
    top.wait_for(lambda lines: "vREQUESTS" not in lines[3], what="as in the file again")


def test_a_host_that_ends_and_comes_again(make_host, make_top):
    host = make_host({"h": HELLO})
    top = make_top(host)
    top.wait_for(lambda lines: "h" in rows_of(lines))
    pid = host.relay
    host.stop()
    top.wait_for(lambda lines: "no host runs" in lines[2], what="a word on that")
    assert "h" in rows_of(top.lines), "the last figures stay"
    host.start()
    assert host.relay != pid
    top.wait_for(lambda lines: lines[2] == "" and str(host.relay) in lines[0], what="the new host")
    top.type(b"q")
    assert top.wait_end() == 0


@pytest.mark.parametrize("term", ["dumb", "no-such-terminal", "", None])
def test_a_terminal_that_cannot_is_told_so(make_host, make_top, term):
    host = make_host({"h": HELLO})
    top = make_top(host, term=term)
    assert top.wait_end() == 1
    said = top.written.decode()
    assert said.startswith("fcgi-host top: ") and said.count("\n") == 1 and "fcgi-host status" in said, said
    assert "\x1b" not in said


def test_without_a_terminal(make_host):
    host = make_host({"h": HELLO})
    done = host.command("top", "-c", str(host.config))
    assert done.returncode == 1 and not done.stdout and b"needs a terminal" in done.stderr
    assert host.command("top", "more").returncode == 2


def test_without_a_host(make_host, make_top):
    host = make_host({"h": HELLO}, start=False)
    top = make_top(host)
    assert top.wait_end() == 1
    assert "no host runs" in top.written.decode() and "\x1b" not in top.written.decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_the_terminal_as_it_was(make_host, make_top, number):
    host = make_host({"h": HELLO})
    top = make_top(host)
    top.wait_for(lambda lines: "h" in rows_of(lines))
    os.kill(top.pid, number)
    top.wait_end()
    wait_until(top.is_restored, 5, "the terminal's settings")
