"""The programs of the suites: each answers rightly as whatever it can be - a process per request, a worker, a server of its own."""
import http.client
import json
import os
import re
import signal
import subprocess

import pytest

from lib import paths, suite_programs
from lib.wait import connects, free_port, wait_until

HELLO_WORLD = {
    "c/hello-world": "fastcgi", "go/bin/hello-world": "fastcgi server", "go/bin/hello-world-echo": "fastcgi server", "cpp/hello-world": "fastcgi server",
    "node/hello-world.js": "fastcgi server", "python/hello-world.py": "fastcgi server", "python/hello-world-flask.py": "fastcgi server",
    "python/hello-world-http.py": "port", "lua/hello-world.lua": "fastcgi", "lua/hello-world-http.lua": "port",
}
GREET = {"go/bin/greet": "fastcgi server", "node/greet.js": "fastcgi server", "python/greet.py": "fastcgi server"}
GREET_FUNCTION = ["go/bin/greet-function", "node/greet-function.js", "python/greet-function.py"]
USER = {"c/user": "fastcgi", "go/bin/user": "fastcgi server", "python/user.py": "fastcgi server", "python/user-flask.py": "fastcgi server"}


def as_all(programs):
    """(program, way) for each way that it has: `server` takes --port N, `port` only N."""
    for program, kinds in programs.items():
        for kind in kinds.split():
            for way in ("per-request", "persistent") if kind == "fastcgi" else (kind,):
                yield pytest.param(program, way, id=f"{program}-{way}")


class Asked:
    """One program, running in one way: ask(path, body) gives (status, content type, body)."""

    def __init__(self, folder, make_host, program, way, route="/*", env=None):
        self.process = None
        self.path = suite_programs.path_of(program)
        self.environment = {"FCGI_HOST_TEST": str(folder), **(env or {})}
        if way in ("server", "port"):
            self._serve([str(self.path), *(["--port"] if way == "server" else [])])
        else:
            self.host = make_host({"program": {"command": [str(self.path)], "protocol": "fastcgi", "process": way, "env": self.environment}},
                                  routes=[{"path": route, "handler": "program"}])

    def _serve(self, command):
        self.port = free_port()
        self.process = subprocess.Popen([*command, str(self.port)], env={"PATH": os.environ["PATH"], **self.environment}, start_new_session=True)
        wait_until(lambda: self.process.poll() is None and connects(("127.0.0.1", self.port)), 20, "the server listens")

    def ask(self, path, body=None):
        method = "GET" if body is None else "POST"
        if self.process is None:
            answer = self.host.request(path, method, body, headers=[("Content-Type", "application/json")] if body is not None else ())
            assert answer.complete, answer
            return answer.status, answer.get("Content-Type"), answer.text
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path, body, {"Content-Type": "application/json"} if body is not None else {})
        answer = connection.getresponse()
        found = answer.status, answer.headers["Content-Type"], answer.read().decode()
        connection.close()
        return found

    def stop(self):
        """TERM ends a server."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        finally:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def run(folder, make_host):
    running = []

    def start(program, way, **more):
        running.append(Asked(folder, make_host, program, way, **more))
        return running[-1]
    yield start
    for asked in running:
        asked.stop()


@pytest.mark.limit(200)         # it may have to be built first
@pytest.mark.parametrize("program, way", as_all(HELLO_WORLD))
def test_hello_world(run, program, way):
    asked = run(program, way)
    for _ in range(3):
        status, content_type, text = asked.ask("/hello?x=1")
        assert (status, text) == (200, "Hello, World!\n") and content_type.split(";")[0] == "text/plain"


@pytest.mark.limit(200)
@pytest.mark.parametrize("program, way", as_all(GREET))
def test_greet(run, program, way):
    asked = run(program, way)
    for name in ("Johnny", "Jörg \\\"J\\\""):
        status, content_type, text = asked.ask("/greeting", f'{{"name":"{name}"}}'.encode())
        assert status == 200 and content_type == "application/json" and json.loads(text) == {"greeting": f"Hello, {json.loads(chr(34) + name + chr(34))}!"}
    for bad in (b"", b"{}", b"nonsense", b'{"name":3}', b'"name"'):
        assert asked.ask("/greeting", bad)[0] == 400, bad
    assert asked.ask("/greeting", b'{"name":"' + b"x" * 70000 + b'"}')[0] == 413
    assert asked.ask("/greeting", b'{"name":"again"}')[0] == 200


@pytest.mark.limit(200)
@pytest.mark.parametrize("program", GREET_FUNCTION)
def test_greet_as_a_function(make_host, program):
    path = suite_programs.path_of(program)
    host = make_host({"f": {"command": [str(path)], "protocol": "stdio"}})
    answer = host.request("/f", "POST", b'{"name":"Johnny"}')
    assert (answer.status, answer.text) == (200, '{"greeting":"Hello, Johnny!"}')
    for bad in (b"", b"{}", b"nonsense", b'{"name":3}'):
        assert host.request("/f", "POST", bad).status == 502, bad


@pytest.mark.parametrize("program", GREET_FUNCTION)
def test_the_function_in_a_process_that_waited(make_host, program):
    host = make_host({"f": {"command": [str(suite_programs.path_of(program))], "protocol": "stdio", "process": "parked"}})
    wait_until(lambda: json.loads(host.command("status", "-c", str(host.config), "--json").stdout)["handlers"][0]["processes"]["idle"] == 1,
               20, "a process that waits")
    assert host.request("/f", "POST", b'{"name":"Johnny"}').text == '{"greeting":"Hello, Johnny!"}'
    assert host.wait_log(event="request")["start"] == "parked"


@pytest.fixture(scope="session")
def database(tmp_path_factory):
    """The variables with which the setup of the suite user-lookup says where its database is."""
    if not list(paths.pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        pytest.skip("not installed: postgresql")
    script = paths.REPO / "conf/suites/user-lookup-database.sh"
    setup = subprocess.Popen(["/bin/bash", str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    env = {}
    for line in iter(setup.stdout.readline, b"ready\n"):
        assert line, f"the setup ended with {setup.wait()}"
        name, _, value = line.decode().strip().partition("=")
        env[name] = value
    yield env
    setup.stdin.close()
    assert setup.wait(30) == 0
    assert not os.path.exists(env["PGHOST"])


@pytest.mark.limit(200)
@pytest.mark.parametrize("connection", ["kept", "per-request"])
@pytest.mark.parametrize("program, way", as_all(USER))
def test_user_from_a_database(run, database, program, way, connection):
    # The one in C takes the id from the route; Flask has routes of its own, and looks at what the host's leaves of the path.
    route = "/*" if "flask" in program else "/users/id/{id}"
    asked = run(program, way, route=route, env={**database, "DATABASE_CONNECTION": connection})
    for number in (7, 4000, 7):
        status, content_type, text = asked.ask(f"/users/id/{number}")
        assert status == 200 and content_type == "application/json"
        assert text == f'{{"id":{number},"name":"User {number}","email":"user{number}@example.org"}}\n'
    assert asked.ask("/users/id/99999999")[0] == 404
    assert asked.ask("/users/id/no-number")[0] in (400, 404)


@pytest.mark.parametrize("program", ["c/user", "go/bin/user", "python/user.py"])
@pytest.mark.limit(200)
def test_a_database_that_is_not_there_is_503(run, folder, program):
    asked = run(program, "persistent", route="/users/id/{id}", env={"PGHOST": str(folder), "PGUSER": "nobody", "PGDATABASE": "none"})
    assert asked.ask("/users/id/7")[0] == 503


def test_every_program_of_a_suite_is_tested_here():
    named = set()
    for suite in (paths.REPO / "conf" / "suites").glob("*.yaml.in"):
        named.update(re.findall(r"@(?:SCRIPTS|PROGRAMS)@/([\w./-]+)", suite.read_text()))
    assert named == {*HELLO_WORLD, *GREET, *GREET_FUNCTION, *USER}
