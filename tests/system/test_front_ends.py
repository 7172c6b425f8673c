"""Settings of nginx and Apache that look like a fault of the handler: what doc/front-ends.md says of them, symptom and cure."""
import base64
import re
import socket
import time

import pytest

from lib import fronts, paths
from lib.handlers import COUNT, HELLO, python
from lib.wait import wait_until

PAGE = (paths.REPO / "doc" / "front-ends.md").read_text()
SLEEPS = "sleep 3; " + HELLO
TICKS_ON = "trap '' PIPE TERM; n=0; while [ $n -lt 40 ]; do echo >> \"$SCRATCH/ticks\"; sleep 0.1; n=$((n + 1)); done; " + HELLO


class Pair:
    """nginx with the same handler at /h/symptom and at /h/cure, which differ in some directives."""

    def __init__(self, make_host, make_front, script, symptom, cure, **keys):
        common = "include /etc/nginx/fastcgi_params; fastcgi_pass fcgi_host;"
        self.host = make_host({"h": {"script": script, **keys}})
        self.front = make_front("nginx-plain", self.host, server=f"location /h/symptom {{ {common} {symptom} }} location /h/cure {{ {common} {cure} }}")

    def ask(self, which, *arguments, **more):
        return self.front.request(f"/h/{which}", *arguments, **more)

    def requests(self):
        return self.host.log(event="request")


# --- nginx

def test_client_max_body_size(make_host, make_front):
    pair = Pair(make_host, make_front, COUNT, "", "client_max_body_size 3m;")
    data = b"x" * (2 << 20)
    assert pair.ask("symptom", "POST", data).status == 413
    assert not pair.requests(), "our log knows nothing of it"
    assert pair.ask("cure", "POST", data).text.strip() == str(len(data))


def test_fastcgi_buffer_size(make_host, make_front):
    script = f"printf 'Content-Type: text/plain\\nX-Large: {'v' * 9000}\\n\\nhello\\n'\n"
    pair = Pair(make_host, make_front, script, "", "fastcgi_buffer_size 64k; fastcgi_buffers 8 64k; fastcgi_busy_buffers_size 128k;")
    assert pair.ask("symptom").status == 502
    assert "upstream sent too big header" in pair.front.said()
    assert pair.ask("cure").text == "hello\n"


def test_fastcgi_read_timeout(make_host, make_front):
    pair = Pair(make_host, make_front, SLEEPS, "fastcgi_read_timeout 1s;", "fastcgi_read_timeout 10s;")
    assert pair.ask("symptom").status == 504
    assert "the web server closed the connection" in pair.host.wait_log(event="request", status=499)["reason"]
    assert pair.ask("cure").text == "hello\n"


def test_fastcgi_intercept_errors(make_host, make_front):
    pair = Pair(make_host, make_front, "printf 'Status: 404\\nContent-Type: text/plain\\n\\nour own page\\n'",
                "fastcgi_intercept_errors on; error_page 404 /none;", "error_page 404 /none;")
    assert "our own page" not in pair.ask("symptom").text
    assert pair.ask("cure").text == "our own page\n"


def test_gzip(make_host, make_front):
    script = "printf 'Content-Type: text/plain\\nContent-Length: 2000\\nETag: \"a\"\\n\\n'; head -c 2000 /dev/zero | tr '\\0' x"
    pair = Pair(make_host, make_front, script, "gzip on; gzip_types text/plain;", "gzip off;")
    ask = [("Accept-Encoding", "gzip")]
    answer = pair.ask("symptom", headers=ask)
    assert (answer.get("Content-Encoding"), answer.get("Content-Length"), answer.get("ETag")) == ("gzip", None, 'W/"a"')
    answer = pair.ask("cure", headers=ask)
    assert (answer.get("Content-Length"), answer.get("ETag")) == ("2000", '"a"')


def open_request(front, path, length=0):
    s = socket.create_connection(("127.0.0.1", front.port), timeout=20)
    s.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode())
    return s


def test_fastcgi_ignore_client_abort(make_host, make_front):
    pair = Pair(make_host, make_front, TICKS_ON, "fastcgi_ignore_client_abort on;", "", timeout={"kill": "300ms"})
    ticks = pair.host.scratch / "ticks"
    for which, status in (("symptom", 200), ("cure", 499)):
        with open_request(pair.front, f"/h/{which}"):
            wait_until(ticks.exists, 10)
        pair.host.wait_log(event="request", status=status)
        ticks.unlink()


@pytest.mark.parametrize("way", ["symptom", "cure"])
def test_client_body_timeout(make_host, make_front, way):
    pair = Pair(make_host, make_front, COUNT, "client_body_timeout 1s;", "client_body_timeout 20s;")
    with open_request(pair.front, f"/h/{way}", 10) as s:
        s.sendall(b"01234")
        time.sleep(2.5)         # what the limit is to: a client that sends nothing
        if way == "symptom":
            assert s.recv(1000).startswith(b"HTTP/1.1 408") or not s.recv(1)
            assert not pair.requests()
        else:
            s.sendall(b"56789")
            assert s.recv(1000).startswith(b"HTTP/1.1 200")


def test_fastcgi_max_temp_file_size(make_host, make_front):
    """Without its file nginx lets a slow client hold the handler, buffering or not."""
    pair = Pair(make_host, make_front, python("out.write(b'Content-Type: text/plain\\n\\n' + b'x' * (32 << 20))"), "fastcgi_max_temp_file_size 0;", "")
    for which, count in (("cure", 1), ("symptom", 2)):
        with open_request(pair.front, f"/h/{which}") as s:
            s.recv(100)
            if which == "cure":
                pair.host.wait_log(event="request", count=1)
            else:
                assert len(pair.requests()) == 1 and pair.host.children(), "it is still being read"
            while s.recv(1 << 20):
                if len(pair.requests()) == count:
                    break


# --- Apache

def test_limit_request_field_size(make_host, make_front):
    host = make_host({"h": HELLO})
    header = [("X-Large", "v" * 9000)]
    front = make_front("mod_proxy_fcgi", host)
    assert front.get("/h", headers=header).status == 400
    assert not host.log(event="request")
    front.stop()
    assert make_front("mod_proxy_fcgi", host, extra="LimitRequestFieldSize 16380").get("/h", headers=header).text == "hello\n"


def test_fcgid_max_request_len(make_host, make_front):
    host = make_host({"h": COUNT})
    data = b"x" * 200_000
    front = make_front("mod_fcgid", host, extra="FcgidMaxRequestLen 131072")
    assert front.post("/h", data).status >= 400 and "exceeds MaxRequestLen" in front.said()
    assert not host.log(event="request")
    front.stop()
    assert make_front("mod_fcgid", host).post("/h", data).text.strip() == "200000"


def test_limit_request_body_under_mod_fcgid(make_host, make_front):
    host = make_host({"h": COUNT})
    front = make_front("mod_fcgid", host, extra='<Location "/">\nLimitRequestBody 1000\n</Location>')
    assert front.post("/h", b"x" * 2000).text.strip() == "0", "passed on without its body"
    front.stop()
    assert make_front("mod_fcgid", host).post("/h", b"x" * 2000).text.strip() == "2000"


@pytest.mark.parametrize("name,status", [("mod_fcgid", 500), ("mod_proxy_fcgi", 504)])
def test_time_limits_of_apache(make_host, make_front, name, status):
    host = make_host({"h": SLEEPS})
    front = make_front(name, host, timeout=1)
    assert front.get("/h").status == status
    front.stop()
    assert make_front(name, host, timeout=10).get("/h").text == "hello\n"


def test_fcgid_busy_timeout(make_host, make_front):
    """However much of an answer moves."""
    script = "printf 'Content-Type: text/plain\\n\\n'; n=0; while [ $n -lt 60 ]; do echo tick; sleep 0.1; n=$((n + 1)); done"
    host = make_host({"h": script})
    front = make_front("mod_fcgid", host, extra="FcgidBusyTimeout 1\nFcgidBusyScanInterval 1")
    assert front.get("/h").text != "tick\n" * 60
    front.stop()
    assert make_front("mod_fcgid", host).get("/h").text == "tick\n" * 60


def test_mod_reqtimeout(make_host, make_front):
    host = make_host({"h": COUNT})
    for limit, is_fine in (("body=1", False), ("body=0", True)):
        front = make_front("mod_proxy_fcgi", host, extra=f"LoadModule reqtimeout_module /usr/lib/apache2/modules/mod_reqtimeout.so\nRequestReadTimeout {limit}")
        with open_request(front, "/h", 10) as s:
            s.sendall(b"01234")
            time.sleep(2.5)     # what the limit is to
            if is_fine:
                s.sendall(b"56789")
                assert s.recv(1000).startswith(b"HTTP/1.1 200")
            else:
                assert s.recv(1000).split(b" ")[1:2] in ([b"408"], [b"400"], [])
                assert not host.log(event="request", status=200)
        front.stop()


def test_cgi_pass_auth(make_host, make_front):
    host = make_host({"h": {"script": "printf 'Content-Type: text/plain\\n\\n%s\\n' \"${HTTP_AUTHORIZATION-unset}\"", "pass_authorization": True}})
    header = [("Authorization", "Basic " + base64.b64encode(b"a:b").decode())]
    front = make_front("mod_proxy_fcgi", host, extra='<Location "/">\nCGIPassAuth Off\n</Location>')
    assert front.get("/h", headers=header).text == "unset\n"
    front.stop()
    assert make_front("mod_proxy_fcgi", host).get("/h", headers=header).text.startswith("Basic")


def test_proxy_fcgi_set_env_if(make_host, make_front):
    host = make_host({"h": HELLO})
    front = make_front("mod_proxy_fcgi", host, extra='ProxyFCGISetEnvIf "true" SCRIPT_NAME "/elsewhere"')
    assert front.get("/h").status == 404
    assert host.wait_log(event="request", status=404)["path"] == "/elsewhere"


class Unflushed(fronts.ModProxyFcgi):
    def shipped(self, name, *changes):
        return super().shipped(name, *changes, (" flushpackets=on", ""))


def test_flushpackets(make_host, folder):
    """Without it, small pieces wait for the end."""
    script = "printf 'Content-Type: text/plain\\n\\nfirst\\n'; echo > \"$SCRATCH/said\"; while [ ! -e \"$SCRATCH/go\" ]; do sleep 0.05; done; echo last"
    host = make_host({"h": script})
    go, said = host.scratch / "go", host.scratch / "said"
    for kind in (Unflushed, fronts.ModProxyFcgi):
        front = kind(folder / kind.__name__, host)
        try:
            with open_request(front, "/h") as s:
                wait_until(said.exists, 10)
                if kind is Unflushed:
                    s.settimeout(1)     # time enough, were it passed on
                    with pytest.raises(TimeoutError):
                        s.recv(1000)
                    s.settimeout(10)
                else:
                    seen = b""
                    while b"first" not in seen:
                        seen += s.recv(1000)
                go.write_text("")
                seen = b""
                while b"last" not in seen:
                    seen += s.recv(1000)
        finally:
            front.stop()
        go.unlink()
        said.unlink()


# --- the page

def test_the_page_names_every_directive_that_can_look_like_our_fault():
    nginx = """fastcgi_buffer_size fastcgi_buffers fastcgi_busy_buffers_size fastcgi_max_temp_file_size fastcgi_read_timeout fastcgi_send_timeout
        fastcgi_connect_timeout client_max_body_size client_body_timeout fastcgi_request_buffering fastcgi_buffering fastcgi_keep_conn fastcgi_next_upstream
        fastcgi_ignore_client_abort fastcgi_intercept_errors gzip http2 large_client_header_buffers""".split()
    apache = """ProxyTimeout Timeout LimitRequestBody LimitRequestFieldSize FcgidMaxRequestLen FcgidIOTimeout FcgidBusyTimeout FcgidOutputBufferSize
        FcgidMaxRequestsPerProcess FcgidMaxProcessesPerClass ProxyFCGISetEnvIf flushpackets enablereuse CGIPassAuth RequestReadTimeout
        AllowEncodedSlashes""".split()
    named = set(re.findall(r"[A-Za-z_0-9]+", " ".join(re.findall(r"`([^`]+)`", PAGE))))
    assert set(nginx + apache) <= named, set(nginx + apache) - named
