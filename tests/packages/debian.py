"""Building the Debian packages, and a Debian of its own to install them in."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys

import pytest

import source
from lib.paths import REPO
from lib.wait import wait_until

SUITE = "bookworm"
# What the tests install beside our packages: the web servers, and a client.
DOWNLOADS = ["nginx", "apache2", "libapache2-mod-fcgid", "curl", "iproute2", "logrotate"]
BUILD = "dpkg-buildpackage -us -uc -b"
OURS = ("fcgi-host", "fcgi-host-handlers", "fcgi-host-doc")


def need(*programs):
    missing = [p for p in programs if not shutil.which(p, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def build(folder):
    """dpkg-buildpackage in a copy of the source: ({package: path}, folder with all that came out)."""
    return build_in(source.copy(folder / "fcgi-host"))


def build_in(tree, umask=0o022, options="nocheck", **environment):
    need("dpkg-buildpackage", "dh", "dh_installsysusers")
    source.run(["bash", "-c", f"umask {umask:o}; exec {BUILD}"], tree,
               DEB_BUILD_OPTIONS=f"{options} parallel={os.cpu_count()}", **environment)
    found = {p.name.split("_")[0]: p for p in tree.parent.glob("*.deb")}
    assert {"fcgi-host", "fcgi-host-handlers", "fcgi-host-doc"} <= set(found)
    return found, tree.parent


def mirror():
    """Where this machine's apt gets Debian from."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(SUITE) $(CODENAME) $(COMPONENT)", "Created-By: Packages"],
                            capture_output=True, text=True)
    for line in listed.stdout.splitlines():
        uri, *names = line.split()
        if "main" in names and (SUITE in names or not {"stable", "oldstable"}.isdisjoint(names)) and "security" not in uri:
            return uri
    pytest.skip(f"this machine's apt has no source for Debian {SUITE}")


def kept_root(variable):
    return pathlib.Path(os.environ[variable]) if os.environ.get(variable) else None


def make_image(root):
    if os.geteuid() != 0:
        pytest.skip("a Debian of its own needs root")
    need("debootstrap", "unshare", "nsenter")
    may = subprocess.run(["unshare", "--mount", "--pid", "--net", "--fork", "sh", "-c", "mount -t tmpfs tmpfs /mnt && mount -o bind /dev/null /dev/null"],
                         capture_output=True, text=True)
    if may.returncode != 0:
        pytest.skip(f"a Debian of its own needs mounts and namespaces, which are not allowed here: {may.stderr.strip()}")
    kept = kept_root("FCGI_HOST_DEBIAN_ROOT")
    if kept:
        return kept
    made = subprocess.run(["debootstrap", "--variant=minbase", "--include=systemd,systemd-sysv", SUITE, str(root), mirror()],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"})
    if made.returncode != 0 and not re.search(r"I: (Validating|Retrieving|Extracting) (?!Packages|InRelease|Release)", made.stdout):
        pytest.skip(f"debootstrap reaches no mirror: {(made.stdout + made.stderr)[-400:]}")
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr[-3000:]
    ours = re.findall(r"^Depends:(.*(?:\n .*)*)", (REPO / "debian/tests/control").read_text(), re.M)
    needed = {name for line in ours for name in re.findall(r"[\w.+-]+", line)} - {"fcgi-host", "fcgi-host-handlers"}
    assert needed <= {*DOWNLOADS}, "what the tests of the package need"
    (root / "etc/dpkg/dpkg.cfg.d/fast").write_text("force-unsafe-io\n")
    with Chroot(root, network=True) as machine:
        machine.run("apt-get -q update && apt-get -q -y --no-install-recommends --download-only install "
                    + " ".join([*DOWNLOADS, "libuv1", "libyaml-0-2", "libjson-c5", "libfcgi0ldbl", "libncursesw6", "python3", "perl"]), timeout=300)
    keep = kept_root("FCGI_HOST_DEBIAN_KEEP")
    if keep:
        copy_image(root, keep)
    return root


def copy_image(image, root):
    """Where programs only ever replace files, as dpkg does, the copy shares them with the image."""
    if subprocess.run(["cp", "-al", str(image), str(root)], capture_output=True).returncode != 0:
        shutil.rmtree(root, ignore_errors=True)         # on another file system
        subprocess.run(["cp", "-a", str(image), str(root)], check=True)
        return root
    (root / "var/cache/apt/archives/lock").unlink(missing_ok=True)
    for name in ("etc", "home", "root", "srv", "var/cache/debconf", "var/cache/ldconfig", "var/lib", "var/log"):
        shutil.rmtree(root / name)
        subprocess.run(["cp", "-a", str(image / name), str(root / name)], check=True)
    return root


class Machine:
    """A Debian in a folder whose namespaces the process `pid` holds."""
    root = None
    pid = None

    def run(self, script, check=True, timeout=120, **environment):
        """A shell script there, as root.  Returns its output."""
        done = subprocess.run(["nsenter", *self.namespaces(), "/bin/bash", "-ec", "cd /root\n" + script],
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
                                   **environment},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=timeout)
        assert done.returncode == 0 or not check, f"{script}: status {done.returncode}\n{done.stdout[-6000:]}"
        return done.stdout

    def namespaces(self):
        raise NotImplementedError

    def put(self, *files):
        """Copies files to /root there."""
        for file in files:
            shutil.copy(file, self.root / "root" / pathlib.Path(file).name)

    def install(self, *debs, recommends=False):
        """With what they depend on, which was downloaded before."""
        self.put(*debs)
        names = " ".join(f"/root/{pathlib.Path(deb).name}" for deb in debs)
        return self.run(f"apt-get -q -y {'' if recommends else '--no-install-recommends'} install {names}")

    def write(self, path, text, mode=0o644):
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)

    def host_socket(self):
        """Where this machine's processes reach the host's socket there."""
        return f"/proc/{self.pid}/root/run/fcgi-host/fcgi-host.sock"

    def serve_by_nginx(self, path):
        self.run("ln -sfn /usr/share/fcgi-host/nginx /etc/nginx/fcgi-host")
        self.write("/etc/nginx/conf.d/fcgi-host.conf", "include fcgi-host/fcgi-host-upstream.conf;\n")
        self.write("/etc/nginx/sites-enabled/own", f"server {{\n  listen 127.0.0.1:80;\n  location {path} {{ include fcgi-host/fcgi-host.conf; }}\n}}\n")
        self.run("rm -f /etc/nginx/sites-enabled/default && service nginx restart")

    def client(self, program, *arguments):
        """A program in Python that this machine's interpreter runs in that one's network."""
        return subprocess.Popen(["nsenter", f"--net=/proc/{self.pid}/ns/net", sys.executable, "-c", program, *arguments],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


# What an init that has reached runlevel 2 leaves in /run/utmp; without it Debian's scripts take it that the
# system is being started, and start nothing.
RUNLEVEL_2 = struct.pack("=hxxi32s4s32s256s52x", 1, ord("2") + 256 * ord("N"), b"~", b"~~", b"runlevel", b"")
# The first process there: it reaps, and everything ends with it.
INIT = """
mount --make-rprivate /
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount -t sysfs -o ro sysfs "$1/sys" 2>/dev/null || true
mount -t tmpfs -o mode=755 tmpfs "$1/run"
cp "$1/root/utmp" "$1/run/utmp"
mount -t tmpfs -o mode=755 tmpfs "$1/dev"
for node in null zero full random urandom tty; do touch "$1/dev/$node"; mount --bind "/dev/$node" "$1/dev/$node"; done
ln -s /proc/self/fd "$1/dev/fd"
mkdir -m 1777 "$1/run/lock"
mkdir "$1/dev/pts" "$1/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
ln -s pts/ptmx "$1/dev/ptmx"
mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
[ "$2" = network ] || ip link set lo up
cd "$1"
pivot_root . .
umount -l .
exec chroot . /bin/bash -c 'echo ready; while :; do sleep 3600 & wait $!; done'
"""


class Chroot(Machine):
    """No service manager runs there, as in a container or under another init."""

    def __init__(self, root, network=False):
        self.root, self.network = pathlib.Path(root), network

    def __enter__(self):
        kind = "network" if self.network else "none"
        (self.root / "root/utmp").write_bytes(RUNLEVEL_2)
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", *([] if self.network else ["--net"]), "/bin/bash", "-ec", INIT, "init", str(self.root), kind],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            self.__exit__()
            pytest.skip("no namespaces here")
        self.pid = child_of(self.holder.pid)
        if self.network:
            shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
        return self

    def __exit__(self, *_):
        self.holder.kill()      # --kill-child: and all that runs there
        self.holder.wait(20)
        self.holder.stdout.close()

    def namespaces(self):
        return ["--mount", "--pid", *([] if self.network else ["--net"]), f"--target={self.pid}"]


class Booted(Machine):
    """systemd runs there, in systemd-nspawn."""

    def __init__(self, root):
        self.root = pathlib.Path(root)

    def __enter__(self):
        need("systemd-nspawn")
        self.console = open(self.root.parent / "console", "wb")
        self.nspawn = subprocess.Popen(["systemd-nspawn", "--quiet", "--boot", f"--directory={self.root}", "--private-network", "--register=no",
                                        "--keep-unit", "--console=pipe", "--link-journal=no", "--resolv-conf=off", "--timezone=off"],
                                       stdin=subprocess.DEVNULL, stdout=self.console, stderr=self.console, start_new_session=True)
        try:
            wait_until(self.is_up, 60, "systemd's start")
        except AssertionError as e:
            self.__exit__()
            console = (self.root.parent / "console").read_text(errors="replace")
            pytest.skip(f"systemd does not start in systemd-nspawn here ({e}): {console[-400:]}")
        return self

    def is_up(self):
        assert self.nspawn.poll() is None, "systemd-nspawn has ended"
        with contextlib.suppress(LookupError, OSError):
            self.pid = child_of(self.nspawn.pid)
            return self.run("systemctl is-system-running", check=False).strip() in ("running", "degraded")
        return False

    def __exit__(self, *_):
        if self.nspawn.poll() is None and self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGRTMIN + 4)      # systemd powers off
        try:
            self.nspawn.wait(30)
        except subprocess.TimeoutExpired:
            self.nspawn.kill()
            self.nspawn.wait(20)
        self.console.close()

    def namespaces(self):
        return ["--all", f"--target={self.pid}"]

    def show(self, unit, name):
        return self.run(f"systemctl show --property={name} --value {unit}").strip()


def child_of(pid):
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        return int(child)
    raise LookupError(pid)


def debs(packages, *names):
    return [packages[0][name] for name in names]


def run_autopkgtest(machine, packages, server):
    """What autopkgtest does: installs what the test names, and runs it in the source tree."""
    control = (REPO / "debian/tests/control").read_text()
    stanza = next(part for part in control.split("\n\n") if f"Tests: {server}\n" in part)
    depends = re.search(r"^Depends: (.*)$", stanza, re.M).group(1).split(", ")
    machine.install(*debs(packages, *(d for d in depends if d in OURS)))
    machine.run("apt-get -q -y --no-install-recommends install " + " ".join(d for d in depends if d not in OURS))
    shutil.copytree(REPO / "debian", machine.root / "root/source/debian")
    said = machine.run(f"mkdir /root/temp; cd /root/source; AUTOPKGTEST_TMP=/root/temp debian/tests/{server}", timeout=180)
    assert said.count("fine: ") >= 10, said


def next_version(deb, folder):
    """The same package as its next version would be."""
    tree = folder / "next" / deb.name
    tree.parent.mkdir(exist_ok=True)
    subprocess.run(["dpkg-deb", "-R", str(deb), str(tree)], check=True)
    control = tree / "DEBIAN/control"
    version = re.search(r"^Version: (.*)$", control.read_text(), re.M).group(1)
    control.write_text(control.read_text().replace(version, version + "+next"))
    for program in tree.glob("usr/sbin/fcgi-host"):
        with open(program, "ab") as file:
            file.write(b"\n")       # runs as before, and can be told apart
    target = folder / f"{deb.name.split('_')[0]}_next.deb"
    source.run(["dpkg-deb", "--root-owner-group", "-b", tree, target], folder)
    return target
