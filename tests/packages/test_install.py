"""`make install`: DESTDIR and every standard directory variable are honoured, and `make uninstall` takes all of it back."""
import os
import re
import shutil
import subprocess

import pytest

import source

# Every directory variable of the GNU standards that has to do with what is installed, each at a place of its own,
# and those of ours.
PLACES = {name: f"/places/{name}" for name in (
    "prefix", "exec-prefix", "bindir", "sbindir", "libexecdir", "sysconfdir", "sharedstatedir", "localstatedir", "runstatedir",
    "libdir", "datarootdir", "datadir", "mandir", "docdir")}
OURS = {name: f"/places/{name}" for name in (
    "systemdsystemunitdir", "tmpfilesdir", "sysusersdir", "bashcompletiondir", "zshcompletiondir", "fishcompletiondir")}
# Where something of each kind must be: {variable: a file below it}.
EXPECTED = {
    "sbindir": "fcgi-host", "libexecdir": "fcgi-host/handlers/shell/hello.sh", "datadir": "fcgi-host/nginx/fcgi-host.conf",
    "mandir": "man8/fcgi-host.8", "docdir": "ARCHITECTURE.md", "systemdsystemunitdir": "fcgi-host.socket", "tmpfilesdir": "fcgi-host.conf",
    "sysusersdir": "fcgi-host.conf", "bashcompletiondir": "fcgi-host", "zshcompletiondir": "_fcgi-host", "fishcompletiondir": "fcgi-host.fish",
}

def files(root):
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_symlink() or path.is_file()}


def build(tree, folder, **environment):
    folder.mkdir(parents=True)
    options = [f"--{name}={place}" for name, place in PLACES.items()] + [f"--with-{name}={place}" for name, place in OURS.items()]
    source.run([tree / "configure", "-q", *options, "CFLAGS=-O0"], folder, **environment)
    source.run(["make", "-s", f"-j{os.cpu_count()}"], folder, **environment)
    return folder


@pytest.fixture(scope="module")
def built(session_folder, source_tree):
    return build(source_tree, session_folder / "built")


@pytest.fixture(scope="module")
def installed(built, session_folder):
    root = session_folder / "installed"
    source.run(["make", "-s", "install", f"DESTDIR={root}"], built)
    return root


def test_nothing_is_outside_of_the_places_that_were_named(installed):
    named = tuple(place.lstrip("/") + "/" for place in (*PLACES.values(), *OURS.values()))
    assert [name for name in files(installed) if not name.startswith(named)] == []
    for variable, name in EXPECTED.items():
        assert (installed / "places" / variable / name).is_file(), variable
    used = {name.split("/")[1] for name in files(installed)}
    assert used <= {*EXPECTED, "libdir"}, "prefix and the like are only where others begin"


def test_what_is_installed_knows_where_things_are(installed):
    said = subprocess.run([installed / "places/sbindir/fcgi-host", "check"], capture_output=True, text=True)
    assert "/places/sysconfdir/fcgi-host/fcgi-host.yaml" in said.stderr
    unit = (installed / "places/systemdsystemunitdir/fcgi-host.service").read_text()
    assert "ExecStart=/places/sbindir/fcgi-host serve" in unit
    for path, text in {
            "systemdsystemunitdir/fcgi-host.socket": "ListenStream=/places/runstatedir/fcgi-host/fcgi-host.sock",
            "tmpfilesdir/fcgi-host.conf": "d /places/localstatedir/log/fcgi-host",
            "datadir/fcgi-host/first-route.yaml": "command: /places/libexecdir/fcgi-host/handlers/shell/hello.sh",
            "datadir/fcgi-host/samples.yaml": "listen: unix:/places/runstatedir/fcgi-host/fcgi-host.sock",
            "datadir/fcgi-host/nginx/fcgi-host-upstream.conf": "server unix:/places/runstatedir/fcgi-host/fcgi-host.sock;",
            "datadir/fcgi-host/apache/mod_proxy_fcgi.conf": "Define FCGI_HOST_SOCKET /places/runstatedir/fcgi-host/fcgi-host.sock",
            "datadir/fcgi-host/apache/mod_fcgid.conf": "Define FCGI_HOST_PROGRAM /places/sbindir/fcgi-host"}.items():
        assert text in (installed / "places" / path).read_text(), path
    assert "Define FCGI_HOST_CONFIG /places/sysconfdir/fcgi-host/fcgi-host.yaml" in (installed / "places/datadir/fcgi-host/apache/mod_fcgid.conf").read_text()


def test_no_file_names_the_folder_that_it_was_built_in(installed, session_folder):
    for name in files(installed):
        assert str(session_folder).encode() not in (installed / name).read_bytes(), name


def test_an_installation_can_be_moved_at_install_time(built, folder):
    """`make install prefix=...`, as stow and the like do it: what depends on it follows."""
    source.run(["make", "-s", "install", f"DESTDIR={folder}", "sbindir=/elsewhere/sbin", "mandir=/elsewhere/man"], built)
    assert (folder / "elsewhere/sbin/fcgi-host").is_file() and (folder / "elsewhere/man/man8/fcgi-host.8").is_file()
    assert not (folder / "places/sbindir").exists() and not (folder / "places/mandir").exists()


def test_uninstall_takes_all_of_it_back(built, folder):
    source.run(["make", "-s", "install", f"DESTDIR={folder}"], built)
    (folder / "places/libexecdir/mine").write_text("not of the installation")
    source.run(["make", "-s", "uninstall", f"DESTDIR={folder}"], built)
    assert files(folder) == {"places/libexecdir/mine"}


def test_two_builds_give_the_same_bytes(installed, source_tree, folder):
    """In folders of other names and lengths, in another language and zone; without debugging symbols, which name the folder."""
    tree = shutil.copytree(source_tree, folder / "a-source-of-another-name", symlinks=True)
    again = build(tree, folder / "built-again", LC_ALL="C", TZ="Asia/Tokyo")
    source.run(["make", "-s", "install", f"DESTDIR={folder / 'root'}"], again)
    assert files(folder / "root") == files(installed)
    for name in files(installed):
        assert (folder / "root" / name).read_bytes() == (installed / name).read_bytes(), name
