"""Web servers in front of a host, each with a folder, port and process of its own."""
import os
import re
import signal
import subprocess

from . import http, paths, proc, wire
from .host import make_folder
from .wait import connects, free_port, wait_until

REPO = paths.REPO
MODULES = "/usr/lib/apache2/modules"


class Front:
    """What the tests need to know about a way in."""
    name = ""
    is_wire = False
    streams_output = True       # the client sees output as it arrives
    sees_client_leave = True    # the host is told at once when the client goes
    streams_input = True        # the host gets a body before it is whole

    def __init__(self, folder, host):
        self.folder, self.host = folder, host

    def request(self, path="/", method="GET", body=None, headers=(), **more):
        raise NotImplementedError

    def get(self, path="/", **more):
        return self.request(path, "GET", **more)

    def post(self, path="/", body=b"", **more):
        return self.request(path, "POST", body, **more)

    def stop(self):
        pass


class Wire(Front):
    name = "wire"
    is_wire = True

    def request(self, path="/", method="GET", body=None, headers=(), timeout=20, chunked=False):
        return wire.request(self.host.address, path, method, body, headers, timeout=timeout, chunked=chunked)


class WebServer(Front):
    def __init__(self, folder, host, extra="", **options):
        super().__init__(make_folder(folder), host)
        self.port = free_port()
        self.extra = extra
        self.options = options
        self.error_log = self.folder / "error.log"
        self.document_root = make_folder(self.folder.parent / "www")
        self.output = open(self.folder / "output", "wb")
        self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output,
                                        cwd=str(self.folder), start_new_session=True)

        def listens():
            assert self.process.poll() is None, f"{self.name} did not start:\n{self.said()}"
            return connects(("127.0.0.1", self.port))
        try:
            wait_until(listens, 20, f"{self.name} listening")
        except BaseException:
            self.stop()
            raise

    def said(self):
        log = self.error_log.read_text(errors="replace") if self.error_log.exists() else ""
        return (self.folder / "output").read_text(errors="replace") + log

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.port}{path}"

    def request(self, path="/", method="GET", body=None, headers=(), **more):
        return http.request(self.port, path, method, body, headers, **more)

    def curl(self, path, *arguments, **more):
        return http.curl(self.url(path), *arguments, **more)

    def backend(self):
        address = self.host.address
        return f"unix:{address}" if isinstance(address, str) else f"{address[0]}:{address[1]}"

    stop_signal = signal.SIGTERM

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(self.stop_signal)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                for pid in proc.descendants(self.process.pid):
                    proc.kill_quietly(pid)
                self.process.kill()
                self.process.wait(5)
        wait_until(lambda: not [p for p in proc.pids() if (proc.stat(p) or (0, 0, 0))[2] == self.process.pid and proc.is_alive(p)],
                   10, f"the end of every process of {self.name}")
        self.output.close()


class Nginx(WebServer):
    is_kept = True
    is_buffered = True

    def command(self):
        conf = self.folder / "nginx.conf"
        conf.write_text(self.text())
        return ["/usr/sbin/nginx", "-p", str(self.folder), "-c", str(conf), "-e", str(self.error_log)]

    def shipped(self, name):
        """A file of the project's nginx/ folder, copied to where `include fcgi-host/…` finds it.
        Only the socket (the one thing to adapt) and the read timeout differ."""
        target = make_folder(self.folder / "fcgi-host")
        for source in (REPO / "nginx").iterdir():
            text = source.read_text()
            text = text.replace("unix:/run/fcgi-host/fcgi-host.sock", self.backend())
            if "read_timeout" in self.options:
                text = re.sub(r"fastcgi_read_timeout \w+;", f"fastcgi_read_timeout {self.options['read_timeout']};", text)
            (target / source.name).write_text(text)
        return f"include fcgi-host/{name};"

    def upstream(self):
        return self.shipped("fcgi-host-upstream.conf")

    def location(self):
        return self.shipped("fcgi-host.conf" if self.is_buffered else "fcgi-host-streaming.conf")

    def text(self):
        temp = "\n".join(f"    {kind}_temp_path {self.folder}/{kind};"
                         for kind in ("client_body", "fastcgi", "proxy", "uwsgi", "scgi"))
        return f"""
daemon off;
user www-data;
worker_processes 1;
worker_rlimit_nofile 16384;
pid {self.folder}/nginx.pid;
error_log {self.error_log} info;
events {{ worker_connections 7000; }}
http {{
    access_log off;
    default_type application/octet-stream;
    types {{ }}
{temp}
    {self.options.get('http', '')}
    {self.upstream()}
    server {{
        listen 127.0.0.1:{self.port} backlog=1024;
        root {self.document_root};
        location / {{
            {self.location()}
            {self.extra}
        }}
        {self.options.get('server', '')}
    }}
}}
"""


class NginxKept(Nginx):
    name = "nginx-kept"
    streams_output = False
    streams_input = False


class NginxStreaming(Nginx):
    name = "nginx-streaming"
    is_buffered = False


class NginxPlain(Nginx):
    """Debian's own fastcgi_params, a connection for every request."""
    name = "nginx-plain"
    is_kept = False
    streams_output = False
    streams_input = False

    def upstream(self):
        return f"upstream fcgi_host {{ server {self.backend()}; }}"

    def location(self):
        lines = ["fastcgi_pass fcgi_host;", "include /etc/nginx/fastcgi_params;", "client_max_body_size 0;",
                 f"fastcgi_read_timeout {self.options.get('read_timeout', '60s')};"]
        if not self.is_buffered:
            lines += ["fastcgi_buffering off;", "fastcgi_request_buffering off;"]
        return " ".join(lines)


class NginxPlainStreaming(NginxPlain):
    name = "nginx-plain-streaming"
    is_buffered = False
    streams_output = True
    streams_input = True


class Apache(WebServer):
    modules = ()

    def command(self):
        conf = self.folder / "apache.conf"
        conf.write_text(self.text())
        make_folder(self.folder / "run")
        os.chown(self.folder / "run", *_www_data())
        return ["/usr/sbin/apache2", "-d", str(self.folder), "-f", str(conf), "-D", "FOREGROUND"]

    def shipped(self, name, *changes):
        """A file of the project's apache/ folder.  A change with {} is made where options have a timeout."""
        text = (REPO / "apache" / name).read_text()
        for old, new in changes:
            assert old in text, f"{name} has no {old} any more"
            if "{}" not in new or "timeout" in self.options:
                text = text.replace(old, new.format(self.options.get("timeout")))
        copy = self.folder / name
        copy.write_text(text)
        return f"Include {copy}"

    def site(self):
        raise NotImplementedError

    def text(self):
        common = ("mpm_event", "authn_core", "authn_file", "auth_basic", "authz_core", "authz_user", "authz_host", "env", "setenvif", "headers", "alias", "dir", "mime")
        loads = "\n".join(f"LoadModule {m}_module {MODULES}/mod_{m}.so" for m in (*common, *self.modules))
        return f"""
{loads}
ServerName localhost
Listen 127.0.0.1:{self.port}
User www-data
Group www-data
PidFile {self.folder}/apache.pid
DefaultRuntimeDir {self.folder}/run
ErrorLog {self.error_log}
LogLevel info
Timeout {self.options.get('timeout', 60)}
TypesConfig /etc/mime.types
DocumentRoot {self.document_root}
StartServers 1
ServerLimit 4
ThreadsPerChild 32
MaxRequestWorkers 128
GracefulShutdownTimeout 5
{self.site()}
<Location "/">
    CGIPassAuth On
</Location>
{self.extra}
"""


class ModProxyFcgi(Apache):
    name = "mod_proxy_fcgi"
    modules = ("proxy", "proxy_fcgi")
    sees_client_leave = False

    def site(self):
        address = self.host.address
        if isinstance(address, str):
            return f"Define FCGI_HOST_SOCKET {address}\n" + self.shipped("mod_proxy_fcgi.conf", ("timeout=90", "timeout={}"))
        target = f"fcgi://{address[0]}:{address[1]}"
        return self.shipped("mod_proxy_fcgi.conf", ("unix:${FCGI_HOST_SOCKET}|fcgi://localhost", target))


class ModFcgid(Apache):
    name = "mod_fcgid"
    modules = ("fcgid",)
    sees_client_leave = False
    streams_output = False
    streams_input = False

    def site(self):
        initial = "\n".join(f'FcgidInitialEnv {n} "{v}"' for n, v in self.host.environ().items() if n != "PATH")
        return f"""
FcgidIPCDir {self.folder}/run
FcgidProcessTableFile {self.folder}/run/shm
{initial}
Define FCGI_HOST_PROGRAM {self.host.program}
Define FCGI_HOST_CONFIG {self.host.config}
{self.shipped("mod_fcgid.conf", ("FcgidIOTimeout 90", "FcgidIOTimeout {}"))}
{self.shipped("mod_fcgid-server.conf")}
{self.options.get("after", "")}
"""


class Lighttpd(WebServer):
    name = "lighttpd"
    sees_client_leave = False
    stop_signal = signal.SIGINT

    def command(self):
        conf = self.folder / "lighttpd.conf"
        uploads = make_folder(self.folder / "uploads")
        conf.write_text(f"""
server.modules = ("mod_fastcgi")
server.document-root = "{self.document_root}"
server.bind = "127.0.0.1"
server.port = {self.port}
server.errorlog = "{self.error_log}"
server.upload-dirs = ("{uploads}")
server.stream-response-body = 1
fastcgi.server = ("/" => (("socket" => "{self.host.address}", "check-local" => "disable", "fix-root-scriptname" => "enable")))
{self.extra}
""")
        return ["/usr/sbin/lighttpd", "-D", "-f", str(conf)]


def _www_data():
    import pwd
    user = pwd.getpwnam("www-data")
    return user.pw_uid, user.pw_gid


ALL = {f.name: f for f in (Wire, NginxKept, NginxStreaming, NginxPlain, NginxPlainStreaming, ModProxyFcgi, ModFcgid, Lighttpd)}
USUAL = ("wire", "nginx-kept", "nginx-streaming", "mod_proxy_fcgi", "mod_fcgid")
WEB = USUAL[1:]