"""The same request through nginx, mod_proxy_fcgi and mod_fcgid gives the handler the same variables."""
import pytest

from lib.handlers import ENVIRON, env_of

EVERY_PROCESS = True

# What differs by nature between two servers on two ports.
OWN = {"SERVER_PORT", "SERVER_SOFTWARE", "REMOTE_PORT", "REQUEST_ID"}
# What only Apache has, and no handler should build on.
APACHE = {"SERVER_SIGNATURE", "SERVER_ADMIN", "CONTEXT_PREFIX", "CONTEXT_DOCUMENT_ROOT", "UNIQUE_ID", "SCRIPT_URL", "SCRIPT_URI", "CONTEXT_PATH"}
FRONTS = ("nginx-kept", "mod_proxy_fcgi", "mod_fcgid", "nginx-streaming")

REQUESTS = {
    "plain": ("GET", "/env", None, []),
    "path and query": ("GET", "/env/a%20b/%C3%A4/c?x=%3D&y=a+b", None, []),
    "encoded slash": ("GET", "/env/a%2Fb", None, []),
    "post": ("POST", "/env/p?q", b"0123456789", [("Content-Type", "text/x-test; charset=utf-8")]),
    "headers": ("GET", "/env", None, [("X-Custom", "value, with; odd=\"signs\""), ("Accept", "text/*"), ("Cookie", "a=1; b=2"), ("Proxy", "http://x:1"),
                                      ("Authorization", "Basic eDp5"), ("User-Agent", "tester/1"), ("If-None-Match", '"abc"'), ("Range", "bytes=0-")]),
    "head": ("HEAD", "/env", None, []),
    "put": ("PUT", "/env/file", b"", []),
    "pattern": ("GET", "/users/7%208", None, []),
    "percent": ("GET", "/env/100%25?100%25", None, []),
    "empty query": ("GET", "/env?", None, []),
}


@pytest.mark.parametrize("what", REQUESTS)
def test_same_variables(make_host, make_front, what):
    method, path, body, headers = REQUESTS[what]
    script = "env -0 > \"$SCRATCH/env\"; " + ENVIRON
    host = make_host({"env": {"script": script, "pass_authorization": True}},
                     more_routes=[{"path": "/users/{id}", "handler": "env"}])
    seen = {}
    for name in FRONTS:
        client = make_front(name, host)
        answer = client.request(path, method, body, headers=[("Host", "www.example.org"), *headers])
        assert answer.status == 200, (name, answer)
        raw = (host.scratch / "env").read_bytes().decode("utf-8", "surrogateescape")
        env = dict(p.split("=", 1) for p in raw.split("\0") if "=" in p)
        if method != "HEAD":
            assert env_of(answer) == env
        seen[name] = {n: v for n, v in env.items() if n not in OWN}
        for own in OWN:
            assert own in env, (name, own)
    first = seen["nginx-kept"]
    for name in FRONTS[1:]:
        other = {n: v for n, v in seen[name].items() if n not in APACHE}
        differences = {n: (first.get(n), other.get(n)) for n in first.keys() | other.keys() if first.get(n) != other.get(n)}
        assert not differences, f"nginx and {name} differ: {differences}"


def test_https_is_the_same(make_host, make_front, folder):
    """HTTPS=on arrives where the connection is encrypted (said by the front, here by its configuration)."""
    host = make_host({"env": ENVIRON})
    on = env_of(make_front("nginx-kept", host, extra="fastcgi_param HTTPS on;").get("/env"))
    assert on["HTTPS"] == "on"
    on = env_of(make_front("mod_proxy_fcgi", host, extra="SetEnv HTTPS on").get("/env"))
    assert on["HTTPS"] == "on"
    off = env_of(make_front("nginx-kept", host).get("/env"))
    assert not off.get("HTTPS")
