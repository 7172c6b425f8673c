"""Several hosts behind nginx and behind HAProxy: one is stopped, one is cut off, and no request that may be repeated fails."""
import collections
import http.client
import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from lib import paths
from lib.handlers import ENVIRON, env_of
from lib.host import make_folder
from lib.network import PORT, Network
from lib.wait import connects, wait_until

REPO = paths.REPO
NAMES = ("a", "b", "c")
SHIPPED = dict(zip(NAMES, ("192.0.2.11", "192.0.2.12", "192.0.2.13")))
REPEATABLE = ("GET", "HEAD", "OPTIONS", "PUT", "DELETE")
LONGEST_SECONDS = 30        # of a request that its host was cut off from; fastcgi_read_timeout would be 90

pytestmark = [pytest.mark.limit(180), pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")]

# Says where it ran, and notes that it did.
HANDLER = """
n=$(wc -c)
echo "$HTTP_X_NUMBER" >> "$SHARED/ran"
[ -z "$QUERY_STRING" ] || sleep "$QUERY_STRING"
printf 'Content-Type: text/plain\\n\\n%s %s\\n' "$WHERE" "$n"
"""


class UnixConnection(http.client.HTTPConnection):
    """The unix socket of a web server that is in another network."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.unix_path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.unix_path)


def ask(front, path, method="GET", body=None, headers=None, timeout=LONGEST_SECONDS):
    """(status, text); status is None when there was no whole answer."""
    connection = UnixConnection(front.address, timeout)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except (OSError, http.client.HTTPException) as e:
        return None, repr(e)
    finally:
        connection.close()


def addressed(text, network):
    for name, address in SHIPPED.items():
        text = text.replace(f"{address}:9000", f"{network.address(name)}:{PORT}")
    return text


class NginxFront:
    """nginx/cluster.conf and nginx/fcgi-host.conf as they are, but for the addresses."""
    stop_signal = signal.SIGTERM

    def __init__(self, folder, network):
        make_folder(folder)
        self.folder, self.address, self.network = folder, f"{folder}/front.sock", network
        include = make_folder(folder / "fcgi-host")
        for source in (REPO / "nginx").iterdir():
            (include / source.name).write_text(addressed(source.read_text(), network))
        temp = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "fastcgi", "proxy", "uwsgi", "scgi"))
        (folder / "nginx.conf").write_text(f"""
daemon off;
worker_processes 2;
pid {folder}/pid;
error_log {folder}/error.log info;
events {{ worker_connections 500; }}
http {{
    access_log off;
    {temp}
    include fcgi-host/cluster.conf;
    server {{ listen unix:{self.address}; location / {{ include fcgi-host/fcgi-host.conf; }} }}
}}
""")
        for name, value in self.settings():
            subprocess.run([*network.command(), "sysctl", "-q", "-w", f"{name}={value}"], check=True)

    def settings(self):
        """The lines for /etc/sysctl.d that the file's comment has."""
        found = re.findall(r"^#\s+(net\.ipv4\.\w+) = (\d+)$", (REPO / "nginx" / "cluster.conf").read_text(), re.M)
        assert len(found) == 4
        return found

    def command(self):
        return ["/usr/sbin/nginx", "-p", str(self.folder), "-c", f"{self.folder}/nginx.conf", "-e", f"{self.folder}/error.log"]

    def said(self):
        return (self.folder / "error.log").read_text(errors="replace")[-4000:]


class HaproxyFront:
    """haproxy/cluster.cfg as it is, but for the addresses."""
    stop_signal = signal.SIGTERM

    def __init__(self, folder, network):
        make_folder(folder)
        self.folder, self.address = folder, f"{folder}/front.sock"
        text = addressed((REPO / "haproxy" / "cluster.cfg").read_text(), network)
        assert text.count("bind :80\n") == 1
        (folder / "haproxy.cfg").write_text(text.replace("bind :80\n", f"bind unix@{self.address}\n"))

    def command(self):
        return ["/usr/sbin/haproxy", "-db", "-f", f"{self.folder}/haproxy.cfg"]

    def said(self):
        return (self.folder / "output").read_text(errors="replace")[-4000:]


@pytest.fixture
def network():
    with Network(NAMES) as made:
        yield made


@pytest.fixture
def hosts(make_host, network, folder):
    """Three with one configuration, but for their addresses."""
    shared = make_folder(folder / "shared")
    made = {name: make_host(
        {"where": {"script": HANDLER, "env": {"WHERE": name, "SHARED": str(shared)}, "workers": {"max": 50}},
         "health": "printf 'Content-Type: text/plain\\n\\nfine\\n'", "env": ENVIRON},
        name=name, before=network.command(name), listen=[
            {"address": f"unix:{folder}/{name}/run/host.sock", "mode": "0666"},
            {"address": f"{network.address(name)}:{PORT}", "allow": [f"{network.address_of_middle(name)}/32"]}])
        for name in NAMES}
    for host in made.values():
        host.has_workers = True     # a front's connections come and go: no fixed number of descriptors
    return made


@pytest.fixture(params=[NginxFront, HaproxyFront], ids=["nginx", "haproxy"])
def front(request, folder, network, hosts):
    made = request.param(folder / "front", network)
    with open(made.folder / "output", "wb") as output:
        process = subprocess.Popen([*network.command(), *made.command()], stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
    try:
        wait_until(lambda: process.poll() is not None or connects(made.address), 20, "the front's start")
        assert process.poll() is None, made.said()
        yield made
    finally:
        if process.poll() is None:
            process.send_signal(made.stop_signal)
            process.wait(20)


class Load:
    """Requests of every method, one after the other from each of some clients, until it is told to stop."""

    def __init__(self, front, clients=6):
        self.front, self.answers, self.stop, self.lock = front, [], threading.Event(), threading.Lock()
        self.count = 0
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(clients)]

    def run(self, client):
        methods = (*REPEATABLE, "POST")
        while not self.stop.is_set():
            with self.lock:
                self.count += 1
                number = self.count
            method = methods[number % len(methods)]
            body = b"x" * (number * 7919 % 30_000) if method in ("PUT", "POST") else None
            started = time.monotonic()
            status, text = ask(self.front, "/where" + ("?0.5" if client == 0 else ""), method, body, {"X-Number": str(number)})
            words = text.split() + [""]
            if method != "HEAD" and status == 200 and words[1] != str(len(body or b"")):
                status = f"a body of {len(body or b'')} arrived as {text!r}"
            with self.lock:
                self.answers.append((number, method, status, words[0], time.monotonic() - started))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def seen(self, since=0):
        return collections.Counter(name for number, _, status, name, _ in list(self.answers) if number > since and status == 200)

    def go_on(self, requests=60, clients=5):
        """So many more answers."""
        before = len(self.answers)
        wait_until(lambda: len(self.answers) >= before + requests, 60, "answers")
        return self.count


@pytest.mark.parametrize("cut", ["unplugged", "packets lost"])
def test_one_is_stopped_and_one_cut_off(network, hosts, front, folder, cut):
    wait_until(lambda: all(ask(front, "/where")[0] == 200 for _ in range(6)), 20, "answers")
    with Load(front) as load:
        load.go_on()
        assert set(load.seen()) >= set(NAMES), f"all have requests: {load.seen()}"

        assert hosts["a"].stop() == 0
        stopped = load.go_on()

        (network.unplug if cut == "unplugged" else network.lose_packets)("b")
        load.go_on(150)
        wait_until(lambda: load.go_on(20) and set(load.seen(load.count - 40)) <= {"c", ""}, 40, "only c to be left")
        alone = load.count
        load.go_on()

        (network.plug_in if cut == "unplugged" else network.find_packets)("b")
        wait_until(lambda: load.seen(alone)["b"] > 5, 60, "b to be back")
        hosts["a"].start()
        wait_until(lambda: load.seen(alone)["a"] > 5, 60, "a to be back")
    bad = [entry for entry in load.answers if entry[2] != 200 and entry[1] in REPEATABLE]
    assert not bad, f"{len(bad)} of {len(load.answers)}: {bad[:5]}\n{front.said()}"
    assert load.seen(stopped), "requests after the stop"
    # A POST may fail, for what was in flight, and is never done twice.
    posts = [entry for entry in load.answers if entry[1] == "POST"]
    failed = [entry for entry in posts if entry[2] != 200]
    assert len(failed) <= 2 * len(load.threads), failed
    ran = collections.Counter(map(int, filter(None, (folder / "shared" / "ran").read_text().split())))
    assert not [entry for entry in posts if ran[entry[0]] > 1], "a POST ran twice"
    assert max(entry[4] for entry in load.answers) < LONGEST_SECONDS


def test_stopping_one_after_the_other_loses_nothing(hosts, front):
    """Not even a POST: a host that is stopped finishes what it has taken."""
    wait_until(lambda: all(ask(front, "/where")[0] == 200 for _ in range(6)), 20, "answers")
    with Load(front) as load:
        for name in NAMES:
            load.go_on()
            assert hosts[name].stop() == 0
            load.go_on()
            hosts[name].start()
            number = load.count
            wait_until(lambda: load.seen(number)[name] > 3, 60, f"{name} to be back")
    bad = [entry for entry in load.answers if entry[2] != 200]
    assert not bad, f"{len(bad)} of {len(load.answers)}: {bad[:5]}\n{front.said()}"


def test_handlers_see_the_same_variables(hosts, front):
    wait_until(lambda: ask(front, "/health")[0] == 200, 20, "an answer")
    status, text = ask(front, "/env/a%20b?x=%2F", headers={"Host": "example.org:8080", "X-A": "1"})
    assert status == 200
    env = env_of(type("Answer", (), {"body": text.encode()}))
    assert {n: env.get(n) for n in ("SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "REQUEST_URI", "REQUEST_METHOD", "SERVER_NAME", "HTTP_HOST", "HTTP_X_A", "REQUEST_SCHEME")} == {
        "SCRIPT_NAME": "/env", "PATH_INFO": "/a b", "QUERY_STRING": "x=%2F", "REQUEST_URI": "/env/a%20b?x=%2F", "REQUEST_METHOD": "GET",
        "SERVER_NAME": "example.org", "HTTP_HOST": "example.org:8080", "HTTP_X_A": "1", "REQUEST_SCHEME": "http"}


def test_haproxy_takes_the_shipped_file_as_it_is():
    done = subprocess.run(["/usr/sbin/haproxy", "-c", "-f", str(REPO / "haproxy" / "cluster.cfg")], capture_output=True, text=True)
    assert done.returncode == 0 and "WARNING" not in done.stderr.upper(), done.stdout + done.stderr
