"""
Python's part of a waiting process: see README.md in the folder above.

Python imports this module at its start, from the folder that the host has put into PYTHONPATH.  It returns when a
request is there; then Python itself goes on to the script, as it always does.  What the script could see of it is
taken back: the folder, the variables, the module.
"""
import os
import posix
import sys

# Our own entry in /proc is as old as we are.  Files bear a time that may be a few ms behind.
_STARTED_NS = posix.stat("/proc/self/").st_ctime_ns - 20000000

# What has had its effect when Python has started; where a request has others, it gets a Python that was started with them.
_STEERING = ("HOME", "LANG", "LANGUAGE", "TZ")


def _take_back_hook():
    """The hook's traces in sys.path and in the environment.  Returns the host's own variables."""
    ours = os.path.dirname(os.path.abspath(__file__))
    if ours in sys.path:
        sys.path.remove(ours)
    sys.path_importer_cache.pop(ours, None)
    for name in ("PYTHONPATH", "LD_PRELOAD"):
        first, _, rest = os.environ.get(name, "").partition(":")
        if first == ours or os.path.basename(first) == "fcgi-host-park.so":
            del os.environ[name]
            if rest:
                os.environ[name] = rest
    return {name[10:]: os.environ.pop(name) for name in list(os.environ) if name.startswith("FCGI_HOST_")}


# --- modules loaded ahead

def _script():
    if hasattr(sys, "argv"):
        return sys.argv[0]
    # Before Python 3.8 that comes later.
    command, path = _strings("cmdline"), _started_path()
    names = [path] if path in command[1:] else [word for word in command[1:] if not word.startswith(b"-")]
    return os.fsdecode(names[0]) if names else ""


def _script_folder():
    script = _script()
    if os.path.islink(script):
        script = os.path.join(os.path.dirname(script), os.readlink(script))
    return os.path.dirname(os.path.abspath(script))


def _load(names, are_learnt):
    """Imports them.  One that cannot be imported is named in the log, where the operator has asked for it."""
    for name in names:
        try:
            __import__(name)
        except BaseException as e:
            if not are_learnt:
                print(f"fcgi-host: preload: {name}: {type(e).__name__}: {e}".splitlines()[0], file=sys.stderr, flush=True)


def _hides_own(folder, loaded):
    """Does the script's folder have a module of the name of one of these?  A usual start would load that one."""
    try:
        own = {entry.split(".", 1)[0] for entry in os.listdir(folder)}
    except OSError:
        return True
    return any(name.split(".", 1)[0] in own for name in loaded)


def _state(path):
    try:
        s = posix.stat(path)
    except OSError:
        return None
    return s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns


def _files(modules):
    """The files of the modules, with what they are.  One that changed while we loaded it counts as changed for good."""
    files = {}
    for module in modules:
        spec = getattr(module, "__spec__", None)
        if spec is not None and getattr(spec, "has_location", False):
            state = _state(spec.origin)
            files[spec.origin] = state if state and state[4] < _STARTED_NS else None
    return files


# --- messages

def _send(control, kind, payload=b""):
    message = (1 + len(payload)).to_bytes(4, "big") + kind + payload
    try:
        while message:
            message = message[posix.write(control, message):]
    except OSError:
        pass        # the host is gone: the next read says so


def _read(control, length):
    data = b""
    while len(data) < length:
        try:
            piece = posix.read(control, length - len(data))
        except OSError:
            piece = b""
        if not piece:
            posix._exit(0)
        data += piece
    return data


def _wait(control, is_forked):
    """The request's environment."""
    # Of a child that a zygote has forked nobody knows yet.
    _send(control, b"R", posix.getpid().to_bytes(4, "big") if is_forked else b"")
    while True:
        message = _read(control, int.from_bytes(_read(control, 4), "big"))
        if message[:1] == b"E":
            return _pairs(message[1:].split(b"\0"))


def _move_up(control):
    """What is opened from here on gets the numbers that it has after a usual start."""
    posix.set_inheritable(control, False)
    if control >= 10:
        return control
    posix.dup2(control, 10 + control, False)
    posix.close(control)
    return 10 + control


# --- rehearsal: what nearly every script will do, without effect, so that its page faults have been had

_REHEARSAL = """
import os, sys
from os import path as name

class A:
    def f(self, a, *b, c=None, **d):
        with a as e, b:
            yield [x for x in d if x not in (1, 2.5, 'z')]

def main(argv):
    try:
        return {k: v for k, v in argv} or f"{argv!r:>10} {1 + 2}"
    except (ValueError, TypeError) as e:
        raise SystemExit(1) from e
    finally:
        while argv and not argv[1:2]:
            del argv[0]

if __name__ == "main":
    for i, j in enumerate(main(sys.argv)):
        print(i, j.k, lambda: 0, end="")
"""


def _rehearse():
    import io
    exec(compile(_REHEARSAL, "", "exec"), {"__name__": ""})
    with io.TextIOWrapper(io.BytesIO(), "utf-8", "strict") as out:
        print("text", 1, 2.5, file=out, flush=True)
    for hook in sys.path_hooks:
        try:
            hook(__file__)
        except ImportError:
            pass


# --- the request

def _steers(name):
    return name in _STEERING or name.startswith("LC_")


def _pairs(items):
    return dict(item.split(b"=", 1) for item in items if b"=" in item)


def _set_environment(environment):
    """Returns False if Python should have been started with this environment."""
    before = {name: value for name, value in os.environ.items() if _steers(name)}
    os.environ.clear()
    os.environb.update(environment)
    # Python sets it itself at its start, when the locale is C.
    if "LC_CTYPE" in before:
        os.environ.setdefault("LC_CTYPE", before["LC_CTYPE"])
    return before == {name: value for name, value in os.environ.items() if _steers(name)}


def _at_exit(function):
    """Registered first, so it runs last."""
    was_loaded = "atexit" in sys.modules
    import atexit
    atexit.register(function)
    # Since 3.10 another module of this name knows the same functions; before, Python keeps a borrowed pointer to it.
    if not was_loaded and sys.version_info >= (3, 10):
        del sys.modules["atexit"]


def _learn(control, before, folder):
    """At the end of the request, tell the host which modules from elsewhere the script has loaded."""
    pid, socket = posix.getpid(), posix.fstat(control).st_ino

    def is_ours():
        try:
            return posix.getpid() == pid and posix.fstat(control).st_ino == socket
        except OSError:
            return False

    def tell():
        # The script may have closed all descriptors, and opened others, or forked.
        if not is_ours():
            return
        own = os.path.join(folder, "")
        names = []
        for name, module in list(sys.modules.items()):
            spec = getattr(module, "__spec__", None)
            if name in before or name in ("__main__", "atexit") or spec is None:
                continue
            if not (getattr(spec, "has_location", False) and str(spec.origin).startswith(own)):
                names.append(name.encode() + b"\0")
        _send(control, b"M", b"".join(names))
    _at_exit(tell)


def _end_quickly(kept):
    """Python takes all modules apart at its end, which costs a child more than its request: every page of them would
    become its own.  Those that the zygote has loaded are kept as they are, see _forget()."""
    had_gc = "gc" in sys.modules
    import gc
    # It refers to itself, and the collector does not look at what is frozen: it stays whatever happens.
    kept.update(sys.modules)
    kept[""] = kept
    del kept["__main__"]
    gc.collect()
    if hasattr(gc, "freeze"):
        gc.freeze()
    else:
        kept.clear()    # before Python 3.7 nothing can be hidden from the collector
    if not had_gc:
        del sys.modules["gc"]


def _forget(kept):
    """At the end, after all that modules have registered for it: all others are ended as usual."""
    for name, module in kept.items():
        if sys.modules.get(name) is module and name not in ("sys", "builtins"):
            del sys.modules[name]


def _renew_main():
    """What the script puts into __main__ is ended as usual, so that must not be frozen."""
    old = sys.modules["__main__"]
    new = type(old)("__main__")
    new.__dict__.clear()
    new.__dict__.update((name, {} if name == "__annotations__" else value) for name, value in old.__dict__.items())
    sys.modules["__main__"] = new


def _become_zygote(files, kept):
    """Returns in the children only: the preloaded library has its own fork()."""
    _end_quickly(kept)
    _fork(files)
    _renew_main()


def _fork(files):
    posix.putenv(b"FCGI_HOST_FORK", os.fsencode("\n".join(files)))
    posix.fork()
    posix.unsetenv(b"FCGI_HOST_FORK")
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


# --- a usual start, with the same descriptors

def _strings(what):
    """The kernel's copy: `cmdline` or `environ` of our own start."""
    with open("/proc/self/" + what, "rb") as file:
        return file.read().split(b"\0")[:-1]


def _started_path():
    """The path that was given to execve(): for a script its own, not the interpreter's."""
    at_execfn, size = 31, 8 if sys.maxsize > 2**32 else 4
    with open("/proc/self/auxv", "rb") as file:
        words = memoryview(file.read()).cast("Q" if size == 8 else "I").tolist()
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        memory.seek(dict(zip(words[::2], words[1::2]))[at_execfn])
        return memory.read(4096).split(b"\0")[0]


def _start_anew(environment):
    command = _strings("cmdline")
    try:
        path = _started_path()
        # The kernel has put the interpreter before a script.
        posix.execve(path, command[command.index(path):] if path in command else command, environment)
    except (OSError, KeyError):
        posix.execve(sys.executable or "/proc/self/exe", command, environment)


def _run():
    options = _take_back_hook()
    is_zygote = "ZYGOTE" in options
    control = int(options.get("ZYGOTE") or options.get("PARK") or -1)
    # This module's place belongs to the site's own, if there is one.
    del sys.modules["sitecustomize"]
    try:
        import sitecustomize    # noqa: F401
        has_own = True
    except ImportError:
        has_own = False
    if control < 0:
        return has_own
    posix.set_inheritable(control, False)

    before = set(sys.modules)
    loaded, files, kept, folder = [], {}, {}, _script_folder()
    folder_state = _state(folder)
    if options.get("PRELOAD"):
        if is_zygote:
            _at_exit(lambda: _forget(kept))
        _load(options["PRELOAD"].split(":"), "LEARN" in options)
        loaded = [name for name in sys.modules if name not in before]
        if _hides_own(folder, loaded):
            posix.set_inheritable(control, True)
            start = _pairs(_strings("environ"))
            del start[b"FCGI_HOST_PRELOAD"]
            _start_anew(start)
        files = _files([sys.modules[name] for name in loaded])
    if is_zygote:
        _become_zygote(files, kept)
    control = _move_up(control)
    _rehearse()
    environment = _wait(control, is_zygote)
    is_fit = _set_environment(environment)
    if not is_fit or any(state is None or _state(path) != state for path, state in files.items()):
        _start_anew(environment)
    if loaded and _state(folder) != folder_state and _hides_own(folder, loaded):
        _start_anew(environment)
    if "LEARN" in options:
        _learn(control, before, folder)
    else:
        posix.close(control)
    return has_own


if not _run():
    # What Python takes for "there is none".
    raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
