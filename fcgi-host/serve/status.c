#include "serve/status.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "process/look.h"
#include "serve/host.h"
#include "serve/listener.h"
#include "serve/request.h"
#include "serve/site.h"

#include <stdlib.h>
#include <unistd.h>

/* Looking at a process in /proc takes some 20 us, and all requests wait for it.
 * What was not looked at is null. */
enum { LOOKS_MAX = 500 };

#define NOWHERE SIZE_MAX

/* A pool in this reading, and its requests that are with a process. */
struct place {
	struct pool_entry *entry;
	struct request **requests;
	size_t requests_count;
};

struct reading {
	struct host *host;
	struct place *places;
	size_t places_count;
	size_t in_use_count;            /* the first ones: of the configuration in use */
	struct request **requests;      /* grouped by place */
	uint64_t now_ns;
	unsigned looks;
	struct json json;
};

/* The processes of one handler. */
struct processes {
	struct reading *reading;
	const struct place *place;
	uint64_t cpu_us, max_rss_kib;   /* so far */
	unsigned alive;
	bool is_unseen;                 /* some were not looked at */
};

static uint64_t since_us(const struct reading *reading, uint64_t from_ns)
{
	return from_ns == 0 || from_ns > reading->now_ns ? 0 : (reading->now_ns - from_ns) / 1000;
}

/* Which requests are where. */

static bool is_with_process(const struct request *request)
{
	return request->backend != NULL &&
		(request->state == REQUEST_STARTING || request->state == REQUEST_RUNNING || request->state == REQUEST_ENDING);
}

static struct place *place_of(const struct reading *reading, const struct request *request)
{
	const struct pool_entry *entry = pool_owner(request->pool);

	return &reading->places[entry->place];
}

static void add_place(struct reading *reading, struct pool_entry *entry)
{
	if (entry->place != NOWHERE)
		return;
	entry->place = reading->places_count;
	reading->places[reading->places_count++].entry = entry;
}

/* In the order of the file, then those that belong to no configuration in use. */
static int find_places(struct reading *reading)
{
	const struct site *site = reading->host->site;
	size_t count = 0;

	for (struct pool_entry *entry = reading->host->pools; entry != NULL; entry = entry->next, count++)
		entry->place = NOWHERE;
	reading->places = calloc(count + 1, sizeof(*reading->places));
	if (reading->places == NULL)
		return -1;
	for (size_t i = 0; i < site->config->handlers_count; i++)
		add_place(reading, pool_owner(site->pools[i]));
	reading->in_use_count = reading->places_count;
	for (struct pool_entry *entry = reading->host->pools; entry != NULL; entry = entry->next)
		add_place(reading, entry);
	return 0;
}

static int group_requests(struct reading *reading)
{
	size_t count = 0;
	struct request **next;

	for (struct request *request = reading->host->requests; request != NULL; request = request->next) {
		if (is_with_process(request)) {
			place_of(reading, request)->requests_count++;
			count++;
		}
	}
	reading->requests = next = calloc(count + 1, sizeof(*next));
	if (next == NULL)
		return -1;
	for (size_t i = 0; i < reading->places_count; i++) {
		reading->places[i].requests = next;
		next += reading->places[i].requests_count;
		reading->places[i].requests_count = 0;
	}
	for (struct request *request = reading->host->requests; request != NULL; request = request->next) {
		if (is_with_process(request)) {
			struct place *place = place_of(reading, request);

			place->requests[place->requests_count++] = request;
		}
	}
	return 0;
}

/* Processes. */

static void put_request(struct reading *reading, const struct request *request)
{
	struct json *json = &reading->json;

	if (request == NULL) {
		json_null(json, "request");
		json_null(json, "request_age_ms");
		return;
	}
	json_str(json, "request", request->id);
	json_ms(json, "request_age_ms", since_us(reading, request->begun_ns));
}

static void put_look(struct processes *processes, pid_t pid)
{
	struct json *json = &processes->reading->json;
	bool is_too_much = pid > 0 && processes->reading->looks++ >= LOOKS_MAX;
	struct look look;

	processes->alive += pid > 0;
	if (pid <= 0 || is_too_much || look_at(pid, &look) < 0) {
		processes->is_unseen |= is_too_much;
		json_null(json, "cpu_ms");
		json_null(json, "rss_kib");
		return;
	}
	json_ms(json, "cpu_ms", look.cpu_us);
	json_u64(json, "rss_kib", look.rss_kib);
	processes->cpu_us += look.cpu_us;
	if (look.rss_kib > processes->max_rss_kib)
		processes->max_rss_kib = look.rss_kib;
}

static void put_pid(struct json *json, pid_t pid)
{
	if (pid > 0)
		json_u64(json, "pid", (uint64_t)pid);
	else
		json_null(json, "pid");
}

static const char *worker_state_name(enum worker_state state)
{
	switch (state) {
	case WORKER_STARTING: return "starting";
	case WORKER_IDLE: return "idle";
	case WORKER_BUSY: return "busy";
	case WORKER_STOPPING:
	case WORKER_GONE: break;
	}
	return "stopping";
}

static const struct request *request_of(const struct place *place, const struct worker *worker)
{
	for (size_t i = 0; worker->request_id != NULL && i < place->requests_count; i++)
		if (place->requests[i]->id == worker->request_id)
			return place->requests[i];
	return NULL;
}

static void put_worker(void *ctx, const struct worker *worker)
{
	struct processes *processes = ctx;
	struct reading *reading = processes->reading;
	const struct process *process = &worker->process;

	json_begin(&reading->json, NULL, '{');
	put_pid(&reading->json, process->pid);
	json_str(&reading->json, "state", worker_state_name(worker->state));
	json_ms(&reading->json, "age_ms", since_us(reading, process->started_ns != 0 ? process->started_ns : process->asked_ns));
	json_u64(&reading->json, "requests", worker->requests);
	put_request(reading, request_of(processes->place, worker));
	put_look(processes, process->pid);
	json_end(&reading->json, '}');
}

/* Started for this request, not for the one that redirected here. */
static bool has_started(const struct request *request)
{
	return request->started_ns != 0 && request->started_ns >= request->granted_ns;
}

static enum worker_state state_of(const struct request *request)
{
	if (request->state == REQUEST_ENDING || request->has_exit)
		return WORKER_STOPPING;
	return request->state == REQUEST_STARTING ? WORKER_STARTING : WORKER_BUSY;
}

static void put_process_of(struct processes *processes, const struct request *request)
{
	struct reading *reading = processes->reading;
	pid_t pid = has_started(request) ? request->pid : 0;

	json_begin(&reading->json, NULL, '{');
	put_pid(&reading->json, pid);
	json_str(&reading->json, "state", worker_state_name(state_of(request)));
	json_ms(&reading->json, "age_ms", since_us(reading, has_started(request) ? request->started_ns : request->granted_ns));
	json_u64(&reading->json, "requests", 0);
	put_request(reading, request);
	put_look(processes, request->has_exit ? 0 : pid);
	json_end(&reading->json, '}');
}

static const char *spare_state_name(enum spare_state state)
{
	switch (state) {
	case SPARE_STARTING: return "starting";
	case SPARE_READY: return "idle";
	case SPARE_TAKEN: return "zygote";
	case SPARE_ENDING:
	case SPARE_GONE: break;
	}
	return "stopping";
}

static void put_spare(void *ctx, const struct process *process, enum spare_state state)
{
	struct processes *processes = ctx;
	struct reading *reading = processes->reading;

	json_begin(&reading->json, NULL, '{');
	put_pid(&reading->json, process->pid);
	json_str(&reading->json, "state", spare_state_name(state));
	json_ms(&reading->json, "age_ms", since_us(reading, process->started_ns != 0 ? process->started_ns : process->asked_ns));
	json_u64(&reading->json, "requests", 0);
	put_request(reading, NULL);
	put_look(processes, process->pid);
	json_end(&reading->json, '}');
}

/* Of a pool without workers, by its requests. */
static void count_places(const struct place *place, struct pool_reading *pool)
{
	for (size_t i = 0; i < place->requests_count; i++) {
		enum worker_state state = state_of(place->requests[i]);

		pool->starting += state == WORKER_STARTING;
		pool->busy += state == WORKER_BUSY;
		pool->stopping += state == WORKER_STOPPING;
	}
}

static void put_counts(struct json *json, const struct pool_reading *pool)
{
	json_begin(json, "processes", '{');
	json_u64(json, "idle", pool->idle);
	json_u64(json, "busy", pool->busy);
	json_u64(json, "starting", pool->starting);
	json_u64(json, "stopping", pool->stopping);
	json_u64(json, "total", pool->idle + pool->busy + pool->starting + pool->stopping);
	json_end(json, '}');
}

static void put_list(struct processes *processes, const struct pool_reading *pool)
{
	const struct place *place = processes->place;
	struct json *json = &processes->reading->json;

	json_begin(json, "process_list", '[');
	if (pool->has_workers)
		pool_each_worker(place->entry->pool, put_worker, processes);
	else
		for (size_t i = 0; i < place->requests_count; i++)
			put_process_of(processes, place->requests[i]);
	pool_each_spare(place->entry->pool, put_spare, processes);
	json_end(json, ']');
}

/* Where processes for one request each came from, and what those that have ended
 * used, for their request and before. */
static void put_starts(struct json *json, const struct figures *figures)
{
	json_begin(json, "starts", '{');
	json_u64(json, "cold", figures->starts[START_COLD]);
	json_u64(json, "parked", figures->starts[START_PARKED]);
	json_u64(json, "forked", figures->starts[START_FORKED]);
	json_end(json, '}');
	json_begin(json, "served", '{');
	json_u64(json, "processes", figures->ended.count);
	json_ms(json, "cpu_ms", figures->ended.cpu_us);
	json_u64(json, "faults", figures->ended.faults);
	json_u64(json, "waited", figures->ended.ahead_count);
	json_ms(json, "start_cpu_ms", figures->ended.start_cpu_us);
	json_u64(json, "start_faults", figures->ended.start_faults);
	json_end(json, '}');
}

static void put_usage(const struct processes *processes, const struct pool_reading *pool)
{
	struct json *json = &processes->reading->json;
	const struct ended *ended = &processes->place->entry->figures->ended;
	uint64_t max_rss_kib = processes->max_rss_kib;

	if (processes->is_unseen) {
		json_null(json, "cpu_ms");
		json_null(json, "max_rss_kib");
		return;
	}
	json_ms(json, "cpu_ms", processes->cpu_us + ended->cpu_us + ended->start_cpu_us + pool->ended.cpu_us);
	max_rss_kib = ended->max_rss_kib > max_rss_kib ? ended->max_rss_kib : max_rss_kib;
	max_rss_kib = pool->ended.max_rss_kib > max_rss_kib ? pool->ended.max_rss_kib : max_rss_kib;
	json_u64(json, "max_rss_kib", max_rss_kib);
}

/* Handlers. */

static void put_configured(struct json *json, const struct handler_config *handler)
{
	json_begin(json, "configured", '{');
	json_begin(json, "workers", '{');
	json_u64(json, "min", handler->workers.min);
	json_u64(json, "max", handler->workers.max);
	json_u64(json, "spare", handler->workers.spare);
	json_u64(json, "reserved", handler->workers.reserved);
	json_u64(json, "idle_timeout_ms", handler->workers.idle_timeout_ms);
	json_u64(json, "max_requests", handler->workers.max_requests);
	json_u64(json, "max_age_ms", handler->workers.max_age_ms);
	json_u64(json, "jitter_percent", handler->workers.jitter_percent);
	json_end(json, '}');
	json_begin(json, "queue", '{');
	json_u64(json, "max", handler->queue.max);
	json_u64(json, "timeout_ms", handler->queue.timeout_ms);
	json_end(json, '}');
	json_begin(json, "timeout", '{');
	json_u64(json, "start_ms", handler->timeout.start_ms);
	json_u64(json, "response_ms", handler->timeout.response_ms);
	json_u64(json, "idle_ms", handler->timeout.idle_ms);
	json_u64(json, "total_ms", handler->timeout.total_ms);
	json_u64(json, "kill_ms", handler->timeout.kill_ms);
	json_end(json, '}');
	json_end(json, '}');
}

static void put_totals(struct json *json, const char *name, const struct totals *totals)
{
	static const char *const classes[] = { "2xx", "3xx", "4xx", "5xx" };

	json_begin(json, name, '{');
	json_u64(json, "requests", totals->requests);
	for (int i = 0; i < 4; i++)
		json_u64(json, classes[i], totals->classes[i]);
	json_u64(json, "timeouts", totals->timeouts);
	json_u64(json, "refused", totals->refused);
	json_u64(json, "bad_gateway", totals->bad_gateway);
	json_u64(json, "client_gone", totals->client_gone);
	json_u64(json, "broken", totals->broken);
	json_u64(json, "retried", totals->retried);
	json_end(json, '}');
}

static void put_percentiles(struct json *json, const char *name, const struct histogram *histogram)
{
	static const double percents[] = { 50, 90, 95, 99, 100 };
	static const char *const names[] = { "p50", "p90", "p95", "p99", "max" };
	uint64_t values[5];

	if (histogram == NULL || histogram->count == 0) {
		json_null(json, name);
		return;
	}
	histogram_percentiles(histogram, percents, 5, values);
	json_begin(json, name, '{');
	json_u64(json, "count", histogram->count);
	for (int i = 0; i < 5; i++)
		json_ms(json, names[i], values[i]);
	json_end(json, '}');
}

static uint64_t less_one(uint64_t n)
{
	return n > 0 ? n - 1 : 0;
}

/* A restart is the start of a worker in the place of one that had ended: there
 * are as many as have ended, but for the last when none was started since. */
static void put_restarts(const struct processes *processes, const struct pool_reading *pool)
{
	struct json *json = &processes->reading->json;
	uint64_t started = processes->alive + processes->place->entry->figures->ended.count + pool->ended.count;

	json_u64(json, "started", started);
	json_u64(json, "restarts", started > pool->ended.count ? pool->ended.count : less_one(started));
	json_u64(json, "died", pool->ended.died);
	json_u64(json, "early_deaths", pool->early_deaths);
	if (pool->next_try_ns > 0)
		json_ms(json, "next_try_ms", pool->next_try_ns / 1000);
	else
		json_null(json, "next_try_ms");
}

static void put_handler(struct reading *reading, const struct place *place)
{
	struct json *json = &reading->json;
	const struct pool_entry *entry = place->entry;
	const struct handler_config *handler = pool_handler(entry->pool);
	const struct spans *spans = entry->figures->spans;
	struct processes processes = { .reading = reading, .place = place };
	struct pool_reading pool;

	pool_read(entry->pool, &pool);
	if (!pool.has_workers)
		count_places(place, &pool);
	json_begin(json, NULL, '{');
	json_str(json, "name", handler->name);
	json_str(json, "protocol", config_protocol_name(handler->protocol));
	json_str(json, "process", config_process_name(handler->process));
	json_str(json, "connect", handler->connect.text);
	json_bool(json, "retired", pool.is_retired && place >= reading->places + reading->in_use_count);
	json_u64(json, "generation", pool_generation(entry->pool));
	put_configured(json, handler);
	put_counts(json, &pool);
	json_u64(json, "waiting", pool.waiting);
	json_ms(json, "longest_wait_ms", pool.longest_wait_ns / 1000);
	put_totals(json, "totals", &entry->figures->totals);
	put_percentiles(json, "latency_ms", spans == NULL ? NULL : &spans->total);
	put_percentiles(json, "first_byte_ms", spans == NULL ? NULL : &spans->first_byte);
	put_percentiles(json, "queue_ms", spans == NULL ? NULL : &spans->queue);
	put_list(&processes, &pool);
	put_restarts(&processes, &pool);
	put_usage(&processes, &pool);
	put_starts(json, entry->figures);
	json_end(json, '}');
}

/* The host. */

static const char *host_state_name(enum host_state state)
{
	switch (state) {
	case HOST_RUNNING: return "running";
	case HOST_DRAINING: return "draining";
	case HOST_KILLING: break;
	}
	return "killing";
}

static void put_listeners(struct json *json, const struct host *host)
{
	json_begin(json, "listeners", '[');
	for (size_t i = 0; i < host->listeners_count; i++) {
		const struct listener *listener = host->listeners[i];

		json_begin(json, NULL, '{');
		json_str(json, "address", listener_name(listener));
		if (listener_backlog(listener) > 0)
			json_u64(json, "backlog", listener_backlog(listener));
		else
			json_null(json, "backlog");
		json_str(json, "state", listener_is_paused(listener) ? "paused" : "accepting");
		json_end(json, '}');
	}
	json_end(json, ']');
}

static void put_host(struct reading *reading)
{
	const struct host *host = reading->host;
	struct json *json = &reading->json;

	json_str(json, "version", PACKAGE_VERSION);
	json_u64(json, "pid", (uint64_t)getpid());
	json_str(json, "state", host_state_name(host->state));
	json_ms(json, "uptime_ms", since_us(reading, host->begun_ns));
	json_str(json, "config", host->site->config->file);
	json_u64(json, "generation", host->site->generation);
	json_u64(json, "reloads", host->reloads);
	json_bool(json, "reloading", host->reload != NULL);
	json_u64(json, "connections", host->clients_count);
	json_u64(json, "processes", host->budget.used);
	json_u64(json, "max_processes", host->budget.max);
	json_u64(json, "log_lines_dropped", log_lines_dropped());
	put_listeners(json, host);
	put_totals(json, "unrouted", &host->unrouted->totals);
}

void status_json(struct host *host, struct bytes *out)
{
	struct reading reading = { .host = host, .now_ns = clock_monotonic_ns() };

	json_init(&reading.json, out);
	reading.json.is_full = find_places(&reading) < 0 || group_requests(&reading) < 0;
	json_begin(&reading.json, NULL, '{');
	put_host(&reading);
	json_begin(&reading.json, "handlers", '[');
	for (size_t i = 0; i < reading.places_count && !reading.json.is_full; i++)
		put_handler(&reading, &reading.places[i]);
	json_end(&reading.json, ']');
	json_end(&reading.json, '}');
	if (reading.json.is_full || bytes_append_text(out, "\n") < 0) {
		bytes_clear(out);
		bytes_append_text(out, "failed\nno memory for the answer\n");
	}
	free(reading.requests);
	free(reading.places);
}
