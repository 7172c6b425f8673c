"""server_timing: what a request waited for, where browsers show it."""
import re

import pytest

from lib.handlers import HELLO, python, worker
from lib.wait import wait_until

EVERY_PROCESS = True

FIELD = re.compile(r"queue;dur=(\d+\.\d{3})(?:, start;dur=(\d+\.\d{3}))?(?:, handler;dur=(\d+\.\d{3}))?$")


def times(answer):
    """The durations of our field, which is the last one."""
    # A client that joins fields of one name puts a comma between them.
    text = re.search(r"queue;dur=.*$", answer.all("Server-Timing")[-1]).group(0)
    found = FIELD.match(text)
    assert found, text
    return tuple(float(x) if x else None for x in found.groups())


def test_only_where_it_is_asked_for(make_host, front):
    host = make_host({"with": {"script": HELLO, "server_timing": True}, "without": HELLO})
    client = front(host)
    assert len(client.get("/with").all("Server-Timing")) == 1
    assert client.get("/without").all("Server-Timing") == []


def test_cgi(make_host, front):
    host = make_host({"h": {"script": "sleep 0.2; " + HELLO, "server_timing": True}})
    answer = front(host).get("/h")
    queue, start, handler = times(answer)
    assert answer.body == b"hello\n" and handler >= 150 and queue >= 0 and start > 0
    entry = host.wait_log(event="request")
    assert abs(entry["queue_ms"] - queue) < 1 and abs(entry["start_ms"] - start) < 1
    assert handler <= entry["total_ms"]


def test_stdio(make_host, front):
    host = make_host({"f": {"script": "echo early; sleep 0.2", "protocol": "stdio", "server_timing": True}})
    answer = front(host).get("/f")
    assert answer.body == b"early\n" and times(answer)[2] >= 150


@pytest.mark.per_request
def test_workers(make_host, front, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, server_timing=True)})
    client = front(host)
    for _ in range(3):
        queue, start, handler = times(client.get("/w"))
        assert None not in (queue, start, handler)


@pytest.mark.per_request
def test_connect(make_host, make_front, fastcgi_program):
    """Somebody else's server; here it is another host."""
    inner = make_host({"w": worker(fastcgi_program)})
    outer = make_host({"w": {"connect": f"unix:{inner.socket}", "protocol": "fastcgi", "server_timing": True}})
    assert None not in times(make_front("nginx-kept", outer).get("/w"))


def test_a_handlers_own_field_stays(make_host, front):
    host = make_host({"h": {"script": "printf 'Content-Type: text/plain\\nServer-Timing: db;dur=53.2;desc=\"a, b\"\\n\\nx'", "server_timing": True}})
    answer = front(host).get("/h")
    both = ", ".join(answer.all("Server-Timing"))
    assert both.startswith('db;dur=53.2;desc="a, b", queue;dur=')
    assert None not in times(answer)


def test_waiting_is_in_it(make_host):
    import threading
    host = make_host({"h": {"script": "touch $SCRATCH/$QUERY_STRING; while [ ! -e $SCRATCH/go ]; do sleep 0.02; done; " + HELLO, "server_timing": True,
                            "workers": {"max": 1}}, "hello": HELLO})
    answers = []
    threads = [threading.Thread(target=lambda n=n: answers.append(host.request(f"/h?{n}"))) for n in ("a", "b")]
    for thread in threads:
        thread.start()
    wait_until(lambda: len([1 for n in "ab" if (host.scratch / n).exists()]) == 1, 10)
    host.request("/hello")      # time passes
    (host.scratch / "go").touch()
    for thread in threads:
        thread.join()
    queues = sorted(times(a)[0] for a in answers)
    entries = host.wait_log(event="request", handler="h", count=2)
    assert queues[1] > queues[0]
    assert abs(queues[1] - max(e["queue_ms"] for e in entries)) < 1


@pytest.mark.parametrize("script, keys, status, known", [
    ("exit 0", {}, 502, 3),
    ("exec sleep 30", {"timeout": {"response": "200ms", "kill": "300ms"}}, 504, 3),
])
def test_our_own_answers_have_it(make_host, front, script, keys, status, known):
    host = make_host({"h": {"script": script, "server_timing": True, **keys}})
    answer = front(host).get("/h")
    assert answer.status == status
    assert len([t for t in times(answer) if t is not None]) == known


def test_a_header_without_room_for_it_is_sent_without(make_host):
    host = make_host({"h": {"script": python("out.write(b'Content-Type: text/plain\\nX-Fill: ' + b'x' * 960 + b'\\n\\nok')"), "server_timing": True,
                            "header": {"max": "1KiB"}}})
    answer = host.request("/h")
    assert (answer.status, answer.body, answer.all("Server-Timing")) == (200, b"ok", [])


def test_head_and_204(make_host, front):
    host = make_host({"h": {"script": "printf 'Status: 204\\n\\n'", "server_timing": True}})
    client = front(host)
    assert times(client.get("/h")) and times(client.request("/h", "HEAD"))


def test_a_local_redirect_counts_the_last_handler(make_host):
    host = make_host({"go": "sleep 0.3; printf 'Location: /h\\n\\n'", "h": {"script": HELLO, "server_timing": True}})
    queue, start, handler = times(host.request("/go"))
    assert queue + start + handler < host.wait_log(event="request")["total_ms"] - 250
