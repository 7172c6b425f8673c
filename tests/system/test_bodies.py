"""Bodies in both directions: at once, of any size, without a length, cut short."""
import time

import pytest

from lib import wire
from lib.handlers import COUNT, DIGEST, HELLO, echo, pattern, python, sha
from lib.wait import stays, wait_until

EVERY_PROCESS = True

# Writes 3 MB before it reads the first byte, then reads everything.
BOTH = python("""
out.write(b'Content-Type: application/octet-stream\\n\\n')
left = 3000000
while left:
    left -= os.write(1, b'x' * min(left, 65536))
n = 0
while True:
    data = os.read(0, 65536)
    if not data:
        break
    n += len(data)
open(os.environ['SCRATCH'] + '/read', 'w').write(str(n))
""")


@pytest.mark.parametrize("name", ["wire", "nginx-kept", "nginx-streaming", "nginx-plain", "mod_proxy_fcgi", "mod_fcgid", "lighttpd"])
def test_both_sides_write_and_nobody_reads(make_host, make_front, name):
    host = make_host({"both": BOTH})
    answer = make_front(name, host).post("/both", bytes(8 << 20))
    assert (answer.status, len(answer.body), answer.complete) == (200, 3_000_000, True)
    wait_until((host.scratch / "read").exists, 10)
    wait_until(lambda: (host.scratch / "read").read_text() == str(8 << 20), 5, "the handler's reading of the whole body")


@pytest.mark.parametrize("name", ["wire", "nginx-kept", "nginx-streaming", "mod_proxy_fcgi", "mod_fcgid", "lighttpd"])
def test_an_echo_of_several_megabytes(make_host, make_front, name):
    host = make_host({"echo": echo()})
    data = pattern(6 << 20)
    answer = make_front(name, host).post("/echo", data)
    assert (answer.status, sha(answer.body), answer.complete) == (200, sha(data), True)


def test_an_early_answer_to_a_large_body(make_host, front):
    """Answers and ends without reading; the web server goes on sending."""
    host = make_host({"early": python("out.write(b'Status: 413\\nContent-Type: text/plain\\n\\nno thanks')")})
    answer = front(host).post("/early", bytes(6 << 20))
    assert (answer.status, answer.text, answer.complete) == (413, "no thanks", True)


def test_an_early_answer_of_many_megabytes(make_host, front):
    """Answers 4 MB without reading anything of a body of 6 MB."""
    host = make_host({"early": python("out.write(b'Content-Type: text/plain\\n\\n')\nfor i in range(64): os.write(1, b'y' * 65536)")})
    answer = front(host).post("/early", bytes(6 << 20))
    assert (answer.status, len(answer.body), answer.complete) == (200, 4 << 20, True)


def test_a_handler_that_answers_and_then_reads(make_host, front):
    host = make_host({"h": python("out.write(b'Content-Type: text/plain\\n\\nfirst ')\nn = 0\nwhile True:\n d = os.read(0, 65536)\n"
                                  " if not d: break\n n += len(d)\nout.write(b'%d' % n)")})
    answer = front(host).post("/h", bytes(2 << 20))
    assert (answer.status, answer.text, answer.complete) == (200, f"first {2 << 20}", True)


TICKS = "printf '%sContent-Type: text/plain\\n\\n'; for i in 1 2 3; do echo tick $i; sleep 0.7; done"


@pytest.mark.parametrize("status", ["", "Status: 200\\n"], ids=["plain", "with Status"])
def test_progress_arrives_as_it_is_written(make_host, status):
    host = make_host({"ticks": TICKS % status})
    answer = host.request("/ticks")
    ticks = [r for r in answer.records if b"tick" in r.content]
    assert [r.content.count(b"tick") for r in ticks] == [1, 1, 1]
    assert ticks[1].at - ticks[0].at > 0.4 and ticks[2].at - ticks[1].at > 0.4


@pytest.mark.parametrize("name", ["nginx-streaming", "mod_proxy_fcgi", "nginx-plain-streaming"])
@pytest.mark.parametrize("status", ["", "Status: 200\\n"], ids=["plain", "with Status"])
def test_progress_arrives_through_a_web_server_that_streams(make_host, make_front, name, status):
    import http.client
    host = make_host({"ticks": TICKS % status})
    client = make_front(name, host)
    conn = http.client.HTTPConnection("127.0.0.1", client.port, timeout=10)
    conn.request("GET", "/ticks")
    answer = conn.getresponse()
    times = []
    for i in (1, 2, 3):
        assert answer.readline() == b"tick %d\n" % i
        times.append(time.monotonic())
    assert answer.read() == b""
    conn.close()
    assert times[1] - times[0] > 0.4 and times[2] - times[1] > 0.4


# --- without a length

def test_an_upload_without_a_length_raw(make_host):
    host = make_host({"digest": DIGEST})
    data = pattern(300_000)
    answer = host.request("/digest", "POST", data, chunked=True)
    assert (answer.status, answer.text) == (200, sha(data))


@pytest.mark.parametrize("name", ["nginx-streaming", "mod_proxy_fcgi", "nginx-kept", "mod_fcgid"])
def test_a_chunked_upload_through_web_servers(make_host, make_front, name, folder):
    host = make_host({"digest": DIGEST})
    data = pattern(1_000_000)
    (folder / "upload").write_bytes(data)
    done = make_front(name, host).curl("/digest", "-H", "Transfer-Encoding: chunked", "--data-binary", f"@{folder}/upload", "-X", "POST")
    assert (done.code, done.status, done.body.decode()) == (0, 200, sha(data))


def test_chunked_spool_gives_the_length(make_host):
    script = "printf 'Content-Type: text/plain\\n\\n%s %s' \"${CONTENT_LENGTH-unset}\" \"$(wc -c)\""
    host = make_host({"stream": script, "spool": {"script": script, "body": {"chunked": "spool"}}})
    assert host.request("/spool", "POST", bytes(200_000), chunked=True).text == "200000 200000"
    assert host.request("/stream", "POST", bytes(200_000), chunked=True).text == "unset 200000"
    assert host.request("/spool", "POST", b"", chunked=True).status == 200


def test_chunked_reject_is_411(make_host, make_front):
    host = make_host({"h": {"script": COUNT, "body": {"chunked": "reject"}}})
    answer = host.request("/h", "POST", b"x" * 1000, chunked=True)
    assert (answer.status, answer.complete) == (411, True)
    assert host.request("/h", "POST", b"x" * 1000).text == "1000"
    assert host.request("/h").text == "0"
    # Apache itself finds out the length of a short one.
    answer = make_front("mod_proxy_fcgi", host).request("/h", "POST", [b"x" * 1000] * 300, chunked=True)
    assert answer.status == 411


# --- too large, too short, too long

def test_a_body_over_body_max_is_413(make_host, front):
    host = make_host({"h": {"script": "echo >> \"$SCRATCH/ran\"; " + COUNT, "body": {"max": "100KiB"}}})
    client = front(host)
    answer = client.post("/h", bytes(200 << 10))
    assert (answer.status, answer.complete) == (413, True)
    assert not (host.scratch / "ran").exists(), "the declared length is enough to refuse"
    assert host.wait_log(event="request", status=413)
    assert client.post("/h", bytes(100 << 10)).text == str(100 << 10)


def test_a_body_over_body_max_without_a_length(make_host):
    host = make_host({"h": {"script": COUNT, "body": {"max": "100KiB"}}})
    answer = host.request("/h", "POST", bytes(200 << 10), chunked=True)
    assert (answer.status, answer.complete) == (413, True)
    wait_until(lambda: not host.children(), 5, "the end of the handler")


def test_a_body_that_ends_short_of_its_length_is_aborted(make_host):
    host = make_host({"h": "n=$(wc -c); echo $n > \"$SCRATCH/whole\"; " + HELLO})
    with host.connect() as conn:
        conn.start(wire.variables("/h", "POST", bytes(1000)))
        conn.send(wire.stream(wire.STDIN, bytes(400)))
        answer = conn.answer()
    assert (answer.status, answer.complete) == (400, True)
    wait_until(lambda: not host.children(), 5, "the end of the handler")
    assert not (host.scratch / "whole").exists(), "half a body was taken for a whole one"
    assert host.wait_log(event="request", status=400)["reason"]


@pytest.mark.parametrize("surplus", [1, 500_000])
def test_a_body_that_goes_on_is_cut_at_its_length_and_logged(make_host, surplus):
    host = make_host({"h": COUNT})
    with host.connect() as conn:
        conn.start(wire.variables("/h", "POST", bytes(1000)), flags=wire.KEEP)
        conn.send(wire.stream(wire.STDIN, bytes(1000 + surplus)))
        answer = conn.answer()
        assert (answer.status, answer.text, answer.complete) == (200, "1000", True)
        assert wire.request(None, "/h", conn=conn, keep=True).text == "0"
    entry = host.wait_log(event="request", method="POST")
    assert len(host.lines_with(entry["id"])) >= 2 or entry["reason"]


@pytest.mark.parametrize("length", ["abc", "-1", "1e3", "99999999999999999999999", "1 2"])
def test_a_content_length_that_is_no_number(make_host, length):
    host = make_host({"h": COUNT})
    with host.connect() as conn:
        conn.start(wire.variables("/h", "POST", b"", CONTENT_LENGTH=length))
        conn.send(wire.stream(wire.STDIN, b""))
        answer = conn.answer()
    assert (answer.status, answer.complete) in ((400, True), (413, True))


# --- the body as bytes

def test_the_largest_records(make_host):
    host = make_host({"digest": DIGEST})
    data = pattern(65535 * 3)
    with host.connect() as conn:
        conn.start(wire.variables("/digest", "POST", data), padding=255)
        conn.send(wire.stream(wire.STDIN, data, cut=65535, padding=255))
        answer = conn.answer()
    assert (answer.status, answer.text, answer.complete) == (200, sha(data), True)


def test_a_body_that_looks_like_records_is_a_body(make_host, front):
    data = (wire.record(wire.STDIN) + wire.begin(1) + wire.record(wire.END, 1, bytes(8)) + wire.record(wire.ABORT)) * 50
    host = make_host({"echo": echo()})
    answer = front(host).post("/echo", data)
    assert (answer.status, answer.body, answer.complete) == (200, data, True)
    host.wait_log(event="request")
    assert len(host.log(event="request")) == 1


def test_the_spool_is_bounded_and_leaves_no_file(make_host, folder):
    """A handler that answers before it reads: what it does not take goes to a file without a name."""
    from lib import proc
    host = make_host({"late": "printf 'Content-Type: text/plain\\n\\n'; echo > \"$SCRATCH/started\"; while [ ! -e \"$SCRATCH/go\" ]; do sleep 0.05; done; sha256sum | cut -c1-64 | tr -d '\\n'"})
    data = pattern(16 << 20)
    with host.connect(timeout=30) as conn:
        conn.start(wire.variables("/late", "POST", data))
        conn.send(wire.stream(wire.STDIN, data))    # ends only when the host has taken it all
        wait_until((host.scratch / "started").exists, 10)
        spools = [t for t in (proc.fds(host.relay) or {}).values() if "(deleted)" in t]
        assert spools, "an unlinked file holds what the handler has not taken"
        (host.scratch / "go").write_text("")
        answer = conn.answer()
    assert (answer.status, answer.text) == (200, sha(data))


def test_output_is_held_only_while_a_body_comes_in(make_host):
    """Without a body the first output leaves at once."""
    host = make_host({"h": "printf 'Content-Type: text/plain\\n\\nfirst\\n'; while [ ! -e \"$SCRATCH/go\" ]; do sleep 0.05; done; echo second"})
    with host.connect() as conn:
        conn.start(wire.variables("/h"))
        conn.send(wire.record(wire.STDIN))
        first = conn.read()
        assert first.kind == wire.STDOUT
        seen = first.content
        while b"first" not in seen:
            seen += conn.read().content
        (host.scratch / "go").write_text("")
        assert conn.answer().stdout.endswith(b"second\n")


def test_an_early_answer_is_held_until_the_body_has_ended(make_host):
    """nginx would stop sending the body once it has seen a header."""
    host = make_host({"h": "printf 'Content-Type: text/plain\\n\\n'; echo > \"$SCRATCH/wrote\"; wc -c"})
    with host.connect() as conn:
        conn.start(wire.variables("/h", "POST", bytes(100_000)))
        conn.send(wire.stream(wire.STDIN, bytes(50_000), end=False))
        wait_until((host.scratch / "wrote").exists, 10)
        stays(lambda: conn.is_quiet(0.05), 0.3, "holding the answer back")
        conn.send(wire.stream(wire.STDIN, bytes(50_000)))
        assert conn.answer().text.strip() == "100000"
