"""`builtin: status`: who may see it, in which forms, and that the page shows what the host says, whatever the pools do."""
import json
import re

import pytest

from lib import fronts, wire
from lib.browser import chromium
from lib.handlers import HELLO, worker
from lib.paths import REPO
from lib.wait import wait_until
from test_environment import ask
from test_status import PARKED, UNTIL_GO, ZYGOTE, check_counts, hold, of, status

PATH = "/-/status"
ROUTE = {"path": PATH, "builtin": "status"}
LONG_NAME = "a-handler-whose-name-is-as-long-as-the-name-of-a-handler-may-be0"


def seen_by(host, address, **params):
    """The answer to who comes from this address, as the web server says."""
    return ask(host, wire.variables(params.pop("path", PATH), params.pop("method", "GET"), REMOTE_ADDR=address, **params))


# --- who

def test_without_allow_it_is_for_private_addresses(make_host):
    host = make_host({"h": HELLO}, more_routes=[ROUTE])
    for address in ("127.0.0.1", "10.1.2.3", "172.20.0.1", "192.168.7.7", "::1", "fd00::7", "fe80::1%eth0", "::ffff:10.0.0.1"):
        assert seen_by(host, address).status == 200, address
    for address in ("8.8.8.8", "172.32.0.1", "2001:db8::1", "::ffff:8.8.8.8", "unix:", "", "localhost", "127.0.0.1, 8.8.8.8", None):
        answer = seen_by(host, address)
        assert answer.status == 403 and answer.body == b"403 Forbidden\n", address
        assert seen_by(host, address, path=PATH + "?format=json").status == 403
    line = host.wait_log(event="request", status=403, count=1)
    assert (line["route"], line["handler"], line["process"]) == (PATH, "builtin:status", None) and "8.8.8.8" in line["reason"]


def test_with_allow_it_is_for_those_alone(make_host):
    host = make_host({"h": HELLO}, more_routes=[{**ROUTE, "allow": ["192.0.2.0/24", "2001:db8::/32"]}])
    for address, expected in (("192.0.2.9", 200), ("2001:db8:1::1", 200), ("127.0.0.1", 403), ("10.0.0.1", 403), ("::1", 403), ("192.0.3.1", 403)):
        assert seen_by(host, address).status == expected, address


def test_no_header_of_a_client_changes_who_it_is(make_host, make_front):
    host = make_host({"h": HELLO}, more_routes=[{**ROUTE, "allow": ["192.0.2.0/24"]}])
    front = make_front("nginx-kept", host)
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Remote-Addr", "REMOTE_ADDR"):
        assert front.request(PATH, headers=[(name, "192.0.2.1")]).status == 403


def test_a_local_redirect_gives_nobody_more(make_host):
    host = make_host({"h": f"printf 'Location: {PATH}?format=json\\n\\n'"}, more_routes=[ROUTE])
    assert json.loads(seen_by(host, "127.0.0.1", path="/h").body)["state"] == "running"
    assert seen_by(host, "8.8.8.8", path="/h").status == 403
    host.wait_log(event="request", count=2)
    assert status(host)["builtin"]["requests"] == 2


# --- what

@pytest.mark.parametrize("front_name", fronts.USUAL)
def test_the_three_forms_through_every_front(make_host, make_front, front_name):
    host = make_host({"h": HELLO}, more_routes=[ROUTE])
    front = make_front(front_name, host)
    page = front.request(PATH)
    assert (page.status, page.get("Content-Type"), page.complete) == (200, "text/html; charset=utf-8", True)
    assert page.text.startswith("<!DOCTYPE html>") and page.text.rstrip().endswith("</html>")
    assert front.request(PATH + "?format=html").status == 200
    answer = front.request(PATH + "?x=1&format=json")
    assert (answer.status, answer.get("Content-Type")) == (200, "application/json")
    reading = json.loads(answer.body)
    check_counts(reading)
    assert reading["pid"] == status(host)["pid"] and set(reading) == set(status(host))
    metrics = front.request(PATH + "?format=openmetrics")
    assert (metrics.status, metrics.get("Content-Type")) == (200, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert metrics.text.endswith("# EOF\n")
    for one in (page, answer, metrics):
        assert one.get("Cache-Control") == "no-store" and one.get("X-Content-Type-Options") == "nosniff"


def test_other_formats_and_methods(make_host, front):
    host = make_host({"h": HELLO}, more_routes=[ROUTE])
    client = front(host)
    assert client.request(PATH + "?format=xml").status == 400
    head = client.request(PATH, "HEAD")
    assert (head.status, head.body, head.complete) == (200, b"", True)
    answer = client.request(PATH, "POST", b"x" * 100000)
    assert answer.status == 413 or (answer.status == 405 and answer.get("Allow") == "GET, HEAD")
    answer = client.request(PATH, "DELETE")
    assert (answer.status, answer.get("Allow")) == (405, "GET, HEAD")


def test_a_get_with_a_body(make_host):
    host = make_host({"h": HELLO}, more_routes=[ROUTE])
    answer = wire.request(host.address, PATH, "GET", b"y" * 5000, chunked=True)
    assert answer.status == 200 and answer.complete and b"</html>" in answer.body
    answer = wire.request(host.address, PATH, "GET", b"y" * 5000)
    assert answer.status == 200 and answer.complete


def test_a_large_answer_reaches_a_slow_reader_whole(make_host):
    host = make_host({"h": HELLO}, more_routes=[ROUTE], start=False)
    text = host.config.read_text()
    host.write_text(text.replace("handlers:\n", "handlers:\n" + "".join(f"  h{i}: {{command: [handlers/h]}}\n" for i in range(1500))))
    host.start()
    conn = host.connect()
    conn.start(wire.variables(PATH + "?format=json"))
    conn.send(wire.record(wire.STDIN))
    assert host.request("/h").status == 200, "others are served while it waits"
    answer = conn.answer()
    assert answer.status == 200 and len(answer.body) > 1 << 20
    assert len(json.loads(answer.body)["handlers"]) == 1501
    # Who goes in the middle costs nothing.
    for _ in range(3):
        conn = host.connect()
        conn.start(wire.variables(PATH + "?format=json"))
        conn.send(wire.record(wire.STDIN))
        conn.socket.recv(1000)
        conn.close()
    assert host.wait_log(event="request", status=200, handler="builtin:status", reason=re.compile("closed the connection"))


def test_only_so_many_answers_wait_in_memory(make_host):
    host = make_host({"h": HELLO}, more_routes=[ROUTE], start=False)
    text = host.config.read_text()
    host.write_text(text.replace("handlers:\n", "handlers:\n" + "".join(f"  h{i}: {{command: [handlers/h]}}\n" for i in range(1500))))
    host.start()
    for _ in range(16):
        conn = host.connect()
        conn.start(wire.variables(PATH + "?format=json"))
        conn.send(wire.record(wire.STDIN))
        conn.socket.recv(100)
    answer = seen_by(host, "127.0.0.1")
    assert answer.status == 503 and answer.get("Retry-After")
    for conn in host.connections:
        conn.close()
    wait_until(lambda: seen_by(host, "127.0.0.1").status == 200, 10, "room again")


def test_it_answers_while_every_pool_is_busy(make_host, front, fastcgi_program):
    host = make_host({"h": {"script": UNTIL_GO, "workers": {"max": 1}, "queue": {"max": 2, "timeout": "30s"}},
                      "w": worker(fastcgi_program, workers={"max": 1})}, more_routes=[ROUTE])
    client = front(host)
    held = [hold(host, "/h") for _ in range(3)] + [hold(host, "/w?sleep=3000")]
    wait_until(lambda: of(status(host), "h")["waiting"] == 2 and of(status(host), "w")["processes"]["busy"] == 1, 10, "busy pools")
    for form in ("", "?format=json", "?format=openmetrics"):
        assert client.request(PATH + form, timeout=5).status == 200
    reading = json.loads(client.request(PATH + "?format=json").body)
    check_counts(reading)
    assert [of(reading, n)["processes"]["busy"] for n in "hw"] == [1, 1] and of(reading, "h")["waiting"] == 2
    (host.scratch / "go").write_text("")
    for conn in held:
        assert conn.answer().status == 200
        conn.close()


def test_it_goes_with_a_reload(make_host):
    host = make_host({"h": HELLO})
    assert seen_by(host, "127.0.0.1").status == 404
    host.write({"h": HELLO}, more_routes=[ROUTE])
    assert host.command("reload", "-c", str(host.config)).returncode == 0
    assert seen_by(host, "127.0.0.1").status == 200
    table = host.command("routes", "-c", str(host.config)).stdout.decode()
    assert re.search(rf"{PATH} +status +builtin", table)
    one = host.command("routes", "-c", str(host.config), "GET", PATH).stdout.decode()
    assert "builtin       status" in one
    host.write({"h": HELLO}, more_routes=[{**ROUTE, "allow": ["192.0.2.1"]}])
    assert host.command("reload", "-c", str(host.config)).returncode == 0
    assert seen_by(host, "127.0.0.1").status == 403


def test_recent_failures_have_their_ids_and_are_bounded(make_host):
    host = make_host({"none": "exit 3", "ok": HELLO})
    for n in range(60):
        assert host.request(f"/none/{n}").status == 502
    host.request("/ok")
    lines = host.wait_log(event="request", handler="none", count=60)
    failures = status(host)["failures"]
    assert len(failures) == 50, "the ring is of a fixed size"
    assert [f["id"] for f in failures] == [e["id"] for e in reversed(lines[10:])], "the newest first"
    for failure, line in zip(failures, reversed(lines)):
        assert (failure["path"], failure["status"], failure["kind"]) == (line["path"], 502, "bad_gateway")
        assert failure["reason"] == line["reason"] and failure["total_ms"] == pytest.approx(line["total_ms"], abs=0.002)


# --- the page is one file that asks nobody else for anything

def test_the_page_needs_nothing_from_elsewhere(make_host):
    host = make_host({"h": HELLO}, more_routes=[ROUTE])
    answer = seen_by(host, "127.0.0.1")
    text = answer.body.decode()
    assert not re.search(r"""(?:src|href)=["'](?!\?format=|#|data:,)""", text), "no address but its own"
    assert "http://www.w3.org/2000/svg" in text and len(re.findall(r"https?://", text)) == 1
    policy = answer.get("Content-Security-Policy")
    nonce = re.search(r"script-src 'nonce-(\w{32})'", policy).group(1)
    assert text.count(f'nonce="{nonce}"') == 2 and "default-src 'none'" in policy and "unsafe" not in policy
    assert nonce not in seen_by(host, "127.0.0.1").get("Content-Security-Policy"), "a new one for each answer"


# --- in a browser

@pytest.fixture
def page(make_host, make_front, fastcgi_program, folder):
    """A host with handlers of both ways, some traffic, nginx, and what opens its page in a browser."""
    host = make_host({
        "once": {"command": [str(fastcgi_program)], "protocol": "fastcgi", "process": "per-request", "workers": {"max": 2}},
        "kept": worker(fastcgi_program, workers={"max": 1}), "none": "exit 3", "ahead": PARKED, "forked": ZYGOTE, LONG_NAME: HELLO,
        "held": {"script": UNTIL_GO, "workers": {"max": 1}, "queue": {"max": 5, "timeout": "60s"}}}, more_routes=[ROUTE])
    front = make_front("nginx-kept", host)
    wait_until(lambda: all(of(status(host), n)["processes"]["idle"] for n in ("ahead", "forked")), 20, "processes that wait")
    for path in ("/once", "/kept", "/kept", "/kept", "/none", "/ahead", "/forked"):
        front.request(path)
    host.wait_log(event="request", count=7)
    wait_until(lambda: all(of(status(host), n)["processes"]["idle"] for n in ("ahead", "forked")), 20, "the next ones")
    opened = []

    def open_page(**options):
        context = chromium(folder, **options)
        browser = context.__enter__()
        opened.append(context)
        browser.get(front.url(PATH))
        wait_until(lambda: row_of(browser, "held"), 15, "the rows")
        return browser
    open_page.host, open_page.front = host, front
    yield open_page
    for context in opened:
        context.__exit__(None, None, None)


def table(browser, name):
    return browser.execute_script(
        "return [...document.querySelectorAll(`#${arguments[0]}-table tbody tr`)].map(r => [...r.children].map(c => c.innerText.trim()))", name)


def row_of(browser, name):
    return next((r for r in table(browser, "handler") if r[0].split("\n")[0] == name), None)


def errors_of(browser):
    return [m for m in browser.get_log("browser") if m["level"] in ("SEVERE", "WARNING")]


@pytest.mark.limit(120)
def test_the_page_shows_what_the_host_says(page):
    browser = page()
    reading = status(page.host)
    assert [r[0].split("\n")[0] for r in table(browser, "handler")] == [h["name"] for h in reading["handlers"]]
    kept = row_of(browser, "kept")
    assert kept[0].split("\n")[1] == "fastcgi, persistent"
    assert kept[1] == "1 idle of 1" and kept[2] == "0 of 100" and kept[3].endswith("3 so far")
    p50 = of(reading, "kept")["latency_ms"]["p50"]
    assert f"{p50:.2f} ms" in kept[7]
    assert row_of(browser, "none")[9] == "1 bad gateway"
    ways = {r[0]: r[1:] for r in table(browser, "way")}
    heads = browser.execute_script("return [...document.querySelectorAll('#way-table thead th')].map(c => c.innerText)")
    assert heads[1:] == ["per-request", "parked", "zygote", "persistent"]
    assert ways["Requests"] == ["2", "1", "1", "3"] and ways["Handlers"] == ["4", "1", "1", "1"]
    assert row_of(browser, "ahead")[1] == "1 idle of 8" and "1 parked" in row_of(browser, "ahead")[5]
    assert row_of(browser, "forked")[1] == "1 idle of 8, and a zygote" and "1 forked" in row_of(browser, "forked")[5]
    assert ways["Found a process ready"] == ["–", "100\u202f%", "100\u202f%", "–"]
    assert [text != "–" for text in ways["before it"]] == [False, True, True, False]
    (failure,) = table(browser, "failure")
    assert failure[1:5] == ["bad gateway", "502", "none", "GET /none"] and failure[7] == reading["failures"][0]["id"]
    processes = table(browser, "process")
    assert sorted(p[0::2][:2] for p in processes) == [["ahead", "idle"], ["forked", "idle"], ["forked", "zygote"], ["kept", "idle"]]
    (process,) = [p for p in processes if p[0] == "kept"]
    assert process[:3] == ["kept", str(of(reading, "kept")["process_list"][0]["pid"]), "idle"]
    assert not errors_of(browser)


@pytest.mark.limit(120)
def test_without_requests_it_says_so(make_host, make_front, folder):
    """No heads of tables without rows, and nothing about processes that wait where none does."""
    host = make_host({"h": {"script": UNTIL_GO}}, more_routes=[ROUTE])
    front = make_front("nginx-kept", host)
    with chromium(folder) as browser:
        browser.get(front.url(PATH))
        wait_until(lambda: row_of(browser, "h"), 15, "the row")
        shown = "return ['failure', 'process'].map(n => [document.querySelector(`#${n}-table thead`).offsetHeight > 1, document.querySelector(`#${n}-none`).offsetHeight > 1])"
        assert browser.execute_script(shown) == [[False, True], [False, True]]
        assert row_of(browser, "h")[1] == "none of 8" and row_of(browser, "h")[3] == "0.0/s, 0 so far"
        rows = [r[0] for r in table(browser, "way")]
        assert "CPU per request" in rows and "before it" not in rows and "Found a process ready" not in rows
        held = hold(host, "/h")
        wait_until(lambda: browser.execute_script(shown)[1] == [True, False], 15, "a process")
        (host.scratch / "go").write_text("")
        assert held.answer().status == 200
        held.close()
        assert not errors_of(browser)


@pytest.mark.limit(120)
def test_it_refreshes_itself_and_leaves_alone_what_did_not_change(page):
    browser = page()
    browser.execute_script("""
        window.rows = [...document.querySelectorAll('#handler-table tbody tr')];
        window.changes = [];
        new MutationObserver(list => list.forEach(m => changes.push(m.target.nodeName)))
            .observe(document.querySelector('#failure-table'), {childList: true, subtree: true, attributes: true, characterData: true});
        getSelection().selectAllChildren(rows[0].children[0]);
        document.querySelector('.scroll').focus({preventScroll: true});
        scrollTo(0, 200);""")
    selected = browser.execute_script("return String(getSelection())")
    for _ in range(4):
        page.front.request("/kept")
    wait_until(lambda: row_of(browser, "kept")[3].endswith("7 so far"), 20, "the new figures")
    assert browser.execute_script("return rows.every((r, i) => r === document.querySelectorAll('#handler-table tbody tr')[i])"), "the same rows"
    assert browser.execute_script("return changes") == [], "what did not change was not touched"
    assert browser.execute_script("return String(getSelection())") == selected != ""
    assert browser.execute_script("return [document.activeElement.className, scrollY]") == ["scroll", 200], "the focus and the place on the page stay"
    browser.find_element("id", "pause").click()
    assert browser.find_element("id", "pause").get_attribute("aria-pressed") == "true"
    page.front.request("/kept")
    browser.find_element("id", "pause").click()
    wait_until(lambda: row_of(browser, "kept")[3].endswith("8 so far"), 20, "going on after the pause")
    assert not errors_of(browser)


@pytest.mark.limit(120)
def test_the_page_while_every_pool_is_busy_and_after_the_host_has_gone(page):
    host = page.host
    held = [hold(host, "/held") for _ in range(3)] + [hold(host, "/kept?sleep=8000")]
    wait_until(lambda: of(status(host), "held")["waiting"] == 2 and of(status(host), "kept")["processes"]["busy"] == 1, 10, "busy pools")
    browser = page()
    wait_until(lambda: row_of(browser, "held")[1:3] == ["1 busy of 1", "2 of 5"], 10, "a busy process and two that wait")
    wait_until(lambda: row_of(browser, "kept")[1] == "1 busy of 1", 5)
    busy = [p for p in table(browser, "process") if p[2] == "busy"]
    assert {p[0] for p in busy} == {"held", "kept"} and all("-" in p[8] for p in busy), "with the ids of their requests"
    (host.scratch / "go").write_text("")
    for conn in held:
        assert conn.answer().status == 200
        conn.close()
    assert browser.find_element("id", "message").text == ""
    host.stop()
    wait_until(lambda: "502" in browser.find_element("id", "message").text, 20, "a word on missing figures")
    assert row_of(browser, "held"), "the last figures stay"
    host.start()
    wait_until(lambda: browser.find_element("id", "message").text == "", 20, "figures again")


ACCESS = """
const out = [];
const luminance = c => { const [r, g, b] = c.map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const rgb = s => s.match(/[\\d.]+/g).map(Number);
const backOf = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || e.closest('script, style, noscript, [hidden]') || !e.getClientRects().length) continue;
    const a = luminance(rgb(getComputedStyle(e).color).slice(0, 3)), b = luminance(backOf(e).slice(0, 3));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) out.push([walker.currentNode.data.trim(), contrast.toFixed(2)]);
}
return out;
"""


@pytest.mark.limit(120)
@pytest.mark.parametrize("size, is_dark", [((1440, 900), False), ((1440, 900), True), ((1024, 768), False), ((390, 844), True), ((360, 740), False)])
def test_it_can_be_read_on_every_screen(page, size, is_dark):
    browser = page(size=size, is_dark=is_dark)
    back = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", back)[:3])) < 200) == is_dark
    assert browser.execute_script(ACCESS) == [], "texts without enough contrast"
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out sideways"
    cut = browser.execute_script("""return [...document.querySelectorAll('td, th, dd')].filter(e =>
        e.getClientRects().length && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).position !== 'absolute').map(e => e.innerText)""")
    assert not cut, "no text is cut"
    if size[0] < 600:
        labels = browser.execute_script(
            "return [...document.querySelectorAll('#handler-table tr:nth-child(2) td')].map(e => getComputedStyle(e, '::before').content)")
        assert labels[0] == '"Processes"' and all(len(x) > 2 for x in labels), "each figure says what it is"


@pytest.mark.limit(120)
def test_it_can_be_used_by_keyboard_and_by_screen_readers(page):
    from selenium.webdriver.common.keys import Keys
    browser = page()
    assert browser.execute_script("return document.documentElement.lang") == "en"
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]

    def named(role):
        return {n.get("name", {}).get("value") for n in tree if n.get("role", {}).get("value") == role}
    assert {"Handlers", "Recent failures", "Processes"} <= {n.split("\n")[0] for n in named("table")}
    assert any(n.startswith("Ways of running") for n in named("table"))
    assert "Pause" in named("button") and "CPU per request" in named("columnheader")
    assert any("kept" in n for n in named("rowheader")), "a row is named by its handler"
    live = browser.execute_script("return [...document.querySelectorAll('[aria-live], [role=status], [role=alert]')].map(e => e.id)")
    assert live == ["message"], "only trouble is spoken"
    reached = []
    for _ in range(12):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        if browser.execute_script("return document.activeElement === document.body"):
            break
        reached.append(browser.execute_script("""const e = document.activeElement, s = getComputedStyle(e);
            return [e.className || e.id || e.innerText, e.matches(':focus-visible') && s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2]"""))
    names = [n for n, _ in reached]
    assert names[0] == "skip" and "pause" in names and "JSON" in names and "scroll" in names
    assert all(is_visible for _, is_visible in reached), reached
    # On smaller screens the rows are cards, but a table all the same.
    for width in (1024, 360):
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 740, "deviceScaleFactor": 1, "mobile": width < 600})
        tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        assert any("kept" in n for n in named("rowheader")) and "CPU per request" in named("columnheader") and named("cell")


@pytest.mark.limit(120)
def test_more_failures_are_a_button_away_and_no_text_becomes_markup(page):
    for n in range(14):
        page.front.request(f"/none/%3Cimg%20src=x%20onerror=alert({n})%3E")
    page.host.wait_log(event="request", handler="none", count=15)
    browser = page()
    wait_until(lambda: len(table(browser, "failure")) == 10, 10, "ten of them")
    assert table(browser, "failure")[0][4] == "GET /none/<img src=x onerror=alert(13)>"
    assert browser.execute_script("return document.images.length") == 0
    browser.find_element("id", "all-failures").click()
    wait_until(lambda: len(table(browser, "failure")) == 15, 5, "all of them")
    assert not errors_of(browser)


# --- the configurations of web servers

def test_the_shipped_nginx_configuration(make_host, make_front):
    host = make_host({"h": HELLO}, more_routes=[{**ROUTE, "allow": ["127.0.0.1", "198.51.100.7"]}])
    front = make_front("nginx-kept", host, server="include fcgi-host/fcgi-host-status.conf; set_real_ip_from 127.0.0.1; real_ip_header X-Client;")
    assert front.request(PATH).status == 200
    assert front.request(PATH + "?format=json").get("Content-Type") == "application/json"
    answer = front.request(PATH, headers=[("X-Client", "198.51.100.7")])
    assert answer.status == 403 and b"nginx" in answer.body, "nginx itself says no"
    assert len(host.log(event="request")) == 2


def test_the_address_that_nginx_takes_from_a_proxy_counts(make_host, make_front):
    host = make_host({"h": HELLO}, more_routes=[ROUTE])
    front = make_front("nginx-kept", host, server="set_real_ip_from 127.0.0.1; real_ip_header X-Client;")
    assert front.request(PATH, headers=[("X-Client", "198.51.100.7")]).status == 403
    assert front.request(PATH, headers=[("X-Client", "10.0.0.7")]).status == 200


@pytest.mark.parametrize("front_name", ["mod_proxy_fcgi", "mod_fcgid"])
def test_the_shipped_apache_configuration(make_host, make_front, front_name):
    host = make_host({"h": HELLO}, more_routes=[ROUTE])
    front = make_front(front_name, host, extra=(REPO / "apache/status.conf").read_text())
    assert front.request(PATH).status == 200 and front.request("/h").status == 200
    remote = f"LoadModule remoteip_module {fronts.MODULES}/mod_remoteip.so\nRemoteIPHeader X-Client\nRemoteIPInternalProxy 127.0.0.1\n"
    front = make_front(front_name, host, extra=(REPO / "apache/status.conf").read_text() + remote)
    answer = front.request(PATH, headers=[("X-Client", "198.51.100.7")])
    assert answer.status == 403 and b"<html>" in answer.body, "Apache itself says no"
    assert front.request("/h", headers=[("X-Client", "198.51.100.7")]).status == 200
