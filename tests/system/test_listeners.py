"""Where the host listens: paths, ports, descriptors handed over, rights."""
import os
import pwd
import socket
import stat
import subprocess

import pytest

from lib import proc, wire
from lib.handlers import HELLO
from lib.host import mode_of
from lib.wait import connects, free_port, wait_until


def test_a_unix_socket_has_the_configured_mode_and_owner(make_host):
    host = make_host({"h": HELLO}, start=False, listen={"address": "unix:run/host.sock", "mode": "0640", "owner": "www-data", "group": "www-data"})
    host.listen = {"address": f"unix:{host.socket}"}    # what the path relative to the file means
    host.start()
    assert mode_of(host.socket) == 0o640
    assert os.stat(host.socket).st_uid == pwd.getpwnam("www-data").pw_uid
    assert host.request("/h").text == "hello\n"


def test_the_default_mode_is_not_open_to_all(make_host):
    host = make_host({"h": HELLO}, start=False)
    host.write_text(host.config.read_text().replace(', mode: "0666"', ""))
    host.start()
    assert mode_of(host.socket) & 0o007 == 0


def test_tcp_on_loopback(make_host, front):
    port = free_port()
    host = make_host({"h": HELLO}, listen=f"127.0.0.1:{port}")
    assert front(host).get("/h").text == "hello\n"


def test_a_web_server_that_is_cut_off_is_noticed(make_host):
    """An idle connection over TCP asks from time to time whether the other end is still there."""
    port = free_port()
    host = make_host({"h": HELLO}, listen=f"127.0.0.1:{port}")
    with host.connect() as conn:
        assert wire.request(None, "/h", conn=conn, keep=True).text == "hello\n"
        shown = subprocess.run(["ss", "-tnoH", "state", "established", f"( sport = :{port} )"], capture_output=True, text=True, check=True).stdout
        assert "keepalive" in shown, shown


def test_several_listeners(make_host, folder):
    port = free_port()
    host = make_host({"h": HELLO}, listen=[{"address": f"unix:{folder}/a.sock", "mode": "0666"}, f"127.0.0.1:{port}"])
    assert host.request("/h").text == "hello\n"
    assert wire.request(("127.0.0.1", port), "/h").text == "hello\n"


def test_ipv6_loopback(make_host):
    port = free_port()
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 here")
    host = make_host({"h": HELLO}, listen=[f"127.0.0.1:{port}", f"[::1]:{port}"])
    s = socket.create_connection(("::1", port))
    s.close()
    assert host.request("/h").text == "hello\n"


# --- occupied places

def test_a_dead_socket_is_replaced(make_host):
    host = make_host({"h": HELLO}, start=False)
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(host.socket)
        s.listen()
    assert os.path.lexists(host.socket)
    host.start()
    assert host.request("/h").text == "hello\n"


def test_a_live_owner_is_refused_with_its_pid(make_host):
    host = make_host({"h": HELLO})
    second = host.command("serve", "-c", str(host.config))
    assert second.returncode == 1
    assert str(host.process.pid).encode() in second.stderr or str(host.relay).encode() in second.stderr
    assert host.socket.encode() in second.stderr
    assert host.request("/h").text == "hello\n", "the owner keeps its socket"


def test_a_foreign_owner_is_refused_too(make_host):
    host = make_host({"h": HELLO}, start=False)
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(host.socket)
        s.listen()
        done = host.command("serve", "-c", str(host.config))
        assert done.returncode == 1 and str(os.getpid()).encode() in done.stderr
        assert os.path.lexists(host.socket)


@pytest.mark.parametrize("what", ["file", "folder", "link to a file"])
def test_something_that_is_no_socket_is_never_removed(make_host, what):
    host = make_host({"h": HELLO}, start=False)
    other = host.folder / "precious"
    other.write_text("precious")
    if what == "file":
        os.rename(other, host.socket)
    elif what == "folder":
        os.mkdir(host.socket)
    else:
        os.symlink(other, host.socket)
    done = host.command("serve", "-c", str(host.config))
    assert done.returncode == 1 and host.socket.encode() in done.stderr
    assert os.path.lexists(host.socket)
    if what != "folder":
        assert open(host.socket).read() == "precious"


def test_a_port_in_use_is_refused(make_host):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        host = make_host({"h": HELLO}, start=False, listen=f"127.0.0.1:{s.getsockname()[1]}")
        done = host.command("serve", "-c", str(host.config))
        assert done.returncode == 1 and b"in use" in done.stderr


def test_a_socket_that_another_took_over_is_left_to_it(make_host):
    """The host removes its own socket at its end, not a successor's."""
    host = make_host({"h": HELLO})
    os.unlink(host.socket)
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(host.socket)
        s.listen()
        assert host.stop() == 0
        assert os.path.lexists(host.socket)
    os.unlink(host.socket)


# --- open to the world

@pytest.mark.parametrize("address", ["0.0.0.0:{}", "[::]:{}"])
def test_open_to_the_world_is_refused_without_allow(make_host, address):
    host = make_host({"h": HELLO}, start=False, listen=address.format(free_port()))
    for command in ("serve", "check"):
        done = host.command(command, "-c", str(host.config))
        assert done.returncode == 1
        assert b"allow" in done.stderr + done.stdout


def test_allow_lets_these_in_and_no_others(make_host):
    port = free_port()
    host = make_host({"h": HELLO}, start=False, listen={"address": f"0.0.0.0:{port}", "allow": ["127.0.0.2/32", "127.0.1.0/24", "::1/128"]})
    host.start()

    def ask(source):
        with socket.socket() as s:
            s.settimeout(5)
            s.bind((source, 0))
            s.connect(("127.0.0.1", port))
            try:
                s.sendall(wire.begin() + wire.stream(wire.PARAMS, wire.pairs(wire.variables("/h"))) + wire.record(wire.STDIN))
                return s.recv(65536)
            except (ConnectionResetError, BrokenPipeError):
                return b""
    assert b"hello" in ask("127.0.0.2")
    assert b"hello" in ask("127.0.1.77")
    assert ask("127.0.0.3") == b""
    assert ask("127.0.0.1") == b""


# --- descriptors handed over

def test_a_listener_as_descriptor_0(make_host):
    """As spawn-fcgi and mod_fcgid hand it over: the listener on 0, and nothing configured to listen on."""
    host = make_host({"h": HELLO, "count": "n=$(wc -c); printf 'Content-Type: text/plain\\n\\n%s' $n"}, start=False)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(host.socket)
    listener.listen(16)
    host.write_text("\n".join(line for line in host.config.read_text().splitlines() if not line.startswith("listen")) + "\n")
    host.stdin = listener
    host.keeps_socket = True
    host.start()
    listener.close()
    assert host.request("/h").text == "hello\n"
    assert host.request("/count").text == "0", "a handler's descriptor 0 is its input, never the listener"


def test_under_spawn_fcgi(make_host):
    host = make_host({"h": HELLO}, start=False)
    host.write_text("\n".join(line for line in host.config.read_text().splitlines() if not line.startswith("listen")) + "\n")
    log = open(host.log_file, "ab")
    host.process = subprocess.Popen(["/usr/bin/spawn-fcgi", "-n", "-s", host.socket, "-M", "0666", "--", host.program, "serve", "-c", str(host.config)],
                                    env=host.environ(), cwd=str(host.folder), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    host.keeps_socket = True
    host.wait_listening()
    assert host.request("/h").text == "hello\n"


@pytest.mark.parametrize("count", [1, 2])
def test_listeners_from_systemd(make_host, count):
    host = make_host({"h": HELLO}, start=False)
    host.write_text("\n".join(line for line in host.config.read_text().splitlines() if not line.startswith("listen")) + "\n")
    sockets = []
    for i in range(count):
        s = socket.socket(socket.AF_UNIX)
        path = host.socket if i == 0 else str(host.run_folder / f"{i}.sock")
        s.bind(path)
        s.listen(16)
        sockets.append((s, path))
    # systemd passes descriptors from 3 on and names the receiving process.
    code = ("import os, sys\nn = int(sys.argv[1])\nfds = [int(x) for x in sys.argv[2].split(',')]\n"
            "import fcntl\nhigh = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in fds]\n"
            "for i, fd in enumerate(high): os.dup2(fd, 3 + i, inheritable=True)\nos.closerange(3 + n, 400)\n"
            "os.environ['LISTEN_FDS'] = str(n); os.environ['LISTEN_PID'] = str(os.getpid())\nos.execv(sys.argv[3], sys.argv[3:])\n")
    log = open(host.log_file, "ab")
    fds = [s.fileno() for s, _ in sockets]
    host.process = subprocess.Popen(["/usr/bin/python3", "-ISc", code, str(count), ",".join(map(str, fds)), host.program, "serve", "-c", str(host.config)],
                                    env=host.environ(), cwd=str(host.folder), stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=fds, start_new_session=True)
    for s, _ in sockets:
        s.close()
    host.keeps_socket = True
    wait_until(lambda: os.path.realpath(proc.exe(host.process.pid)) == os.path.realpath(host.program), 10)
    host.wait_listening()
    for _, path in sockets:
        assert wire.request(path, "/h").text == "hello\n"
    host.stop()
    assert os.path.lexists(host.socket), "a socket that someone else made is theirs"


def test_listen_fds_of_another_process_are_ignored(make_host):
    host = make_host({"h": HELLO}, environment={"LISTEN_FDS": "1", "LISTEN_PID": "1"})
    assert host.request("/h").text == "hello\n"


# --- privileges

def test_the_relay_drops_to_its_user(make_host, front):
    host = make_host({"h": "printf 'Content-Type: text/plain\\n\\n%s' \"$(id -un)\"", "n": {"script": "printf 'Content-Type: text/plain\\n\\n%s' \"$(id -un):$(id -gn):$(id -Gn)\"", "user": "nobody"}},
                     user="www-data")
    client = front(host)
    uid = str(pwd.getpwnam("www-data").pw_uid)
    status = proc.status(host.relay)
    assert status["Uid"].split() == [uid] * 4
    assert set(status["Gid"].split()) == {str(pwd.getpwnam("www-data").pw_gid)}
    assert int(status["CapEff"], 16) == 0
    assert client.get("/n").text.startswith("nobody:nogroup:nogroup")
    assert client.get("/h").text in ("www-data", "root")


def test_a_relay_that_stays_root_is_warned_about(make_host):
    host = make_host({"h": HELLO})
    assert "'user' is missing" in host.log_text() or b"user" in host.command("check", "-c", str(host.config)).stderr


def test_a_handlers_user_needs_root(make_host):
    host = make_host({"h": {"script": HELLO, "user": "nobody"}}, start=False)
    done = subprocess.run(["/usr/bin/setpriv", "--reuid", "www-data", "--regid", "www-data", "--clear-groups", host.program, "serve", "-c", str(host.config)],
                          env=host.environ(), capture_output=True, timeout=20, stdin=subprocess.DEVNULL)
    assert done.returncode == 1 and b"root" in done.stderr


def test_the_host_runs_without_root(make_host):
    host = make_host({"h": "printf 'Content-Type: text/plain\\n\\n%s' \"$(id -un)\""}, start=False)
    account = pwd.getpwnam("www-data")
    os.chown(host.run_folder, account.pw_uid, account.pw_gid)
    os.chown(host.config, account.pw_uid, account.pw_gid)
    log = open(host.log_file, "ab")
    host.process = subprocess.Popen(["/usr/bin/setpriv", "--reuid", "www-data", "--regid", "www-data", "--clear-groups", host.program, "serve", "-c", str(host.config)],
                                    env=host.environ(), cwd=str(host.folder), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    wait_until(lambda: os.path.realpath(proc.exe(host.process.pid)) == os.path.realpath(host.program), 10)
    host.wait_listening()
    assert host.request("/h").text == "www-data"
    assert stat.S_ISSOCK(os.stat(host.socket).st_mode)


def test_the_socket_is_connectable_only_when_it_answers(make_host):
    """Nobody can connect before the mode is right: the socket is never there with wider rights."""
    host = make_host({"h": HELLO})
    assert connects(host.socket)
    assert mode_of(host.socket) == 0o666
