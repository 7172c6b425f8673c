"""The project's own files, copied to where a build may write."""
import os
import subprocess

from lib.paths import REPO


def files():
    """What git knows and what is new; without git all but builds."""
    listed = subprocess.run(["git", "-c", "safe.directory=*", "-C", str(REPO), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True)
    if listed.returncode == 0:
        return [name for name in listed.stdout.decode().split("\0") if name and (REPO / name).exists()]
    found = subprocess.run(["find", ".", "(", "-name", "build", "-o", "-name", ".git", "-o", "-name", "__pycache__", ")", "-prune", "-o",
                            "-type", "f", "-printf", "%P\\0"], cwd=REPO, capture_output=True, check=True)
    return [name for name in found.stdout.decode().split("\0") if name]


def copy(target):
    target.mkdir(parents=True)
    names = "\0".join(files()).encode()
    packed = subprocess.run(["tar", "--null", "-T", "-", "-cf", "-"], cwd=REPO, input=names, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-xf", "-"], cwd=target, input=packed, check=True)
    return target


def with_configure(target):
    copy(target)
    run(["autoreconf", "-fi"], target)
    return target


def distribution(tree, folder):
    """The archive that `make dist` makes there, in a build outside of the source."""
    folder.mkdir()
    run([tree / "configure", "-q"], folder)
    run(["make", "-s", "dist"], folder)
    (archive,) = folder.glob("*.tar.xz")
    return archive


def run(command, cwd, **environment):
    """Runs it; its output is shown when it fails."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout[-6000:]}"
    return done.stdout
