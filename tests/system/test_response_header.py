"""From what a handler writes to what a client gets: the header."""
import pytest

from lib import wire
from lib.handlers import python, writes
from lib.wait import wait_until

EVERY_PROCESS = True


def ask(make_host, front, written, path="/h", **more):
    host = make_host({"h": writes(written) if isinstance(written, bytes) else written})
    return host, front(host).get(path, **more)


def test_line_ends_are_made_crlf_and_the_body_starts_after_the_first_blank_line(make_host, front):
    host, answer = ask(make_host, front, b"Content-Type: text/plain\r\nX-A: 1\nX-B: 2\r\n\n\r\n\nraw")
    assert (answer.status, answer.get("X-A"), answer.get("X-B"), answer.body) == (200, "1", "2", b"\r\n\nraw")
    raw = host.request("/h")
    assert b"X-A: 1\r\n" in raw.header + b"\r\n" and b"X-B: 2\r\n" in raw.header + b"\r\n"
    assert b"\n" not in raw.header.replace(b"\r\n", b"") and b"\r" not in raw.header.replace(b"\r\n", b"")


def test_status_in_any_dress(make_host, front):
    _, answer = ask(make_host, front, b"content-type:text/plain\nstatus:\t 418\n\nteapot\n")
    assert (answer.status, answer.body, answer.get("Content-Type")) == (418, b"teapot\n", "text/plain")


@pytest.mark.parametrize("line, status", [
    (b"Status: 404", 404), (b"STATUS: 404 Not Here", 404), (b"Status:404 ", 404), (b"sTaTuS: 599 Odd", 599),
    (b"Status: 200 OK", 200), (b"Status: 201 \xc3\xa4", 201),
])
def test_status_with_and_without_reason(make_host, make_front, line, status):
    host = make_host({"h": writes(line + b"\nContent-Type: text/plain\n\nx")})
    assert host.request("/h").status == status
    assert make_front("nginx-kept", host).get("/h").status == status


@pytest.mark.parametrize("line", [b"Status: 20", b"Status: 2000", b"Status: abc", b"Status:", b"Status: 199", b"Status: 100 Continue",
                                  b"Status: 2 00", b"Status: -200", b"Status: 200OK"])
def test_a_malformed_status_is_502(make_host, line):
    host = make_host({"h": writes(line + b"\nContent-Type: text/plain\n\nx")})
    answer = host.request("/h")
    assert (answer.status, answer.complete) == (502, True)
    assert host.wait_log(event="request", handler="h")["reason"]


def test_a_malformed_status_is_502_through_web_servers(make_host, web):
    _, answer = ask(make_host, web, b"Status: banana\nContent-Type: text/plain\n\nx")
    assert (answer.status, answer.complete) == (502, True)


def test_a_stray_first_line_is_dropped_and_logged(make_host, front):
    host, answer = ask(make_host, front, b"<!--: marker\nContent-Type: text/html\n\n<p>trace</p>\n")
    assert (answer.status, answer.body, answer.get("Content-Type")) == (200, b"<p>trace</p>\n", "text/html")
    assert not [n for n, _ in answer.headers if "<" in n]
    wait_until(lambda: any("<!--: marker" in line for line in host.log_lines()), 5, "the line in the log")


def test_an_nph_first_line_is_not_taken_for_success(make_host, front):
    """`HTTP/1.1 404 …` as the first line: translated or refused, never 200."""
    _, answer = ask(make_host, front, b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n\r\nno")
    assert answer.status in (404, 502)


def test_repeated_fields_stay_in_order_and_unchanged(make_host, front):
    first = "a=1; expires=Wed, 21 Oct 2037 07:28:00 GMT; Path=/"
    _, answer = ask(make_host, front, f"#!/bin/sh\nprintf 'Set-Cookie: {first}\\nSet-Cookie: b=2\\nContent-Type: text/plain\\n\\nx'")
    assert answer.all("Set-Cookie") == [first, "b=2"]


@pytest.mark.parametrize("written, status", [
    (b"Status: 303 See Other\nLocation: https://example.org/x\n\n", 303),
    (b"Status: 204\n\n", 204),
    (b"Status: 304\n\n", 304),
])
def test_answers_without_a_body_are_complete_at_once(make_host, front, written, status):
    _, answer = ask(make_host, front, written)
    assert (answer.status, answer.body, answer.complete) == (status, b"", True)
    assert answer.elapsed < 5


@pytest.mark.parametrize("status", [303, 204, 304])
def test_answers_without_a_body_on_a_kept_connection(make_host, status):
    host = make_host({"h": writes(b"Status: %d\nLocation: https://example.org/x\n\n" % status)})
    with host.connect() as conn:
        for _ in range(3):
            answer = wire.request(None, "/h", conn=conn, keep=True)
            assert (answer.status, answer.complete, answer.body) == (status, True, b"")
            assert answer.get("Content-Type") is None
            assert answer.end == (0, wire.COMPLETE)


@pytest.mark.parametrize("status", [204, 304])
def test_a_body_where_none_may_be_is_dropped(make_host, front, status):
    _, answer = ask(make_host, front, b"Status: %d\nContent-Type: text/plain\n\nsurplus" % status)
    assert (answer.status, answer.body, answer.complete) == (status, b"", True)


def test_head_has_the_header_and_no_body(make_host, front):
    host = make_host({"h": writes(b"Content-Type: text/plain\nX-A: 1\n\nbody of a get\n")})
    answer = front(host).request("/h", "HEAD")
    assert (answer.status, answer.get("X-A"), answer.body, answer.complete) == (200, "1", b"", True)


@pytest.mark.parametrize("cut", ["one write", "two writes", "one byte a write"])
def test_binary_bodies_arrive_unchanged(make_host, front, cut):
    data = bytes(range(256)) * 4 + b"\r\n\r\n\n\nStatus: 500 no\r\n\r\n"
    head = b"Content-Type: application/octet-stream\n\n"
    text = {
        "one write": f"out.write({head + data!r})",
        "two writes": f"out.write({head!r}); time.sleep(0.05); out.write({data!r})",
        "one byte a write": f"for b in {head + data!r}: out.write(bytes([b]))",
    }[cut]
    host = make_host({"h": python(text)})
    answer = front(host).get("/h")
    assert (answer.status, answer.body, answer.complete) == (200, data, True)


@pytest.mark.parametrize("written", [
    b"Content-Type: text/plain\nX-A: a\0b\n\nx",
    b"Content-Type: text/plain\n\0\n\nx",
    b"\0Content-Type: text/plain\n\nx",
])
def test_no_nul_in_a_header_reaches_the_web_server(make_host, written):
    host = make_host({"h": writes(written)})
    answer = host.request("/h")
    assert b"\0" not in answer.header
    assert (answer.status, answer.complete) == (502, True)


@pytest.mark.parametrize("written", [
    b"Status: 200\nStatus: 404\nContent-Type: text/plain\n\nx",
    b"Content-Type: text/plain\nContent-Length: 1\nContent-Length: 2\n\nxx",
    b"Content-Type: text/plain\nContent-Length: one\n\nx",
    b"Content-Type: text/plain\nContent-Length: -1\n\nx",
    b"Content-Type: text/plain\nContent-Length: 0x1\n\nx",
    b"Content-Type: text/plain\nContent-Length: 99999999999999999999999\n\nx",
    b"Content-Type: text/plain\nContent-Length: 1 1\n\nx",
], ids=["two Status", "two lengths", "no number", "negative", "hexadecimal", "beyond 64 bits", "two numbers"])
def test_contradictions_are_502(make_host, front, written):
    host, answer = ask(make_host, front, written)
    assert (answer.status, answer.complete) == (502, True)
    assert host.wait_log(event="request", status=502)["reason"]


def test_the_same_content_length_twice_is_fine(make_host):
    host = make_host({"h": writes(b"Content-Type: text/plain\nContent-Length: 2\nContent-Length: 2\n\nxx")})
    answer = host.request("/h")
    assert (answer.status, answer.body, answer.all("Content-Length")) == (200, b"xx", ["2"])


@pytest.mark.parametrize("bad", [
    b"no colon here", b" leading: space", b"X Y: space in the name", b"X-CR: a\rInjected: yes", b"X-Bell: a\x07b",
    b"X-Esc: \x1b[31m", b"X-Del: a\x7fb", b": no name", b"X-Fold: a\n continued",
])
def test_what_is_no_field_is_dropped_and_logged(make_host, bad):
    host = make_host({"h": writes(b"Content-Type: text/plain\n" + bad + b"\nX-Kept: yes\n\nbody")})
    answer = host.request("/h")
    assert (answer.status, answer.body, answer.get("X-Kept")) == (200, b"body", "yes")
    assert not [1 for n, v in answer.headers if "Injected" in n or "continued" in v or n.strip() != n or not n]
    assert not [b for b in answer.header.replace(b"\r\n", b"") if b < 32 or b == 127]
    entry = host.wait_log(event="request", handler="h")
    assert len(host.lines_with(entry["id"])) >= 2, "the request's line and one about the field"


def test_connection_level_fields_are_dropped(make_host):
    host = make_host({"h": writes(b"Content-Type: text/plain\nConnection: close\nTransfer-Encoding: chunked\nKeep-Alive: 5\nUpgrade: x\n"
                                  b"TE: trailers\nTrailer: X\nProxy-Connection: close\nX-Kept: 1\n\nbody")})
    answer = host.request("/h")
    assert (answer.status, answer.body, answer.get("X-Kept")) == (200, b"body", "1")
    names = {n.lower() for n, _ in answer.headers}
    assert not names & {"connection", "transfer-encoding", "keep-alive", "upgrade", "te", "trailer", "proxy-connection"}


def test_more_body_than_content_length_is_cut_and_logged(make_host, front):
    host, answer = ask(make_host, front, b"Content-Type: text/plain\nContent-Length: 4\n\nfourmore")
    assert (answer.status, answer.body, answer.complete) == (200, b"four", True)
    entry = host.wait_log(event="request", handler="h")
    assert len(host.lines_with(entry["id"])) >= 2 or entry["reason"], "the surplus is said in the log"


def test_content_length_is_passed_on_and_right(make_host):
    host = make_host({"h": writes(b"Content-Type: text/plain\nContent-Length: 5\n\nfive!")})
    answer = host.request("/h")
    assert (answer.get("Content-Length"), answer.body) == ("5", b"five!")


@pytest.mark.parametrize("size, status", [(3 << 10, 200), (24 << 10, 200), (33 << 10, 502)])
def test_a_header_up_to_header_max(make_host, size, status):
    fields = "".join(f"X-{i}: {'v' * 1000}\\n" for i in range(size // 1006))
    host = make_host({"h": f"printf 'Content-Type: text/plain\\n{fields}\\nbody'"}, defaults={"header": {"max": "32KiB"}})
    answer = host.request("/h")
    assert (answer.status, answer.complete) == (status, True)
    if status == 200:
        assert answer.body == b"body"
        assert [r for r in answer.records if r.kind == wire.STDOUT][0].content.count(b"X-") == size // 1006, "whole, in one record"


def test_a_large_header_passes_nginx(make_host, make_front):
    fields = "".join(f"X-{i}: {'v' * 1000}\\n" for i in range(20))
    host = make_host({"h": f"printf 'Content-Type: text/plain\\n{fields}\\nbody'"})
    for name in ("nginx-kept", "nginx-streaming"):
        answer = make_front(name, host).get("/h")
        assert (answer.status, answer.body, answer.get("X-19")) == (200, b"body", "v" * 1000)


def test_a_header_that_never_ends_is_502_at_the_limit(make_host):
    host = make_host({"h": python("out.write(b'Content-Type: text/plain\\n')\nwhile True: out.write(b'X-Y: ' + b'z' * 995 + b'\\n')")})
    answer = host.request("/h")
    assert (answer.status, answer.complete) == (502, True)
    wait_until(lambda: not host.children(), 10, "the end of the handler")


def test_the_header_is_one_record_however_it_is_written(make_host):
    host = make_host({"h": python("for b in b'Content-Type: text/plain\\nX-A: 1\\n\\nbody': out.write(bytes([b]))")})
    answer = host.request("/h")
    assert answer.body == b"body"
    first = [r for r in answer.records if r.kind == wire.STDOUT][0].content
    assert b"\r\n\r\n" in first


def test_a_status_is_always_said(make_host):
    host = make_host({"h": writes(b"Content-Type: text/plain\n\nx")})
    assert host.request("/h").get("Status").startswith("200")


def test_no_content_type_is_invented(make_host):
    host = make_host({"h": writes(b"X-A: 1\n\nx")})
    answer = host.request("/h")
    assert (answer.status, answer.get("Content-Type"), answer.body) == (200, None, b"x")


def test_a_body_of_nothing_is_an_answer(make_host, front):
    _, answer = ask(make_host, front, b"Content-Type: text/plain\n\n")
    assert (answer.status, answer.body, answer.complete) == (200, b"", True)
