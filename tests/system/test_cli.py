"""The commands: check, routes, call, and what they say."""
import pytest

from lib.handlers import COUNT, HELLO, ENVIRON
from lib.wait import free_port


@pytest.fixture
def idle_host(make_host):
    return make_host({"hello": HELLO, "git": HELLO, "user": HELLO}, start=False, routes=[
        {"path": "/hello", "handler": "hello"}, {"path": "/git/*", "handler": "git"}, {"path": "/users/{id}", "methods": ["GET"], "handler": "user"},
        {"path": "/*", "host": "api.example.org", "handler": "git"},
    ])


def test_check_says_fine(idle_host):
    done = idle_host.command("check", "-c", str(idle_host.config))
    assert done.returncode == 0, done


def test_check_of_a_file_that_is_not_there(idle_host):
    done = idle_host.command("check", "-c", "nowhere.yaml")
    assert done.returncode == 1 and b"nowhere.yaml" in done.stderr


def test_check_print_is_a_configuration_that_prints_the_same(idle_host):
    first = idle_host.command("check", "-c", str(idle_host.config), "--print")
    assert first.returncode == 0
    text = first.stdout.decode()
    for word in ("response", "idle_timeout", "max_requests", "hello", "/users/{id}", "queue"):
        assert word in text
    copy = idle_host.folder / "copy.yaml"
    copy.write_text(text)
    second = idle_host.command("check", "-c", str(copy), "--print")
    assert second.returncode == 0, second.stderr
    assert second.stdout == first.stdout


def test_serve_runs_what_check_printed(make_host):
    host = make_host({"hello": HELLO}, start=False)
    printed = host.command("check", "-c", str(host.config), "--print")
    host.write_text(printed.stdout.decode())
    host.start()
    assert host.request("/hello").text == "hello\n"


def test_routes_lists_the_table(idle_host):
    done = idle_host.command("routes", "-c", str(idle_host.config))
    assert done.returncode == 0
    for word in ("/hello", "/git/*", "/users/{id}", "api.example.org", "hello", "git", "user"):
        assert word in done.stdout.decode()


@pytest.mark.parametrize("method, url, route", [
    ("GET", "/hello", "/hello"), ("GET", "/git/a/b?x", "/git/*"), ("GET", "/users/7", "/users/{id}"), ("GET", "http://api.example.org/x", "/*"),
    ("GET", "http://other.example.org/hello", "/hello"),
])
def test_routes_says_which_route_takes_a_request(idle_host, method, url, route):
    done = idle_host.command("routes", "-c", str(idle_host.config), method, url)
    assert done.returncode == 0
    assert route in done.stdout.decode()


@pytest.mark.parametrize("method, url", [("GET", "/nothing"), ("POST", "/users/7"), ("GET", "/gitx")])
def test_routes_says_when_none_does(idle_host, method, url):
    done = idle_host.command("routes", "-c", str(idle_host.config), method, url)
    text = (done.stdout + done.stderr).decode().lower()
    assert "404" in text or "405" in text or "no route" in text or "method" in text


def test_call_like_curl(make_host):
    host = make_host({"hello": HELLO, "count": COUNT, "env": ENVIRON})
    config = ["-c", str(host.config)]
    done = host.command("call", *config, "/hello")
    assert (done.returncode, done.stdout) == (0, b"hello\n"), done
    done = host.command("call", *config, "-i", "/hello")
    assert b"200" in done.stdout.split(b"\n")[0] and done.stdout.endswith(b"\r\n\r\nhello\n")
    assert host.command("call", *config, "-d", "0123456789", "/count").stdout == b"10"
    (host.folder / "body").write_bytes(bytes(100_000))
    assert host.command("call", *config, "-d", f"@{host.folder}/body", "/count").stdout == b"100000"
    env = host.command("call", *config, "-X", "DELETE", "-H", "X-Custom: yes", "-H", "Content-Type: text/x", "/env/a%20b?q=1").stdout
    for pair in (b"REQUEST_METHOD=DELETE", b"HTTP_X_CUSTOM=yes", b"PATH_INFO=/a b", b"QUERY_STRING=q=1", b"SCRIPT_NAME=/env"):
        assert pair in env.split(b"\0"), (pair, env)


def test_call_by_address(make_host):
    port = free_port()
    host = make_host({"hello": HELLO}, listen=[{"address": f"127.0.0.1:{port}"}])
    assert host.command("call", "--connect", f"127.0.0.1:{port}", "/hello").stdout == b"hello\n"
    second = make_host({"hello": HELLO})
    assert second.command("call", "--connect", f"unix:{second.socket}", "/hello").stdout == b"hello\n"


def test_call_shows_an_error_status(make_host):
    host = make_host({"hello": HELLO})
    done = host.command("call", "-c", str(host.config), "-i", "/nothing")
    assert b"404" in done.stdout


def test_call_says_when_the_transfer_is_broken(make_host):
    host = make_host({"h": "printf 'Content-Type: text/plain\\nContent-Length: 100\\n\\nshort'"})
    done = host.command("call", "-c", str(host.config), "/h")
    assert done.returncode != 0 and done.stderr


def test_call_when_nobody_listens(idle_host):
    done = idle_host.command("call", "-c", str(idle_host.config), "/hello")
    assert done.returncode == 1 and idle_host.socket.encode() in done.stderr


def test_call_head_has_no_body(make_host):
    host = make_host({"hello": HELLO})
    done = host.command("call", "-c", str(host.config), "-i", "-X", "HEAD", "/hello")
    assert done.returncode == 0 and done.stdout.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["check", "--nonsense"], ["call"], ["routes", "-c"], ["serve", "surplus"], ["call", "-X"]], ids=str)
def test_usage_is_2(idle_host, arguments):
    done = idle_host.command(*arguments)
    assert done.returncode == 2 and done.stderr


@pytest.mark.parametrize("command", ["serve", "bridge", "reload", "status", "top", "call", "compare", "check", "routes"])
def test_the_help_of_a_command(idle_host, command):
    done = idle_host.command(command, "--help")
    assert done.returncode == 0 and not done.stderr
    assert done.stdout.startswith(f"usage: fcgi-host {command}".encode()) and done.stdout.count(b"\n") == 1


@pytest.mark.parametrize("argument", ["--help", "-h", "--version"])
def test_help_and_version(idle_host, argument):
    done = idle_host.command(argument)
    assert done.returncode == 0 and b"fcgi-host" in done.stdout and not done.stderr
