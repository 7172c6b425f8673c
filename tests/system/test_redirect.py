"""Location without a Status."""
import pytest

from lib.handlers import ENVIRON, HELLO, env_of, writes

EVERY_PROCESS = True


def test_location_alone_is_302(make_host, front):
    host = make_host({"go": writes(b"Location: https://example.org/x?y=1\n\n")})
    answer = front(host).get("/go")
    assert (answer.status, answer.get("Location"), answer.complete) == (302, "https://example.org/x?y=1", True)


@pytest.mark.parametrize("written", [
    b"Location: /other\nX-More: 1\n\n",         # not the only field
    b"Location: /other\n\nsome body",           # a body
    b"Location: /nowhere\n\n",                  # none of our routes
    b"Location: //other/x\n\n",                 # another host
    b"Location: other\n\n",                     # no path
], ids=["another field", "a body", "no route of ours", "double slash", "relative"])
def test_these_are_for_the_client(make_host, written):
    host = make_host({"go": writes(written), "other": HELLO})
    answer = host.request("/go")
    assert answer.status == 302
    assert answer.get("Location") in ("/other", "/nowhere", "//other/x", "other")


def test_location_with_a_status_is_for_the_client(make_host, front):
    host = make_host({"go": writes(b"Status: 301\nLocation: /other\n\n"), "other": HELLO})
    answer = front(host).get("/go")
    assert (answer.status, answer.complete) == (301, True)
    assert answer.get("Location").endswith("/other")


def test_a_local_path_is_answered_from_there(make_host, front):
    host = make_host({"go": "cat > /dev/null; printf 'Location: /env/extra?a=b%%20c\\n\\n'", "env": ENVIRON})
    client = front(host)
    for answer in (client.get("/go?old=1"), client.post("/go", b"some body")):
        assert answer.status == 200, answer
        env = env_of(answer)
        assert (env["REQUEST_METHOD"], env["SCRIPT_NAME"], env["PATH_INFO"], env["QUERY_STRING"]) == ("GET", "/env", "/extra", "a=b%20c")
        assert "CONTENT_LENGTH" not in env and not env.get("CONTENT_TYPE")


def test_the_sixth_hop_is_502(make_host):
    handlers = {f"hop{i}": writes(b"Location: /hop%d\n\n" % (i + 1)) for i in range(1, 8)}
    handlers["hop6"] = HELLO
    host = make_host(handlers)
    assert host.request("/hop1").text == "hello\n", "five hops"
    loop = make_host({"loop": writes(b"Location: /loop\n\n")})
    answer = loop.request("/loop")
    assert (answer.status, answer.complete) == (502, True)
    assert loop.wait_log(event="request", status=502)["reason"]


def test_head_follows_as_head_or_get_without_a_body(make_host):
    host = make_host({"go": writes(b"Location: /hello\n\n"), "hello": HELLO})
    answer = host.request("/go", "HEAD")
    assert (answer.status, answer.body, answer.complete) == (200, b"", True)


def test_a_local_path_to_persistent_workers(make_host, fastcgi_program):
    from lib.handlers import worker
    host = make_host({"go": writes(b"Location: /w?count\n\n"), "w": worker(fastcgi_program)})
    assert host.request("/go", "POST", b"body").text == "0\n"
