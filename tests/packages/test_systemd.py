"""The Debian packages where systemd runs: the units, and an upgrade under load."""
import re

from debian import debs, next_version, run_autopkgtest
from lib.paths import REPO
from lib.wait import wait_until
from load import Load

SERVICE, SOCKET = "fcgi-host.service", "fcgi-host.socket"
SLOW = "#!/bin/sh\nsleep 1.5\nprintf 'Content-Type: text/plain\\n\\nslow\\n'\n"


def main_pid(machine):
    return int(machine.show(SERVICE, "MainPID"))


def program_size(machine, pid):
    """Of the file that this process runs, even if it was replaced since."""
    return int(machine.run(f"stat -L -c %s /proc/{pid}/exe"))


def add_handlers(machine):
    """One that takes its time, and one that keeps its workers, beside the first route."""
    machine.write("/srv/slow.sh", SLOW, 0o755)
    path = machine.root / "etc/fcgi-host/fcgi-host.yaml"
    text = path.read_text()
    text = text.replace("handlers:\n", "handlers:\n  slow: {command: /srv/slow.sh}\n  kept: {command: /usr/libexec/fcgi-host/handlers/c/hello, protocol: fastcgi}\n")
    path.write_text(text.replace("routes:\n", "routes:\n  - {path: /slow, handler: slow}\n  - {path: /kept, handler: kept}\n"))
    machine.run("fcgi-host check && systemctl reload fcgi-host")


def test_the_package_starts_socket_and_service_and_they_are_sound(booted, packages):
    booted.install(*debs(packages, "fcgi-host"))
    assert [booted.show(unit, "ActiveState") for unit in (SERVICE, SOCKET)] == ["active", "active"]
    assert [booted.show(unit, "UnitFileState") for unit in (SERVICE, SOCKET)] == ["enabled", "enabled"]
    assert "Hello from shell" in booted.run("fcgi-host call /hello")
    assert booted.run("stat -c '%U %G %a' /run/fcgi-host/fcgi-host.sock").strip() == "root www-data 660"
    assert booted.run(f"stat -c %U /proc/{main_pid(booted)}").strip() == "fcgi-host", "it gave up root"
    assert booted.run(f"systemd-analyze verify --man=no {SERVICE} {SOCKET} 2>&1").strip() == ""
    exposure = booted.run(f"systemd-analyze security --no-pager {SERVICE}")
    assert float(re.search(r"exposure level for fcgi-host.service: ([\d.]+)", exposure).group(1)) < 5, exposure

    # A connection starts it, a crash restarts it, a reload keeps it.
    booted.run(f"systemctl stop {SERVICE}")
    assert booted.show(SERVICE, "ActiveState") == "inactive"
    assert "Hello from shell" in booted.run("fcgi-host call /hello")
    pid = main_pid(booted)
    booted.run(f"systemctl reload {SERVICE}")
    assert main_pid(booted) == pid
    booted.run(f"kill -KILL {pid}")
    wait_until(lambda: main_pid(booted) not in (0, pid), 20, "the restart")
    assert "Hello from shell" in booted.run("fcgi-host call /hello")


def test_a_handler_gets_back_what_the_unit_takes_as_the_document_says(booted, packages):
    document = (REPO / "doc/packaging.md").read_text()
    rows = re.findall(r"^\| (.*) \| (`.*) \|$", document.split("| a handler that | needs |")[1].split("\n\n")[0], re.M)
    settings = [setting for _, needs in rows for setting in re.findall(r"`([A-Z]\w+=\S*)`", needs)]
    assert len(settings) >= 8 and "ReadWritePaths=/etc/example" in settings
    booted.install(*debs(packages, "fcgi-host"))
    booted.run("install -d -m 777 /etc/example /home/example")
    booted.write("/srv/writes.sh", "#!/bin/sh\nexec 2>&1\nprintf 'Content-Type: text/plain\\n\\n'\n"
                 "touch /etc/example/x && echo etc\ntouch /home/example/x && echo home\n", 0o755)
    booted.write("/etc/fcgi-host/fcgi-host.yaml", "user: fcgi-host\nhandlers:\n  writes: {command: /srv/writes.sh}\nroutes:\n  - {path: /, handler: writes}\n")
    booted.run(f"systemctl restart {SERVICE}")
    assert not {"etc", "home"} & set(booted.run("fcgi-host call /").splitlines())
    booted.write(f"/etc/systemd/system/{SERVICE}.d/more.conf", "[Service]\n" + "".join(f"{setting}\n" for setting in settings))
    assert booted.run(f"systemd-analyze verify --man=no {SERVICE} 2>&1").strip() == ""
    booted.run(f"systemctl daemon-reload && systemctl restart {SERVICE}")
    assert {"etc", "home"} <= set(booted.run("fcgi-host call /").splitlines())


def test_an_upgrade_under_load_fails_no_request(booted, packages, folder):
    booted.install(*debs(packages, "fcgi-host", "fcgi-host-handlers"))
    booted.run("apt-get -q -y --no-install-recommends install nginx")
    booted.serve_by_nginx("/")
    add_handlers(booted)
    new = [next_version(deb, folder) for deb in debs(packages, "fcgi-host", "fcgi-host-handlers")]
    old_pid = main_pid(booted)
    old_size = program_size(booted, old_pid)
    direct = [("/hello", "Hello from shell"), ("/kept", "Hello from C"), ("/slow", "slow")]
    with Load(booted, direct, [("GET", "/hello"), ("GET", "/kept"), ("POST", "/hello"), ("POST", "/kept")]) as load:
        assert "fcgi-host" in booted.install(*new)
        upgraded_pid = main_pid(booted)
        assert program_size(booted, upgraded_pid) == old_size + 1, "the new program runs"
        load.wait_more(5)
        for _ in range(3):
            booted.run(f"systemctl restart {SERVICE}")
            load.wait_more(2)
        booted.run("apt-get -q -y --allow-downgrades install " + " ".join(f"/root/{deb.name}" for deb in debs(packages, "fcgi-host", "fcgi-host-handlers")))
        assert program_size(booted, main_pid(booted)) == old_size, "and the old one again"
    assert main_pid(booted) not in (old_pid, upgraded_pid)
    assert load.failed == [], load.counts
    print(load.counts)


def test_the_package_s_own_test_passes_under_systemd(booted, packages):
    run_autopkgtest(booted, packages, "nginx")


def test_it_goes_without_a_trace_from_systemd_too(booted, packages):
    booted.install(*debs(packages, "fcgi-host"))
    booted.run("dpkg --purge fcgi-host")
    assert booted.run("find / -xdev -name '*fcgi-host*' -not -path '/root/*' -not -path '/proc/*'").strip() == ""
    assert booted.run("systemctl list-units --all --no-legend 'fcgi-host*'").strip() == ""
    assert "fcgi-host" not in booted.run("getent passwd && getent group")
