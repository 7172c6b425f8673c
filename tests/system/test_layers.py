"""Includes point one way: DESIGN's list of layers, held over the sources."""
import pathlib
import re

import pytest

from lib.paths import REPO

LAYERS = ["base", "wire", "config", "route", "process", "serve", "compare", "cli"]
# Beyond the order: `process` knows no FastCGI.
NEVER = {("process", "wire")}
# The codecs have no descriptors, no clock and no log.
NOT_IN_WIRE = {"base/log.h", "base/clock.h", "base/loop.h", "uv.h", "unistd.h", "time.h", "sys/time.h", "sys/socket.h", "poll.h", "fcntl.h", "sys/epoll.h", "syslog.h"}
NOT_IN_PROCESS = {"fastcgi.h", "fcgiapp.h", "fcgi_stdio.h"}

_include = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


def faults(root):
    """[(file, included, why)] for every include below `root` that points the wrong way."""
    found = []
    for path in sorted(p for p in root.rglob("*.[ch]")):
        place = path.relative_to(root).parts
        layer = place[0] if len(place) > 1 else None
        for mark, name in _include.findall(path.read_text()):
            target = name.split("/")[0] if "/" in name else None
            if layer is None:
                if mark == '"' and target in LAYERS and target not in ("cli", "base"):
                    found.append((path, name, "main.c picks commands, nothing else"))
                continue
            if layer not in LAYERS:
                found.append((path, name, f"{layer} is no layer"))
                continue
            if target in LAYERS and LAYERS.index(target) > LAYERS.index(layer):
                found.append((path, name, f"{layer} comes before {target}"))
            if (layer, target) in NEVER:
                found.append((path, name, f"{layer} must not know {target}"))
            if layer == "wire" and name in NOT_IN_WIRE:
                found.append((path, name, "wire has no descriptors, no clock, no log"))
            if layer == "process" and name in NOT_IN_PROCESS:
                found.append((path, name, "process knows no FastCGI"))
    return found


def test_includes_point_one_way():
    root = REPO / "fcgi-host"
    assert list(root.rglob("*.c")), "there are sources to look at"
    assert not faults(root), "\n".join(f"{p.relative_to(REPO)}: includes {n}: {why}" for p, n, why in faults(root))


def test_every_project_include_names_its_folder():
    """`#include "pool.h"` would hide from the check above which layer it is."""
    root, bad = REPO / "fcgi-host", []
    for path in root.rglob("*.[ch]"):
        for mark, name in _include.findall(path.read_text()):
            if mark == '"' and "/" not in name and name != "config.h":
                bad.append((str(path.relative_to(root)), name))
    assert not bad


@pytest.mark.parametrize("place, include, is_fault", [
    ("base/a.c", '"wire/fcgi.h"', True), ("wire/a.c", '"base/bytes.h"', False), ("wire/a.c", '"config/config.h"', True), ("process/a.h", '"wire/fcgi.h"', True),
    ("process/a.c", '"config/config.h"', False), ("serve/a.c", '"process/pool.h"', False), ("route/a.c", '"serve/request.h"', True), ("wire/a.c", "<unistd.h>", True),
    ("cli/a.c", '"serve/serve.h"', False), ("serve/a.c", '  "cli/cli.h"', True), ("process/a.c", "<fastcgi.h>", True), ("main.c", '"cli/cli.h"', False),
    ("main.c", '"serve/client.h"', True), ("odd/a.c", '"base/err.h"', True),
])
def test_the_check_can_fail(folder, place, include, is_fault):
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"/* a */\n# include {include}\n")
    assert bool(faults(pathlib.Path(folder))) == is_fault


def test_the_table_for_contributors_has_the_same_layers():
    rows = re.findall(r"^\| `fcgi-host/(\w+)` \|[^|]*\| ([^|]*) \|$", (REPO / "CONTRIBUTING.md").read_text(), re.M)
    assert [layer for layer, _ in rows] == [layer for layer in LAYERS if list((REPO / "fcgi-host" / layer).glob("*.c"))]
    for layer, may in rows:
        earlier = LAYERS[:LAYERS.index(layer)]
        allowed, _, never = may.partition("; not ")
        if allowed == "all of the above":
            allowed = ", ".join(earlier)
        named = set() if allowed == "nothing of the rest" else set(allowed.split(", "))
        forbidden = {other for place, other in NEVER if place == layer}
        assert named == {e for e in earlier if e not in forbidden and e in dict(rows)}, layer
        assert set(filter(None, never.split(", "))) == forbidden, layer
