"""The servers that web_bench.py measures, each with its CPU to itself, and nginx before them."""
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
WORKERS = 4
NGINX_BEGIN = """\
worker_processes auto;
daemon off;
error_log {folder}/nginx-error.log warn;
pid {folder}/nginx.pid;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/nginx-body;
    fastcgi_temp_path {folder}/nginx-fastcgi;
    proxy_temp_path {folder}/nginx-proxy;
    scgi_temp_path {folder}/nginx-scgi;
    uwsgi_temp_path {folder}/nginx-uwsgi;
    keepalive_requests 1000000;
    upstream fcgi_host {{ server unix:{folder}/host.sock; keepalive 32; }}
"""
NGINX = NGINX_BEGIN + """\
    upstream spawned_kept {{ server unix:{folder}/spawned-kept.sock; keepalive 32; }}
    server {{
        listen 127.0.0.1:{port};
        # As shipped: kept connections.
        location /per-request {{ include fcgi-host/fcgi-host.conf; }}
        location /persistent {{ include fcgi-host/fcgi-host.conf; }}
        # The same variables and buffers.
        include fcgi-host/fcgi-host.params;
        fastcgi_buffer_size 64k;
        fastcgi_buffers 8 64k;
        fastcgi_busy_buffers_size 128k;
        location /fcgiwrap {{
            include fcgi-host/fcgi-host.params;
            fastcgi_param SCRIPT_FILENAME {hello};
            fastcgi_pass unix:{folder}/fcgiwrap.sock;
        }}
        location /spawned {{ fastcgi_pass unix:{folder}/spawned.sock; }}
        location /spawned-kept {{
            fastcgi_pass spawned_kept;
            fastcgi_keep_conn on;
        }}
    }}
}}
"""
HOST = """\
listen: {{address: "unix:{folder}/host.sock", mode: "0666"}}
log: {{file: "{folder}/host.log", level: info}}
handlers:
  per-request: {{command: ["{hello}"], protocol: cgi, process: per-request, workers: {{max: 64}}}}
  persistent: {{command: ["{hello}"], protocol: fastcgi, process: persistent, workers: {{min: {workers}, max: {workers}}}}}
  source: {{command: ["{body}", source, "{down}"], process: per-request}}
  sink: {{command: ["{body}", sink], process: per-request, body: {{max: 2GiB}}}}
routes:
  - {{path: /per-request, handler: per-request}}
  - {{path: /persistent, handler: persistent}}
  - {{path: /source, handler: source}}
  - {{path: /sink, handler: sink}}
"""


# CPU of a service: what it runs, and all that it starts.

def find_cgroup_root():
    with open("/proc/mounts") as mounts:
        for line in mounts:
            _, path, kind = line.split()[:3]
            if kind == "cgroup2" and os.access(path, os.W_OK):
                return path
    return None


class Service:
    """A server under test.  In a cgroup of its own where that is possible, since
    /proc counts in hundredths of a second."""
    root = find_cgroup_root()

    def __init__(self, name):
        self.pids, self.processes, self.group = [], [], None
        if self.root:
            self.group = os.path.join(self.root, f"web-bench-{os.getpid()}-{name}")
            os.mkdir(self.group)

    def _enter(self):
        if self.group:
            with open(os.path.join(self.group, "cgroup.procs"), "w") as file:
                file.write("0")

    def start(self, *command, **more):
        process = subprocess.Popen(command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, preexec_fn=self._enter, **more)
        self.processes.append(process)
        self.pids.append(process.pid)
        return process

    def cpu_us(self):
        if self.group:
            with open(os.path.join(self.group, "cpu.stat")) as file:
                return int(re.search(r"usage_usec (\d+)", file.read()).group(1))
        return sum(sum(map(int, stat_of(pid)[11:15])) for pid in self.pids) * 1e6 / os.sysconf("SC_CLK_TCK")

    def living(self):
        if self.group:
            with open(os.path.join(self.group, "cgroup.procs")) as file:
                return list(map(int, file.read().split()))
        return [pid for pid in self.pids if os.path.exists(f"/proc/{pid}")]

    def stop(self):
        for pid in self.living():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        for process in self.processes:
            process.wait()
        wait_until(lambda: not self.living(), "the end of a service")
        if self.group:
            os.rmdir(self.group)


def stat_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return list(map(int, file.read().split()))


def run_time_us(pid):
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0]) / 1000


def wake_ups(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/status") as file:
            total += sum(map(int, re.findall(r"ctxt_switches:\s*(\d+)", file.read())))
    return total


def try_to(call, *args):
    try:
        call(*args)
    except OSError:
        return False
    return True


def wait_until(is_so, what, seconds=10):
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            sys.exit(f"web_bench: waited {seconds} s for {what}")
        time.sleep(0.01)


def connects(path):
    with socket.socket(socket.AF_UNIX) as probe:
        return try_to(probe.connect, path)


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **{"env": ENVIRONMENT, **more})
    if done.returncode != 0:
        sys.exit(f"web_bench: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


class Setup:
    """All servers, and nginx before them."""

    def __init__(self, options, folder):
        tool = {name: os.path.join(options.build, path) for name, path in (
            ("host", "fcgi-host/fcgi-host"), ("hello", "handlers/c/hello"), ("raw_loop", "tests/bench/raw_loop"),
            ("body", "tests/bench/body_bench"))}
        for path in tool.values():
            if not os.access(path, os.X_OK):
                sys.exit(f"web_bench: {path} is not there: give the folder of the build with --build")
        self.tool, self.folder = tool, folder
        self.words = {"folder": folder, "hello": tool["hello"], "body": tool["body"], "down": options.down_bytes,
                      "workers": WORKERS, "port": free_port()}
        self.services = {}

    def start(self):
        os.chmod(self.folder, 0o755)
        os.symlink(os.path.join(SOURCE, "nginx"), os.path.join(self.folder, "fcgi-host"))
        self.write("nginx.conf", NGINX)
        self.write("host.yaml", HOST)
        run(self.tool["host"], "check", "-c", self.path("host.yaml"))
        self.serve("host", self.tool["host"], "serve", "-c", self.path("host.yaml"))
        self.serve("fcgiwrap", "fcgiwrap", "-c", "16", "-s", "unix:" + self.path("fcgiwrap.sock"))
        os.chmod(self.path("fcgiwrap.sock"), 0o666)
        self.services["fcgiwrap"].pids += children_of(self.services["fcgiwrap"].pids[0])
        for name in ("spawned", "spawned-kept"):
            self.spawn(name)
        self.relay = self.services["host"].pids[0]
        self.spawners = children_of(self.relay)
        nginx = self.services["nginx"] = Service("nginx")
        nginx.start("nginx", "-e", self.path("nginx-error.log"), "-c", self.path("nginx.conf"))
        for what in ("per-request", "persistent", "fcgiwrap", "spawned", "spawned-kept"):
            wait_until(lambda: b"Hello from C" in self.get(what), f"an answer from {what}")

    def close(self):
        for service in self.services.values():
            service.stop()

    def path(self, name):
        return os.path.join(self.folder, name)

    def url(self, what):
        return f"http://127.0.0.1:{self.words['port']}/{what}"

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text.format(**self.words))

    def serve(self, name, *command):
        self.services[name] = Service(name)
        self.services[name].start(*command)
        wait_until(lambda: connects(self.path(name + ".sock")), f"{name} to listen")

    def spawn(self, name):
        """spawn-fcgi ends once it has started the programs."""
        service = self.services[name] = Service(name)
        pid_file = self.path(name + ".pids")
        service.start("spawn-fcgi", "-s", self.path(name + ".sock"), "-M", "0666", "-F", str(WORKERS), "-P", pid_file,
                      "--", self.tool["hello"], stdout=subprocess.DEVNULL).wait()
        with open(pid_file) as file:
            service.pids = list(map(int, file.read().split()))

    def get(self, what):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.words["port"]), 5) as client:
            client.sendall(request_for(what, "close"))
            return b"".join(iter(lambda: client.recv(65536), b""))
        return b""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def request_for(what, connection="keep-alive"):
    return f"GET /{what} HTTP/1.1\r\nHost: localhost\r\nConnection: {connection}\r\n\r\n".encode()
