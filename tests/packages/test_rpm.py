"""The RPM packages: the spec file builds them from what `make dist` gives, and rpmlint has nothing to say."""
import shutil
import subprocess

import pytest

import debian
import source
from lib.paths import REPO

SPEC = REPO / "packaging/fcgi-host.spec"
PACKAGES = {"fcgi-host", "fcgi-host-handlers", "fcgi-host-doc"}


def build(top, archive):
    """{name: path} of the packages.  Debian's rpm knows no package that is needed to build, and its dash cannot run
    the step that compresses manual pages."""
    (top / "SOURCES").mkdir(parents=True, exist_ok=True)
    shutil.copy(archive, top / "SOURCES")
    source.run(["rpmbuild", "-bb", "--nodeps", "--nocheck", "--define", f"_topdir {top}",
                "--define", "__brp_compress /bin/bash /usr/lib/rpm/brp-compress /usr", SPEC], top)
    return {source.run(["rpm", "-qp", "--queryformat", "%{NAME}", path], top): path for path in top.glob("RPMS/*/*.rpm")}


@pytest.fixture(scope="module")
def archive(session_folder, source_tree):
    return source.distribution(source_tree, session_folder / "distribution")


@pytest.fixture(scope="module")
def rpms(session_folder, archive):
    debian.need("rpmbuild")
    return build(session_folder / "rpm", archive)


def files(path):
    return [name for name in source.run(["rpm", "-qpl", path], path.parent).splitlines() if ".build-id" not in name]


def test_the_spec_file_builds_the_three_packages(rpms):
    assert set(rpms) == PACKAGES
    main, handlers = files(rpms["fcgi-host"]), files(rpms["fcgi-host-handlers"])
    for name in ("/usr/sbin/fcgi-host", "/etc/fcgi-host/fcgi-host.yaml", "/usr/lib/systemd/system/fcgi-host.socket", "/usr/libexec/fcgi-host/handlers/shell/hello.sh"):
        assert name in main, main
    assert "/usr/libexec/fcgi-host/handlers/c/hello" in handlers and not set(main) & set(handlers)
    assert "/usr/share/doc/fcgi-host/ARCHITECTURE.md" in files(rpms["fcgi-host-doc"])
    assert "/etc/fcgi-host/fcgi-host.yaml" in source.run(["rpm", "-qpc", rpms["fcgi-host"]], REPO), "an own one is kept"


def test_everything_that_is_installed_is_in_a_package(rpms, archive, folder):
    """rpmbuild refuses files that are in none; here: nothing is in two, and folders of others are not ours."""
    owned = [name for path in rpms.values() for name in files(path)]
    assert len(owned) == len(set(owned))
    assert not {"/usr/share/zsh", "/usr/share/bash-completion", "/usr/lib/systemd/system", "/usr/libexec", "/etc/logrotate.d"} & set(owned)


def test_rpmlint_finds_nothing(rpms):
    debian.need("rpmlint")
    done = subprocess.run(["rpmlint", "-c", str(REPO / "packaging/rpmlint.toml"), str(SPEC), *map(str, rpms.values())], capture_output=True, text=True)
    assert done.returncode == 0 and " 0 errors, 0 warnings" in done.stdout, done.stdout + done.stderr


def test_two_builds_give_the_same_bytes(rpms, archive):
    """At the same place: where a distribution builds is in its debugging symbols until it takes them out."""
    before = {name: path.read_bytes() for name, path in rpms.items()}
    top = rpms["fcgi-host"].parents[2]
    shutil.rmtree(top)
    assert {name: path.read_bytes() for name, path in build(top, archive).items()} == before
