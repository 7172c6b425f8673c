"""
What is built, installed and packaged:

    /usr/bin/python3 -m pytest tests/packages

Needs what CONTRIBUTING.md lists; what is missing skips the tests that need it, and says so.  The Debian
packages are installed in a Debian that is made for it, never on this machine.  FCGI_HOST_DEBIAN_ROOT may
name a folder with such a Debian from an earlier run, to be copied; FCGI_HOST_DEBIAN_KEEP a folder where to keep one.
"""
import os
import pathlib
import shutil
import sys
import tempfile

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))

import debian  # noqa: E402
import source  # noqa: E402


def pytest_configure(config):
    os.umask(0o022)


@pytest.fixture(scope="session")
def session_folder():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fcgi-host-packages.", dir="/var/tmp" if os.access("/var/tmp", os.W_OK) else None))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def folder(session_folder):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="test.", dir=session_folder))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def source_tree(session_folder):
    """The files of the project with a configure script, as a distribution has them."""
    return source.with_configure(session_folder / "source")


@pytest.fixture(scope="session")
def packages(session_folder):
    """The Debian packages, built as a person would: {name: path}, and the folder with all that was built."""
    debian.need("dpkg-buildpackage", "dh", "dh_installsysusers")
    return debian.build(session_folder / "packages")


@pytest.fixture(scope="session")
def image(session_folder):
    """A clean Debian in a folder, with what the tests install there already downloaded."""
    return debian.make_image(session_folder / "debian")


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
