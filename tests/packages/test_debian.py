"""The Debian packages: what is in them, and the life of an installation."""
import os
import re
import subprocess
import time

import pytest

import debian
import source
from debian import OURS, debs, next_version, run_autopkgtest
from lib.paths import REPO
from lib.wait import wait_until

# What installing and removing any package changes.
ALWAYS_CHANGES = re.compile(r"^(var/lib/(dpkg|apt|systemd/(timesync|catalog))|var/cache|var/log/(apt|dpkg\.log|alternatives\.log|faillog|lastlog|journal|btmp|wtmp)"
                            r"|root|tmp|run|proc|sys|dev|etc/(passwd|group|shadow|gshadow)-|etc/\.pwd\.lock|etc/ld\.so\.cache|etc/subuid|etc/subgid)")


def section(text, title):
    return re.search(rf"^## {title}\n(.*?)^## ", text, re.M | re.S).group(1)


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def command_lines(text):
    return re.findall(r"^    (\S.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)


def everything(root):
    """{path: what is there} of a whole system."""
    listed = subprocess.run(["find", str(root), "-printf", "%P\\t%y %m %U %G %l %s\\n"], capture_output=True, text=True, check=True).stdout
    found = dict(line.split("\t") for line in listed.splitlines())
    for name in list(found):
        if ALWAYS_CHANGES.match(name):
            del found[name]
        elif found[name].startswith("d"):
            found[name] = found[name].rsplit(" ", 1)[0]     # the size of a folder grows and stays so
    for name in ("passwd", "group", "shadow", "gshadow"):
        found["users in " + name] = (root / "etc" / name).read_text()
    return found


# --- the packages

def test_the_version_is_that_of_configure():
    changelog = re.match(r"fcgi-host \(([^)]+)\)", (REPO / "debian/changelog").read_text()).group(1)
    spec = re.search(r"^Version:\s*(\S+)", (REPO / "packaging/fcgi-host.spec").read_text(), re.M).group(1)
    configure = re.search(r"^AC_INIT\(\[fcgi-host\], \[([^]]+)\]", (REPO / "configure.ac").read_text(), re.M).group(1)
    assert changelog == configure == spec


def test_lintian_finds_nothing(packages):
    debian.need("lintian")
    (changes,) = packages[1].glob("*.changes")
    done = subprocess.run(["lintian", "-EviIL", "+pedantic", "--allow-root", "--fail-on", "error,warning,info,pedantic,experimental,override", str(changes)],
                          capture_output=True, text=True)
    assert done.returncode == 0 and not re.search(r"^[EWIPXO]: ", done.stdout, re.M), done.stdout + done.stderr


def test_two_builds_give_the_same_bytes(packages, folder):
    """In another folder with a longer name, from files of other times, in another language, zone and umask."""
    tree = source.copy(folder / "a-folder-with-another-name" / "fcgi-host")
    for path in tree.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    other, _ = debian.build_in(tree, umask=0o002, options="nocheck terse", LC_ALL="C", LANGUAGE="de", TZ="Asia/Tokyo", USER="someone")
    assert set(other) == set(packages[0])
    for name, path in packages[0].items():
        assert other[name].read_bytes() == path.read_bytes(), name


def test_only_debian_is_needed_and_handlers_and_documents_are_apart(packages):
    def field(name, package):
        return subprocess.run(["dpkg-deb", "-f", str(packages[0][package]), name], capture_output=True, text=True, check=True).stdout

    def listing(package):
        return subprocess.run(["dpkg-deb", "-c", str(packages[0][package])], capture_output=True, text=True, check=True).stdout
    assert "fcgi-host-handlers" not in field("Depends", "fcgi-host")
    assert "./etc/fcgi-host/fcgi-host.yaml" in listing("fcgi-host") and "./lib/systemd/system/fcgi-host.socket" in listing("fcgi-host")
    assert "./usr/libexec/fcgi-host/handlers/c/hello" in listing("fcgi-host-handlers")
    assert "./usr/share/doc/fcgi-host/ARCHITECTURE.md" in listing("fcgi-host-doc")


# --- a clean Debian without a service manager

def test_it_installs_serves_upgrades_and_goes_without_a_trace(machine, packages, folder):
    machine.run("apt-get -q -y --no-install-recommends install libuv1 libyaml-0-2 libjson-c5 libncursesw6 libfcgi0ldbl python3 perl")
    before = everything(machine.root)

    machine.install(*debs(packages, *OURS))
    assert "fine" in machine.run("fcgi-host check")
    assert "Hello from shell" in machine.run("fcgi-host call /hello"), "started by its script, out of the box"
    relay = machine.run("cat /run/fcgi-host.pid").strip()
    assert machine.run(f"stat -c %U /proc/{relay}").strip() == "fcgi-host", "it gave up root"
    machine.run("service fcgi-host status && service fcgi-host reload && service fcgi-host restart")
    assert machine.run("cat /run/fcgi-host.pid").strip() != relay
    assert "Hello from shell" in machine.run("fcgi-host call /hello")

    # A configuration of one's own survives the next version, and is served by it.
    machine.run("sed -i 's|path: /hello|path: /own|' /etc/fcgi-host/fcgi-host.yaml && service fcgi-host reload")
    relay = machine.run("cat /run/fcgi-host.pid").strip()
    machine.install(*(next_version(deb, folder) for deb in debs(packages, *OURS)))
    assert machine.run("cat /run/fcgi-host.pid").strip() != relay
    assert "Hello from shell" in machine.run("fcgi-host call /own")

    machine.run("dpkg --remove fcgi-host fcgi-host-handlers fcgi-host-doc")
    assert not [exe for exe in machine.run("readlink /proc/[0-9]*/exe || true").split() if "fcgi-host" in exe], "and nothing runs"
    assert (machine.root / "etc/fcgi-host/fcgi-host.yaml").exists(), "removed, not purged"
    machine.run("dpkg --purge fcgi-host fcgi-host-handlers fcgi-host-doc")
    after = everything(machine.root)
    assert {k: v for k, v in after.items() if before.get(k) != v} == {}
    assert {k: v for k, v in before.items() if after.get(k) != v} == {}


def test_readme_s_first_route_works_from_the_package(machine, packages):
    """README's own lines, from the installation of the packages on, where apt knows Debian and nothing else."""
    assert "fcgi-host" not in machine.run("apt-cache pkgnames fcgi-host") and len(machine.run("cat /etc/apt/sources.list").splitlines()) == 1
    readme = (REPO / "README.md").read_text()
    packaged, route = section(readme, "Packages"), section(readme, "A first route of your own")
    lines = command_lines(packaged)
    assert [line.split()[:2] for line in lines[:2]] == [["apt-get", "install"], ["apt-get", "build-dep"]]
    assert lines[2] == debian.BUILD
    machine.put(*debs(packages, *OURS))
    machine.run("mkdir source && cd source && " + lines[3].replace("install", "-q -y --no-install-recommends install"))
    assert "Hello from shell" in machine.run("fcgi-host call /hello")

    (script,), (yaml,), (in_http, in_server) = (blocks(route, language) for language in ("sh", "yaml", "nginx"))
    machine.write("/srv/functions/date.sh", script, 0o755)
    machine.write("/etc/fcgi-host/fcgi-host.yaml", yaml)
    lines = command_lines(route)
    lines = lines[lines.index("fcgi-host check"):]
    assert "fine" in machine.run(lines[0]) and lines[1] == "fcgi-host serve" and "`service fcgi-host restart` instead" in route
    machine.run("service fcgi-host restart")
    year = time.strftime("%Y")
    assert year in machine.run(lines[2])

    machine.run("apt-get -q -y --no-install-recommends install nginx curl")
    machine.run(lines[3])
    machine.write("/etc/nginx/conf.d/fcgi-host.conf", in_http)
    site = machine.root / "etc/nginx/sites-available/default"
    site.write_text(site.read_text().replace("server_name _;", "server_name _;\n" + in_server))
    machine.run("service nginx restart")
    assert year in machine.run("curl -sS --fail http://localhost/app/date")
    machine.run("service fcgi-host restart")
    assert year in machine.run("curl -sS --fail http://localhost/app/date"), "after a restart as another user too"


def test_a_process_that_waits_and_the_logs_are_there_with_the_packages(machine, packages):
    machine.install(*debs(packages, "fcgi-host", "fcgi-host-handlers"))
    machine.write("/etc/fcgi-host/fcgi-host.yaml", """
listen: unix:/run/fcgi-host/fcgi-host.sock
user: fcgi-host
log: {file: /var/log/fcgi-host/requests.log}
handlers:
  waits: {command: /usr/libexec/fcgi-host/handlers/python/hello.py, process: parked, workers: {spare: 1}}
routes:
  - {path: /waits, handler: waits}
""")
    machine.run("service fcgi-host restart")
    wait_until(lambda: '"Hello' not in machine.run("fcgi-host call /waits") and "start=parked" in machine.run("cat /var/log/fcgi-host/requests.log"), 20)
    machine.run("apt-get -q -y --no-install-recommends install logrotate && logrotate --force /etc/logrotate.d/fcgi-host")
    machine.run("fcgi-host call /waits")
    assert machine.run("grep -c event=request /var/log/fcgi-host/requests.log").strip() == "1", "it goes on in a new file"
    assert machine.run("stat -c '%U %G %a' /var/log/fcgi-host/requests.log").strip() == "fcgi-host adm 640"
    assert machine.run("stat -c %s /var/log/fcgi-host.log").strip() == "0"


def test_a_wrong_configuration_is_told_and_the_old_host_stays(machine, packages):
    machine.install(*debs(packages, "fcgi-host"))
    machine.run("echo 'nonsense: 1' >>/etc/fcgi-host/fcgi-host.yaml")
    assert "nonsense" in machine.run("! service fcgi-host restart")
    assert "nonsense" in machine.run("! service fcgi-host reload")
    assert "fcgi-host is running" in machine.run("service fcgi-host status")


@pytest.mark.parametrize("server", ["nginx", "apache"])
def test_the_package_s_own_tests_pass_without_a_service_manager(machine, packages, server):
    run_autopkgtest(machine, packages, server)
