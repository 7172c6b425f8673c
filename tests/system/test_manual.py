"""The manual pages say what the program does."""
import re
import shlex
import shutil
import subprocess

import pytest

from lib import paths

DOC = paths.REPO / "doc"
PAGES = sorted(p for p in DOC.iterdir() if re.search(r"\.[1-8]$", p.name))


def words(text):
    """Without line ends, the roff escape for nothing, and the folder that configure chose for sockets."""
    return re.sub(r"unix:\S*/fcgi-host/fcgi-host\.sock", "unix:SOCKET", " ".join(text.replace("\\&", "").split()))


def reference():
    """{chapter: [(key, what may stand there, help)]} as the table of keys has it."""
    program = paths.BUILD / "doc" / "config_reference"
    text = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    chapters = {}
    for title, body in re.findall(r"^(\w[^:\n]*)\n\n((?:\S.*\n\t.*\n)+)", text, re.M):
        chapters[title] = [(key, words(kind), words(help_text)) for key, kind, help_text in re.findall(r"^(\S+): (.*)\n\t(.*)\n", body, re.M)]
    return chapters


def page_keys():
    """The same as the page has it."""
    text = (DOC / "fcgi-host.yaml.5").read_text()
    section = re.search(r"^\.Sh KEYS\n(.*?)^\.Sh ", text, re.M | re.S).group(1)
    chapters = {}
    for part in re.split(r"^\.Ss ", section, flags=re.M)[1:]:
        title, _, body = part.partition("\n")
        entries = chapters[words(title)] = []
        for item in re.split(r"^\.It ", body, flags=re.M)[1:]:
            head, _, rest = item.partition("\n")
            mark, key, bracket, kind = shlex.split(head)
            assert (mark, bracket) == ("Ic", "Pq"), head
            first = re.split(r"^\.\w", rest, maxsplit=1, flags=re.M)[0]     # up to the next macro: more may be said after it
            entries.append((key, words(kind), words(first).rstrip(".")))
    return chapters


def test_the_page_of_the_file_has_every_key_as_the_table_has_it():
    wanted, found = reference(), page_keys()
    assert sum(map(len, wanted.values())) > 50
    assert list(found) == list(wanted)
    for title, keys in wanted.items():
        assert found[title] == keys, title


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_the_pages_are_good_mdoc(page):
    if not shutil.which("mandoc"):
        pytest.skip("mandoc is not installed")
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", str(page)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def usages(host):
    text = host.command("--help").stdout.decode()
    return dict(re.findall(r"^  fcgi-host (\w+) (.*)$", text, re.M))


def test_the_page_of_the_program_has_every_command_and_option(make_host):
    text = (DOC / "fcgi-host.8").read_text()
    synopsis = re.search(r"^\.Sh SYNOPSIS\n(.*?)^\.Sh ", text, re.M | re.S).group(1)
    commands = {part[4:].split("\n")[0]: part for part in re.split(r"^\.Nm\n", synopsis, flags=re.M) if part.startswith(".Cm ")}
    given = usages(make_host({}, start=False))
    assert set(commands) == set(given) and given
    for name, usage in given.items():
        in_usage = set(re.findall(r"(?<![\w-])--?([A-Za-z][\w-]*)", usage))
        own = DOC / f"fcgi-host-{name}.1"       # a command with many options has a page of its own
        page = own.read_text() if own.exists() else text
        short = re.search(r"^\.Sh SYNOPSIS\n(.*?)^\.Sh ", page, re.M | re.S).group(1) if own.exists() else commands[name]
        in_page = {option.lstrip("-") for option in re.findall(r"\bFl (\S+)", short)}
        assert in_page == in_usage, name
        assert re.search(rf"^\.It Cm {name}\b", text, re.M), name
        assert not own.exists() or f".Xr fcgi-host-{name} 1" in text, name
        for option in in_usage:
            assert re.search(rf"^\.It Fl -?{option}\b", page, re.M), (name, option)


def test_compare_knows_every_option_of_its_page(make_host):
    host = make_host({}, start=False)
    page = (DOC / "fcgi-host-compare.1").read_text()
    for option, value in re.findall(r"^\.It Fl (\S+)( \S.*)?$", page, re.M):
        done = host.command("compare", f"-{option}", *(["/"] if value else []))
        said = done.stderr.decode()
        assert "unrecognized option" not in said and "invalid option" not in said and "unexpected" not in said, (option, said)
        assert ("requires an argument" in host.command("compare", f"-{option}").stderr.decode()) == bool(value), option


def test_the_examples_in_the_pages_are_good_configurations(make_host):
    host = make_host({}, start=False)
    for page in PAGES:
        blocks = [b for b in re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", page.read_text(), re.M | re.S) if re.search(r"^routes:", b, re.M)]
        assert blocks, page
        for block in blocks:
            host.write_text(block.replace("\\&", ""))
            done = host.command("check", "-c", str(host.config))
            assert done.returncode == 0, (page.name, done.stderr)


def test_what_is_not_yet_supported_is_said_where_people_look():
    missing, there = set(), set()
    for keys in reference().values():
        for key, kind, _ in keys:
            (missing if kind.endswith("; not yet supported") else there).add(key.split(".")[0])
            if key in ("protocol", "process"):
                missing |= set(re.findall(r"(\S+) \(not yet supported\)", kind))
                there |= set(re.findall(r"[:,] ([\w-]+)(?=[,;])", kind))
    missing -= there        # a group of which a part works
    readme = re.search(r"^## Not yet supported\n(.*?)(?=^## |\Z)", (paths.REPO / "README.md").read_text(), re.M | re.S)
    page = re.search(r"^Not yet supported:(.*?)(?=^\.Pp|^\.Sh|\Z)", (DOC / "fcgi-host.8").read_text(), re.M | re.S)
    named = {"README.md": set(re.findall(r"`([\w-]+)`", readme.group(1))) if readme else set(),
             "fcgi-host.8": set(re.findall(r"^\.(?:Ql|Ic) (\S+)", page.group(1), re.M)) if page else set()}
    for where, words_there in named.items():
        assert missing <= words_there, where
        assert not words_there & there, where
