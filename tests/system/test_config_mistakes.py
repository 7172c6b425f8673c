"""Every mistake, with file, line and column, all at once, and a hint for a misspelt key."""
import os
import re

import pytest

from lib.handlers import HELLO

GOOD = """listen: unix:{socket}
handlers:
  hello:
    command: [handlers/hello]
routes:
  - {{path: /hello, handler: hello}}
"""


@pytest.fixture
def idle_host(make_host):
    return make_host({"hello": HELLO}, start=False)


def check(host, text, command="check"):
    host.write_text(text)
    done = host.command(command, "-c", str(host.config))
    return done.returncode, (done.stderr + done.stdout).decode()


def places(host, said):
    """[(line, column, message)] of the complaints."""
    return [(int(line), int(column), text) for line, column, text in re.findall(re.escape(str(host.config)) + r":(\d+):(\d+): (.*)", said)]


def complaint(host, text, line, *words, column=None):
    status, said = check(host, text)
    assert status == 1, said
    found = [p for p in places(host, said) if p[0] == line and (column is None or p[1] == column)]
    assert found, f"no complaint about line {line}: {said}"
    for word in words:
        assert any(word.lower() in p[2].lower() for p in found), f"{word!r} is not in {found}"


def test_the_good_one_is_good(idle_host):
    status, said = check(idle_host, GOOD.format(socket=idle_host.socket))
    assert status == 0, said


def test_every_mistake_at_once(idle_host):
    status, said = check(idle_host, """listen: unix:/run/x.sock
spawnerz: 3
handlers:
  a:
    command: [handlers/hello]
    timeout: {respons: 3s}
    body: {max: many}
  b:
    protocol: telnet
routes:
  - {path: /x, handler: nobody}
  - {path: nohead, handler: a}
""")
    assert status == 1
    lines = {p[0] for p in places(idle_host, said)}
    assert {2, 6, 7, 9, 11, 12} <= lines, said


@pytest.mark.parametrize("wrong, right", [("comand", "command"), ("protocl", "protocol"), ("time_out", "timeout"), ("pass_authorisation", "pass_authorization"), ("worker", "workers")])
def test_a_hint_for_a_misspelt_key(idle_host, wrong, right):
    complaint(idle_host, f"listen: unix:/run/x.sock\nhandlers:\n  a:\n    command: [handlers/hello]\n    {wrong}: x\nroutes: []\n", 5, wrong, right, column=5)


def test_line_and_column_are_exact(idle_host):
    line = "  a: {command: [handlers/hello], queue: {max: 5, timeout: soon}}"
    complaint(idle_host, f"listen: unix:/run/x.sock\nhandlers:\n{line}\nroutes: []\n", 3, "soon", column=line.index("soon") + 1)


HANDLER = "listen: unix:/run/x.sock\nhandlers:\n  a:\n    command: [handlers/hello]\n    {}\nroutes: []\n"


@pytest.mark.parametrize("line", [
    "protocol: gopher", "process: sometimes", "timeout: {response: 5}", "timeout: {response: -1s}", "timeout: {response: 5 parsecs}", "body: {max: 5 MB}",
    "body: {max: -1KiB}", "body: {max: 99999999999999GiB}", "header: {max: 61KiB}", "workers: {max: 0}", "workers: {max: lots}", "workers: {min: 5, max: 2}",
    "workers: 5", "queue: [1, 2]", "env: [a, b]", "env: {lower case: x}", "on_abort: maybe", "pass_authorization: perhaps", "body: {chunked: sometimes}",
    "directory: [a]", "user: no-such-user-here",
])
def test_values_that_cannot_be(idle_host, line):
    complaint(idle_host, HANDLER.format(line), 5)


@pytest.mark.parametrize("line", ["scripts: /usr/lib/cgi-bin", "connect: unix:/x.sock"])
def test_a_handler_is_one_thing(idle_host, line):
    complaint(idle_host, HANDLER.format(line), 3, "command", line.split(":")[0])


def test_a_cgi_program_cannot_be_persistent(idle_host):
    complaint(idle_host, HANDLER.format("process: persistent"), 5, "parked", "zygote")


@pytest.mark.parametrize("line", [
    "protocol: scgi", "protocol: http", "protocol: actionloop", "protocol: lambda",
])
def test_what_is_not_there_yet_is_said(idle_host, line):
    complaint(idle_host, HANDLER.format(line), 5, "not yet supported")


def test_who_may_ask_is_for_builtin_routes(idle_host):
    text = "listen: unix:/run/x.sock\nhandlers: {h: {command: /bin/true}}\nroutes:\n"
    complaint(idle_host, text + "  - {path: /h, handler: h, allow: [10.0.0.0/8]}\n", 4, "'allow' is for 'builtin'")
    complaint(idle_host, text + "  - {path: /s, builtin: status, allow: []}\n", 4, "the list is empty")
    complaint(idle_host, text + "  - {path: /s, builtin: status, allow: [10.0.0.1/8]}\n", 4, "bits set after the first 8")
    complaint(idle_host, text + "  - {path: /s, builtin: stats}\n", 4, "status")


TOP = "{}\nhandlers:\n  a:\n    command: [handlers/hello]\nroutes:\n  - {{path: /a, handler: a}}\n"


@pytest.mark.parametrize("line", [
    "listen: nonsense", "listen: 127.0.0.1:99999", "listen: 0.0.0.0:9000", "listen: {mode: \"0660\"}", "listen: {address: 'unix:/run/x.sock', mode: \"9\"}",
    "listen: {address: '127.0.0.1:9000', allow: [10.0.0.0/33]}", "listen: {address: '127.0.0.1:9000', allow: [nonsense]}", "listen: [unix:/run/x.sock, unix:/run/x.sock]",
    "listen: unix:" + "/x" * 60, "spawners: -1", "spawners: many", "params: {max: 0}", "log: {format: xml}", "log: {level: loud}", "user: no-such-user-here",
])
def test_top_level_values_that_cannot_be(idle_host, line):
    prefix = "" if line.startswith("listen") else "listen: unix:/run/x.sock\n"
    complaint(idle_host, prefix + TOP.format(line), 1 + bool(prefix))


ROUTES = "listen: unix:/run/x.sock\nhandlers:\n  a:\n    command: [handlers/hello]\nroutes:\n  - {{path: /first, handler: a}}\n  - {}\n"


@pytest.mark.parametrize("route", [
    "{path: relative, handler: a}", "{path: /x, handler: nobody}", "{path: /x}", "{handler: a}", "{path: /a*b, handler: a}", "{path: /*/x, handler: a}",
    "{path: '/{}', handler: a}", "{path: '/{a}/{a}', handler: a}", "{path: '/{a', handler: a}", "{path: /x, methods: [], handler: a}", "{path: /x, method: GET, handler: a}",
    "{path: /first, handler: a}",
])
def test_routes_that_cannot_be(idle_host, route):
    complaint(idle_host, ROUTES.format(route), 7)


def test_routes_that_differ_in_method_or_host_are_two(idle_host):
    text = ROUTES.format("{path: /first, host: x.example.org, handler: a}") + "  - {path: /second, methods: [GET], handler: a}\n  - {path: /second, methods: [POST], handler: a}\n"
    status, said = check(idle_host, text)
    assert status == 0, said


@pytest.mark.parametrize("text, line", [
    ("listen: [\n", 1), ("listen: a\n\thandlers: x\n", 2), ("{", 1), ("- a\n- b\n", 1), ("", 1), ("listen: 'x\n", 1),
    ("listen: unix:/x.sock\nlisten: unix:/y.sock\nhandlers: {}\nroutes: []\n", 2), ("\xff\xfe", 1), ("a: &x [*x]\n", 1),
    ("listen: unix:/x.sock\nhandlers:\n  a: {command: [x]}\n  a: {command: [x]}\nroutes: []\n", 4),
], ids=repr)
def test_what_is_no_configuration_at_all(idle_host, text, line):
    idle_host.config.write_bytes(text.encode("latin-1"))
    done = idle_host.command("check", "-c", str(idle_host.config))
    said = (done.stderr + done.stdout).decode(errors="replace")
    assert done.returncode == 1, said
    assert str(idle_host.config) in said


def test_a_file_that_others_may_write_is_refused(idle_host):
    for mode in (0o664, 0o646):
        idle_host.config.chmod(mode)
        for command in ("check", "serve"):
            done = idle_host.command(command, "-c", str(idle_host.config))
            assert done.returncode == 1 and b"writ" in done.stderr + done.stdout
    idle_host.config.chmod(0o644)
    assert idle_host.command("check", "-c", str(idle_host.config)).returncode == 0


def test_nothing_starts_with_a_mistake(idle_host):
    status, said = check(idle_host, HANDLER.format("protocol: gopher"), "serve")
    assert status == 1 and places(idle_host, said)
    assert not os.path.lexists(idle_host.socket)


def test_a_program_that_is_not_there_is_a_warning(idle_host):
    status, said = check(idle_host, GOOD.format(socket=idle_host.socket).replace("handlers/hello", "handlers/missing"))
    assert status == 0
    assert "handlers/missing" in said and "warning" in said


def test_a_command_as_a_string_has_no_shell_meaning(make_host):
    host = make_host({"hello": HELLO}, start=False)
    script = host.script("args", "printf 'Content-Type: text/plain\\n\\n'; for a in \"$@\"; do printf '[%s]' \"$a\"; done")
    host.write_text(host.config.read_text().replace("handlers/hello", "handlers/hello").replace("command: [handlers/hello]", f"command: {script} '$HOME' a;b *"))
    host.start()
    answer = host.request("/hello")
    assert "/root" not in answer.text and ";" in answer.text and "*" in answer.text


def test_paths_are_relative_to_the_file(make_host):
    host = make_host({"hello": HELLO}, start=False)
    done = host.command("check", "-c", os.path.relpath(host.config, host.folder))
    assert done.returncode == 0
    assert b"warning" not in done.stderr or b"handlers/hello" not in done.stderr
