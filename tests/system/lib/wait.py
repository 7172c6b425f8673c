"""Waiting for facts, never for time."""
import os
import socket
import time


class TookTooLong(AssertionError):
    pass


def wait_until(predicate, timeout=10.0, what=None):
    """Polls until predicate() is true and returns what it returned."""
    deadline = time.monotonic() + timeout
    pause = 0.002
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TookTooLong(f"{what or getattr(predicate, '__doc__', None) or 'it'} did not happen within {timeout} s")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


def stays(predicate, seconds, what="it"):
    """For things that must not happen: true all the time, watched for `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert predicate(), f"{what} did not stay so"
        time.sleep(0.02)


_given_ports = set()


def free_port():
    while True:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        if port not in _given_ports:
            _given_ports.add(port)
            return port


def connects(address):
    """Does something accept connections at ("host", port) or at a unix path?"""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as s:
        s.settimeout(2)
        try:
            s.connect(address)
            return True
        except OSError:
            return False


def exists(path):
    return os.path.lexists(path)
