"""FastCGI by the specification, record by record."""
import os
import struct

import pytest

from lib import proc, wire
from lib.handlers import COUNT, ENVIRON, HELLO, env_of
from lib.wait import wait_until


def whole(path="/hello", request_id=1, flags=0, body=b""):
    return (wire.begin(request_id, flags=flags) + wire.stream(wire.PARAMS, wire.pairs(wire.variables(path)), request_id)
            + wire.stream(wire.STDIN, body, request_id))


# --- parameters

@pytest.mark.parametrize("cut", [1, 2, 7, 127, 128, 129, 8184])
def test_parameters_over_many_records(make_host, cut):
    host = make_host({"env": ENVIRON})
    long = "v" * 8990 + "end-of-it!"
    with host.connect() as conn:
        conn.start(wire.variables("/env", X_LONG=long), cut=cut)
        conn.send(wire.record(wire.STDIN))
        assert env_of(conn.answer())["X_LONG"] == long


def test_long_names_and_every_form_of_length(make_host):
    host = make_host({"env": ENVIRON})
    sent = {"X" * 123: "a" * 127, "Y" * 200: "b" * 128, "Z" * 127: "c", "W" * 128: ""}
    for wide in (False, True):
        with host.connect() as conn:
            conn.start(wire.variables("/env", **sent), wide=wide)
            conn.send(wire.record(wire.STDIN))
            env = env_of(conn.answer())
        for name, value in sent.items():
            assert env[name] == value


@pytest.mark.parametrize("block", [
    b"\x05", b"\x05\x05ab", b"\xff\xff\xff\xff\xff\xff\xff\xffab", b"\x80\x00", b"\x7f\xff\xff\xff\xfe", b"\xff\xff\xff\xf0\x01" + b"x" * 100,
], ids=repr)
def test_broken_parameters_end_their_own_request_only(make_host, block):
    host = make_host({"hello": HELLO})
    with host.connect() as conn:
        conn.send(wire.begin(flags=wire.KEEP), wire.stream(wire.PARAMS, wire.pairs({"SCRIPT_NAME": "/hello"}) + block))
        conn.send_quietly(wire.record(wire.STDIN))
        answer = conn.answer()
        assert answer.status in (None, 400, 431), "never an ordinary answer"
    assert host.request("/hello").text == "hello\n"


def test_no_handler_before_the_end_of_the_parameters(make_host):
    host = make_host({"h": "echo > \"$SCRATCH/ran\"; " + HELLO})
    with host.connect() as conn:
        conn.send(wire.begin(), wire.record(wire.PARAMS, 1, wire.pairs(wire.variables("/h"))))
        assert conn.is_quiet(0.3)
        assert not (host.scratch / "ran").exists()
        conn.send(wire.record(wire.PARAMS), wire.record(wire.STDIN))
        assert conn.answer().text == "hello\n"


# --- ids

@pytest.mark.parametrize("request_id", [1, 258, 65535])
def test_request_ids_come_back_on_every_record(make_host, request_id):
    host = make_host({"hello": HELLO})
    with host.connect() as conn:
        conn.send(whole(request_id=request_id))
        answer = conn.answer(request_id)
    assert {r.id for r in answer.records} == {request_id}
    assert answer.text == "hello\n" and answer.complete


@pytest.mark.parametrize("kind", [wire.BEGIN, wire.ABORT, wire.PARAMS, wire.STDIN, wire.DATA])
def test_application_records_with_id_0_close_the_connection(make_host, kind):
    host = make_host({"hello": HELLO})
    with host.connect(timeout=5) as conn:
        conn.send(wire.record(kind, 0, struct.pack(">HB5x", 1, 0)))
        answer = conn.answer()
        assert answer.stdout == b"" and answer.end is None
        assert conn.at_end()


def test_records_for_ids_that_are_not_active_are_skipped(make_host):
    host = make_host({"hello": HELLO})
    with host.connect() as conn:
        conn.send(wire.record(wire.STDIN, 7, b"who?"), wire.record(wire.PARAMS, 8, b"x"), wire.record(wire.ABORT, 9), wire.record(77, 3, b"?"))
        conn.send(whole(flags=wire.KEEP))
        assert conn.answer().text == "hello\n"


def test_a_second_request_on_a_busy_connection_cannot_multiplex(make_host):
    host = make_host({"slow": "while [ ! -e \"$SCRATCH/go\" ]; do sleep 0.05; done; " + HELLO, "hello": HELLO})
    with host.connect() as conn:
        conn.send(whole("/slow", 1, wire.KEEP))
        conn.send(whole("/hello", 2, wire.KEEP))
        r = conn.read()
        assert (r.kind, r.id) == (wire.END, 2)
        assert struct.unpack(">IB3x", r.content)[1] == wire.CANT_MPX
        (host.scratch / "go").write_text("")
        assert conn.answer(1).text == "hello\n"
        conn.send(whole("/hello", 2, wire.KEEP))
        assert conn.answer(2).text == "hello\n"


# --- roles, types, versions

@pytest.mark.parametrize("role", [0, 4, 99, 65535])
def test_an_unknown_role_is_said(make_host, role):
    host = make_host({"hello": HELLO})
    with host.connect() as conn:
        conn.send(wire.begin(role=role, flags=wire.KEEP), wire.stream(wire.PARAMS, wire.pairs(wire.variables("/hello"))), wire.record(wire.STDIN))
        answer = conn.answer()
        assert answer.end[1] == wire.UNKNOWN_ROLE
        conn.send(whole(flags=wire.KEEP))
        assert conn.answer().text == "hello\n"


def test_an_unknown_management_type_is_answered(make_host):
    host = make_host({"hello": HELLO})
    with host.connect() as conn:
        conn.send(wire.record(99, 0, b"whatever", padding=3))
        r = conn.read()
        assert (r.kind, r.id, r.content) == (wire.UNKNOWN, 0, b"\x63" + bytes(7))
        conn.send(whole())
        assert conn.answer().text == "hello\n"


def test_an_unknown_application_type_is_skipped(make_host):
    host = make_host({"count": COUNT})
    with host.connect() as conn:
        conn.start(wire.variables("/count", "POST", b"abc"))
        conn.send(wire.record(99, 1, b"whatever", padding=200), wire.stream(wire.STDIN, b"abc"))
        answer = conn.answer()
    assert answer.text == "3"
    assert {r.kind for r in answer.records} <= {wire.STDOUT, wire.END}


@pytest.mark.parametrize("version", [0, 2, 255])
def test_a_wrong_version_closes_the_connection(make_host, version):
    host = make_host({"hello": HELLO})
    with host.connect(timeout=5) as conn:
        conn.send(wire.record(wire.BEGIN, 1, struct.pack(">HB5x", 1, 0), version=version))
        assert conn.at_end()


@pytest.mark.parametrize("data", [b"GET / HTTP/1.0\r\n\r\n", bytes(100), b"\xff" * 1000, os.urandom(5000)], ids=["http", "zeros", "ones", "random"])
def test_garbage_ends_its_own_connection_only(make_host, data):
    host = make_host({"hello": HELLO})
    with host.connect(timeout=5) as conn:
        conn.send_quietly(data)
        if not data.startswith(b"\1"):
            assert conn.answer().stdout == b""
    assert host.request("/hello").text == "hello\n"


# --- management records

def values(conn, *names):
    conn.send(wire.record(wire.GET_VALUES, 0, wire.pairs([(n, "") for n in names]), padding=5))
    r = conn.read()
    assert (r.kind, r.id) == (wire.GET_VALUES_RESULT, 0)
    return wire.decode_pairs(r.content)


def test_get_values(make_host):
    host = make_host({"hello": HELLO})
    with host.connect() as conn:
        assert values(conn, "FCGI_MPXS_CONNS") == [(b"FCGI_MPXS_CONNS", b"0")]
        assert values(conn, "NO_SUCH_NAME") == []
        many = values(conn, *["FCGI_MAX_CONNS"] * 500)
        assert [n for n, _ in many] == [b"FCGI_MAX_CONNS"] and int(many[0][1]) > 0
        three = dict(values(conn, "FCGI_MAX_CONNS", "FCGI_MAX_REQS", "FCGI_MPXS_CONNS"))
        assert set(three) == {b"FCGI_MAX_CONNS", b"FCGI_MAX_REQS", b"FCGI_MPXS_CONNS"}
        conn.send(wire.record(99, 0))
        assert conn.read().kind == wire.UNKNOWN
        conn.send(whole())
        answer = conn.answer()
    assert answer.text == "hello\n"
    assert {r.kind for r in answer.records} <= {wire.STDOUT, wire.END}, "no record that was not asked for"


def test_get_values_in_the_middle_of_a_request(make_host):
    host = make_host({"count": COUNT})
    with host.connect() as conn:
        conn.start(wire.variables("/count", "POST", b"abc"))
        conn.send(wire.record(wire.GET_VALUES, 0, wire.pairs({"FCGI_MPXS_CONNS": ""})))
        assert conn.read().kind == wire.GET_VALUES_RESULT
        conn.send(wire.stream(wire.STDIN, b"abc"))
        assert conn.answer().text == "3"


def test_broken_get_values_ends_its_connection_only(make_host):
    host = make_host({"hello": HELLO})
    with host.connect(timeout=3) as conn:
        conn.send(wire.record(wire.GET_VALUES, 0, b"\xff\xff\xff\xffx"))
        conn.send_quietly(whole())
        conn.answer()
    assert host.request("/hello").text == "hello\n"


# --- connections

def test_a_connection_is_kept_when_asked_for_and_closed_when_not(make_host):
    host = make_host({"hello": HELLO})
    with host.connect() as conn:
        for _ in range(5):
            conn.send(whole(flags=wire.KEEP))
            assert conn.answer().end == (0, wire.COMPLETE)
        conn.send(whole())
        assert conn.answer().end == (0, wire.COMPLETE)
        assert conn.at_end()


def test_other_flag_bits_are_ignored(make_host):
    host = make_host({"hello": HELLO})
    with host.connect(timeout=5) as conn:
        conn.send(whole(flags=0xFE))
        assert conn.answer().text == "hello\n"
        assert conn.at_end()


def test_padding_on_every_record_is_read_past(make_host):
    host = make_host({"count": COUNT})
    with host.connect() as conn:
        for padding in (1, 7, 8, 255):
            head = struct.pack(">HB5x", 1, wire.KEEP)
            conn.send(wire.record(wire.BEGIN, 1, head, padding),
                      wire.stream(wire.PARAMS, wire.pairs(wire.variables("/count", "POST", b"abc")), padding=padding),
                      wire.stream(wire.STDIN, b"abc", padding=padding))
            assert conn.answer().text == "3"


def test_our_own_padding_is_zero(make_host):
    host = make_host({"hello": HELLO})
    with host.connect() as conn:
        conn.send(whole())
        data = b""
        while True:
            more = conn.socket.recv(65536)
            if not more:
                break
            data += more
    at = 0
    while at < len(data):
        version, _, _, size, padding, reserved = struct.unpack_from(">BBHHBB", data, at)
        assert (version, reserved) == (1, 0)
        assert size + padding <= 65535
        assert not any(data[at + 8 + size:at + 8 + size + padding])
        at += 8 + size + padding


def test_any_prefix_of_a_request_then_close(make_host):
    """No busy loop, no descriptor left, no process started before the parameters have ended."""
    host = make_host({"h": "echo >> \"$SCRATCH/ran\"; " + HELLO})
    params = wire.begin() + wire.stream(wire.PARAMS, wire.pairs({"SCRIPT_NAME": "/h", "REQUEST_METHOD": "POST", "CONTENT_LENGTH": "3"}))
    request = params + wire.stream(wire.STDIN, b"abc")
    for length in range(len(params)):
        with host.connect() as conn:
            conn.send(request[:length])
    host.check_idle()
    assert not (host.scratch / "ran").exists(), "a process for half a request"
    for length in range(len(params), len(request)):
        with host.connect() as conn:
            conn.send(request[:length])
    wait_until(lambda: not host.children(), 10)
    host.check_idle()
    ticks = proc.cpu_ticks(host.relay)
    with host.connect() as conn:
        assert conn.is_quiet(0.7)
    assert proc.cpu_ticks(host.relay) - ticks <= 10, "a busy loop"
    assert host.request("/h").text == "hello\n"


def test_many_requests_on_many_connections_at_once(make_host):
    host = make_host({"hello": HELLO}, defaults={"workers": {"max": 4}})
    conns = [host.connect(timeout=30) for _ in range(40)]
    for conn in conns:
        conn.send(whole(flags=wire.KEEP))
    for conn in conns:
        assert conn.answer().text == "hello\n"
        conn.close()


def test_stdout_records_never_follow_the_end(make_host):
    host = make_host({"h": "printf 'Content-Type: text/plain\\nContent-Length: 2\\n\\nok'; sleep 0.3; echo more; echo err >&2"})
    with host.connect() as conn:
        conn.send(whole("/h", flags=wire.KEEP))
        assert conn.answer().body == b"ok"
        assert conn.is_quiet(0.6)
        conn.send(whole("/h", flags=wire.KEEP))
        assert conn.answer().body == b"ok"


def test_stderr_never_enters_the_answer(make_host):
    host = make_host({"h": "echo one >&2; printf 'Content-Type: text/plain\\n\\nok'; echo two >&2"})
    answer = host.request("/h")
    assert (answer.body, answer.stderr) == (b"ok", b"")
    assert {r.kind for r in answer.records} == {wire.STDOUT, wire.END}
