/* Asks for the JSON every two seconds and changes only what has changed, so that
 * nothing flickers, and what is selected or focused stays so. */
"use strict";

const EVERY_MS = 2000;
const PATIENCE_MS = 10000;
const PROCESSES_SHOWN = 200;
const FAILURES_SHOWN = 10;           /* until all of them are asked for */
const STATES = ["busy", "idle", "starting", "stopping"];
const KINDS = {
	timeouts: "timed out", refused: "refused", bad_gateway: "bad gateway", handler_errors: "handler's 5xx",
	broken: "broken off", client_gone: "client left",
};

const $ = (id) => document.getElementById(id);

/* Figures as text. */

const NONE = "\u2013";

function duration(ms) {
	if (ms === null || ms === undefined)
		return NONE;
	if (ms < 1000)
		return `${ms < 10 ? ms.toFixed(2) : ms < 100 ? ms.toFixed(1) : ms.toFixed(0)} ms`;
	const s = Math.floor(ms / 1000);
	if (s < 60)
		return `${(ms / 1000).toFixed(1)} s`;
	if (s < 3600)
		return `${Math.floor(s / 60)} min ${s % 60} s`;
	if (s < 86400)
		return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
	return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}

function memory(kib) {
	return kib === null || kib === undefined ? NONE : `${(kib / 1024).toFixed(1)} MiB`;
}

function count(n) {
	return n === null || n === undefined ? NONE : n.toLocaleString("en-US").replaceAll(",", "\u202f");
}

function rate(n) {
	return `${n < 10 ? n.toFixed(1) : count(Math.round(n))}/s`;
}

function share(part, whole) {
	return whole > 0 ? `${Math.round((100 * part) / whole)}\u202f%` : NONE;
}

const failed = (totals) => Object.keys(KINDS).reduce((sum, kind) => sum + totals[kind], 0);

/* Elements: made once, then only given what has changed. */

function make(parent, name, className, text) {
	const element = document.createElement(name);
	if (className)
		element.className = className;
	if (text !== undefined)
		element.textContent = text;
	parent.append(element);
	return element;
}

function setText(element, text) {
	if (element.textContent !== text)
		element.textContent = text;
}

function setAttribute(element, name, value) {
	if (element.getAttribute(name) !== String(value))
		element.setAttribute(name, value);
}

function setClass(element, name, isOn) {
	element.classList.toggle(name, isOn);
}

/* One child per entry, in their order; a key keeps its child. */
function reconcile(parent, entries, keyOf, create, update) {
	const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
	let at = parent.firstElementChild;
	for (const [index, entry] of entries.entries()) {
		const key = keyOf(entry, index);
		let child = old.get(key);
		old.delete(key);
		if (child === undefined) {
			child = create(parent, entry);
			child.dataset.key = key;
		}
		if (child === at)
			at = at.nextElementSibling;
		else
			parent.insertBefore(child, at);
		update(child, entry);
	}
	for (const child of old.values())
		child.remove();
}

function makeRow(parent, columns) {
	const row = make(parent, "tr");
	row.setAttribute("role", "row");
	for (const [index, [label, className]] of columns.entries()) {
		const cell = make(row, index === 0 ? "th" : "td", className);
		cell.setAttribute("role", index === 0 ? "rowheader" : "cell");
		if (index === 0)
			cell.scope = "row";
		cell.dataset.label = label;
		make(cell, "div", "content");
	}
	return row;
}

const content = (row, index) => row.children[index].firstElementChild;

function setCell(row, index, text) {
	setText(content(row, index), text);
	setClass(row.children[index], "empty", text === NONE || text === "");
}

/* Handlers. */

const HANDLER_COLUMNS = [["Handler"], ["Processes", "lines"], ["Waiting", "number"], ["Requests", "lines"], ["Queue", "lines times"],
	["Start", "lines times"], ["First byte", "lines times"], ["Total", "lines times"], ["CPU per request", "number lines"], ["Failed", "lines"]];

function sparkline(parent) {
	const name = "http://www.w3.org/2000/svg";
	const svg = document.createElementNS(name, "svg");
	svg.setAttribute("class", "spark");
	svg.setAttribute("viewBox", "0 0 59 20");
	svg.setAttribute("preserveAspectRatio", "none");
	svg.setAttribute("aria-hidden", "true");
	svg.append(document.createElementNS(name, "path"), document.createElementNS(name, "path"));
	parent.append(svg);
	return svg;
}

function drawSparkline(svg, counts) {
	const values = counts || new Array(60).fill(0);
	const most = Math.max(1, ...values);
	const line = values.map((n, x) => `${x === 0 ? "M" : "L"}${x} ${(19 - (n / most) * 18).toFixed(1)}`).join("");
	setAttribute(svg.children[0], "d", line);
	setAttribute(svg.children[1], "d", `${line}L59 20L0 20Z`);
}

function makeHandler(parent) {
	const row = makeRow(parent, HANDLER_COLUMNS);
	make(content(row, 0), "div");
	make(content(row, 0), "small");
	const bar = make(content(row, 1), "span", "bar");
	bar.setAttribute("aria-hidden", "true");
	for (const state of STATES)
		make(bar, "i", state);
	make(content(row, 1), "small");
	make(content(row, 3), "div");
	sparkline(content(row, 3));
	for (const index of [4, 5, 6, 7]) {
		content(row, index).classList.add("figures");
		for (const name of ["p50", "p95", "p99"]) {
			const line = make(content(row, index), "span", "figure");
			make(line, "small", "", name);
			make(line, "span");
		}
	}
	make(content(row, 5), "small", "starts");
	make(content(row, 8), "div");
	make(content(row, 8), "small");
	make(content(row, 8), "small");
	return row;
}

function setPercentiles(row, index, percentiles) {
	for (const [at, name] of ["p50", "p95", "p99"].entries())
		setText(content(row, index).children[at].lastElementChild, duration(percentiles && percentiles[name]));
	setClass(row.children[index], "empty", !percentiles);
}

function setProcesses(cell, handler) {
	const counts = handler.processes, max = handler.configured.workers.max;
	const whole = Math.max(max, counts.total);
	for (const [index, state] of STATES.entries()) {
		const width = `${(100 * counts[state]) / whole}%`;
		if (cell.firstElementChild.children[index].style.width !== width)
			cell.firstElementChild.children[index].style.width = width;
	}
	const parts = STATES.filter((state) => counts[state] > 0).map((state) => `${counts[state]} ${state}`);
	const zygotes = handler.zygotes > 0 ? `, and ${handler.zygotes > 1 ? `${handler.zygotes} zygotes` : "a zygote"}` : "";
	setText(cell.lastElementChild, `${parts.length > 0 ? parts.join(", ") : "none"} of ${max}${zygotes}`);
}

function setFailed(cell, totals) {
	const kinds = Object.keys(KINDS).filter((kind) => totals[kind] > 0);
	reconcile(cell, kinds.length > 0 ? kinds : ["none"], (kind) => kind, (parent) => make(parent, "span"), (span, kind) => {
		setText(span, kind === "none" ? "0" : `${count(totals[kind])} ${KINDS[kind]}`);
		setClass(span, "bad", kind !== "none" && kind !== "client_gone");
	});
	setClass(cell, "lines", true);
}

/* Processes that wait for their request: where it found one, and what that had used
 * before. */

const isAhead = (handler) => handler.process === "parked" || handler.process === "zygote";
const ahead = (starts) => starts.parked + starts.forked;
const cpuIn = ({ ended }) => (ended.count > 0 ? ended.cpu_ms / ended.count : null);
const cpuAhead = ({ ended }) => (ended.waited > 0 ? ended.start_cpu_ms / ended.waited : null);

function startsText(handler) {
	if (!isAhead(handler) || ahead(handler.starts) + handler.starts.cold === 0)
		return "";
	return Object.entries(handler.starts).filter(([, n]) => n > 0).map(([kind, n]) => `${count(n)} ${kind}`).join(", ");
}

function setCpu(row, handler) {
	const [all, within, before] = content(row, 8).children;
	setText(all, duration(handler.cpu_per_request_ms));
	setText(within, isAhead(handler) && handler.ended.count > 0 ? `${duration(cpuIn(handler))} in it` : "");
	setText(before, isAhead(handler) && handler.ended.waited > 0 ? `${duration(cpuAhead(handler))} before` : "");
	setClass(row.children[8], "empty", handler.cpu_per_request_ms === null);
}

function way(handler) {
	return handler.connect === null ? handler.process : `${handler.process}, run by someone else`;
}

function updateHandler(row, handler) {
	const name = content(row, 0), requests = content(row, 3);
	setText(name.children[0], handler.name);
	setText(name.children[1], `${handler.protocol}, ${way(handler)}${handler.retired ? ", retired" : ""}`);
	setProcesses(content(row, 1), handler);
	setCell(row, 2, `${count(handler.waiting)} of ${count(handler.configured.queue.max)}`);
	setClass(row.children[2], "bad", handler.waiting > 0);
	setText(requests.children[0], `${rate(handler.requests_per_second)}, ${count(handler.totals.requests)} so far`);
	drawSparkline(requests.children[1], handler.per_second);
	setPercentiles(row, 4, handler.queue_ms);
	setPercentiles(row, 5, handler.start_ms);
	setPercentiles(row, 6, handler.first_byte_ms);
	setPercentiles(row, 7, handler.latency_ms);
	setText(content(row, 5).lastElementChild, startsText(handler));
	setCpu(row, handler);
	setFailed(content(row, 9), handler.totals);
}

/* Ways of running. */

const span = (name, percentile) => (w) => w[name] && w[name][percentile];
const WAY_ROWS = [
	["Handlers", (w) => w.handlers, count, false],
	["Requests", (w) => w.totals.requests, count, false],
	["Requests per second", (w) => w.requests_per_second, rate, true],
	["Failed", (w) => failed(w.totals), count, false],
	["Queue, p50", span("queue_ms", "p50"), duration, true],
	["Start of a process, p50", span("start_ms", "p50"), duration, true],
	["First byte, p50", span("first_byte_ms", "p50"), duration, true],
	["Total, p50", span("latency_ms", "p50"), duration, true],
	["Total, p95", span("latency_ms", "p95"), duration, true],
	["Total, p99", span("latency_ms", "p99"), duration, true],
	["Found a process ready", (w) => (isAhead(w) ? w.starts : null), (s) => (s ? share(ahead(s), ahead(s) + s.cold) : NONE), false, "ahead"],
	["CPU per request", (w) => w.cpu_per_request_ms, duration, true],
	["in the request", (w) => (w.process === "persistent" ? null : cpuIn(w)), duration, true, "ahead part"],
	["before it", cpuAhead, duration, true, "ahead part"],
	["Memory of a process, at most", (w) => w.max_rss_kib || null, memory, true],
];

function makeWayRow(parent, [label, , , , className]) {
	const row = make(parent, "tr");
	make(row, "th", className, label).scope = "row";
	return row;
}

function makeWayCell(parent) {
	const cell = make(parent, "td");
	make(cell, "span");
	make(cell, "span", "length").setAttribute("aria-hidden", "true");
	return cell;
}

function updateWayRow(row, [, figure, format, hasBar], ways) {
	const values = ways.map(figure);
	const most = Math.max(...values.map((v) => v || 0));
	while (row.children.length < ways.length + 1)
		makeWayCell(row);
	while (row.children.length > ways.length + 1)
		row.lastElementChild.remove();
	for (const [index, value] of values.entries()) {
		const [text, bar] = row.children[index + 1].children;
		setText(text, format(value));
		bar.hidden = !hasBar || !(value >= 0.01);
		bar.style.width = `${most > 0 ? (100 * (value || 0)) / most : 0}%`;
	}
}

function updateWays(ways) {
	const table = $("way-table"), head = table.tHead.rows[0];
	table.style.setProperty("--ways", String(ways.length));
	const titles = ["Figure", ...ways.map((w) => w.process)];
	reconcile(head, titles, (title) => title, (parent, title) => {
		const cell = make(parent, "th", "", title);
		cell.scope = "col";
		return cell;
	}, () => {});
	/* Some are only of processes that wait. */
	const rows = WAY_ROWS.filter(([, , , , className]) => !className || ways.some(isAhead));
	reconcile(table.tBodies[0], rows, ([label]) => label, makeWayRow, (row, figure) => updateWayRow(row, figure, ways));
	$("one-way").hidden = ways.length > 1;
}

/* Failures and processes. */

const FAILURE_COLUMNS = [["Time (UTC)", "time"], ["What", "time"], ["Status", "number"], ["Handler"], ["Request", "wrap"], ["Took", "number"], ["Reason", "wrap"],
	["Request id", "id"]];
const PROCESS_COLUMNS = [["Handler"], ["PID", "number"], ["State"], ["Age", "number"], ["Requests", "number"], ["CPU", "number"],
	["Memory", "number"], ["At work for", "number"], ["Request id", "id"]];

function setEmpty(what, isEmpty) {
	$(`${what}-table`).tHead.hidden = isEmpty;
	$(`${what}-none`).hidden = !isEmpty;
}

function updateFailure(row, failure) {
	const cells = [failure.time.slice(0, 19).replace("T", " "), KINDS[failure.kind], String(failure.status), failure.handler || NONE,
		`${failure.method} ${failure.path}`, duration(failure.total_ms), failure.reason || NONE, failure.id];
	for (const [index, text] of cells.entries())
		setCell(row, index, text);
}

function updateFailures(failures) {
	const button = $("all-failures"), isAll = button.getAttribute("aria-pressed") === "true";
	reconcile($("failure-table").tBodies[0], isAll ? failures : failures.slice(0, FAILURES_SHOWN), (f) => f.id,
		(parent) => makeRow(parent, FAILURE_COLUMNS), updateFailure);
	setEmpty("failure", failures.length === 0);
	button.hidden = failures.length <= FAILURES_SHOWN;
	setText(button, `All ${failures.length}`);
}

function updateProcess(row, process) {
	const cells = [process.handler, process.pid === null ? NONE : String(process.pid), process.state, duration(process.age_ms),
		count(process.requests), duration(process.cpu_ms), memory(process.rss_kib), duration(process.request_age_ms), process.request || NONE];
	for (const [index, text] of cells.entries())
		setCell(row, index, text);
}

function updateProcesses(handlers) {
	const all = handlers.flatMap((h) => h.process_list.map((p, index) => ({ handler: h.name, index, ...p })));
	const shown = all.slice(0, PROCESSES_SHOWN);
	reconcile($("process-table").tBodies[0], shown, (p) => `${p.handler} ${p.pid === null ? p.request || p.index : p.pid}`,
		(parent) => makeRow(parent, PROCESS_COLUMNS), updateProcess);
	setEmpty("process", all.length === 0);
	$("more-processes").hidden = all.length <= shown.length;
	setText($("more-processes"), `And ${count(all.length - shown.length)} more.`);
}

/* The host. */

function updateHost(host) {
	const processes = host.max_processes > 0 ? `${count(host.processes)} of ${count(host.max_processes)}` : count(host.processes);
	const facts = [["Version", host.version], ["PID", String(host.pid)], ["Up", duration(host.uptime_ms)], ["Processes", processes],
		["Connections", count(host.connections)], ["Without a route", count(host.unrouted.requests)], ["Reloads", count(host.reloads)],
		["Log lines dropped", count(host.log_lines_dropped)], ["Configuration", host.config]];
	reconcile($("host"), facts, ([name]) => name, (parent, [name]) => {
		const pair = make(parent, "div");
		make(pair, "dt", "", name);
		make(pair, "dd");
		return pair;
	}, (pair, [, value]) => setText(pair.lastElementChild, value));
	const paused = host.listeners.filter((l) => l.state === "paused").length;
	setText($("state"), paused > 0 ? `${host.state}, ${paused} listener${paused > 1 ? "s" : ""} paused` : host.state);
	setClass($("state"), "alarm", host.state !== "running" || paused > 0);
}

function show(host) {
	updateHost(host);
	reconcile($("handler-table").tBodies[0], host.handlers, (h) => `${h.name} ${h.generation}`, makeHandler, updateHandler);
	updateWays(host.by_process);
	updateFailures(host.failures);
	updateProcesses(host.handlers);
}

/* Again and again. */

let timer = 0, isPaused = false, isAsking = false, last = null, shown = null;

async function ask() {
	const answer = await fetch(`${location.pathname}?format=json`, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
	if (!answer.ok)
		throw new Error(`The answer is ${answer.status}.`);
	return answer.json();
}

async function refresh() {
	clearTimeout(timer);
	if (isAsking)
		return;
	isAsking = true;
	try {
		shown = await ask();
		show(shown);
		last = new Date();
		setText($("message"), "");
	} catch (error) {
		const since = last === null ? "" : ` Figures are of ${last.toLocaleTimeString()}.`;
		setText($("message"), `No figures: ${error.message}${since}`);
	}
	isAsking = false;
	if (!isPaused && !document.hidden)
		timer = setTimeout(refresh, EVERY_MS);
}

$("pause").addEventListener("click", () => {
	isPaused = !isPaused;
	setAttribute($("pause"), "aria-pressed", isPaused);
	if (isPaused)
		clearTimeout(timer);
	else
		refresh();
});
$("all-failures").addEventListener("click", () => {
	setAttribute($("all-failures"), "aria-pressed", $("all-failures").getAttribute("aria-pressed") !== "true");
	updateFailures(shown.failures);
});
document.addEventListener("visibilitychange", () => {
	if (!document.hidden && !isPaused)
		refresh();
});
refresh();
