"""Small handlers that many tests use."""
import hashlib
import pathlib

PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "programs"
FAULTY_WORKER = (PROGRAMS / "faulty_worker.py").read_text()

HELLO = "printf 'Content-Type: text/plain\\n\\nhello\\n'\n"
# The whole body's digest, once it has ended.
DIGEST = "printf 'Content-Type: text/plain\\n\\n'; sha256sum | cut -d' ' -f1 | tr -d '\\n'\n"
ENVIRON = "printf 'Content-Type: text/plain\\n\\n'; env -0\n"
COUNT = "n=$(wc -c); printf 'Content-Type: text/plain\\n\\n%s' $n\n"


def python(text):
    return "#!/usr/bin/python3 -ISu\nimport os, sys, time\nout = sys.stdout.buffer\n" + text


def writes(data):
    """A handler that writes exactly these bytes, in one write."""
    return python(f"out.raw.write({data!r}) if hasattr(out, 'raw') else out.write({data!r})\n")


def echo(pieces=65536):
    return python(f"""
out.write(b'Content-Type: application/octet-stream\\n\\n')
while True:
    data = os.read(0, {pieces})
    if not data:
        break
    out.write(data)
""")


def sha(data):
    return hashlib.sha256(data).hexdigest()


def pattern(size, seed=1):
    """Bytes that do not compress and never repeat at short distance; the same for the same seed."""
    import random
    return random.Random(seed).randbytes(size)


def env_of(answer):
    """What the ENVIRON handler printed."""
    return dict(p.split("=", 1) for p in answer.body.decode("utf-8", "surrogateescape").split("\0") if "=" in p)


def faulty(fault, **keys):
    keys.setdefault("workers", {"max": 1})
    env = {"FAULT": fault, **keys.pop("env", {})}
    return {"script": FAULTY_WORKER, "protocol": "fastcgi", "env": env, **keys}


def worker(program, **keys):
    """The libfcgi program as persistent workers."""
    return {"command": [str(program)], "protocol": "fastcgi", **keys}
