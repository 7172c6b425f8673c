"""git clone and git push of 50 MB through every web server, with the hashes compared."""
import hashlib
import pathlib
import re
import subprocess

import pytest

from lib import paths
from lib.handlers import pattern
from lib.host import make_folder

EVERY_PROCESS = True

BACKEND = "/usr/lib/git-core/git-http-backend"
FRONTS = ["nginx-streaming", "nginx-kept", "mod_proxy_fcgi", "mod_fcgid"]


def git(folder, *arguments, cwd=None):
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b",
           "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "core.compression", "GIT_CONFIG_VALUE_0": "0",
           "GIT_CONFIG_KEY_1": "safe.directory", "GIT_CONFIG_VALUE_1": "*"}
    done = subprocess.run(["git", *arguments], cwd=str(cwd or folder), env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"git {arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def tree_hash(folder):
    total = hashlib.sha256()
    for path in sorted(pathlib.Path(folder).glob("*.bin")):
        total.update(path.name.encode() + path.read_bytes())
    return total.hexdigest()


@pytest.fixture(scope="module")
def source(session_folder):
    """A repository with 50 MB of objects."""
    folder = make_folder(session_folder / "source")
    git(folder, "init", "-q", "-b", "main")
    for i in range(10):
        (folder / f"{i}.bin").write_bytes(pattern(5 << 20, seed=100 + i))
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "fifty megabytes")
    return folder


@pytest.mark.limit(240)
@pytest.mark.parametrize("name", FRONTS)
def test_clone_and_push(make_host, make_front, folder, source, name):
    root = make_folder(folder / "git")
    bare = root / "big.git"
    git(folder, "clone", "-q", "--bare", str(source), str(bare))
    git(folder, "config", "http.receivepack", "true", cwd=bare)
    host = make_host({"git": {"command": [BACKEND], "env": {"GIT_PROJECT_ROOT": str(root), "GIT_HTTP_EXPORT_ALL": "1"},
                              "body": {"max": "1GiB"}, "timeout": {"response": "60s"}}})
    client = make_front(name, host)
    clone = folder / "clone"
    git(folder, "clone", "-q", client.url("/git/big.git"), str(clone))
    assert tree_hash(clone) == tree_hash(source)
    assert git(folder, "rev-parse", "HEAD", cwd=clone) == git(folder, "rev-parse", "HEAD", cwd=source)
    git(folder, "fsck", "--full", cwd=clone)

    # nginx's buffered configuration takes at most 64 MiB, which this stays below.
    for i in range(10):
        (clone / f"{i}.bin").write_bytes(pattern(5 << 20, seed=200 + i))
    git(folder, "commit", "-q", "-a", "-m", "fifty more", cwd=clone)
    git(folder, "push", "-q", "origin", "main", cwd=clone)
    assert git(folder, "rev-parse", "main", cwd=bare) == git(folder, "rev-parse", "HEAD", cwd=clone)
    git(folder, "fsck", "--full", cwd=bare)
    check = folder / "check"
    git(folder, "clone", "-q", str(bare), str(check))
    assert tree_hash(check) == tree_hash(clone)
    entries = host.wait_log(event="request", count=4)
    assert {e["status"] for e in entries} == {200}


def test_the_sample_configuration_serves_git(make_host, make_front, folder, source):
    """conf/git.yaml as it stands, but for the places that an operator fills in."""
    sample = paths.REPO / "conf" / "git.yaml"
    root = make_folder(folder / "git")
    small = make_folder(folder / "small")
    git(folder, "init", "-q", "-b", "main", cwd=small)
    (small / "a.bin").write_bytes(b"small")
    git(folder, "add", ".", cwd=small)
    git(folder, "commit", "-q", "-m", "small", cwd=small)
    git(folder, "clone", "-q", "--bare", str(small), str(root / "small.git"))
    host = make_host({"x": "true"}, start=False)
    text = sample.read_text()
    text = re.sub(r"(GIT_PROJECT_ROOT:\s*)\S+?(?=[,}\s])", rf"\g<1>{root}", text)
    text = "\n".join(line for line in text.splitlines() if not line.startswith(("user:", "listen:"))) + "\n"
    text += f'listen: {{address: "unix:{host.socket}", mode: "0666"}}\n'
    host.write_text(text)
    host.start()
    client = make_front("nginx-streaming", host)
    for line in text.splitlines():
        found = re.search(r"path:\s*\"?(/[\w./-]*)/\*", line)
        if found:
            prefix = found.group(1)
            break
    git(folder, "clone", "-q", client.url(f"{prefix}/small.git"), str(folder / "clone"))
    assert tree_hash(folder / "clone") == tree_hash(small)
