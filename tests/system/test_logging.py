"""One line per request, one per line of stderr, and nothing that can be forged."""
import grp
import json
import os
import pwd
import shutil
import socket
import subprocess
import time

import pytest

from lib import logs, paths, proc, wire
from lib.handlers import HELLO, python, worker
from lib.wait import wait_until


def line_of(entry):
    return entry["msg"]


def test_the_line_of_a_request(make_host, front):
    host = make_host({"h": "cat > /dev/null; printf 'Content-Type: text/plain\\n\\n12345'"})
    front(host).post("/h/x", b"0123456789")
    entry = host.wait_log(event="request")
    assert list(entry) == logs.REQUEST_FIELDS
    assert (entry["level"], entry["route"], entry["handler"], entry["method"], entry["path"]) == ("info", "/h/*", "h", "POST", "/h/x")
    assert (entry["status"], entry["bytes_in"], entry["exit"], entry["signal"]) == (200, 10, 0, None)
    assert entry["bytes_out"] >= 5
    assert entry["process"] == "per-request" and entry["pid"] > 1
    for name in ("queue_ms", "start_ms", "first_byte_ms", "total_ms", "cpu_ms", "rss_kib", "faults"):
        assert entry[name] >= 0, name
    assert entry["total_ms"] >= entry["first_byte_ms"]
    assert entry["rss_kib"] > 100 and entry["faults"] > 10


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_waited_for_its_request_says_so_at_the_end_of_the_line(make_host, form):
    host = make_host({"h": {"script": HELLO, "process": "parked"}}, log={"format": form})
    wait_until(lambda: json.loads(host.command("status", "-c", str(host.config), "--json").stdout)["handlers"][0]["processes"]["idle"] == 1,
               10, "a process that waits")
    host.request("/h")
    entry = host.wait_log(event="request")
    assert list(entry) == logs.REQUEST_FIELDS + logs.START_FIELDS
    assert (entry["process"], entry["start"]) == ("parked", "parked")
    assert entry["start_cpu_ms"] >= 0 and entry["start_faults"] > 10


def test_json_has_the_same_names(make_host):
    host = make_host({"h": "echo 'a \"quoted\" line' >&2; " + HELLO}, log={"format": "json"})
    host.request("/h")
    host.wait_log(event="request")
    for line in host.log_lines():
        json.loads(line)
    assert list(host.log(event="request")[0]) == logs.REQUEST_FIELDS
    assert host.log(event="request")[0]["signal"] is None
    assert line_of(host.wait_log(event="stderr")) == 'a "quoted" line'


def test_a_worker_is_named_in_the_line(make_host, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program)})
    answer = host.request("/w")
    entry = host.wait_log(event="request")
    assert entry["process"] == "persistent"
    assert f"pid={entry['pid']} " in answer.text


def test_requests_that_reach_no_handler_have_a_line_too(make_host):
    host = make_host({"h": HELLO})
    host.request("/nowhere")
    entry = host.wait_log(event="request")
    assert (entry["path"], entry["status"], entry["handler"], entry["pid"]) == ("/nowhere", 404, None, None)


def test_stderr_before_the_header(make_host, front):
    host = make_host({"h": "printf 'Content-Type: text/plain\\n'; printf '\\nwarn\\n\\n' >&2; sleep 1; printf 'X-After: yes\\n\\nbody'"})
    answer = front(host).get("/h")
    assert (answer.status, answer.get("X-After"), answer.body) == (200, "yes", b"body")
    entry = host.wait_log(event="request")
    lines = host.wait_log(event="stderr", count=3)
    assert [line_of(e) for e in lines] == ["", "warn", ""]
    assert {e["id"] for e in lines} == {entry["id"]} and {e["handler"] for e in lines} == {"h"}


FORGED = ["time=2026-01-01T00:00:00Z level=info event=request id=forged status=200", "\x1b[31mred\x1b[0m", "a\rb", "tab\there", "back\\slash",
          'quote" event=request', "\x00nul", "caf\u00e9", "\x7f", ""]


@pytest.mark.parametrize("form", ["text", "json"])
def test_forged_log_lines(make_host, form):
    """One entry per line, each ours, control bytes escaped."""
    host = make_host({"h": python(f"os.write(2, {chr(10).join(FORGED).encode() + chr(10).encode()!r})\nout.write(b'Content-Type: text/plain\\n\\nok')")},
                     log={"format": form})
    assert host.request("/h").body == b"ok"
    entries = host.wait_log(event="stderr", count=len(FORGED))
    assert len(entries) == len(FORGED)
    host.wait_log(event="request")
    assert not host.log(id="forged") and len(host.log(event="request")) == 1
    raw = host.log_file.read_bytes()
    assert not [b for b in raw if (b < 32 and b != 10) or b == 127]
    assert all(logs.parse(line) for line in host.log_lines()), "every line is one of ours"
    assert line_of(entries[0]) == FORGED[0] and line_of(entries[5]) == FORGED[5] and line_of(entries[4]) == FORGED[4]


def test_a_clients_bytes_cannot_forge_a_line(make_host):
    host = make_host({"h": HELLO})
    host.request("/nowhere", extra={"SCRIPT_NAME": b"/a b\nevent=request id=forged\x1b[31m\"\\", "REQUEST_METHOD": "GET\nX"})
    host.wait_log(event="request")
    assert all(logs.parse(line) for line in host.log_lines())
    assert not host.log(id="forged")
    assert b"\x1b" not in host.log_file.read_bytes()


def test_whole_lines_up_to_64_kib(make_host):
    host = make_host({"h": python("os.write(2, b'a' * 60000 + b'\\n' + b'b' * 200000 + b'\\nlast\\nno newline')\nout.write(b'Content-Type: text/plain\\n\\nok')")})
    assert host.request("/h").body == b"ok"
    wait_until(lambda: [e for e in host.log(event="stderr") if line_of(e) == "no newline"], 10)
    lines = [line_of(e) for e in host.log(event="stderr")]
    assert "a" * 60000 in lines and "last" in lines
    assert max(map(len, lines)) <= 65536 + 100


def test_a_line_written_in_pieces_is_one_entry(make_host):
    host = make_host({"h": "printf one- >&2; sleep 0.2; printf 'two\\n' >&2; " + HELLO})
    host.request("/h")
    assert line_of(host.wait_log(event="stderr")) == "one-two"


def test_stderr_of_64_kib_and_then_an_answer(make_host, front):
    host = make_host({"h": python("os.write(2, (b'e' * 99 + b'\\n') * 656)\nout.write(b'Content-Type: text/plain\\n\\nok')")})
    answer = front(host).get("/h")
    assert (answer.status, answer.body, answer.complete) == (200, b"ok", True)
    assert len(host.wait_log(event="stderr", count=656)) == 656


def test_a_log_that_nobody_reads_delays_nothing_and_the_loss_is_counted(make_host):
    """50 MB to stderr, the log a pipe without a reader's will."""
    host = make_host({"h": python("line = b'e' * 999 + b'\\n'\nfor i in range(50000): os.write(2, line)\nout.write(b'Content-Type: text/plain\\n\\nok')"), "hello": HELLO},
                     start=False)
    fifo = host.folder / "log.fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(fifo, os.O_WRONLY)
    host.process = subprocess.Popen([host.program, "serve", "-c", str(host.config)], env=host.environ(), cwd=str(host.folder),
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=writer, start_new_session=True)
    os.close(writer)
    host.wait_listening()
    answer = host.request("/h", timeout=40)
    assert (answer.status, answer.body) == (200, b"ok")
    assert answer.elapsed < 30
    assert host.request("/hello").elapsed < 5
    assert proc.rss_kib(host.relay) < 600 << 10
    os.set_blocking(reader, False)
    seen = b""

    def said():
        nonlocal seen
        try:
            seen += os.read(reader, 1 << 20)
        except BlockingIOError:
            host.request("/hello")
        return b"dropped" in seen
    wait_until(said, 20, "the count of dropped lines")
    os.close(reader)


def test_log_to_a_file_relative_to_the_configuration(make_host):
    host = make_host({"h": HELLO}, log={"file": "own.log"})
    host.request("/h")
    wait_until(lambda: "event=request" in (host.folder / "own.log").read_text(), 5)
    assert "event=request" not in host.log_text()


def test_usr1_reopens_the_log_file(make_host):
    import signal
    host = make_host({"h": HELLO}, log={"file": "own.log"})
    own = host.folder / "own.log"
    host.request("/h")
    wait_until(lambda: "event=request" in own.read_text(), 5)
    own.rename(host.folder / "own.log.1")
    host.signal(signal.SIGUSR1)
    wait_until(own.exists, 5)
    host.request("/h/second")
    wait_until(lambda: "/h/second" in own.read_text(), 5)
    assert "/h/second" not in (host.folder / "own.log.1").read_text()


def test_the_level_is_held(make_host):
    host = make_host({"h": HELLO}, log={"level": "error"})
    host.request("/h")
    host.check_idle()
    assert not host.log(event="request")


def test_times_in_the_line_are_true(make_host):
    host = make_host({"h": "sleep 0.4; printf 'Content-Type: text/plain\\n\\n'; echo; sleep 0.4; echo end"})
    started = time.monotonic()
    host.request("/h")
    elapsed = (time.monotonic() - started) * 1000
    entry = host.wait_log(event="request")
    assert 350 <= entry["first_byte_ms"] <= elapsed
    assert 750 <= entry["total_ms"] <= elapsed + 50
    assert entry["cpu_ms"] <= entry["total_ms"]


def test_the_line_of_a_lost_client_has_what_was_sent(make_host):
    host = make_host({"h": "printf 'Content-Type: text/plain\\n\\n'; while :; do echo tick || exit; sleep 0.05; done"}, defaults={"timeout": {"kill": "300ms"}})
    with host.connect() as conn:
        conn.start(wire.variables("/h"))
        conn.send(wire.record(wire.STDIN))
        while b"tick" not in conn.read().content:
            pass
    entry = host.wait_log(event="request")
    assert entry["bytes_out"] >= 5 and entry["reason"] and entry["total_ms"] > 0


@pytest.fixture
def syslog_host(make_host):
    """start(): the host in a mount namespace whose /dev/log is ours."""
    if os.geteuid() != 0:
        pytest.skip("needs root for a mount namespace")
    servers = []

    def listen(host):
        server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        server.settimeout(10)
        (host.folder / "dev" / "log").unlink(missing_ok=True)
        server.bind(str(host.folder / "dev" / "log"))
        servers.append(server)
        return server

    def start(handlers, **options):
        host = make_host(handlers, start=False, log={"file": "syslog", **options})
        dev = host.folder / "dev"
        (dev / "shm").mkdir(parents=True)
        for name in ("null", "random", "urandom"):
            (dev / name).touch()
        server = listen(host)
        script = 'for n in null random urandom; do mount --bind /dev/$n "$0/$n" || exit; done; mount --bind "$0" /dev && exec "$@"'
        host.process = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", script, str(dev), host.program, "serve", "-c", str(host.config)], env=host.environ(), cwd=str(host.folder),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(host.log_file, "ab"), start_new_session=True)
        host.wait_listening()
        return host, server
    start.listen = listen
    yield start
    for server in servers:
        server.close()


def until_request(server, path):
    """The datagrams up to the line of that request."""
    out = []
    while not (out and "event=request" in out[-1] or out and '"event":"request"' in out[-1]) or path not in out[-1]:
        out.append(server.recv(1 << 20).decode())
    return out


@pytest.mark.parametrize("form", ["text", "json"])
def test_syslog(syslog_host, form):
    host, server = syslog_host({"h": "echo complaint >&2; " + HELLO}, format=form)
    assert host.request("/h/x").status == 200
    lines = until_request(server, "/h/x")
    entries = []
    for line in lines:
        head, _, text = line.partition(": ")
        assert head.endswith(f"fcgi-host[{host.relay}]") and head.startswith("<"), line
        entries.append((int(head[1:head.index(">")]), logs.parse(text)))
    assert all(entry for _, entry in entries)
    by_event = {entry["event"]: (priority, entry) for priority, entry in entries}
    assert by_event["request"][0] == 3 * 8 + 6 and list(by_event["request"][1]) == logs.REQUEST_FIELDS
    assert by_event["stderr"][0] == 3 * 8 + 4 and by_event["stderr"][1]["msg"] == "complaint"


def test_syslog_that_is_started_anew_is_found(syslog_host):
    host, server = syslog_host({"h": HELLO})
    host.request("/h/first")
    until_request(server, "/h/first")
    server.close()
    host.request("/h/nobody-listens")
    host.check_idle()
    server = syslog_host.listen(host)
    host.request("/h/second")
    lines = until_request(server, "/h/second")
    assert any("log_dropped" in line and "lines=1 " in line for line in lines), "what was lost is counted"
    assert not any("nobody-listens" in line for line in lines)


def test_usr1_goes_to_the_syslog_that_has_the_name_now(syslog_host):
    """The old one may still be there."""
    import signal
    host, old = syslog_host({"h": HELLO})
    host.request("/h/first")
    until_request(old, "/h/first")
    new = syslog_host.listen(host)
    host.signal(signal.SIGUSR1)

    def is_there():
        host.request("/h/more")
        new.setblocking(False)
        try:
            return "/h/more" in new.recv(1 << 20).decode()
        except BlockingIOError:
            return False
    wait_until(is_there, 10)


@pytest.mark.parametrize("form", ["text", "json"])
def test_every_form_in_a_file(make_host, form):
    host = make_host({"h": HELLO}, log={"file": "own.log", "format": form})
    host.request("/h")
    own = host.folder / "own.log"
    entry = wait_until(lambda: logs.select([e for e in map(logs.parse, own.read_text().splitlines()) if e], event="request"), 5)[0]
    assert list(entry) == logs.REQUEST_FIELDS
    assert own.stat().st_mode & 0o777 == 0o640


LOGROTATE = shutil.which("logrotate", path="/usr/sbin:/usr/bin:/sbin:/bin")


@pytest.mark.skipif(LOGROTATE is None, reason="needs logrotate")
def test_the_shipped_logrotate_file(make_host):
    """As it stands, but for the place of the log and of the program's file."""
    host = make_host({"h": HELLO}, log={"file": "log/fcgi-host.log"}, start=False)
    (host.folder / "log").mkdir(mode=0o755)
    host.start()
    own = host.folder / "log" / "fcgi-host.log"
    host.request("/h/first")
    wait_until(lambda: "/h/first" in own.read_text(), 5)
    text = (paths.REPO / "conf" / "fcgi-host.logrotate").read_text()
    assert "/var/log/fcgi-host/" in text and "fcgi-host status" in text and "www-data" in text
    text = text.replace("/var/log/fcgi-host/", f"{host.folder}/log/").replace("fcgi-host status", f"{host.program} status -c {host.config}")
    text = text.replace("www-data adm", f"{pwd.getpwuid(os.geteuid()).pw_name} {grp.getgrgid(os.getegid()).gr_name}")
    rotate = host.folder / "logrotate.conf"
    rotate.write_text(text)
    rotate.chmod(0o644)
    before = own.stat().st_ino
    done = subprocess.run([LOGROTATE, "-f", "-s", str(host.folder / "state"), str(rotate)], env={**host.environ(), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
                          capture_output=True, timeout=30)
    assert done.returncode == 0 and not done.stderr, done
    assert own.exists() and own.stat().st_ino != before
    wait_until(lambda: str(own) in proc.fds(host.relay).values(), 5)
    host.request("/h/second")
    wait_until(lambda: "/h/second" in own.read_text(), 5)
    assert "/h/first" in (host.folder / "log" / "fcgi-host.log.1").read_text()
