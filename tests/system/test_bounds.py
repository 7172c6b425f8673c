"""Servers and scripts of others: a full backlog, an answer that is never ended, rights that only their user has."""
import os
import pwd
import socket

from lib.handlers import HELLO
from lib.host import make_folder

EVERY_PROCESS = True

ENDLESS = r"""#!/usr/bin/python3
import socket, struct, time
def record(kind, content=b""):
    return struct.pack(">BBHHBB", 1, kind, 1, len(content), 0, 0) + content
listener = socket.socket(fileno=0)
while True:
    conn, _ = listener.accept()
    data = b""
    while not data.endswith(record(5)):
        more = conn.recv(65536)
        if not more:
            break
        data += more
    else:
        conn.sendall(record(6, b"Content-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"))
        time.sleep(300)
"""


def test_a_full_backlog_of_somebody_elses_server_is_503(make_host, folder):
    path = str(folder / "full.sock")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(0)
        held = []
        try:
            while True:
                conn = socket.socket(socket.AF_UNIX)
                conn.setblocking(False)
                held.append(conn)
                conn.connect(path)
        except BlockingIOError:
            pass
        host = make_host({"there": {"connect": f"unix:{path}", "protocol": "fastcgi"}, "hello": HELLO})
        answer = host.request("/there")
        assert (answer.status, answer.complete) == (503, True)
        assert answer.get("Retry-After")
        assert host.request("/hello").text == "hello\n"
        for conn in held:
            conn.close()


def test_a_worker_that_never_ends_its_answer_is_given_up(make_host):
    host = make_host({"w": {"script": ENDLESS, "protocol": "fastcgi", "workers": {"max": 1, "spare": 0}, "timeout": {"idle": "300ms", "kill": "1s"},
                            "queue": {"timeout": "20s"}}})
    for _ in range(2):
        answer = host.request("/w", timeout=30)
        assert (answer.status, answer.text, answer.complete) == (200, "ok", True)


def test_a_script_that_only_its_own_user_may_run(make_host, folder):
    """The relay is somebody else: whether the script may run is for its user's exec to say."""
    scripts = make_folder(folder / "scripts")
    script = scripts / "own"
    script.write_text("#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n%s' \"$(id -un)\"\n")
    script.chmod(0o700)
    account = pwd.getpwnam("nobody")
    os.chown(script, account.pw_uid, account.pw_gid)
    other = scripts / "other"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o700)
    host = make_host({"s": {"scripts": str(scripts), "user": "nobody"}}, user="www-data")
    answer = host.request("/s/own")
    assert (answer.status, answer.text) == (200, "nobody")
    assert host.request("/s/other").status == 403
