"""What README.md and doc/ show works as it is written."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from lib import paths, proc
from lib.wait import free_port, wait_until

REPO = paths.REPO
README = (REPO / "README.md").read_text()
PAGES = [REPO / "README.md", *sorted((REPO / "doc").glob("*.md")), REPO / "handlers" / "README.md", REPO / "CONTRIBUTING.md"]
MODULES = "/usr/lib/apache2/modules"


def blocks(language, pages=PAGES):
    return [pytest.param(text, id=f"{page.name}-{i}") for page in pages
            for i, text in enumerate(re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S))]


# --- every block by itself

@pytest.mark.parametrize("text", blocks("yaml"))
def test_every_yaml_block_is_a_good_configuration(make_host, text):
    host = make_host({}, start=False)
    host.write_text(text)
    done = host.command("check", "-c", str(host.config))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", blocks("nginx"))
def test_every_nginx_block_is_one_that_nginx_takes(folder, text):
    (folder / "fcgi-host").symlink_to(REPO / "nginx")
    (folder / "fastcgi_params").symlink_to("/etc/nginx/fastcgi_params")
    is_upstream = "upstream" in text
    conf = folder / "nginx.conf"
    conf.write_text(f"""
pid {folder}/pid; error_log {folder}/error.log;
events {{ }}
http {{
    access_log off;
    {text if is_upstream else 'include fcgi-host/fcgi-host-upstream.conf;'}
    server {{ listen 127.0.0.1:{free_port()}; {'' if is_upstream else text} }}
}}
""")
    done = subprocess.run(["/usr/sbin/nginx", "-t", "-p", str(folder), "-e", f"{folder}/error.log", "-c", str(conf)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def apache_takes(folder, text, begin="<VirtualHost *:80>", end="</VirtualHost>"):
    modules = "\n".join(f"LoadModule {m}_module {MODULES}/mod_{m}.so" for m in ("mpm_event", "authz_core", "alias", "proxy", "proxy_fcgi", "fcgid"))
    conf = folder / "apache.conf"
    program = folder / "fcgi-host"
    shutil.copy("/bin/true", program)       # FcgidWrapper looks whether it is there
    conf.write_text(f"""
{modules}
ServerName localhost
PidFile {folder}/pid
ErrorLog {folder}/error.log
DefaultRuntimeDir {folder}
{begin}
{text.replace('/usr/share/fcgi-host/apache', str(REPO / 'apache')).replace('/usr/sbin/fcgi-host', str(program))}
{end}
""")
    done = subprocess.run(["/usr/sbin/apache2", "-t", "-d", str(folder), "-f", str(conf)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", blocks("apache"))
def test_every_apache_block_is_one_that_apache_takes(folder, text):
    apache_takes(folder, text)


@pytest.mark.parametrize("name", ["mod_proxy_fcgi.conf", "mod_fcgid.conf", "mod_fcgid-server.conf"])
@pytest.mark.parametrize("place", ["in a VirtualHost", "outside"])
def test_every_shipped_apache_file_is_taken_without_a_define(folder, name, place):
    text = (REPO / "apache" / name).read_text().replace("Define FCGI_HOST_PROGRAM /usr/local/sbin/fcgi-host", "Define FCGI_HOST_PROGRAM /bin/true")
    if place == "outside" or "server" in name:
        apache_takes(folder, text, "", "")
    else:
        apache_takes(folder, text)


def test_the_table_of_commands_is_the_program_s_own(make_host):
    usage = dict(re.findall(r"^  fcgi-host (\w+) (.*)$", make_host({}, start=False).command("--help").stdout.decode(), re.M))
    table = dict(re.findall(r"^\| `fcgi-host (\w+) ([^`]*)`", README, re.M))
    assert set(table) == set(usage)
    for name, shown in table.items():
        for option in re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", shown):
            assert option in usage[name], (name, option)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert "://" in target or (page.parent / target).exists(), target


def test_every_source_file_that_the_architecture_names_is_there():
    text = (REPO / "doc" / "ARCHITECTURE.md").read_text()
    names = set(re.findall(r"`(\w+/\w+\.[ch])`", text))
    assert len(names) > 30
    assert not [name for name in names if not (REPO / "fcgi-host" / name).exists()]


# --- the first own route, from the installation on

class Scratch:
    """The file system that README writes to, below a folder: `/etc/x` becomes FOLDER/etc/x."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()

    def path(self, path):
        return self.folder / path.lstrip("/")

    def below(self, text, tops="usr|etc|var|srv|run"):
        return re.sub(rf"(?<![\w./-])/({tops})(?=/|\b)", rf"{self.folder}/\1", text)

    def write(self, path, text, mode=0o644):
        target = self.path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)

    def run(self, command, cwd="/", **environment):
        done = subprocess.run(["bash", "-ec", self.below(command)], cwd=cwd, env=self.environment(**environment), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
        assert done.returncode == 0, f"$ {command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    def environment(self, **more):
        return {"PATH": f"{self.folder}/usr/sbin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                "MAKEFLAGS": "-j2", "CFLAGS": "-O1", "FCGI_HOST_TEST": str(self.folder), **more}

    def start(self, command, **environment):
        with open(self.folder / "output", "ab") as output:
            return subprocess.Popen(["bash", "-c", "exec " + self.below(command)], cwd="/", env=self.environment(**environment),
                                    stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)

    def ask(self):
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://127.0.0.1:{self.port}/app/date", timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()
        except OSError as e:
            return 0, str(e)

    def said(self):
        logs = [self.folder / "output", *self.path("/var/log").rglob("error.log")]
        return "\n".join(log.read_text(errors="replace") for log in logs if log.exists())[-4000:]


def section(title):
    return re.search(rf"^## {title}\n(.*?)^## ", README, re.M | re.S).group(1)


def command_lines(text):
    return re.findall(r"^    (\S.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)


def copy_source(target):
    listed = subprocess.run(["git", "-c", "safe.directory=*", "-C", str(REPO), "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True)
    if listed.returncode != 0:
        shutil.copytree(REPO, target, ignore=shutil.ignore_patterns("build", "build-*", ".git", "__pycache__", "*.o", "*.a"))
        return
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (REPO / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPO / name, target / name)


def end(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)
            raise


def tells_the_time(scratch, server):
    def answers():
        assert server.poll() is None, "the web server has ended"
        status, text = scratch.ask()
        return (status, text) if status else None
    try:
        status, text = wait_until(answers, 20)
    except AssertionError:
        raise AssertionError(f"no answer; the logs have:\n{scratch.said()}") from None
    assert status == 200 and time.strftime("%Y") in text and ":" in text, (status, text, scratch.said())


def prepare_nginx(scratch, nginx_blocks):
    """Debian's own configuration with the two blocks at the places that README names."""
    shutil.copytree("/etc/nginx", scratch.path("/etc/nginx"), dirs_exist_ok=True)
    for path in scratch.path("/etc/nginx").rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.write_text(scratch.below(path.read_text(), "etc|var|srv|run"))
    scratch.path("/var/log/nginx").mkdir(parents=True)
    in_http, in_server = nginx_blocks
    scratch.write("/etc/nginx/conf.d/fcgi-host.conf", in_http)
    site = scratch.path("/etc/nginx/sites-enabled/default")
    text = re.sub(r"^\s*listen .*\n", "", site.read_text(), flags=re.M)
    site.unlink()
    site.write_text(text.replace("server {", f"server {{\n    listen 127.0.0.1:{scratch.port};\n{in_server}", 1))
    temp = "".join(f"{kind}_temp_path {scratch.folder}/temp-{kind};\n" for kind in ("client_body", "fastcgi", "proxy", "uwsgi", "scgi"))
    scratch.write("/etc/nginx/conf.d/temp.conf", temp)


def prepare_apache(scratch, block):
    source = pathlib.Path("/etc/apache2")
    shutil.rmtree(scratch.path("/etc/apache2"), ignore_errors=True)
    shutil.copytree(source, scratch.path("/etc/apache2"), symlinks=True)
    shutil.copy("/etc/mime.types", scratch.path("/etc/mime.types"))
    for path in scratch.path("/etc/apache2").rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.write_text(scratch.below(path.read_text(errors="surrogateescape"), "etc|var|srv|run"), errors="surrogateescape")
    for folder in ("/var/log/apache2", "/var/lock/apache2", "/var/run/apache2", "/var/lib/apache2", "/var/www/html"):
        scratch.path(folder).mkdir(parents=True, exist_ok=True)
    scratch.write("/etc/apache2/ports.conf", f"Listen 127.0.0.1:{scratch.port}\nServerName localhost\n")
    for enabled in scratch.path("/etc/apache2/sites-enabled").glob("*"):
        enabled.unlink()
    scratch.write("/etc/apache2/sites-enabled/000-default.conf",
                  f"<VirtualHost *:{scratch.port}>\nDocumentRoot {scratch.path('/var/www/html')}\n{scratch.below(block)}</VirtualHost>\n")
    ipc = scratch.path("/run/fcgid")        # not shared with another Apache of this machine
    ipc.mkdir(exist_ok=True)
    shutil.chown(ipc, "www-data", "www-data")
    fcgid = scratch.path("/etc/apache2/mods-available/fcgid.conf")
    fcgid.write_text(fcgid.read_text() + f"\nFcgidIPCDir {ipc}\nFcgidProcessTableFile {ipc}/shm\n")


APACHE_START = ". /etc/apache2/envvars; exec /usr/sbin/apache2 -d {0}/etc/apache2 -f {0}/etc/apache2/apache2.conf -D FOREGROUND"


@pytest.mark.limit(300)
@pytest.mark.skipif(os.geteuid() != 0, reason="README's commands need root")
def test_the_first_own_route_step_by_step(folder):
    text = section("A first route of your own")
    scratch = Scratch(folder)
    source = folder / "source"
    copy_source(source)
    lines = command_lines(text)
    (script,) = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
    (yaml,) = re.findall(r"^```yaml\n(.*?)^```", text, re.M | re.S)
    nginx_blocks = re.findall(r"^```nginx\n(.*?)^```", text, re.M | re.S)
    apache_blocks = re.findall(r"^```apache\n(.*?)^```", text, re.M | re.S)
    assert len(nginx_blocks) == 2 and len(apache_blocks) == 2

    # Install.
    packages = lines.pop(0).split()
    assert packages[:2] == ["apt-get", "install"]
    subprocess.run(["dpkg-query", "-s", *packages[2:]], stdout=subprocess.DEVNULL, check=True)
    while not lines[0].startswith("fcgi-host"):
        scratch.run(lines.pop(0), cwd=source)
    for shipped in scratch.path("/usr/share/fcgi-host").rglob("*.conf"):
        shipped.write_text(scratch.below(shipped.read_text(), "run"))
    scratch.write("/srv/functions/date.sh", script, 0o755)
    scratch.write("/etc/fcgi-host/fcgi-host.yaml", scratch.below(yaml))

    # Check, serve, call.
    assert "fine" in scratch.run(lines.pop(0))
    assert lines[0] == "fcgi-host serve"
    host = scratch.start(lines.pop(0))
    running = []
    try:
        wait_until(scratch.path("/run/fcgi-host/fcgi-host.sock").exists, 10, "the host's socket")
        assert time.strftime("%Y") in scratch.run(lines.pop(0))

        # nginx.
        prepare_nginx(scratch, [scratch.below(b) for b in nginx_blocks])
        scratch.run(lines.pop(0))
        running.append(scratch.start("nginx -e /var/log/nginx/error.log -c /etc/nginx/nginx.conf -g 'daemon off;'"))
        tells_the_time(scratch, running[-1])
        end(running[-1])

        # Apache.
        for block in apache_blocks:
            prepare_apache(scratch, block)
            scratch.run(lines.pop(0), APACHE_CONFDIR=str(scratch.path("/etc/apache2")), APACHE_STATE_DIRECTORY=str(scratch.path("/var/lib/apache2")))
            if "fcgid" in block:
                # It starts the host by itself.
                end(host)
                assert host.returncode == 0, scratch.said()
            with open(folder / "output", "ab") as output:
                running.append(subprocess.Popen(
                    ["bash", "-c", APACHE_START.replace("/etc/apache2/envvars", f"{folder}/etc/apache2/envvars", 1).format(folder)],
                    env=scratch.environment(APACHE_CONFDIR=str(scratch.path("/etc/apache2"))), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                    start_new_session=True))
            tells_the_time(scratch, running[-1])
            end(running[-1])
        assert not lines, "every command line was run"
    finally:
        for process in [*running, host]:
            end(process)
        for pid in proc.marked(folder):     # the host that the bridge started
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not [p for p in proc.marked(folder) if proc.is_alive(p)], 20, "the end of every process")
