"""
What is built, installed and packaged:

    /usr/bin/python3 -m pytest tests/packages          (-n 2: two tests at a time)

Needs what CONTRIBUTING.md lists; what is missing skips the tests that need it, and says so.  The Debian
packages are installed in a Debian that is made for it, never on this machine.  FCGI_HOST_DEBIAN_ROOT may
name a folder with such a Debian from an earlier run, to be copied; FCGI_HOST_DEBIAN_KEEP a folder where to keep one.
"""
import fcntl
import os
import pathlib
import pickle
import shutil
import sys
import tempfile

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))

import debian  # noqa: E402
import source  # noqa: E402

# Where everything is made; the workers of pytest-xdist inherit its name.
SESSION = "FCGI_HOST_PACKAGES_SESSION"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    os.umask(0o022)
    if getattr(config.option, "dist", "no") == "load":
        config.option.dist = "loadfile"         # the tests of a file share what they build
    if SESSION not in os.environ:
        os.environ[SESSION] = tempfile.mkdtemp(prefix="fcgi-host-packages.", dir="/var/tmp" if os.access("/var/tmp", os.W_OK) else None)
        os.chmod(os.environ[SESSION], 0o755)
        config.session_folder_is_ours = True


def pytest_unconfigure(config):
    if getattr(config, "session_folder_is_ours", False):
        shutil.rmtree(os.environ.pop(SESSION), ignore_errors=True)


@pytest.fixture(scope="session")
def session_folder():
    return pathlib.Path(os.environ[SESSION])


@pytest.fixture
def folder(session_folder):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="test.", dir=session_folder))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def once(session_folder, name, make):
    """What `make` returns for the folder `name`: made by whichever process of this run comes first."""
    with open(session_folder / f"{name}.lock", "a+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        made = lock.read()
        if not made:
            try:
                made = pickle.dumps((make(session_folder / name), None))
            except pytest.skip.Exception as skipped:
                made = pickle.dumps((None, str(skipped)))
            lock.write(made)
    result, why_not = pickle.loads(made)
    if why_not:
        pytest.skip(why_not)
    return result


@pytest.fixture(scope="session")
def source_tree(session_folder):
    """The files of the project with a configure script, as a distribution has them."""
    return once(session_folder, "source", source.with_configure)


@pytest.fixture(scope="session")
def packages(session_folder):
    """The Debian packages, built as a person would: {name: path}, and the folder with all that was built."""
    return once(session_folder, "packages", debian.build)


@pytest.fixture(scope="session")
def image(session_folder):
    """A clean Debian in a folder, with what the tests install there already downloaded."""
    return once(session_folder, "debian", debian.make_image)


@pytest.fixture
def machine(folder, image):
    """The same, with no service manager: processes, network and mounts of its own."""
    with debian.Chroot(debian.copy_image(image, folder / "root")) as machine:
        yield machine


@pytest.fixture
def booted(folder, image):
    """The same, with systemd as its first process."""
    with debian.Booted(debian.copy_image(image, folder / "root")) as machine:
        yield machine
