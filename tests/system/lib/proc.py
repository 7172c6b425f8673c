"""What /proc says about processes."""
import os
import signal
import socket
import struct


def _read(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as f:
            return f.read()
    except OSError:
        return b""


def pids():
    return [int(d) for d in os.listdir("/proc") if d.isdigit()]


def stat(pid):
    """(state, ppid, pgrp) or None."""
    raw = _read(pid, "stat")
    if not raw:
        return None
    fields = raw[raw.rindex(b")") + 2:].split()
    return fields[0].decode(), int(fields[1]), int(fields[2])


def is_alive(pid):
    s = stat(pid)
    return s is not None and s[0] not in "ZX"


def cpu_ticks(pid):
    raw = _read(pid, "stat")
    fields = raw[raw.rindex(b")") + 2:].split()
    return int(fields[11]) + int(fields[12])


def descendants(root):
    """Pids below `root`, zombies included."""
    children = {}
    for pid in pids():
        s = stat(pid)
        if s:
            children.setdefault(s[1], []).append(pid)
    found, todo = [], [root]
    while todo:
        for pid in children.get(todo.pop(), []):
            found.append(pid)
            todo.append(pid)
    return found


def zombies(root):
    return [p for p in descendants(root) if (stat(p) or "?")[0] == "Z"]


def marked(folder):
    """Living processes that belong to a test's folder: by environment, command line or current folder."""
    mark = str(folder).encode()
    found = []
    for pid in pids():
        if pid == os.getpid() or not is_alive(pid):
            continue
        try:
            cwd = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            cwd = ""
        if mark in _read(pid, "environ") or mark in _read(pid, "cmdline") or cwd.startswith(str(folder)):
            found.append(pid)
    return found


def describe(pid):
    return f"{pid} {_read(pid, 'cmdline').replace(bytes(1), b' ').decode(errors='replace').strip()!r} {stat(pid)}"


def exe(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def environ(pid):
    return dict(p.split(b"=", 1) for p in _read(pid, "environ").split(b"\0") if b"=" in p)


def fds(pid):
    """{number: target} of open descriptors; None once the process is gone."""
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return None
    out = {}
    for n in names:
        try:
            out[int(n)] = os.readlink(f"/proc/{pid}/fd/{n}")
        except OSError:
            pass
    return out


def status(pid):
    return dict(line.split(":\t", 1) for line in _read(pid, "status").decode().splitlines() if ":\t" in line)


def rss_kib(pid):
    return int(status(pid)["VmRSS"].split()[0])


def context_switches(pid):
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        s = status(f"{pid}/task/{task}")
        total += int(s["voluntary_ctxt_switches"])
    return total


def listener_of(path):
    """The pid that called listen() on a unix socket; None when nobody answers."""
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(path)
        except OSError:
            return None
        return struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def tcp_inodes(port):
    found = set()
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/net/{name}") as f:
                next(f)
                for line in f:
                    r = line.split()
                    if r[3] == "0A" and int(r[1].rsplit(":", 1)[1], 16) == port:
                        found.add(r[9])
        except OSError:
            pass
    return found


def holders(inodes, among):
    names = {f"socket:[{i}]" for i in inodes}
    return [p for p in among if names & set((fds(p) or {}).values())]


def kill_quietly(pid, sig=signal.SIGKILL):
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        pass
