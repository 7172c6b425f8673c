"""Memory stays where it was, whatever passes through and however many wait."""
import threading

import pytest

from lib import proc, wire
from lib.handlers import python, worker
from lib.wait import wait_until

EVERY_PROCESS = True

SIZE = 500 << 20
MIB = 1024      # in KiB

SINK = python("import hashlib\nn = 0\nwhile True:\n d = os.read(0, 1 << 20)\n if not d: break\n n += len(d)\nout.write(b'Content-Type: text/plain\\n\\n%d' % n)")
SOURCE = python("out.write(b'Content-Type: application/octet-stream\\n\\n')\nb = bytes(1 << 16)\nfor i in range(8000): os.write(1, b)")


class Watch:
    """The largest memory of a process while the block runs."""

    def __init__(self, pid):
        self.pid, self.highest, self.stop = pid, proc.rss_kib(pid), threading.Event()
        self.before = self.highest

    def __enter__(self):
        def look():
            while not self.stop.wait(0.05):
                self.highest = max(self.highest, proc.rss_kib(self.pid))
        self.thread = threading.Thread(target=look)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        self.highest = max(self.highest, proc.rss_kib(self.pid))

    @property
    def grown(self):
        return self.highest - self.before


@pytest.mark.plain
@pytest.mark.limit(240)
@pytest.mark.parametrize("name", ["nginx-streaming", "nginx-plain-streaming", "mod_proxy_fcgi"])
def test_500_mb_up_and_down(make_host, make_front, folder, name):
    host = make_host({"up": SINK, "down": SOURCE}, defaults={"body": {"max": "1GiB"}})
    client = make_front(name, host)
    assert client.post("/up", bytes(1 << 20)).text == str(1 << 20)
    upload = folder / "upload"
    with open(upload, "wb") as f:
        f.truncate(SIZE)
    with Watch(host.relay) as watch:
        done = client.curl("/up", "-T", str(upload), timeout=100)
    assert (done.code, done.body.decode()) == (0, str(SIZE))
    assert watch.grown <= 4 * MIB, f"{watch.grown} KiB more while 500 MB went up"
    with Watch(host.relay) as watch:
        done = client.curl("/down", "-w", "%{size_download}", timeout=100, keep_body=False)
    assert done.code == 0
    assert watch.grown <= 4 * MIB, f"{watch.grown} KiB more while 500 MB came down"


@pytest.mark.plain
@pytest.mark.limit(120)
def test_a_reader_that_stops_costs_no_memory(make_host):
    """The client takes nothing of an endless answer; the handler has to wait."""
    host = make_host({"down": SOURCE})
    with host.connect() as conn:
        before = proc.rss_kib(host.relay)
        conn.start(wire.variables("/down"))
        conn.send(wire.record(wire.STDIN))
        pid = wait_until(host.children, 10)[0]
        wait_until(lambda: _blocked_in_write(pid), 20, "a handler that waits for its reader")
        assert proc.rss_kib(host.relay) - before <= 1 * MIB
    wait_until(lambda: not host.children(), 10)


def _blocked_in_write(pid):
    first = proc._read(pid, "io").split(b"wchar: ")[1].split()[0]
    import time
    time.sleep(0.2)
    return first == proc._read(pid, "io").split(b"wchar: ")[1].split()[0] and (proc.stat(pid) or "?")[0] == "S"


@pytest.mark.plain
@pytest.mark.limit(180)
@pytest.mark.per_request
def test_5000_idle_kept_connections_and_4_workers(make_host, fastcgi_program):
    host = make_host({"w": worker(fastcgi_program, workers={"max": 4})})

    def kept():
        conn = host.connect()
        assert wire.request(None, "/w", conn=conn, keep=True).status == 200
        return conn
    conns = [kept() for _ in range(100)]
    before = proc.rss_kib(host.relay)
    conns += [kept() for _ in range(5000)]
    grown = proc.rss_kib(host.relay) - before
    answer = host.request("/w")
    assert answer.status == 200 and answer.elapsed < 0.5, "a new request is answered at once"
    assert grown <= 5000 * 2, f"{grown / 5000:.2f} KiB a connection"
    for conn in conns[:3] + conns[-3:]:
        assert wire.request(None, "/w", conn=conn, keep=True).status == 200
    for conn in conns:
        conn.close()
    wait_until(lambda: len(proc.fds(host.relay)) < 100, 20, "closing them all")
