"""The figures as OpenMetrics: strictly what the format says, taken by Prometheus itself; and all forms agree with the log."""
import bisect
import contextlib
import json
import math
import re
import subprocess
import urllib.parse
import urllib.request

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from lib import fronts
from lib.handlers import HELLO, worker
from lib.host import make_folder
from lib.paths import REPO
from lib.wait import connects, free_port, wait_until
from test_status import CLASSES, FAILURES, PARKED, UNTIL_GO, ZYGOTE, check_counts, hold, of, start_of, status
from test_status_page import PATH, ROUTE, table
from lib.browser import chromium

BOUNDS = [2 ** bits / 1e6 for bits in range(8, 27)]
SPANS = {"queue": "queue_ms", "start": "start_ms", "first_byte": "first_byte_ms", "duration": "total_ms"}

_sample = re.compile(r'([a-z][a-z0-9_]*)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?[0-9]+(?:\.[0-9]+)?)\Z')
_label = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"(?:,|\Z)')
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "info": ("_info",), "histogram": ("_bucket", "_count", "_sum")}


def parse(text):
    """{name: {labels: value}} of an exposition that keeps every rule of OpenMetrics 1.0, or an AssertionError."""
    assert text.endswith("\n# EOF\n") and "\r" not in text and "\n\n" not in text
    families, samples, family, seen = {}, {}, None, set()
    for line in text[:-len("# EOF\n")].splitlines():
        if line.startswith("# "):
            kind, name, rest = line[2:].split(" ", 2)
            if kind == "TYPE":
                assert name not in families and rest in SUFFIXES, line
                family = families[name] = {"name": name, "type": rest, "said": set()}
            assert family and family["name"] == name and kind not in family["said"], f"metadata in one place, each once: {line}"
            assert not family.get("has_samples"), "metadata before samples"
            family["said"].add(kind)
            if kind == "UNIT":
                assert name.endswith("_" + rest), f"the name ends with the unit: {line}"
                assert family["type"] != "info"
            else:
                assert kind in ("TYPE", "HELP"), line
            continue
        found = _sample.match(line)
        assert found, line
        name, label_text, value = found.groups()
        pairs = _label.findall(label_text or "")
        labels = dict(pairs)
        assert len(labels) == len(pairs), f"a label twice: {line}"
        suffix = name[len(family["name"]):]
        assert name.startswith(family["name"]) and suffix in SUFFIXES[family["type"]], f"samples stay with their family: {line}"
        family["has_samples"] = True
        assert (suffix == "_bucket") == ("le" in labels), line
        key = (name, frozenset(labels.items()))
        assert key not in seen, f"twice: {line}"
        seen.add(key)
        assert float(value) >= 0, line
        if suffix in ("_total", "_bucket", "_count", "_sum", "_info"):
            assert not math.isnan(float(value))
        samples.setdefault(name, {})[frozenset(labels.items())] = float(value)
    for family in families.values():
        assert {"TYPE", "HELP"} <= family["said"], family
        if re.search(r"_(seconds|bytes)$", family["name"]):
            assert "UNIT" in family["said"], family
        if family["type"] == "histogram":
            check_histogram(family["name"], samples)
    return samples


def check_histogram(name, samples):
    groups = {}
    for labels, value in samples.get(name + "_bucket", {}).items():
        rest = frozenset(pair for pair in labels if pair[0] != "le")
        groups.setdefault(rest, []).append((float(dict(labels)["le"]), value))
    assert set(groups) == set(samples.get(name + "_count", {})) == set(samples.get(name + "_sum", {}))
    for labels, buckets in groups.items():
        assert buckets == sorted(buckets), "bounds ascend as they are written"
        counts = [count for _, count in buckets]
        assert counts == sorted(counts) and buckets[-1] == (math.inf, samples[name + "_count"][labels])


def value(samples, name, **labels):
    """The one sample with these labels."""
    found = [v for have, v in samples[name].items() if set(labels.items()) <= have]
    assert len(found) == 1, (name, labels, found)
    return found[0]


def metrics_of(host):
    answer = host.request(PATH + "?format=openmetrics")
    assert answer.status == 200 and answer.complete
    return answer.body.decode()


def buckets_of(samples, name, handler):
    return {float(dict(have)["le"]): v for have, v in samples[name + "_bucket"].items() if ("handler", handler) in have}


def hosts_with_traffic(make_host, fastcgi_program):
    """A host with every kind of request behind it, and some on their way."""
    host = make_host({
        "ok": HELLO, "none": "exit 3", "own": "printf 'Status: 500 Oh\\nContent-Type: text/plain\\n\\nno\\n'",
        "short": "printf 'Content-Type: text/plain\\nContent-Length: 100\\n\\nshort'",
        "slow": {"script": "sleep 30", "timeout": {"response": "100ms", "kill": "1s"}},
        "left": {"script": "echo >> \"$SCRATCH/left\"; sleep 30", "timeout": {"kill": "1s"}},
        "full": {"script": UNTIL_GO, "workers": {"max": 1}, "queue": {"max": 1, "timeout": "30s"}},
        "parked": PARKED, "zygote": {**ZYGOTE, "workers": {"spare": 2}},
        "w": worker(fastcgi_program, workers={"max": 2}), "unused": HELLO}, more_routes=[ROUTE])
    wait_until(lambda: all(of(status(host), n)["processes"]["idle"] for n in ("parked", "zygote")), 20, "processes that wait")
    for path in ("/parked", "/zygote", "/zygote", "/ok", "/ok", "/none", "/own", "/short", "/slow", "/nowhere", "/w", "/w?sleep=30", "/w?body=5000"):
        host.request(path)
    host.request("/w?count", "POST", b"b" * 700)
    conn = hold(host, "/left")
    wait_until((host.scratch / "left").exists, 10)
    conn.close()
    return host


# --- the format

def test_every_rule_of_the_format_is_kept(make_host, fastcgi_program):
    host = hosts_with_traffic(make_host, fastcgi_program)
    held = [hold(host, "/full"), hold(host, "/full")]
    wait_until(lambda: of(status(host), "full")["waiting"] == 1 and of(status(host), "full")["processes"]["busy"] == 1, 10)
    text = metrics_of(host)
    samples = parse(text)
    by_library = {f.name: f for f in text_string_to_metric_families(text)}
    assert len(by_library) == text.count("# TYPE ") and sum(len(f.samples) for f in by_library.values()) == sum(map(len, samples.values()))
    assert by_library["fcgi_host_request_duration_seconds"].unit == "seconds"
    assert by_library["fcgi_host_request_body_bytes"].unit == "bytes"
    assert value(samples, "fcgi_host_processes", handler="full", state="busy") == 1
    assert value(samples, "fcgi_host_waiting_requests", handler="full") == 1
    assert value(samples, "fcgi_host_processes_limit", handler="w") == 2
    assert value(samples, "fcgi_host_request_body_bytes_total", handler="w") == 700
    labels = dict(next(have for have in samples["fcgi_host_waiting_requests"] if ("handler", "w") in have))
    assert labels == {"handler": "w", "protocol": "fastcgi", "process": "persistent", "generation": "0"}
    assert set(buckets_of(samples, "fcgi_host_request_duration_seconds", "ok")) == {*BOUNDS, math.inf}
    (host.scratch / "go").write_text("")
    for conn in held:
        assert conn.answer().status == 200
        conn.close()


@pytest.mark.parametrize("fault", [
    lambda t: t.replace("# EOF\n", ""), lambda t: t.replace("\n# EOF", "\n\n# EOF"), lambda t: t.replace("_reloads_total", "_reloads"),
    lambda t: t.replace("# UNIT fcgi_host_cpu_seconds seconds\n", ""), lambda t: t.replace('le="+Inf"', 'le="99.0"'),
    lambda t: t.replace("# HELP fcgi_host_reloads", "# TYPE fcgi_host_reloads"), lambda t: t.replace('state="idle"', 'state="busy"'),
    lambda t: t.replace("fcgi_host_connections ", "fcgi_host_connections  "), lambda t: t.replace('process="', 'handler="')])
def test_the_parser_of_these_tests_can_fail(make_host, fault):
    host = make_host({"ok": HELLO}, more_routes=[ROUTE])
    host.request("/ok")
    host.wait_log(event="request", count=1)
    text = metrics_of(host)
    parse(text)
    with pytest.raises(AssertionError):
        parse(fault(text))


def test_two_generations_of_a_handler_stand_beside_each_other(make_host):
    host = make_host({"h": {"script": UNTIL_GO}, "ok": HELLO}, more_routes=[ROUTE])
    held = hold(host, "/h")
    wait_until(lambda: of(status(host), "h")["processes"]["busy"] == 1, 10)
    host.write({"h": {"script": UNTIL_GO, "workers": {"max": 3}}, "ok": HELLO}, more_routes=[ROUTE])
    assert host.command("reload", "-c", str(host.config)).returncode == 0
    samples = parse(metrics_of(host))
    assert value(samples, "fcgi_host_processes", handler="h", generation="0", state="busy") == 1
    assert value(samples, "fcgi_host_processes", handler="h", generation="1", state="busy") == 0
    assert value(samples, "fcgi_host_reloads_total") == 1
    (host.scratch / "go").write_text("")
    assert held.answer().status == 200
    held.close()


def test_the_use_of_others_processes_is_not_known(make_host, fastcgi_program, folder):
    other = make_host({}, listen=f"unix:{folder}/other.sock", name="other")
    host = make_host({"theirs": {"connect": f"unix:{folder}/other.sock", "protocol": "fastcgi"}, "ok": HELLO}, more_routes=[ROUTE])
    assert host.request("/theirs").status == 404 and host.request("/ok").status == 200
    host.wait_log(event="request", count=2)
    samples = parse(metrics_of(host))
    assert {dict(have)["handler"] for have in samples["fcgi_host_cpu_seconds_total"]} == {"ok"}
    assert of(status(host), "theirs")["cpu_per_request_ms"] is None
    other.stop()


@contextlib.contextmanager
def prometheus(folder, port, target_port):
    """A Prometheus of our own with the configuration that we ship, scraping once a second."""
    folder = make_folder(folder)
    shipped = (REPO / "conf/prometheus.yml").read_text()
    assert "127.0.0.1:80" in shipped and PATH in shipped
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 1s}\n" + shipped.replace("127.0.0.1:80", f"127.0.0.1:{target_port}"))
    checked = subprocess.run(["/usr/bin/promtool", "check", "config", str(folder / "prometheus.yml")], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    with open(folder / "output", "wb") as output:
        process = subprocess.Popen(["/usr/bin/prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                    f"--web.listen-address=127.0.0.1:{port}"], stdout=output, stderr=output)
    try:
        wait_until(lambda: connects(("127.0.0.1", port)), 30, "prometheus listening")

        def query(text):
            url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": text})
            try:
                with urllib.request.urlopen(url, timeout=10) as answer:
                    return [(r["metric"], float(r["value"][1])) for r in json.load(answer)["data"]["result"]]
            except OSError:
                return []
        yield query
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.limit(120)
def test_prometheus_takes_it(make_host, make_front, fastcgi_program, folder):
    host = hosts_with_traffic(make_host, fastcgi_program)
    front = make_front("nginx-kept", host)
    host.wait_log(event="request", handler="left")
    port = free_port()
    with prometheus(folder / "prometheus", port, front.port) as query:
        wait_until(lambda: query("up == 1"), 40, "a scrape that was taken")
        assert wait_until(lambda: query('sum(fcgi_host_requests_total{handler="w"})'), 20)[0][1] == 4
        assert query('fcgi_host_failures_total{handler="slow", kind="timeouts"}')[0][1] == 1
        (found,) = query('histogram_quantile(0.5, sum by (le) (fcgi_host_request_duration_seconds_bucket{handler="slow"}))')
        assert 0.065 <= found[1] <= 0.53
        version = host.command("--version").stdout.decode().split()[1]
        assert query("fcgi_host_info")[0][0]["version"] == version
        assert query("time() - fcgi_host_start_time_seconds")[0][1] < 120
        questions = re.findall(r"^#   (?:\w[\w, %]+?)  +(\S.*(?:\n# {20,}\S.*)*)", (REPO / "conf/prometheus.yml").read_text(), re.M)
        assert len(questions) == 6
        for question in questions:
            text = question.replace("\n#", " ")
            wait_until(lambda: query(text) or ">=" in text, 20, f"an answer to {text}")


# --- the four agree

def check_log_against_json(lines, reading):
    for handler in reading["handlers"]:
        own = [e for e in lines if e["handler"] == handler["name"]]
        totals = handler["totals"]
        assert totals["requests"] == len(own), handler["name"]
        for name in CLASSES:
            assert totals[name] == sum(str(e["status"])[0] == name[0] for e in own), (handler["name"], name)
        assert (totals["bytes_in"], totals["bytes_out"]) == (sum(e["bytes_in"] for e in own), sum(e["bytes_out"] for e in own))
        for member, field in (("queue_ms", "queue_ms"), ("start_ms", "start_ms"), ("first_byte_ms", "first_byte_ms")):
            values = [e[field] for e in own if e[field] is not None]
            assert (handler[member] or {"count": 0})["count"] == len(values), (handler["name"], member)
            if values:
                assert handler[member]["max"] == pytest.approx(max(values), abs=0.002)
                assert handler[member]["mean"] == pytest.approx(sum(values) / len(values), abs=0.002)
        if handler["process"] == "per-request" and own:
            assert handler["cpu_ms"] == pytest.approx(sum(e["cpu_ms"] or 0 for e in own), abs=0.1)
        assert handler["starts"] == {kind: sum(start_of(e) == kind for e in own) for kind in ("cold", "parked", "forked")}
        assert handler["ended"]["waited"] == sum(start_of(e) in ("parked", "forked") for e in own)
        if handler["process"] != "persistent":
            assert handler["ended"]["count"] == sum(e["exit"] is not None or e["signal"] is not None for e in own), handler["name"]
            for member, field in (("cpu_ms", "cpu_ms"), ("start_cpu_ms", "start_cpu_ms"), ("faults", "faults"), ("start_faults", "start_faults")):
                assert handler["ended"][member] == pytest.approx(sum(e.get(field) or 0 for e in own), abs=0.05), (handler["name"], member)


def check_metrics_against_json(samples, reading):
    for handler in reading["handlers"]:
        name, totals = handler["name"], handler["totals"]
        for code in CLASSES:
            assert value(samples, "fcgi_host_requests_total", handler=name, code=code) == totals[code]
        assert sum(v for have, v in samples["fcgi_host_requests_total"].items() if ("handler", name) in have) == totals["requests"]
        for kind in FAILURES:
            assert value(samples, "fcgi_host_failures_total", handler=name, kind=kind) == totals[kind]
        assert value(samples, "fcgi_host_response_body_bytes_total", handler=name) == totals["bytes_out"]
        assert value(samples, "fcgi_host_process_starts_total", handler=name) == handler["started"]
        for state, n in handler["processes"].items():
            if state != "total":
                assert value(samples, "fcgi_host_processes", handler=name, state=state) == n
        if handler["process"] != "persistent":
            check_starts_against_json(samples, handler)
        assert ("zygote" == handler["process"]) == any(("handler", name) in have for have in samples["fcgi_host_zygotes"])
        if handler["process"] == "per-request":
            assert value(samples, "fcgi_host_cpu_seconds_total", handler=name) == pytest.approx(handler["cpu_ms"] / 1000, abs=1e-5)
    assert sum(samples["fcgi_host_unrouted_requests_total"].values()) == reading["unrouted"]["requests"]


def check_starts_against_json(samples, handler):
    """Of processes for one request each: how they were started, and what they used before it and for it."""
    name, ended = handler["name"], handler["ended"]
    for kind, n in handler["starts"].items():
        assert value(samples, "fcgi_host_request_starts_total", handler=name, start=kind) == n
    for waited, n in (("yes", ended["waited"]), ("no", ended["count"] - ended["waited"])):
        assert value(samples, "fcgi_host_request_processes_ended_total", handler=name, waited=waited) == n
    for metric, expected in (("request_cpu_seconds", ended["cpu_ms"] / 1000), ("start_cpu_seconds", ended["start_cpu_ms"] / 1000),
                             ("request_page_faults", ended["faults"]), ("start_page_faults", ended["start_faults"])):
        assert value(samples, f"fcgi_host_{metric}_total", handler=name) == pytest.approx(expected, abs=1e-5), (name, metric)
    if handler["process"] == "zygote":
        assert value(samples, "fcgi_host_zygotes", handler=name) == handler["zygotes"] == 1


def check_metrics_against_log(samples, lines):
    """Every bucket holds exactly the requests of the log that are as fast."""
    for handler in {e["handler"] for e in lines} - {None, "builtin:status"}:
        own = [e for e in lines if e["handler"] == handler]
        for metric, field in SPANS.items():
            # The total is of those that a handler was given.
            values = sorted(e[field] for e in own if e[field] is not None and (metric != "duration" or e["start_ms"] is not None))
            buckets = buckets_of(samples, f"fcgi_host_request_{metric}_seconds", handler)
            assert buckets[math.inf] == len(values), (handler, metric)
            for bound in BOUNDS:
                assert buckets[bound] == bisect.bisect_left(values, bound * 1000), (handler, metric, bound, values)
            total = value(samples, f"fcgi_host_request_{metric}_seconds_sum", handler=handler)
            assert total == pytest.approx(sum(values) / 1000, abs=1e-6 * (len(values) + 1))


def number_in(text):
    return int(re.sub(r"\D", "", text))


def check_page_against_json(browser, reading):
    rows = {r[0].split("\n")[0]: r for r in table(browser, "handler")}
    assert list(rows) == [h["name"] for h in reading["handlers"]]
    for handler in reading["handlers"]:
        row = rows[handler["name"]]
        assert number_in(row[3].split(", ")[1]) == handler["totals"]["requests"]
        for column, member in ((4, "queue_ms"), (5, "start_ms"), (6, "first_byte_ms"), (7, "latency_ms")):
            shown = re.findall(r"(p\d\d)\s+(?:([\d.]+) (ms|s)|–)", row[column])
            assert [p for p, *_ in shown] == ["p50", "p95", "p99"], row[column]
            for percentile, digits, unit in shown:
                if handler[member] is None:
                    assert digits == ""
                else:
                    ms = float(digits) * (1000 if unit == "s" else 1)
                    assert ms == pytest.approx(handler[member][percentile], rel=0.01, abs=0.006)
        is_ahead = handler["process"] in ("parked", "zygote")
        shown = {kind: int(n) for n, kind in re.findall(r"(\d+) (cold|parked|forked)", row[5])}
        assert shown == ({k: n for k, n in handler["starts"].items() if n} if is_ahead else {}), row[5]
        assert ("a zygote" in row[1]) == (handler["zygotes"] == 1), row[1]
        if is_ahead:
            _, within, before = (float(x) for x in re.findall(r"([\d.]+) ms", row[8]))
            assert within == pytest.approx(handler["ended"]["cpu_ms"] / handler["ended"]["count"], rel=0.01, abs=0.006)
            assert before == pytest.approx(handler["ended"]["start_cpu_ms"] / handler["ended"]["waited"], rel=0.01, abs=0.006)
        failed = sum(handler["totals"][k] for k in FAILURES)
        assert sum(map(int, re.findall(r"^\d+", row[9], re.M))) == failed
    shown = {r[7] for r in table(browser, "failure")}
    assert shown == {f["id"] for f in reading["failures"]}


@pytest.mark.limit(120)
def test_the_page_and_the_json_and_the_metrics_and_the_log_agree(make_host, make_front, fastcgi_program, folder):
    """After known traffic: page, `status --json`, OpenMetrics, log."""
    host = hosts_with_traffic(make_host, fastcgi_program)
    front = make_front("nginx-streaming", host)
    running, waiting = hold(host, "/full"), None
    wait_until(lambda: of(status(host), "full")["processes"]["busy"] == 1, 10)
    waiting = hold(host, "/full")
    wait_until(lambda: of(status(host), "full")["waiting"] == 1, 10)
    assert front.get("/full").status == 503
    (host.scratch / "go").write_text("")
    for conn in (running, waiting):
        assert conn.answer().status == 200
        conn.close()
    for path in ("/ok", "/w", "/w?sleep=5", "/w?body=100000"):
        assert front.get(path).status == 200
    lines = host.wait_log(event="request", count=22)
    assert len(lines) == 22
    wait_until(lambda: of(status(host), "zygote")["processes"]["idle"] == 2 and of(status(host), "parked")["processes"]["idle"] == 1, 20, "quiet")
    with chromium(folder) as browser:
        browser.get(front.url(PATH))
        wait_until(lambda: len(table(browser, "handler")) == 11, 15, "the rows of the page")
        reading = status(host)
        samples = parse(metrics_of(host))
        check_counts(reading)
        check_page_against_json(browser, reading)
    check_log_against_json(lines, reading)
    check_metrics_against_json(samples, reading)
    check_metrics_against_log(samples, lines)
    failed = {e["id"] for e in lines if e["status"] in (499, 502, 503, 504, 500) or "ended after" in (e["reason"] or "")}
    assert {f["id"] for f in reading["failures"]} == failed and len(failed) == 6
    assert reading["unrouted"]["requests"] == 1
    assert {w["process"]: w["totals"]["requests"] for w in reading["by_process"]} == {
        p: sum(e["process"] == p for e in lines) for p in ("per-request", "parked", "zygote", "persistent")}
    assert {start_of(e) for e in lines if e["handler"] == "parked"} == {"parked"} and of(reading, "zygote")["starts"]["forked"] >= 1


@pytest.mark.parametrize("front_name", fronts.WEB)
def test_the_metrics_through_every_web_server(make_host, make_front, front_name):
    host = make_host({"ok": HELLO}, more_routes=[ROUTE])
    front = make_front(front_name, host)
    for _ in range(5):
        assert front.get("/ok").status == 200
    host.wait_log(event="request", handler="ok", count=5)
    answer = front.get(PATH + "?format=openmetrics")
    samples = parse(answer.text)
    assert value(samples, "fcgi_host_requests_total", handler="ok", code="2xx") == 5


def test_no_counter_ever_goes_back(make_host, fastcgi_program):
    """While workers are replaced after every few requests."""
    host = make_host({"w": worker(fastcgi_program, workers={"max": 2, "max_requests": 3}), "h": HELLO}, more_routes=[ROUTE])
    before = {}
    for _ in range(60):
        for path in ("/w", "/h", "/w?body=1000"):
            host.request(path)
        samples = parse(metrics_of(host))
        for name, values in samples.items():
            if not name.endswith(("_total", "_bucket", "_count", "_sum")):
                continue
            for labels, number in values.items():
                assert number >= before.get((name, labels), 0), (name, labels)
                before[name, labels] = number
    assert value(samples, "fcgi_host_process_restarts_total", handler="w") > 20
