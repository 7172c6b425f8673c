"""The configurations and handlers that come with the project."""
import json
import re

import pytest

from lib import paths
from lib.handlers import pattern, sha

CONF = sorted((paths.REPO / "conf").glob("*.yaml"))


def built_samples():
    return paths.BUILD / "conf" / "samples.yaml" if paths.BUILD else None


def test_there_are_sample_configurations():
    names = {p.name for p in CONF}
    assert "git.yaml" in names and len(names) >= 3, names


@pytest.mark.parametrize("path", CONF, ids=lambda p: p.name)
def test_every_sample_configuration_is_good(make_host, path):
    host = make_host({}, start=False)
    done = host.command("check", "-c", str(path))
    assert done.returncode == 0, (done.stderr + done.stdout).decode()


def test_a_commented_file_has_every_key():
    """What `check --print` writes out, some file in conf/ explains."""
    text = "\n".join(p.read_text() for p in CONF)
    for key in ("listen", "spawners", "user", "params", "log", "defaults", "command", "protocol", "process", "workers", "queue", "timeout", "body", "header", "env",
                "pass_authorization", "directory", "on_abort", "connect", "scripts", "methods", "host"):
        assert re.search(rf"\b{key}:", text), key


@pytest.fixture
def samples(make_host):
    host = make_host({}, start=False)
    host.has_workers = True
    source = built_samples()
    assert source and source.exists(), "make writes conf/samples.yaml"
    text = re.sub(r"^listen:.*$", f'listen: {{address: "unix:{host.socket}", mode: "0666"}}', source.read_text(), flags=re.M)
    text = text.replace("defaults:\n", f"defaults:\n  env: {{FCGI_HOST_TEST: {host.folder}}}\n", 1)
    host.write_text(text)
    return host.start()


def test_the_samples_are_good(make_host):
    host = make_host({}, start=False)
    done = host.command("check", "-c", str(built_samples()))
    assert done.returncode == 0 and b"warning: handlers" not in done.stderr, done


@pytest.mark.parametrize("path, name", [("/shell/hello", "shell"), ("/python/hello", "Python"), ("/perl/hello", "Perl"), ("/c/hello", "C"), ("/php/hello", "PHP"),
                                        ("/c/hello-persistent", "C"), ("/perl/hello-persistent", "Perl"), ("/shell/hello-parked", "shell"),
                                        ("/python/hello-zygote", "Python")])
def test_hello_in_each_language(samples, path, name):
    answers = [samples.request(path + "?x=1") for _ in range(3)]
    pids = set()
    for answer in answers:
        assert answer.status == 200 and answer.complete, answer
        assert answer.text.startswith("Hello from ") and name.lower() in answer.text.split("\n")[0].lower()
        assert f"uri: {path}?x=1" in answer.text and "method: GET" in answer.text
        pids.add(re.search(r"pid: (\d+)", answer.text).group(1))
    if "persistent" not in path and path != "/php/hello":
        assert len(pids) == 3


@pytest.mark.parametrize("path", ["/shell/greeting", "/python/greeting", "/perl/greeting", "/c/greeting", "/c/greeting-persistent"])
def test_greeting_in_each_language(samples, path):
    answer = samples.request(path, "POST", b'{"name":"Johnny"}', headers=[("Content-Type", "application/json")])
    assert answer.status == 200 and json.loads(answer.text) == {"greeting": "Hello, Johnny!"}
    assert "json" in answer.get("Content-Type")
    for bad in (b"", b"{}", b"nonsense", b'{"name":3}'):
        assert samples.request(path, "POST", bad).status == 400, bad
    assert samples.request(path).status == 405


@pytest.mark.parametrize("path", ["/shell/greet-function", "/python/greet-function"])
@pytest.mark.parametrize("name", ["wire", "nginx-kept", "mod_proxy_fcgi"])
def test_greeting_as_a_function(samples, make_front, name, path):
    client = make_front(name, samples)
    answer = client.post(path, b'{"name":"Johnny"}')
    assert (answer.status, answer.text) == (200, '{"greeting":"Hello, Johnny!"}')
    assert answer.get("Content-Type") == "application/json"
    for bad in (b"", b"{}", b"nonsense", b'{"name":3}'):
        assert client.post(path, bad).status == 502, bad


def test_the_counter_streams(samples):
    answer = samples.request("/counter?count=2")
    assert answer.text.split() == ["1", "2"]
    lines = [r for r in answer.records if r.content in (b"1\n", b"2\n")]
    assert len(lines) == 2 and lines[1].at - lines[0].at > 0.5


def test_the_upload_digest(samples):
    data = pattern(2 << 20)
    answer = samples.request("/upload-digest", "POST", data)
    assert f"sha256: {sha(data)}" in answer.text and f"bytes: {len(data)}" in answer.text


@pytest.mark.parametrize("name", ["nginx-kept", "nginx-streaming", "mod_proxy_fcgi", "mod_fcgid"])
def test_the_shipped_web_server_files_work_with_the_samples(samples, make_front, name):
    client = make_front(name, samples)
    assert client.get("/shell/hello").status == 200
    assert json.loads(client.post("/c/greeting", b'{"name":"Johnny"}').text) == {"greeting": "Hello, Johnny!"}
    done = client.curl("/c/hello")
    assert (done.code, done.status) == (0, 200)


def test_shipped_nginx_files_are_used_as_they_stand():
    for name in ("fcgi-host.conf", "fcgi-host-streaming.conf", "fcgi-host-upstream.conf", "fcgi-host.params"):
        assert (paths.REPO / "nginx" / name).exists()
    assert "keepalive" in (paths.REPO / "nginx/fcgi-host-upstream.conf").read_text()
    assert "enablereuse=on" in (paths.REPO / "apache/mod_proxy_fcgi.conf").read_text()
