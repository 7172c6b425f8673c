"""Where the tree and its builds are."""
import os
import pathlib
import shutil

REPO = pathlib.Path(__file__).resolve().parents[3]


def _build(variable, candidates):
    named = os.environ.get(variable)
    if named:
        return pathlib.Path(named).resolve()
    for folder in candidates:
        if (folder / "fcgi-host" / "fcgi-host").is_file():
            return folder
    return None


BUILD = _build("FCGI_HOST_BUILD", [REPO / "build", REPO / "build" / "sanitized", REPO])
# A build without sanitizers, for what is measured in bytes.
BUILD_PLAIN = _build("FCGI_HOST_BUILD_PLAIN", [REPO / "build" / "plain"])


_copies = {}


def program(build=None):
    """The program of a build, at a place that a web server's user can reach."""
    build = build or BUILD
    if not build:
        return None
    return _copies.get(build, build / "fcgi-host" / "fcgi-host")


def shims(build=None):
    """The folder of what lets a process wait, beside the program."""
    build = build or BUILD
    return _copies.get((build, "shims"), build / "handlers" / "shims" / "lib")


def make_reachable(folder):
    """Copies programs below a closed folder (a home, say) to `folder`."""
    for name, build in (("host", BUILD), ("plain", BUILD_PLAIN)):
        if build and program(build).is_file() and not all(p.stat().st_mode & 0o001 for p in program(build).parents):
            target = folder / name / "fcgi-host"
            target.parent.mkdir(mode=0o755)
            shutil.copy(program(build), target)
            _copies[build] = target
            _copies[build, "shims"] = folder / name / "shims"
            shutil.copytree(build / "handlers" / "shims" / "lib", folder / name / "shims")
