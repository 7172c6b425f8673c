"""
The host's side of a waiting process, as handlers/shims/README.md says it: starts a program parked or as a zygote,
and speaks the messages on its control descriptor.  No fcgi-host is involved.
"""
import fcntl
import os
import socket
import struct
import subprocess
import time

from . import paths

SECONDS = 20

FIGURES = ("user_us", "system_us", "max_rss_kib", "minor_faults", "major_faults", "voluntary_switches",
           "involuntary_switches")


def shims():
    """The folder that the build has put the shims into."""
    return paths.BUILD / "handlers" / "shims" / "lib"


class Gone(Exception):
    """The other side has closed the control descriptor."""


class Control:
    def __init__(self):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        # Above what the program opens, which so gets the numbers of a usual start.
        with theirs:
            self.theirs = socket.socket(fileno=fcntl.fcntl(theirs, fcntl.F_DUPFD_CLOEXEC, 200))
        self.socket.settimeout(SECONDS)

    def send(self, kind, payload=b"", descriptors=()):
        message = struct.pack(">I", 1 + len(payload)) + kind.encode() + payload
        if descriptors:
            socket.send_fds(self.socket, [message], list(descriptors))
        else:
            self.socket.sendall(message)

    def _exactly(self, length):
        data = b""
        while len(data) < length:
            piece = self.socket.recv(length - len(data))
            if not piece:
                raise Gone
            data += piece
        return data

    def receive(self):
        length, = struct.unpack(">I", self._exactly(4))
        data = self._exactly(length)
        return chr(data[0]), data[1:]

    def expect(self, kind):
        got, payload = self.receive()
        assert got == kind, f"{got} {payload!r} instead of {kind}"
        return payload

    def hand_over(self, environment):
        self.send("E", b"".join(name.encode() + b"=" + os.fsencode(value) + b"\0"
                                for name, value in environment.items()))

    def close(self):
        self.socket.close()


class Pipes:
    """The request's three descriptors."""

    def __init__(self):
        self.stdin_theirs, self.stdin = os.pipe()
        self.stdout, self.stdout_theirs = os.pipe()
        self.stderr, self.stderr_theirs = os.pipe()
        self.theirs = [self.stdin_theirs, self.stdout_theirs, self.stderr_theirs]

    def close_theirs(self):
        for fd in self.theirs:
            os.close(fd)

    def feed(self, body):
        if body:
            os.write(self.stdin, body)
        os.close(self.stdin)

    @staticmethod
    def _drain(fd):
        with open(fd, "rb") as f:
            return f.read()

    def answer(self):
        """What was written to stdout and stderr until their ends.  For answers that fit into a pipe."""
        return self._drain(self.stdout), self._drain(self.stderr)


class Ended:
    def __init__(self, status, stdout, stderr):
        self.status, self.stdout, self.stderr = status, stdout, stderr


def _start(command, environment, stdio, directory, control, variable):
    environment = dict(environment)
    if control:
        environment[variable] = str(control.theirs.fileno())
    process = subprocess.Popen(command, env=environment, cwd=directory, stdin=stdio[0], stdout=stdio[1], stderr=stdio[2],
                               pass_fds=[control.theirs.fileno()] if control else [], process_group=0)
    if control:
        control.theirs.close()
    return process


def cold(command, environment, body=b"", directory=None):
    """A usual start: what the others are compared with."""
    pipes = Pipes()
    process = _start(command, environment, pipes.theirs, directory, None, None)
    pipes.close_theirs()
    pipes.feed(body)
    stdout, stderr = pipes.answer()
    return Ended(process.wait(SECONDS), stdout, stderr)


class Parked:
    """A process started ahead; serves one request."""

    def __init__(self, command, environment, directory=None, preload=None, learn=False):
        self.control, self.pipes = Control(), Pipes()
        environment = _with_options(environment, preload, learn)
        self.process = _start(command, environment, self.pipes.theirs, directory, self.control, "FCGI_HOST_PARK")
        self.pid = self.process.pid
        self.pipes.close_theirs()

    def ready(self):
        self.control.expect("R")
        return self

    def serve(self, environment, body=b""):
        self.control.hand_over(environment)
        self.pipes.feed(body)
        stdout, stderr = self.pipes.answer()
        return Ended(self.process.wait(SECONDS), stdout, stderr)


class Zygote:
    def __init__(self, command, environment, directory=None, preload=None, learn=False):
        self.control = Control()
        self.ended = {}
        environment = _with_options(environment, preload, learn)
        self.process = _start(command, environment, [subprocess.DEVNULL] * 3, directory, self.control, "FCGI_HOST_ZYGOTE")

    def ready(self):
        self.control.expect("R")
        return self

    def _next(self, kind):
        while True:
            got, payload = self.control.receive()
            if got == "X":
                pid, status, *figures = struct.unpack(">Ii7Q", payload)
                self.ended[pid] = (status, dict(zip(FIGURES, figures)))
            if got == kind:
                return payload
            assert got == "X", f"{got} {payload!r} instead of {kind}"

    def fork(self):
        return Child(self)

    def refuse(self):
        """Asks for a child, expects the answer that there is none, and returns the reason."""
        pipes, control = Pipes(), Control()
        self.control.send("K", b"", [*pipes.theirs, control.theirs.fileno()])
        reason = self._next("F").decode()
        pipes.close_theirs()
        control.theirs.close()
        return reason

    def signal(self, pid, number):
        self.control.send("S", struct.pack(">II", pid, number))

    def wait_for(self, pid):
        while pid not in self.ended:
            self._next("X")
        return self.ended.pop(pid)

    def close(self):
        self.control.send("Q")
        return self.process.wait(SECONDS)


class Child:
    def __init__(self, zygote):
        self.zygote = zygote
        self.control, self.pipes = Control(), Pipes()
        zygote.control.send("K", b"", [*self.pipes.theirs, self.control.theirs.fileno()])
        self.pid, = struct.unpack(">I", zygote._next("P"))
        self.pipes.close_theirs()
        self.control.theirs.close()

    def ready(self):
        self.control.expect("R")
        return self

    def serve(self, environment, body=b""):
        self.control.hand_over(environment)
        self.pipes.feed(body)
        stdout, stderr = self.pipes.answer()
        status, self.used = self.zygote.wait_for(self.pid)
        return Ended(os.waitstatus_to_exitcode(status), stdout, stderr)


def _with_options(environment, preload, learn):
    environment = dict(environment)
    if preload:
        environment["FCGI_HOST_PRELOAD"] = ":".join(preload)
    if learn:
        environment["FCGI_HOST_LEARN"] = "1"
    return environment


def wait_until(fact, what):
    end = time.monotonic() + SECONDS
    while not fact():
        assert time.monotonic() < end, what
        time.sleep(0.005)
