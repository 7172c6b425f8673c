"""What siblings must not share, and files that change while a process waits."""
import os
import re
import shutil

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
puts "tempfile #{Dir::Tmpname.create("x") { |path| path }}"
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
