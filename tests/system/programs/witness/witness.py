#!/usr/bin/python3
"""A CGI script that prints all that it can see of its process; imports as little as it can, to see the rest."""
before = list(__import__("sys").modules)
import posix
import sys


def show(name, *values):
    print(name, *values)


def read(path):
    fd = posix.open(path, posix.O_RDONLY)
    try:
        data = b""
        while True:
            piece = posix.read(fd, 65536)
            if not piece:
                return data
            data += piece
    finally:
        posix.close(fd)


def interpreter():
    show("modules", before)
    show("argv", sys.argv, getattr(sys, "orig_argv", None))
    show("main", [(k, type(v).__name__) for k, v in globals().items()])
    show("main", __name__, __file__, __spec__, type(__loader__).__name__, vars(__loader__), __builtins__ is sys.modules["builtins"])
    show("path", sys.path)
    show("hooks", [str(h).split(" at ")[0] for h in sys.path_hooks], [str(f).split(" at ")[0] for f in sys.meta_path])
    show("importer cache", sorted(sys.path_importer_cache))
    show("flags", sys.flags, sys.warnoptions, sys._xoptions, sys.dont_write_bytecode)
    show("executable", sys.executable, sys.prefix)
    show("limits", sys.getrecursionlimit(), sys.getswitchinterval(), sys.gettrace(), sys.getprofile())
    for name in ("stdin", "stdout", "stderr"):
        f = getattr(sys, name)
        show(name, f.fileno(), f.mode, f.name, f.encoding, f.errors, f.line_buffering, f.isatty(), f.newlines)
        show(name, getattr(sys, f"__{name}__") is f, type(f.buffer).__name__, f.buffer.closed)
    show("hooks of the end", sys.excepthook is sys.__excepthook__, hasattr(sys, "unraisablehook") and sys.unraisablehook is sys.__unraisablehook__,
         sys.displayhook is sys.__displayhook__)
    show("frames", sys._getframe(1).f_code.co_name, sys._getframe(1).f_back)
    import atexit
    import gc
    show("atexit", atexit._ncallbacks())
    show("gc", gc.get_threshold(), gc.isenabled(), len(gc.callbacks), gc.garbage)
    import locale
    import signal
    import time
    import warnings
    show("locale", locale.setlocale(locale.LC_ALL), sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())
    show("signals", [str(signal.getsignal(n)) for n in range(1, 65) if n not in (32, 33)], signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    show("wakeup", signal.set_wakeup_fd(-1), [signal.getitimer(n) for n in range(3)])
    show("time zone", time.tzname, time.timezone)
    show("warnings", warnings.filters)
    import threading
    show("threads", [t.name for t in threading.enumerate()], threading.current_thread() is threading.main_thread(),
         threading.get_ident() == threading.main_thread().ident)


def process():
    import os
    show("environment", list(posix.environ.items()))
    show("environment", list(os.environ.items()), os.environ._data is posix.environ)
    show("cwd", posix.getcwd())
    mask = posix.umask(0)
    posix.umask(mask)
    show("umask", oct(mask))
    show("ids", posix.getresuid(), posix.getresgid(), posix.getgroups())
    show("group", posix.getpgrp() == posix.getpid(), posix.getsid(0) == posix.getpid(), posix.getpriority(0, 0))
    show("scheduler", posix.sched_getscheduler(0), posix.sched_getaffinity(0))
    show("limits", read("/proc/self/limits"))
    show("command", read("/proc/self/cmdline"), read("/proc/self/comm"), read("/proc/self/oom_score_adj"))
    wanted = ("Umask", "Uid", "Gid", "Groups", "Threads", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "CapInh",
              "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")
    for line in read("/proc/self/status").decode().splitlines():
        if line.partition(":")[0] in wanted:
            show("status", line)
    descriptors()


def descriptors():
    import ctypes
    for fd in range(1024):
        try:
            s = posix.fstat(fd)
        except OSError:
            continue
        target = posix.readlink(f"/proc/self/fd/{fd}")
        flags = [line for line in read(f"/proc/self/fdinfo/{fd}").decode().splitlines() if line.startswith(("flags", "pos"))]
        show("descriptor", fd, oct(s.st_mode), target.partition(":")[0] if target.startswith(("pipe:", "socket:")) else target,
             flags, posix.get_inheritable(fd))
    dies_with_parent = ctypes.c_int(-1)
    libc = ctypes.CDLL(None)
    libc.prctl(2, ctypes.byref(dies_with_parent), 0, 0, 0)
    show("prctl", dies_with_parent.value, [libc.prctl(n, 0, 0, 0, 0) for n in (3, 7, 27, 30, 39)])
    show("alarm", libc.alarm(0))
    import os
    environ = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
    count = 0
    while environ[count]:
        count += 1
    show("C's environment", [environ[i] for i in range(count)])


def the_end():
    import atexit
    import traceback
    atexit.register(lambda: print("at exit, registered first", flush=True))
    atexit.register(lambda: print("at exit, registered last", flush=True))
    traceback.print_stack(file=sys.stdout)
    print("no end of line at the end", end="")
    sys.stdout.flush()
    print("stderr says so", file=sys.stderr)


class Kept:
    def __del__(self):
        print("an object's end")


kept = Kept()
print("Content-Type: text/plain\n")
interpreter()
process()
show("stdin", sys.stdin.read())
the_end()
END = sys.argv[1:] or posix.environ.get(b"QUERY_STRING", b"").decode()
if END == "raise":
    def inner(value):
        return {}[value]
    inner(7)
elif END == "text":
    sys.exit("a text")
elif END == "exit":
    sys.exit(7)
elif END == "syntax":
    exec("a b")
elif END == "_exit":
    posix._exit(5)
elif END == "signal":
    posix.kill(posix.getpid(), 10)
elif END == "interrupt":
    posix.kill(posix.getpid(), 2)
    sys.stdin.read()
