"""A whole cgi-bin: any executable file below a folder."""
import os

import pytest

from lib.handlers import ENVIRON, HELLO, env_of
from lib.host import install_script, make_folder


@pytest.fixture
def bin_host(make_host):
    host = make_host({"bin": {"scripts": "cgi-bin"}}, start=False)
    folder = make_folder(host.folder / "cgi-bin")
    install_script(folder, "env", ENVIRON)
    install_script(folder, "sub/deep", ENVIRON)
    install_script(folder, "hello.sh", HELLO)
    (folder / "plain.txt").write_text("no program")
    (folder / "plain.txt").chmod(0o644)
    install_script(host.folder, "outside", HELLO)
    os.symlink("../outside", folder / "escape")
    os.symlink("hello.sh", folder / "inside")
    os.symlink(host.folder, folder / "up")
    install_script(folder, ".hidden", HELLO)
    host.start()
    return host


def test_the_path_chooses_the_script(bin_host, front):
    client = front(bin_host)
    folder = bin_host.folder / "cgi-bin"
    for path, script, script_name, info in (("/bin/env", "env", "/bin/env", ""), ("/bin/env/a/b", "env", "/bin/env", "/a/b"),
                                            ("/bin/sub/deep/x%20y", "sub/deep", "/bin/sub/deep", "/x y")):
        env = env_of(client.get(path))
        assert (env["SCRIPT_NAME"], env.get("PATH_INFO", ""), env["SCRIPT_FILENAME"]) == (script_name, info, str(folder / script))
    assert client.get("/bin/hello.sh").text == "hello\n"
    assert client.get("/bin/inside").text == "hello\n", "a link that stays inside"


@pytest.mark.parametrize("path, status", [
    ("/bin/nothing", 404), ("/bin/", 404), ("/bin", 404), ("/bin/sub", (403, 404)), ("/bin/plain.txt", 403), ("/bin/plain.txt/x", (403, 404)),
    ("/bin/escape", (403, 404)), ("/bin/up/outside", (403, 404)), ("/bin/up/cgi-bin/env", (200, 403, 404)), ("/bin/sub/../../outside", (400, 404)),
])
def test_what_is_not_a_program_below_the_root(bin_host, front, path, status):
    answer = front(bin_host).get(path)
    assert answer.status in (status if isinstance(status, tuple) else (status,)), answer
    assert answer.complete and answer.body
    assert "hello" not in answer.text


@pytest.mark.parametrize("sent", ["/etc/passwd", "{folder}/outside", "{folder}/cgi-bin/../outside", "proxy:fcgi://x/{folder}/outside"])
def test_script_filename_from_the_wire_chooses_nothing(bin_host, sent):
    sent = sent.format(folder=bin_host.folder)
    assert bin_host.request("/bin/nothing", extra={"SCRIPT_FILENAME": sent}).status == 404
    assert env_of(bin_host.request("/bin/env", extra={"SCRIPT_FILENAME": sent}))["SCRIPT_FILENAME"] == str(bin_host.folder / "cgi-bin/env")


@pytest.mark.parametrize("path", ["/bin/../outside", "/bin/./../outside", "/bin/sub/../../../outside", "/../outside"])
def test_climbing_out(bin_host, path):
    answer = bin_host.request("/x", extra={"SCRIPT_NAME": path})
    assert answer.status in (400, 404) and b"hello" not in answer.body


def test_a_script_runs_in_its_own_folder(bin_host):
    install_script(bin_host.folder / "cgi-bin/sub", "where", "printf 'Content-Type: text/plain\\n\\n%s' \"$(pwd -P)\"")
    assert bin_host.request("/bin/sub/where").text == os.path.realpath(bin_host.folder / "cgi-bin/sub")


def test_a_new_script_needs_no_restart(bin_host):
    assert bin_host.request("/bin/new").status == 404
    install_script(bin_host.folder / "cgi-bin", "new", HELLO)
    assert bin_host.request("/bin/new").text == "hello\n"


def test_the_log_names_the_script(bin_host):
    bin_host.request("/bin/hello.sh")
    entry = bin_host.wait_log(event="request")
    assert (entry["handler"], entry["path"], entry["status"]) == ("bin", "/bin/hello.sh", 200)
