"""What scripts do once they have their request: threads, children, large bodies, a client that has gone."""
import hashlib

import pytest

from lib import spares, wire
from lib.wait import wait_until

BUSY = {
    "python": """#!/usr/bin/python3
import concurrent.futures, multiprocessing, os, signal, subprocess, sys, threading
print("Content-Type: text/plain\\n", flush=True)
pid = os.fork()
if pid == 0:
    print("a child", os.getppid() != 1, flush=True)
    os._exit(3)
print("its status", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
pid = os.fork()
if pid == 0:
    sys.exit(4)
print("its status", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
print("a program", subprocess.run(["/bin/echo", "here"], capture_output=True, text=True).stdout, subprocess.call(["/bin/sh", "-c", "exit 5"]))
print("piped", subprocess.run(["/bin/cat"], input=b"through", stdout=subprocess.PIPE, preexec_fn=os.setsid).stdout)
threads = [threading.Thread(target=lambda: done.append(1)) for _ in range(8)]
done = []
for t in threads: t.start()
for t in threads: t.join()
print("threads", len(done), threading.main_thread() is threading.current_thread())
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print("pool", sum(pool.map(lambda n: n * n, range(50))))
for how in ("fork", "spawn", "forkserver"):
    ours, theirs = multiprocessing.get_context(how).Pipe()
    process = multiprocessing.get_context(how).Process(target=theirs.send, args=(how,))
    if __name__ == "__main__":
        process.start(); print("process", ours.recv(), process.join(), process.exitcode)
signal.signal(signal.SIGALRM, lambda *_: print("alarm"))
signal.setitimer(signal.ITIMER_REAL, 0.01)
signal.pause()
""",
    "perl": """#!/usr/bin/perl
use IPC::Open3;
$| = 1;
print "Content-Type: text/plain\\n\\n";
my $pid = fork // die;
if (!$pid) { print "a child\\n"; exit 3 }
waitpid $pid, 0;
print "its status ", $? >> 8, "\\n";
print "a program ", `echo here`, system("exit 5") >> 8, "\\n";
open my $from, "-|", "/bin/cat", "/dev/null";
print "read ", <$from>, close $from, "\\n";
my $other = open3(my $in, my $out, undef, "/bin/cat");
print $in "through"; close $in; print "piped ", <$out>, "\\n"; waitpid $other, 0;
local $SIG{ALRM} = sub { print "alarm\\n" };
alarm 1; sleep 5;
END { print "END in ", ($$ == readlink("/proc/self") ? "its own" : "another"), "\\n" }
exec "/bin/echo", "another program" if !fork;
wait;
""",
    "ruby": """#!/usr/bin/ruby
require "open3"
$stdout.sync = true
puts "Content-Type: text/plain", ""
at_exit { puts "at_exit" }
pid = fork { puts "a child"; exit 3 }
Process.wait pid
puts "its status #{$?.exitstatus}"
puts "a program #{`echo here`} #{system("exit 5")} #{$?.exitstatus}"
puts "piped #{Open3.capture2("/bin/cat", stdin_data: "through")[0]}"
puts "threads #{(1..8).map { |n| Thread.new { n * n } }.sum(&:value)}"
reader, writer = IO.pipe
Process.spawn("/bin/echo", "through a pipe", out: writer)
writer.close
puts reader.read
Process.waitall
trap("ALRM") { puts "alarm" }
Process.kill("ALRM", Process.pid)
sleep 0.05
exec "/bin/echo", "another program"
""",
    "node": """#!/usr/bin/node
const { execFileSync, spawnSync, fork } = require('child_process');
const { Worker, isMainThread, parentPort } = require('worker_threads');
if (!isMainThread) parentPort.postMessage('from a thread');
else if (process.argv[2] === 'child') process.send('from a child', () => process.exit(3));
else {
  process.stdout.write('Content-Type: text/plain\\n\\n');
  console.log('a program', String(execFileSync('/bin/echo', ['here'])), spawnSync('/bin/sh', ['-c', 'exit 5']).status);
  console.log('piped', String(execFileSync('/bin/cat', { input: 'through' })));
  console.log('a node', String(execFileSync(process.execPath, ['-p', 'JSON.stringify([process.execArgv, process.env.NODE_OPTIONS])'])));
  new Worker(__filename).on('message', (m) => console.log(m)).on('exit', (code) => {
    console.log('thread', code);
    fork(__filename, ['child']).on('message', (m) => console.log(m)).on('exit', (status) => console.log('child', status));
  });
}
""",
}
CASES = [(language, way) for language in BUSY for way in ("parked", "zygote") if (language, way) != ("node", "zygote")]
each_case = pytest.mark.parametrize("language, way", CASES)


def make(make_host, script, way, **keys):
    names = {"cold": "per-request", "waits": way}
    return make_host({name: {"script": script, "process": process, **keys} for name, process in names.items()})


def last(host, name, count):
    lines = wait_until(lambda: len(found := host.log(event="request", handler=name)) == count and found)
    return lines[-1]


def both(host, method="GET", body=None):
    """The answers of a cold start and of a process that has waited."""
    out = []
    for name in ("cold", "waits"):
        if name == "waits":
            spares.wait_ready(host, name)
        answer = host.request(f"/{name}/x", method, body)
        line = last(host, name, 1)
        stderr = [e["msg"].replace(f"handlers/{name}", "handlers/script") for e in host.log(event="stderr", id=line["id"])]
        out.append((answer.status, answer.text.replace(f"handlers/{name}", "handlers/script"), answer.complete, line["exit"], line["signal"], stderr))
    assert line["start"] != "cold"
    return out


@each_case
def test_a_script_has_children_and_threads_of_its_own(make_host, language, way):
    cold, waited = both(make(make_host, BUSY[language], way))
    assert cold == waited
    assert cold[0] == 200 and "here" in cold[1] and "through" in cold[1]


# --- threads before the fork

THREADED = {
    "python": ("threaded.py", "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n",
               "PYTHONPATH", "#!/usr/bin/python3\nprint('Content-Type: text/plain')\nprint()\nprint('fine')\n"),
    "ruby": ("threaded.rb", "Thread.new { sleep }\nThread.pass\n",
             "RUBYLIB", "#!/usr/bin/ruby\nputs 'Content-Type: text/plain', '', 'fine'\n"),
}


@pytest.mark.parametrize("language", THREADED)
def test_a_module_that_starts_a_thread_makes_no_zygote(make_host, language):
    name, module, variable, script = THREADED[language]
    host = make_host({}, start=False)
    (host.folder / "lib").mkdir()
    (host.folder / "lib" / name).write_text(module)
    host.script("script", script)
    keys = {"command": ["handlers/script"], "env": {variable: str(host.folder / "lib")}, "preload": ["threaded"]}
    host.write({"forks": {**keys, "process": "zygote"}, "waits": {**keys, "process": "parked"}})
    host.start()
    found = wait_until(lambda: host.lines_with("cannot be process: zygote: more than one thread"), 20)
    assert len(found) == 1
    for count in (1, 2):
        answer = host.request("/forks/x")
        assert (answer.status, answer.text.strip()) == (200, "fine")
        assert last(host, "forks", count)["start"] == "cold"
    spares.wait_ready(host, "waits")
    assert host.request("/waits/x").text.strip() == "fine"
    assert last(host, "waits", 1)["start"] == "parked"
    assert len(host.lines_with("more than one thread")) == 1


# --- bodies and ends

READS = {
    "python": """#!/usr/bin/python3
import hashlib, os, sys
if os.environ["QUERY_STRING"] == "late":
    import time; time.sleep(0.3)
if os.environ["QUERY_STRING"] != "never":
    digest = hashlib.sha256(sys.stdin.buffer.read()).hexdigest()
print("Content-Type: text/plain\\n")
print(digest if os.environ["QUERY_STRING"] != "never" else "never")
""",
    "perl": """#!/usr/bin/perl
use Digest::SHA;
select undef, undef, undef, 0.3 if $ENV{QUERY_STRING} eq "late";
binmode STDIN;
my $digest = $ENV{QUERY_STRING} eq "never" ? "never" : Digest::SHA->new(256)->addfile(*STDIN)->hexdigest;
print "Content-Type: text/plain\\n\\n$digest\\n";
""",
    "ruby": """#!/usr/bin/ruby
require "digest"
sleep 0.3 if ENV["QUERY_STRING"] == "late"
puts "Content-Type: text/plain", "", ENV["QUERY_STRING"] == "never" ? "never" : Digest::SHA256.hexdigest($stdin.binmode.read)
""",
    "node": """#!/usr/bin/node
const hash = require('crypto').createHash('sha256');
const end = (text) => process.stdout.write(`Content-Type: text/plain\\n\\n${text}\\n`);
if (process.env.QUERY_STRING === 'never') end('never');
else setTimeout(() => process.stdin.on('data', (d) => hash.update(d)).on('end', () => end(hash.digest('hex'))), process.env.QUERY_STRING === 'late' ? 300 : 0);
""",
    "bash": """#!/bin/bash
[ "$QUERY_STRING" = late ] && sleep 0.3
printf 'Content-Type: text/plain\\n\\n'
if [ "$QUERY_STRING" = never ]; then echo never; else set -- $(sha256sum); echo "$1"; fi
""",
    "php": """#!/usr/bin/php-cgi
<?php header("Content-Type: text/plain");
if ($_SERVER["QUERY_STRING"] == "late") usleep(300000);
echo $_SERVER["QUERY_STRING"] == "never" ? "never" : hash("sha256", file_get_contents("php://input")), "\\n";
""",
}
READERS = [(language, way) for language in READS for way in ("parked", "zygote") if (language, way) != ("node", "zygote")]


@pytest.mark.parametrize("language, way", READERS)
def test_bodies_read_at_once_late_and_never(make_host, language, way):
    host = make_host({"reads": {"script": READS[language], "process": way}})
    body = bytes(range(256)) * 12 * 1024
    for query, sent in (("", body), ("late", body), ("never", body), ("", b""), ("", b"short")):
        spares.wait_ready(host, "reads")
        answer = host.request(f"/reads/x?{query}", "POST", sent)
        assert answer.status == 200 and answer.complete, answer
        assert answer.text.strip() == ("never" if query == "never" else hashlib.sha256(sent).hexdigest())
    assert [e for e in host.log(event="request", handler="reads") if e["start"] != "cold"]


FLOODS = {
    "python": "#!/usr/bin/python3\nprint('Content-Type: text/plain\\n')\nwhile True: print('x' * 1000)\n",
    "perl": "#!/usr/bin/perl\nprint \"Content-Type: text/plain\\n\\n\";\nwhile (print 'x' x 1000) {}\ndie \"gone: $!\";\n",
    "ruby": "#!/usr/bin/ruby\nputs 'Content-Type: text/plain', ''\nloop { puts 'x' * 1000 }\n",
    "bash": "#!/bin/bash\nprintf 'Content-Type: text/plain\\n\\n'\nwhile echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; do :; done\n",
}
FLOODERS = [(language, way) for language in FLOODS for way in ("parked", "zygote")]


@pytest.mark.parametrize("language, way", FLOODERS)
def test_a_script_whose_client_has_gone_ends_as_after_a_cold_start(make_host, language, way):
    host = make(make_host, FLOODS[language], way)
    ends = []
    for name in ("cold", "waits"):
        if name == "waits":
            spares.wait_ready(host, name)
        with wire.Conn(host.address) as conn:
            conn.start(wire.variables(f"/{name}/x"))
            conn.send(wire.stream(wire.STDIN, b""))
            assert conn.read().kind == wire.STDOUT
        line = last(host, name, 1)
        ends.append((line["exit"], line["signal"]))
    assert line["start"] != "cold"
    assert ends[0] == ends[1]
