"""A network of its own for a test: a namespace in the middle, and one for each host, a cable to each."""
import contextlib
import os
import subprocess

PORT = 9000


def ip(*arguments, check=True):
    return subprocess.run(["ip", *arguments], check=check, capture_output=True, text=True)


class Network:
    """`names`: a host each.  What the middle runs reaches them at address(name); unix sockets reach across as ever."""

    def __init__(self, names):
        self.names = list(names)
        self.middle = self._space("m")
        self.spaces = {}

    def _space(self, name):
        return f"fh-{os.getpid()}-{name}"

    def __enter__(self):
        try:
            ip("netns", "add", self.middle)
            self._inside(self.middle, "link", "set", "lo", "up")
            for number, name in enumerate(self.names):
                self._connect(number, name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _connect(self, number, name):
        space = self.spaces[name] = self._space(name)
        ip("netns", "add", space)
        # Made where it belongs: no name of it ever appears outside.
        self._inside(self.middle, "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", space)
        for where, device, last in ((self.middle, f"to-{name}", 1), (space, "eth0", 2)):
            self._inside(where, "address", "add", f"192.0.2.{number * 4 + last}/30", "dev", device)
            self._inside(where, "link", "set", device, "up")
        self._inside(space, "link", "set", "lo", "up")

    @staticmethod
    def _inside(space, *arguments, check=True):
        return ip("-netns", space, *arguments, check=check)

    def address(self, name):
        return f"192.0.2.{self.names.index(name) * 4 + 2}"

    def address_of_middle(self, name):
        """As this host sees it."""
        return f"192.0.2.{self.names.index(name) * 4 + 1}"

    def command(self, name=None):
        """What to put before a command so that it runs at this host, or in the middle."""
        return ["ip", "netns", "exec", self.spaces[name] if name else self.middle]

    def unplug(self, name):
        """The cable is out: nothing arrives any more, and nobody is told."""
        self._inside(self.spaces[name], "link", "set", "eth0", "down")

    def plug_in(self, name):
        self._inside(self.spaces[name], "link", "set", "eth0", "up")

    def lose_packets(self, name):
        """What the host sends is lost; what is sent to it arrives, and is never acknowledged."""
        self._inside(self.spaces[name], "route", "add", "blackhole", f"{self.address_of_middle(name)}/32")

    def find_packets(self, name):
        self._inside(self.spaces[name], "route", "del", "blackhole", f"{self.address_of_middle(name)}/32")

    def __exit__(self, *_):
        for space in [*self.spaces.values(), self.middle]:
            with contextlib.suppress(OSError):
                ip("netns", "del", space, check=False)
