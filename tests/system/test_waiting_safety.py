"""What siblings must not share, and files that change while a process waits."""
import errno
import os
import time

import pytest

from lib import spares
from lib.wait import wait_until

each_way = pytest.mark.parametrize("way", ["parked", "zygote"])
CHILDREN = {"zygote": 1000, "parked": 30}

PYTHON_RANDOM = """#!/usr/bin/python3
import os, random, secrets, tempfile, uuid
print("Content-Type: text/plain\\n")
print("random", random.random(), random.getrandbits(64))
print("another", random.Random().random())
print("urandom", os.urandom(8).hex())
print("secrets", secrets.token_hex(8))
print("uuid4", uuid.uuid4())
print("uuid1", uuid.uuid1())
print("tempfile", next(tempfile._get_candidate_names()), tempfile.mktemp())
"""
PERL_RANDOM = """#!/usr/bin/perl
use File::Temp;
print "Content-Type: text/plain\\n\\n";
print "rand ", rand, "\\n";
print "tempfile ", (File::Temp::tempfile(UNLINK => 1))[1], "\\n";
"""
RUBY_RANDOM = """#!/usr/bin/ruby
require "securerandom"
require "tmpdir"
puts "Content-Type: text/plain", ""
puts "rand #{rand}", "shuffle #{(1..30).to_a.shuffle}", "another #{Random.new.rand}", "random #{Random.rand}"
puts "securerandom #{SecureRandom.hex(8)}", "uuid #{SecureRandom.uuid}"
puts "tempfile #{Dir::Tmpname.create("x") { |path| path }.split("-").last}"
"""
NODE_RANDOM = """#!/usr/bin/node
process.stdout.write('Content-Type: text/plain\\n\\n');
console.log('random', Math.random());
console.log('uuid', require('crypto').randomUUID());
console.log('bytes', require('crypto').randomBytes(8).toString('hex'));
"""
PHP_RANDOM = """#!/usr/bin/php-cgi
<?php
header("Content-Type: text/plain");
echo "mt_rand ", mt_rand(), mt_rand(), "\\nrand ", rand(), rand(), "\\nlcg ", lcg_value(), "\\nbytes ", bin2hex(random_bytes(8)),
     "\\nuniqid ", uniqid("", true), "\\nshuffle ", str_shuffle("abcdefghijklmnopqrstuvwxyz"), "\\n";
"""
# Of bash, not RANDOM: its seed is the time and the process's number, and comes twice after a cold start too.
BASH_RANDOM = """#!/bin/bash
printf 'Content-Type: text/plain\\n\\n'
echo "srandom $SRANDOM"
echo "file $(mktemp -u)"
"""
RANDOM = {
    "python": (PYTHON_RANDOM, ["random", "uuid", "tempfile", "secrets"]), "perl": (PERL_RANDOM, ["File::Temp"]),
    "ruby": (RUBY_RANDOM, ["securerandom", "tmpdir"]), "node": (NODE_RANDOM, ["crypto"]), "php": (PHP_RANDOM, None), "bash": (BASH_RANDOM, None),
}


# --- random numbers

def each_answer(host, name, count):
    """So many answers of processes that have waited."""
    spares.wait_ready(host, name)
    conn = host.connect(timeout=30)
    waited = 0
    for i in range(count * 2):
        answer = host.request(f"/{name}/x", conn=conn, keep=True)
        assert answer.status == 200, answer
        yield answer.text
        if i + 1 >= count and i % 50 == 0 or i + 1 >= count * 2:
            waited = len([e for e in host.log(event="request", handler=name) if e["start"] != "cold"])
            if waited >= count:
                return
    assert waited >= count, f"only {waited} of {count * 2} had waited"


@pytest.mark.limit(180)
@each_way
@pytest.mark.parametrize("language", RANDOM)
def test_no_two_children_share_a_random_value(make_host, language, way):
    if (language, way) == ("node", "zygote"):
        pytest.skip("Node has threads")
    script, modules = RANDOM[language]
    host = make_host({"lots": {"script": script, "process": way, "preload": modules or "auto",
                               "workers": {"spare": 4, "max_requests": 100000}}})
    seen = {}
    for text in each_answer(host, "lots", CHILDREN[way]):
        for line in text.splitlines():
            what, _, value = line.partition(" ")
            assert value not in seen.setdefault(what, set()), f"{what} {value} twice, after {len(seen[what])}"
            seen[what].add(value)
    assert seen and min(map(len, seen.values())) >= CHILDREN[way]


# --- modules loaded ahead, and files that change

class Language:
    """A script that prints its own word, that of a module from elsewhere, and whether this had been loaded before."""

    def __init__(self, script, module_name, module, env, spelling=None):
        self.script, self.module_name, self.module, self.env, self.spelling = script, module_name, module, env, spelling


LANGUAGES = {
    "python": Language("""#!/usr/bin/python3
import sys
loaded = "own" in sys.modules
import own
print("Content-Type: text/plain\\n")
print("WORD", own.VALUE, "loaded" if loaded else "not loaded")
""", "own.py", "VALUE = 'WORD'\n", {"PYTHONPATH": "LIB", "PYTHONDONTWRITEBYTECODE": "1"}, "own"),
    "perl": Language("""#!/usr/bin/perl
BEGIN { $loaded = exists $INC{"Some/Own.pm"} }
use Some::Own;
print "Content-Type: text/plain\\n\\n";
print "WORD $Some::Own::VALUE ", ($loaded ? "loaded" : "not loaded"), "\\n";
""", "Some/Own.pm", "package Some::Own; our $VALUE = 'WORD'; 1;\n", {"PERL5LIB": "LIB"}, "Some::Own"),
    "ruby": Language("""#!/usr/bin/ruby
loaded = $LOADED_FEATURES.any? { |f| f.end_with?("/own.rb") }
require "own"
puts "Content-Type: text/plain", ""
puts "WORD #{VALUE} #{loaded ? "loaded" : "not loaded"}"
""", "own.rb", "VALUE = 'WORD'\n", {"RUBYLIB": "LIB"}, "own"),
    "node": Language("""#!/usr/bin/node
const loaded = Object.keys(require.cache).some((f) => f.endsWith('/own.js'));
const own = require('own');
process.stdout.write('Content-Type: text/plain\\n\\n');
console.log(`WORD ${own} ${loaded ? 'loaded' : 'not loaded'}`);
""", "own.js", "module.exports = 'WORD';\n", {"NODE_PATH": "LIB"}, "own"),
}
CASES = [(language, way) for language in LANGUAGES for way in ("parked", "zygote") if (language, way) != ("node", "zygote")]
each_case = pytest.mark.parametrize("language, way", CASES)


class Site:
    """A host with one such script."""

    def __init__(self, make_host, language, way, preload=None):
        self.language = LANGUAGES[language]
        self.asked = 0
        self.host = make_host({}, start=False)
        self.lib = self.host.folder / "lib"
        self.script_file = self.host.folder / "handlers" / "own-script"
        self.module_file = self.lib / self.language.module_name
        self.module_file.parent.mkdir(parents=True)
        self.write_module("one")
        self.script_file.write_text(self.text("one"))
        self.script_file.chmod(0o755)
        # Old enough for what has been loaded to be sure.
        wait_until(lambda: os.stat(self.module_file).st_ctime_ns + 100_000_000 < time.time_ns())
        env = {name: value.replace("LIB", str(self.lib)) for name, value in self.language.env.items()}
        self.host.write({"own": {"command": ["handlers/own-script"], "process": way, "env": env,
                                 "preload": preload or [self.language.spelling]}})
        self.host.start()

    def text(self, word):
        return self.language.script.replace("WORD", word)

    def write_module(self, word):
        self.module_file.write_text(self.language.module.replace("WORD", word))

    def ask(self):
        """What the script says, and how it was started."""
        answer = self.host.request("/own/x")
        self.asked += 1
        assert answer.status == 200, (answer, self.host.log_text()[-3000:])
        return answer.text.strip()

    def ask_ready(self):
        """The same of a process that has waited; one that is just being replaced leaves the request to another."""
        def asked():
            spares.wait_ready(self.host, "own")
            said = self.ask()
            return self.last_start() != "cold" and said
        return wait_until(asked)

    def last_start(self):
        lines = wait_until(lambda: len(found := self.host.log(event="request", handler="own")) == self.asked and found)
        return lines[-1]["start"]


def in_place(file, text):
    """The same inode, and as copying a file does it: first it is empty."""
    def written():
        try:
            with open(file, "w") as f:
                f.write(text)
        except OSError as e:
            assert e.errno == errno.ETXTBSY     # it is just being executed
            return False
        return True
    wait_until(written)


def by_rename(file, text):
    new = file.with_name("new." + file.name)
    new.write_text(text)
    new.chmod(0o755)
    new.rename(file)


each_change = pytest.mark.parametrize("change", [in_place, by_rename])


@each_case
def test_a_list_is_loaded_ahead(make_host, language, way):
    site = Site(make_host, language, way)
    assert site.ask_ready() == "one one loaded"


@each_case
def test_none_is_loaded_ahead(make_host, language, way):
    site = Site(make_host, language, way, preload="none")
    for _ in range(3):
        assert site.ask_ready() == "one one not loaded"


@each_case
def test_what_requests_came_to_load_is_learnt(make_host, language, way):
    site = Site(make_host, language, way, preload="auto")
    assert site.ask_ready() == "one one not loaded"
    wait_until(lambda: site.ask_ready() == "one one loaded", 20)


@each_case
@each_change
def test_a_changed_script_is_what_the_next_request_gets(make_host, language, way, change):
    site = Site(make_host, language, way)
    for word in ("two", "six", "ten"):      # of the same size, within one second
        site.ask_ready()
        change(site.script_file, site.text(word))
        assert site.ask().startswith(word)
    wait_until(lambda: site.ask_ready() == "ten one loaded", 20)


@each_case
def test_what_another_script_had_loaded_is_forgotten(make_host, language, way):
    site = Site(make_host, language, way, preload="auto")
    wait_until(lambda: site.ask_ready() == "one one loaded", 20)
    by_rename(site.script_file, site.text("two"))
    assert site.ask() == "two one not loaded"           # started for it
    assert site.ask_ready() == "two one not loaded"
    assert site.last_start() != "cold"


@each_case
@each_change
def test_a_changed_module_is_what_the_next_request_gets(make_host, language, way, change):
    site = Site(make_host, language, way)
    for word in ("two", "six", "ten"):
        site.ask_ready()
        change(site.module_file, site.language.module.replace("WORD", word))
        assert site.ask().startswith(f"one {word}")
    wait_until(lambda: site.ask_ready() == "one ten loaded", 20)


@each_case
def test_a_module_that_is_not_there_is_one_line_in_the_log(make_host, language, way):
    site = Site(make_host, language, way, preload=["not_there", LANGUAGES[language].spelling])
    assert site.ask_ready() == "one one loaded"
    assert site.last_start() != "cold"
    found = wait_until(lambda: site.host.lines_with("fcgi-host: preload: not_there"), 10)
    assert len({e["pid"] for e in site.host.log(event="stderr")}) == len(found), found


@each_case
def test_a_module_that_fails_is_one_line_in_the_log(make_host, language, way):
    site = Site(make_host, language, way)
    site.ask_ready()
    (site.lib / site.language.module_name).write_text("this is (no module\n")
    wait_until(lambda: site.host.lines_with("fcgi-host: preload: ") or site.host.request("/own/x") and None, 20)
    assert site.host.is_running()


@pytest.mark.parametrize("way", ["parked", "zygote"])
def test_a_module_beside_the_script_hides_one_that_was_loaded(make_host, way):
    site = Site(make_host, "python", way)
    assert site.ask_ready() == "one one loaded"
    spares.wait_ready(site.host, "own")
    (site.host.folder / "handlers" / "own.py").write_text("VALUE = 'nearer'\n")
    assert site.ask() == "one nearer not loaded"
    assert site.ask_ready() == "one nearer not loaded"


# --- scripts that their interpreter reads only when the request is there

READ_LATE = {
    "sh": "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\necho WORD\n",
    "bash": "#!/bin/bash\nprintf 'Content-Type: text/plain\\n\\n'\necho WORD\n",
    "php": "#!/usr/bin/php-cgi\n<?php header('Content-Type: text/plain'); echo 'WORD';\n",
}


@each_way
@each_change
@pytest.mark.parametrize("language", READ_LATE)
def test_a_changed_script_is_read_anew(make_host, language, way, change):
    host = make_host({"late": {"script": READ_LATE[language].replace("WORD", "one"), "process": way, "workers": {"spare": 3}}})
    file = host.folder / "handlers" / "late"
    for word in ("two", "six", "ten"):
        for _ in range(4):
            spares.wait_ready(host, "late")
            before = host.request("/late/x").text.strip()
        change(file, READ_LATE[language].replace("WORD", word))
        assert before != word
        assert [host.request("/late/x").text.strip() for _ in range(4)] == [word] * 4
    assert host.log(event="request", handler="late", start="forked" if way == "zygote" else "parked")


PHP_INCLUDES = """#!/usr/bin/php-cgi
<?php header("Content-Type: text/plain"); include "part.php"; echo opcache_get_status()["opcache_statistics"]["hits"] > 0 ? " kept" : " compiled";
"""


@each_change
def test_children_of_a_php_zygote_share_what_is_compiled_and_see_changes(make_host, change):
    host = make_host({"late": {"script": PHP_INCLUDES, "process": "zygote"}})
    part = host.folder / "handlers" / "part.php"

    def ask():
        spares.wait_ready(host, "late")
        return host.request("/late/x").text.strip()
    part.write_text("<?php echo 'one';")
    assert ask().startswith("one")
    wait_until(lambda: ask() == "one kept", 20)         # opcache keeps nothing that is not older than 2 s
    change(part, "<?php echo 'two';")
    assert ask().startswith("two")
