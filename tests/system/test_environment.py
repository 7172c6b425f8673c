"""The variables that a handler sees, and the path that chooses it."""
import pytest

from lib import wire
from lib.handlers import ENVIRON, HELLO, env_of
from lib.wait import wait_until

EVERY_PROCESS = True

REQUIRED = ("GATEWAY_INTERFACE", "REQUEST_METHOD", "QUERY_STRING", "SCRIPT_NAME", "SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL",
            "SERVER_SOFTWARE", "REMOTE_ADDR")


def ask(host, params, body=b""):
    """Exactly these parameters, nothing else."""
    with host.connect() as conn:
        conn.start(params)
        conn.send(wire.stream(wire.STDIN, body))
        return conn.answer()


def environ(host, params, body=b""):
    answer = ask(host, params, body)
    assert answer.status == 200, answer
    return env_of(answer)


# --- RFC 3875

def test_every_required_variable_is_set_whatever_the_web_server_sent(make_host):
    host = make_host({"env": ENVIRON})
    env = environ(host, {"SCRIPT_NAME": "/env"})
    for name in REQUIRED:
        assert name in env, name
    assert env["GATEWAY_INTERFACE"] == "CGI/1.1"
    assert env["REQUEST_METHOD"] == "GET"
    assert env["QUERY_STRING"] == ""
    assert env["SERVER_PROTOCOL"].startswith("HTTP/")
    assert env["REDIRECT_STATUS"] == "200"


def test_required_variables_through_every_front(make_host, front):
    host = make_host({"env": ENVIRON})
    env = env_of(front(host).request("/env/a/b?x=1", "POST", b"abc", headers=[("Content-Type", "text/x-test"), ("X-Custom", "c")]))
    for name in REQUIRED:
        assert env.get(name) is not None, name
    assert env["GATEWAY_INTERFACE"] == "CGI/1.1"
    assert (env["REQUEST_METHOD"], env["QUERY_STRING"]) == ("POST", "x=1")
    assert (env["SCRIPT_NAME"], env["PATH_INFO"]) == ("/env", "/a/b")
    assert (env["CONTENT_TYPE"], env["CONTENT_LENGTH"]) == ("text/x-test", "3")
    assert env["HTTP_X_CUSTOM"] == "c"
    assert env["REQUEST_URI"] == "/env/a/b?x=1"
    assert env["SCRIPT_FILENAME"] == str(host.folder / "handlers/env")
    assert env["REMOTE_ADDR"] == "127.0.0.1"


def test_content_length_is_unset_without_a_body(make_host, front):
    host = make_host({"env": ENVIRON})
    env = env_of(front(host).get("/env"))
    assert "CONTENT_LENGTH" not in env


def test_the_environment_is_built_from_scratch(make_host):
    host = make_host({"env": ENVIRON}, environment={"SECRET_OF_THE_HOST": "1", "TZ": "Mars/Base"})
    env = env_of(host.request("/env"))
    assert "SECRET_OF_THE_HOST" not in env and "TZ" not in env
    assert "/bin" in env["PATH"]


def test_request_ids_are_unique_and_in_the_log(make_host):
    host = make_host({"env": ENVIRON})
    ids = [env_of(host.request("/env"))["REQUEST_ID"] for _ in range(20)]
    assert len(set(ids)) == 20
    host.wait_log(event="request", count=20)
    assert sorted(e["id"] for e in host.log(event="request")) == sorted(ids)


def test_the_handlers_env_wins(make_host):
    host = make_host({"env": {"script": ENVIRON, "env": {"KEY": "handler", "HTTP_X_FORCED": "operator", "SERVER_NAME": "mine"}}},
                     defaults={"env": {"KEY": "default", "OTHER": "default"}})
    env = env_of(host.request("/env", headers=[("X-Forced", "client")]))
    assert (env["KEY"], env["OTHER"], env["HTTP_X_FORCED"], env["SERVER_NAME"]) == ("handler", "default", "operator", "mine")


def test_the_handlers_folder_is_where_the_program_is(make_host):
    host = make_host({"here": "printf 'Content-Type: text/plain\\n\\n%s' \"$(pwd -P)\"",
                      "there": {"script": "printf 'Content-Type: text/plain\\n\\n%s' \"$(pwd -P)\"", "directory": "/usr/share"}})
    assert host.request("/here").text == str((host.folder / "handlers").resolve())
    assert host.request("/there").text == "/usr/share"


# --- names that never pass

@pytest.mark.parametrize("name", ["Proxy", "proxy", "PROXY"])
def test_a_clients_proxy_header_never_arrives(make_host, front, name):
    host = make_host({"proxy": "printf 'Content-Type: text/plain\\n\\n%s' \"${HTTP_PROXY-unset}\""})
    assert front(host).get("/proxy", headers=[(name, "http://x:1")]).text == "unset"


def test_http_proxy_vanishes_whatever_its_case_and_the_operators_arrives(make_host):
    host = make_host({"env": ENVIRON, "own": {"script": ENVIRON, "env": {"HTTP_PROXY": "http://operator:1"}}})
    sent = {"SCRIPT_NAME": "/env", "HTTP_PROXY": "http://x:1", "http_proxy": "http://x:2", "Http_Proxy": "http://x:3"}
    env = environ(host, sent)
    assert not [n for n in env if n.upper() == "HTTP_PROXY"]
    env = environ(host, {**sent, "SCRIPT_NAME": "/own"})
    assert [v for n, v in env.items() if n.upper() == "HTTP_PROXY"] == ["http://operator:1"]


STEERING = ["PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "GCONV_PATH", "GLIBC_TUNABLES", "IFS", "ENV", "BASH_ENV", "SHELLOPTS",
            "PYTHONPATH", "PYTHONSTARTUP", "PYTHONINSPECT", "PERL5LIB", "PERL5OPT", "PERLLIB", "RUBYOPT", "RUBYLIB", "NODE_OPTIONS", "NODE_PATH"]


def test_names_that_steer_loaders_and_interpreters_never_pass(make_host):
    host = make_host({"env": ENVIRON})
    env = environ(host, {"SCRIPT_NAME": "/env", **{name: "/evil" for name in STEERING}, "GIT_PROJECT_ROOT": "/srv/git"})
    assert "/evil" not in env.values(), [n for n, v in env.items() if v == "/evil"]
    assert env["GIT_PROJECT_ROOT"] == "/srv/git", "what an operator sets in the web server passes"


@pytest.mark.per_request
def test_they_never_reach_a_persistent_worker_that_we_start_either(make_host, fastcgi_program):
    from lib.handlers import worker
    host = make_host({"w": worker(fastcgi_program)})
    text = host.request("/w?env", extra={name: "/evil" for name in STEERING}).text
    assert "REQUEST_METHOD=GET" in text and "/evil" not in text


@pytest.mark.parametrize("name", ["A=B", "", "A B", "1A", "A-B", "Ä", "A\nB", "BASH_FUNC_x%%", "A\0B"])
def test_names_that_are_no_variable_names_never_pass(make_host, name):
    host = make_host({"env": ENVIRON})
    answer = ask(host, [("SCRIPT_NAME", "/env"), (name, "odd-value"), ("X_AFTER", "1")])
    assert answer.status == 200
    env = env_of(answer)
    assert env["X_AFTER"] == "1"
    assert b"odd-value" not in answer.body


def test_a_value_with_nul_never_passes(make_host):
    host = make_host({"env": ENVIRON})
    answer = ask(host, [("SCRIPT_NAME", "/env"), ("X_NUL", b"a\0LD_PRELOAD=/evil"), ("X_AFTER", "1")])
    assert answer.status in (200, 400)
    assert b"/evil" not in answer.body


def test_a_name_sent_twice_the_last_wins_and_is_logged_once_per_route(make_host):
    host = make_host({"env": ENVIRON})
    for _ in range(3):
        env = environ(host, [("SCRIPT_NAME", "/env"), ("X_TWICE", "first"), ("X_TWICE", "second")])
        assert env["X_TWICE"] == "second"
    host.wait_log(event="request", count=3)
    assert len([line for line in host.log_lines() if "X_TWICE" in line or "twice" in line]) == 1


# --- authorization and users

def test_authorization_only_when_asked_for(make_host, front):
    script = "printf 'Content-Type: text/plain\\n\\n%s' \"${HTTP_AUTHORIZATION-unset}\""
    host = make_host({"no": script, "yes": {"script": script, "pass_authorization": True}})
    client = front(host)
    headers = [("Authorization", "Basic eDp5")]
    assert client.get("/no", headers=headers).text == "unset"
    assert client.get("/yes", headers=headers).text == "Basic eDp5"


def test_remote_user_without_auth_type_is_logged_once_per_route(make_host, make_front):
    host = make_host({"user": "printf 'Content-Type: text/plain\\n\\n%s|%s' \"$REMOTE_USER\" \"$AUTH_TYPE\""})
    client = make_front("nginx-plain", host)     # Debian's own fastcgi_params send it
    for _ in range(3):
        assert client.get("/user", headers=[("Authorization", "Basic YWRhOng=")]).text == "ada|"
    host.wait_log(event="request", count=3)
    assert len([line for line in host.log_lines() if "REMOTE_USER" in line and "AUTH_TYPE" in line]) == 1


def test_remote_user_and_auth_type_arrive(make_host):
    host = make_host({"user": "printf 'Content-Type: text/plain\\n\\n%s|%s' \"$REMOTE_USER\" \"$AUTH_TYPE\""})
    assert host.request("/user", extra={"REMOTE_USER": "ada", "AUTH_TYPE": "Basic"}).text == "ada|Basic"
    assert not [line for line in host.log_lines() if "REMOTE_USER" in line]


# --- SCRIPT_FILENAME, query

def test_script_filename_is_the_file_really_run(make_host):
    host = make_host({"name": "printf 'Content-Type: text/plain\\n\\n%s' \"$SCRIPT_FILENAME\""})
    for sent in ("/srv/www/name/extra/path", "proxy:fcgi://127.0.0.1/name/extra", "", "/bin/sh"):
        assert host.request("/name/extra/path", extra={"SCRIPT_FILENAME": sent}).text == str(host.folder / "handlers/name")


@pytest.mark.parametrize("path, query", [("/q?abc", "abc"), ("/q?a+b&c", "a+b&c"), ("/q?", ""), ("/q", ""), ("/q?x=%3D&y", "x=%3D&y"), ("/q?a?b", "a?b")])
def test_query_strings_arrive_byte_for_byte_and_never_in_argv(make_host, front, path, query):
    host = make_host({"q": "printf 'Content-Type: text/plain\\n\\n%s|%s' \"${QUERY_STRING-unset}\" \"$*\""})
    assert front(host).get(path).text == query + "|"


def test_a_query_that_was_not_sent_is_taken_from_the_request_uri(make_host):
    host = make_host({"q": ENVIRON})
    env = environ(host, {"SCRIPT_NAME": "/q", "REQUEST_URI": "/q?from=uri&x=%20"})
    assert env["QUERY_STRING"] == "from=uri&x=%20"


# --- the path that is routed

@pytest.mark.parametrize("sent, script_name, path_info", [
    ({"SCRIPT_NAME": "/env", "PATH_INFO": "/a b"}, "/env", "/a b"),
    ({"SCRIPT_NAME": "", "PATH_INFO": "/env/x"}, "/env", "/x"),
    ({"SCRIPT_NAME": "/env/x/y"}, "/env", "/x/y"),
    ({"DOCUMENT_URI": "/env/u"}, "/env", "/u"),
    ({"REQUEST_URI": "/env/%61%2562?x=%41"}, "/env", "/a%62"),
    ({"SCRIPT_NAME": "/env", "REQUEST_URI": "/other"}, "/env", ""),
    ({"SCRIPT_NAME": "/en", "PATH_INFO": "v/z"}, "/env", "/z"),
], ids=str)
def test_the_path_is_what_the_web_server_sent(make_host, sent, script_name, path_info):
    host = make_host({"env": ENVIRON})
    env = environ(host, sent)
    assert (env["SCRIPT_NAME"], env.get("PATH_INFO", "")) == (script_name, path_info)


def test_an_empty_path_is_the_root(make_host):
    host = make_host({"root": ENVIRON}, routes=[{"path": "/", "handler": "root"}])
    env = environ(host, {"SCRIPT_NAME": "", "REQUEST_METHOD": "GET"})
    assert (env["SCRIPT_NAME"], env.get("PATH_INFO", "")) == ("", "/")


ROUTES = [
    {"path": "/hello", "handler": "hello"}, {"path": "/git/*", "handler": "git"}, {"path": "/users/{id}", "methods": ["GET"], "handler": "user"},
    {"path": "/*", "host": "api.example.org", "handler": "api"}, {"path": "/", "handler": "root"}, {"path": "/git/deep/*", "handler": "deep"},
]


@pytest.mark.parametrize("path, handler, script_name, path_info", [
    ("/hello", "hello", "/hello", ""),
    ("/git", "git", "/git", ""), ("/git/", "git", "/git", "/"), ("/git/a/b", "git", "/git", "/a/b"), ("/git/deep/x", "deep", "/git/deep", "/x"),
    ("/users/7", "user", "/users/7", ""), ("/", "root", "", "/"),
])
def test_routes_and_what_they_leave(make_host, path, handler, script_name, path_info):
    host = make_host({h: {"script": ENVIRON, "env": {"WHICH": h}} for h in ("hello", "git", "user", "api", "root", "deep")}, routes=ROUTES)
    env = env_of(host.request(path))
    assert (env["WHICH"], env["SCRIPT_NAME"], env.get("PATH_INFO", "")) == (handler, script_name, path_info)
    if handler == "user":
        assert env["PARAM_ID"] == "7"


def test_routes_by_host(make_host):
    host = make_host({h: {"script": ENVIRON, "env": {"WHICH": h}} for h in ("hello", "git", "user", "api", "root", "deep")}, routes=ROUTES)
    for name in ("api.example.org", "API.example.ORG", "api.example.org:8080"):
        env = env_of(host.request("/any/thing", headers=[("Host", name)]))
        assert (env["WHICH"], env["SCRIPT_NAME"], env["PATH_INFO"]) == ("api", "", "/any/thing")
    env = env_of(host.request("/hello", headers=[("Host", "api.example.org")]))
    assert env["WHICH"] == "hello", "exact before prefix"


def test_the_path_of_the_root_prefix(make_host, front):
    host = make_host({"all": ENVIRON}, routes=[{"path": "/*", "handler": "all"}])
    client = front(host)
    for path, info in (("/a", "/a"), ("/", "/"), ("/a/b%20c", "/a/b c")):
        env = env_of(client.get(path))
        assert (env["SCRIPT_NAME"], env["PATH_INFO"]) == ("", info)


def test_script_name_and_path_info_make_the_decoded_path(make_host, front):
    host = make_host({"env": ENVIRON})
    env = env_of(front(host).get("/env/a%20b/%C3%A4%25"))
    assert env["SCRIPT_NAME"] + env["PATH_INFO"] == "/env/a b/ä%"


# --- no route and the like

def test_no_route_is_404(make_host, front):
    host = make_host({"hello": HELLO})
    client = front(host)
    for path in ("/nothing", "/hellox", "/"):
        answer = client.get(path)
        assert (answer.status, answer.complete) == (404, True)
        assert answer.body and answer.get("Content-Length") in (None, str(len(answer.body)))
    assert host.wait_log(event="request", path="/nothing")["status"] == 404


def test_wrong_method_is_405_with_allow(make_host, front):
    host = make_host({"hello": HELLO}, routes=[{"path": "/hello", "methods": ["GET", "PUT"], "handler": "hello"}])
    client = front(host)
    answer = client.post("/hello", b"x")
    assert (answer.status, answer.complete) == (405, True)
    assert {m.strip() for m in answer.get("Allow").split(",")} >= {"GET", "PUT"}
    assert client.get("/hello").status == 200
    assert client.request("/hello", "HEAD").status == 200


@pytest.mark.parametrize("params", [
    {"SCRIPT_NAME": b"/env/a\0b"}, {"REQUEST_URI": "/env/%00"}, {"SCRIPT_NAME": "/env/../../etc"}, {"REQUEST_URI": "/../env"},
    {"REQUEST_URI": "/env/%2e%2e/%2E%2E/x"}, {"REQUEST_URI": "/env/%zz"}, {"REQUEST_URI": "/env/%4"},
], ids=str)
def test_paths_that_cannot_be_are_400(make_host, params):
    host = make_host({"env": ENVIRON})
    answer = ask(host, params)
    assert (answer.status, answer.complete) == (400, True)
    assert answer.body


def test_too_many_variables_are_431_and_no_handler_is_started(make_host):
    host = make_host({"env": "echo >> \"$SCRATCH/ran\"; " + ENVIRON}, params={"max": "64KiB"})
    with host.connect() as conn:
        conn.start({"SCRIPT_NAME": "/env", **{f"X_{i}": "v" * 1000 for i in range(80)}})
        conn.send(wire.record(wire.STDIN))
        answer = conn.answer()
    assert (answer.status, answer.complete) == (431, True)
    assert host.wait_log(event="request", status=431)["reason"]
    assert not (host.scratch / "ran").exists()


def test_a_variable_larger_than_exec_takes_is_431(make_host):
    host = make_host({"env": ENVIRON})
    answer = ask(host, {"SCRIPT_NAME": "/env", "X_LARGE": "v" * 140_000})
    assert (answer.status, answer.complete) == (431, True)
    entry = host.wait_log(event="request", status=431)
    wait_until(lambda: any("X_LARGE" in line for line in host.log_lines()), 5, "its name in the log")
    assert entry["reason"]


def test_a_large_variable_within_the_limits_arrives_whole(make_host):
    host = make_host({"env": ENVIRON})
    env = environ(host, {"SCRIPT_NAME": "/env", "X_LARGE": "v" * 100_000})
    assert env["X_LARGE"] == "v" * 100_000
