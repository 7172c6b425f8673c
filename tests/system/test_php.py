"""A PHP page through php-cgi workers that we start, and through PHP-FPM by connect."""
import glob
import re
import subprocess

import pytest

from lib import proc
from lib.handlers import pattern, sha
from lib.wait import connects, wait_until

PAGE = """<?php
header('X-Page: yes');
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    echo hash('sha256', file_get_contents('php://input'));
} else {
    echo 'pid=', getmypid(), ' q=', $_GET['q'] ?? '', ' path=', $_SERVER['PATH_INFO'] ?? '', ' script=', $_SERVER['SCRIPT_NAME'];
}
"""


@pytest.fixture
def page(folder):
    path = folder / "page.php"
    path.write_text(PAGE)
    path.chmod(0o644)
    return path


@pytest.fixture
def fpm(folder):
    program = (glob.glob("/usr/sbin/php-fpm*") or [None])[0]
    if not program:
        pytest.skip("no PHP-FPM here")
    sock = str(folder / "fpm.sock")
    conf = folder / "fpm.conf"
    conf.write_text(f"[global]\nerror_log = {folder}/fpm.log\ndaemonize = no\n[www]\nuser = www-data\ngroup = www-data\nlisten = {sock}\nlisten.mode = 0666\n"
                    "pm = static\npm.max_children = 2\n")
    process = subprocess.Popen([program, "-F", "-y", str(conf), "-c", "/dev/null"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=str(folder))
    wait_until(lambda: connects(sock), 10)
    yield sock, process
    process.terminate()
    process.wait(10)


def check(client):
    answer = client.get("/php/a/b?q=1%202")
    assert answer.status == 200, answer
    found = re.search(r"pid=(\d+) q=1 2 path=/a/b script=/php", answer.text)
    assert found, answer
    assert answer.get("X-Page") == "yes"
    data = pattern(300_000)
    assert client.post("/php", data, headers=[("Content-Type", "application/octet-stream")]).text == sha(data)
    return int(found.group(1))


def test_php_cgi_workers_that_we_start(make_host, front, page):
    host = make_host({"php": {"command": ["/usr/bin/php-cgi"], "protocol": "fastcgi", "workers": {"max": 1}, "env": {"SCRIPT_FILENAME": str(page)}}})
    client = front(host)
    assert len({check(client) for _ in range(3)}) == 1, "one worker served them all"


def test_php_cgi_per_request(make_host, page):
    host = make_host({"php": {"command": ["/usr/bin/php-cgi"], "protocol": "fastcgi", "process": "per-request", "env": {"SCRIPT_FILENAME": str(page)}}})
    answer = host.request("/php?q=1")
    assert answer.status == 200 and "pid=" in answer.text


def test_php_fpm_by_connect(make_host, front, page, fpm):
    sock, process = fpm
    host = make_host({"php": {"connect": f"unix:{sock}", "protocol": "fastcgi", "env": {"SCRIPT_FILENAME": str(page)}}})
    pid = check(front(host))
    assert proc.stat(pid)[1] == process.pid


def test_an_error_of_php_is_logged_and_is_an_answer(make_host, folder, fpm):
    sock, _ = fpm
    path = folder / "bad.php"
    path.write_text("<?php error_log('logged by php'); http_response_code(500); echo 'failed';")
    host = make_host({"php": {"connect": f"unix:{sock}", "protocol": "fastcgi", "env": {"SCRIPT_FILENAME": str(path)}}})
    answer = host.request("/php")
    assert (answer.status, answer.text, answer.complete) == (500, "failed", True)
