"""A program in a terminal of its own: what it writes becomes a screen of characters."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

import pyte

from .wait import wait_until


class Terminal:
    def __init__(self, arguments, env, columns=120, lines=30, term="xterm-256color"):
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.written = b""
        self.master, slave = pty.openpty()
        self.settings = termios.tcgetattr(slave)
        self.slave = slave              # kept open, so that the settings can be looked at after the end
        self._set_size(columns, lines)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.login_tty(slave)
            except AttributeError:
                os.setsid()
                fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
                for fd in (0, 1, 2):
                    os.dup2(slave, fd)
            environment = {**env, "LANG": "C.UTF-8"}
            if term is not None:
                environment["TERM"] = term
            try:
                os.execve(arguments[0], arguments, environment)
            finally:
                os._exit(127)
        self.status = None

    def _set_size(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, columns, lines):
        """As a terminal does: the kernel tells the program by SIGWINCH."""
        self.screen.resize(lines, columns)
        self._set_size(columns, lines)

    def type(self, keys):
        os.write(self.master, keys)

    def read(self, seconds=0.05):
        end = time.monotonic() + seconds
        while select.select([self.master], [], [], max(0, end - time.monotonic()))[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            if not data:
                return
            self.written += data
            self.stream.feed(data)

    @property
    def lines(self):
        self.read()
        return [line.rstrip() for line in self.screen.display]

    def wait_for(self, predicate, timeout=15, what="the screen"):
        """Until predicate(lines) is true; returns that."""
        try:
            return wait_until(lambda: predicate(self.lines), timeout, what)
        except AssertionError as e:
            raise AssertionError(f"{e}; the screen:\n" + "\n".join(self.lines)) from None

    def has_ended(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
        return self.status is not None

    def wait_end(self, timeout=10):
        """The exit status."""
        wait_until(lambda: self.read() or self.has_ended(), timeout, "the end of the program")
        self.read()
        return os.waitstatus_to_exitcode(self.status)

    def is_restored(self):
        now = termios.tcgetattr(self.slave)
        return now[:4] == self.settings[:4] and now[6] == self.settings[6]

    def close(self):
        if not self.has_ended():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)
        os.close(self.slave)
