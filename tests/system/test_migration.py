"""The pages for who comes from another program: what they show runs as it is written, and they leave out no option."""
import os
import re
import shlex
import shutil
import signal
import subprocess

import pytest

from lib import paths, proc
from lib.host import make_folder, sanitizer_environment
from lib.wait import free_port, wait_until
from test_manual import reference
from test_readme import MODULES, command_lines, end

REPO = paths.REPO
PAGES = {p.stem: p for p in sorted((REPO / "doc").glob("from-*.md"))}
# What stays in the foreground until it is ended.
STAYS = ("fcgi-host serve", "php-fpm")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="the pages' commands need root")


def part(page, title):
    """The text below a heading."""
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGES[page].read_text(), re.M | re.S).group(1)


def introduction(page):
    return PAGES[page].read_text().partition("\n## ")[0]


def blocks(text):
    """(the last line of words before it, the block) for each fenced block."""
    found, before, block = [], "", None
    for line in text.splitlines():
        if block is None and line.startswith("```"):
            block = []
        elif line.startswith("```"):
            found.append((before, "".join(block)))
            before, block = "", None
        elif block is not None:
            block.append(line + "\n")
        elif line:
            before = line
    return found


class Place:
    """What a page writes and runs, below a folder: `/etc/x` becomes FOLDER/etc/x."""

    def __init__(self, folder):
        self.folder, self.port, self.running = folder, free_port(), []
        for name in ("etc", "srv", "run", "var/log", "bin", "web"):
            make_folder(folder / name)
        make_folder(folder / "sanitizer").chmod(0o1777)
        program = folder / "bin" / "fcgi-host"
        # The one that README installs looks into /etc by itself.
        program.write_text(f"#!/bin/sh\ncommand=$1; shift\nexec {paths.program()} \"$command\" -c {folder}/etc/fcgi-host/fcgi-host.yaml \"$@\"\n")
        program.chmod(0o755)
        for name in ("nginx", "apache"):
            for source in (REPO / name).iterdir():
                target = make_folder(folder / "shipped" / name) / source.name
                target.write_text(self.below(source.read_text()))

    def below(self, text):
        text = text.replace("/usr/share/fcgi-host/", f"{self.folder}/shipped/")
        return re.sub(r"(?<![\w./-])/(etc|var|srv|run)\b", rf"{self.folder}/\1", text)

    def environment(self):
        return {"PATH": f"{self.folder}/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "FCGI_HOST_TEST": str(self.folder),
                **sanitizer_environment(self.folder)}

    def start(self, *command):
        with open(self.folder / "output", "ab") as output:
            self.running.append(subprocess.Popen(command, env=self.environment(), cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                                 start_new_session=True))
        return self.running[-1]

    def write_files(self, text):
        """Blocks that the sentence before them names the file of."""
        for before, block in blocks(text):
            named = re.findall(r"`(/[^`]+)`(?:, mode (\d+))?:$", before)
            if not named:
                continue
            path, mode = named[0]
            target = self.folder / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(self.below(block))
            target.chmod(int(mode or "644", 8))

    def serve_web(self, text):
        """nginx or Apache, whichever the part has a block for."""
        nginx, apache = (re.findall(rf"^```{name}\n(.*?)^```", text, re.M | re.S) for name in ("nginx", "apache"))
        assert len(nginx) + len(apache) == 1
        if nginx:
            self.start("nginx", "-p", f"{self.folder}/web", "-e", f"{self.folder}/web/error.log", "-c", str(self.write_nginx(nginx[0])))
        else:
            self.start("apache2", "-d", f"{self.folder}/web", "-f", str(self.write_apache(apache[0])), "-D", "FOREGROUND")

    def write_nginx(self, block):
        web = self.folder / "web"
        shutil.copy("/etc/nginx/fastcgi_params", web)
        if not (web / "fcgi-host").exists():
            (web / "fcgi-host").symlink_to(self.folder / "shipped" / "nginx")
        temp = "".join(f"{kind}_temp_path {web}/{kind};\n" for kind in ("client_body", "fastcgi", "proxy", "uwsgi", "scgi"))
        conf = web / "nginx.conf"
        conf.write_text(f"daemon off;\nuser www-data;\npid {web}/pid;\nevents {{ }}\nhttp {{\naccess_log off;\n{temp}include fcgi-host/fcgi-host-upstream.conf;\n"
                        f"server {{\nlisten 127.0.0.1:{self.port};\n{self.below(block)}}}\n}}\n")
        return conf

    def write_apache(self, block):
        web = self.folder / "web"
        run = make_folder(web / "run")
        shutil.chown(run, "www-data", "www-data")
        modules = "".join(f"LoadModule {m}_module {MODULES}/mod_{m}.so\n" for m in ("mpm_event", "authz_core", "alias", "mime", "proxy", "proxy_fcgi", "fcgid"))
        conf = web / "apache.conf"
        conf.write_text(f"{modules}ServerName localhost\nListen 127.0.0.1:{self.port}\nUser www-data\nGroup www-data\nPidFile {web}/pid\n"
                        f"ErrorLog {web}/error.log\nDefaultRuntimeDir {run}\nTypesConfig /etc/mime.types\nFcgidIPCDir {run}\nFcgidProcessTableFile {run}/shm\n"
                        f"<VirtualHost *:{self.port}>\nDocumentRoot {web}\n{self.below(block)}</VirtualHost>\n")
        return conf

    def run(self, line):
        """A command line; what `curl` got."""
        command = self.below(line).replace("http://localhost", f"http://127.0.0.1:{self.port}")
        if line.startswith(STAYS):
            self.start(*shlex.split(command))
            return None
        if line.startswith("curl "):
            return self.ask(command)
        done = subprocess.run(["bash", "-ec", command], env=self.environment(), cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 0, f"$ {line}\n{done.stdout}{done.stderr}"
        return None

    def ask(self, command):
        """Once both the web server and what is behind it have started."""
        def answered():
            done = subprocess.run([*shlex.split(command), "-w", "%{http_code}"], env=self.environment(), capture_output=True, text=True)
            return done.stdout[:-3] if done.returncode == 0 and done.stdout.endswith("200") else None
        try:
            return wait_until(answered, 20, "an answer of 200")
        except AssertionError as e:
            logs = [self.folder / "output", self.folder / "web" / "error.log"]
            raise AssertionError(str(e) + "\n" + "\n".join(log.read_text(errors="replace")[-3000:] for log in logs if log.exists())) from None

    def end(self):
        for process in reversed(self.running):
            end(process)
        for pid in proc.marked(self.folder):    # what went into the background
            proc.kill_quietly(pid, signal.SIGTERM)
        wait_until(lambda: not [p for p in proc.marked(self.folder) if proc.is_alive(p)], 20, "the end of every process")
        self.running = []


@pytest.fixture
def place(folder):
    made = Place(folder)
    yield made
    made.end()


@needs_root
@pytest.mark.parametrize("page", PAGES)
def test_before_and_after_give_the_same_answer(place, page):
    place.write_files(introduction(page))
    got = {}
    for title in ("Before", "After"):
        text = part(page, title)
        place.write_files(text)
        place.serve_web(text)
        got[title] = [answer for answer in map(place.run, command_lines(text)) if answer is not None]
        place.end()
    assert got["Before"] == got["After"] and len(got["Before"]) == 1 and got["Before"][0].strip(), got


# --- no option is left out

def said(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout + done.stderr


def options_of_fcgiwrap():
    return {f"-{o}" for o in re.findall(r"^\s+-(\w)\b", said("fcgiwrap", "-h"), re.M)}


def options_of_spawn_fcgi():
    return {f"-{o}" for line in re.findall(r"^ (-\S.*?)(?:  |$)", said("spawn-fcgi", "-h"), re.M) for o in re.findall(r"-([\w?])", line)}


def directives_of_mod_fcgid():
    with open(f"{MODULES}/mod_fcgid.so", "rb") as f:
        return {d.decode() for d in re.findall(rb"(?<=\0)Fcgid[A-Za-z]+(?=\0)", f.read())}


def settings_of_php_fpm():
    return set(re.findall(r"NOTICE:\s+([a-z_.]+) = ", said("php-fpm8.2", "-tt")))


OPTIONS = {"from-fcgiwrap": (options_of_fcgiwrap, 5), "from-spawn-fcgi": (options_of_spawn_fcgi, 17), "from-mod_fcgid": (directives_of_mod_fcgid, 30),
           "from-php-fpm": (settings_of_php_fpm, 50)}


@pytest.mark.parametrize("page", OPTIONS)
def test_every_option_of_the_other_program_is_in_the_table(page):
    ask, least = OPTIONS[page]
    options = ask()
    assert len(options) >= least, options
    left = " ".join(re.findall(r"^\| (.*?) \|", part(page, "What becomes of what"), re.M))
    shown = {word for text in re.findall(r"`([^`]*)`", left) for word in text.split()}
    assert options <= shown, sorted(options - shown)


@pytest.mark.parametrize("page", PAGES)
def test_every_key_that_the_tables_name_is_one_of_ours(page):
    keys = {key for entries in reference().values() for key, _, _ in entries}
    right = " ".join(re.findall(r"^\| .*? \| (.*) \|$", part(page, "What becomes of what"), re.M))
    named = set(re.findall(r"`((?:workers|queue|timeout|body|header|limits|log|params)\.\w+)`", right))
    named |= {f"{of}.{key}" for of, inside in re.findall(r"`(workers|queue|timeout|log): \{(.*?)\}", right) for key in re.findall(r"(\w+):", inside)}
    assert named and named <= keys, named - keys
