#include "serve/reading.h"

#include "base/clock.h"
#include "serve/request.h"
#include "serve/site.h"

#include <stdlib.h>

/* Looking at a process in /proc takes some 20 us, and all requests wait for it. */
enum { LOOKS_MAX = 500 };

#define NOWHERE SIZE_MAX

uint64_t reading_age_us(const struct reading *reading, uint64_t from_ns)
{
	return from_ns == 0 || from_ns > reading->now_ns ? 0 : (reading->now_ns - from_ns) / 1000;
}

uint64_t reading_now_s(const struct reading *reading)
{
	return reading->now_ns / 1000000000;
}

bool reading_is_ours(const struct place *place)
{
	return pool_handler(place->entry->pool)->connect.text == NULL;
}

/* Which requests are where. */

static bool is_with_process(const struct request *request)
{
	return request->backend != NULL && request->pool != NULL &&
		(request->state == REQUEST_STARTING || request->state == REQUEST_RUNNING || request->state == REQUEST_ENDING);
}

static struct place *place_of(const struct reading *reading, const struct request *request)
{
	const struct pool_entry *entry = pool_owner(request->pool);

	return &reading->places[entry->place];
}

static void add_place(struct reading *reading, struct pool_entry *entry, bool is_in_use)
{
	if (entry->place != NOWHERE)
		return;
	entry->place = reading->places_count;
	reading->places[reading->places_count++] = (struct place){ .entry = entry, .is_in_use = is_in_use };
}

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
		add_place(reading, pool_owner(site->pools[i]), true);
	for (struct pool_entry *entry = reading->host->pools; entry != NULL; entry = entry->next)
		add_place(reading, entry, false);
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

int reading_begin(struct reading *reading, struct host *host)
{
	*reading = (struct reading){ .host = host, .now_ns = clock_monotonic_ns() };
	return find_places(reading) < 0 ? -1 : group_requests(reading);
}

void reading_end(struct reading *reading)
{
	free(reading->requests);
	free(reading->places);
	reading->requests = NULL;
	reading->places = NULL;
}

/* Processes.  Of a pool without workers they are those of its requests. */

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

void reading_pool(const struct place *place, struct pool_reading *out)
{
	pool_read(place->entry->pool, out);
	for (size_t i = 0; !out->has_workers && i < place->requests_count; i++) {
		enum worker_state state = state_of(place->requests[i]);

		out->starting += state == WORKER_STARTING;
		out->busy += state == WORKER_BUSY;
		out->stopping += state == WORKER_STOPPING;
	}
}

struct walk {
	struct reading *reading;
	const struct place *place;
	reading_process_fn *on_process;
	void *ctx;
	struct usage_reading *usage;
};

static void visit(struct walk *walk, struct process_reading *process, pid_t pid_to_look_at)
{
	struct usage_reading *usage = walk->usage;
	bool is_too_much = pid_to_look_at > 0 && walk->reading->looks++ >= LOOKS_MAX;

	usage->alive += pid_to_look_at > 0;
	usage->is_known &= !is_too_much;
	process->is_seen = pid_to_look_at > 0 && !is_too_much && look_at(pid_to_look_at, &process->look) == 0;
	if (process->is_seen) {
		usage->cpu_us += process->look.cpu_us;
		if (process->look.rss_kib > usage->max_rss_kib)
			usage->max_rss_kib = process->look.rss_kib;
	}
	if (process->request != NULL)
		process->request_age_us = reading_age_us(walk->reading, process->request->begun_ns);
	if (walk->on_process != NULL)
		walk->on_process(walk->ctx, process);
}

static const struct request *request_of(const struct place *place, const struct worker *worker)
{
	for (size_t i = 0; worker->request_id != NULL && i < place->requests_count; i++)
		if (place->requests[i]->id == worker->request_id)
			return place->requests[i];
	return NULL;
}

static void visit_worker(void *ctx, const struct worker *worker)
{
	struct walk *walk = ctx;
	const struct process *process = &worker->process;
	struct process_reading out = {
		.pid = process->pid, .state = worker->state, .requests = worker->requests,
		.age_us = reading_age_us(walk->reading, process->started_ns != 0 ? process->started_ns : process->asked_ns),
		.request = request_of(walk->place, worker),
	};

	visit(walk, &out, process->pid);
}

static void visit_request(struct walk *walk, const struct request *request)
{
	struct process_reading out = {
		.pid = has_started(request) ? request->pid : 0, .state = state_of(request), .request = request,
		.age_us = reading_age_us(walk->reading, has_started(request) ? request->started_ns : request->granted_ns),
	};

	visit(walk, &out, request->has_exit ? 0 : out.pid);
}

static enum worker_state spare_as_worker(enum spare_state state)
{
	switch (state) {
	case SPARE_STARTING: return WORKER_STARTING;
	case SPARE_READY: return WORKER_IDLE;
	case SPARE_TAKEN: return WORKER_BUSY;
	case SPARE_ENDING:
	case SPARE_GONE: break;
	}
	return WORKER_STOPPING;
}

static void visit_spare(void *ctx, const struct spare_reading *spare)
{
	struct walk *walk = ctx;
	const struct process *process = spare->process;
	struct process_reading out = {
		.pid = process->pid, .state = spare_as_worker(spare->state), .is_zygote = spare->is_zygote,
		.age_us = reading_age_us(walk->reading, process->started_ns != 0 ? process->started_ns : spare->asked_ns),
	};

	visit(walk, &out, process->pid);
}

static uint64_t at_least(uint64_t value, uint64_t *told)
{
	if (value > *told)
		*told = value;
	return *told;
}

/* Between the end of a process and the word on it, what it used is nowhere, and
 * neither is itself; a counter that goes back would be taken for one that began anew. */
static void keep_from_falling(struct figures *figures, struct usage_reading *usage)
{
	if (usage->is_known)
		usage->cpu_us = at_least(usage->cpu_us, &figures->cpu_told_us);
}

static void add_ended(struct usage_reading *usage, uint64_t cpu_us, uint64_t max_rss_kib)
{
	usage->cpu_us += cpu_us;
	if (max_rss_kib > usage->max_rss_kib)
		usage->max_rss_kib = max_rss_kib;
}

/* A restart is the start of a worker in the place of one that had ended: there
 * are as many as have ended, but for the last when none was started since. */
static void count_starts(const struct place *place, const struct pool_ended *ended, struct usage_reading *usage)
{
	usage->started = at_least(usage->alive + place->entry->figures->ended.count + ended->count, &place->entry->figures->started_told);
	usage->restarts = usage->started > ended->count ? ended->count : usage->started > 0 ? usage->started - 1 : 0;
}

void reading_processes(struct reading *reading, const struct place *place, reading_process_fn *on_process, void *ctx,
	struct usage_reading *out)
{
	struct walk walk = { reading, place, on_process, ctx, out };
	const struct ended *ended = &place->entry->figures->ended;
	struct pool_reading pool;

	*out = (struct usage_reading){ .is_known = true };
	pool_read(place->entry->pool, &pool);
	if (pool.has_workers)
		pool_each_worker(place->entry->pool, visit_worker, &walk);
	else
		for (size_t i = 0; i < place->requests_count; i++)
			visit_request(&walk, place->requests[i]);
	pool_each_spare(place->entry->pool, visit_spare, &walk);
	add_ended(out, ended->cpu_us + ended->start_cpu_us, ended->max_rss_kib);
	add_ended(out, pool.ended.cpu_us, pool.ended.max_rss_kib);
	count_starts(place, &pool.ended, out);
	keep_from_falling(place->entry->figures, out);
}

/* Ways of running. */

static void add_totals(struct totals *into, const struct totals *from)
{
	into->requests += from->requests;
	for (size_t i = 0; i < sizeof(from->classes) / sizeof(from->classes[0]); i++)
		into->classes[i] += from->classes[i];
	for (size_t i = 0; i < FAILURES; i++)
		into->failures[i] += from->failures[i];
	into->retried += from->retried;
	into->bytes_in += from->bytes_in;
	into->bytes_out += from->bytes_out;
}

static void add_origins(struct way_reading *way, const struct figures *figures)
{
	for (size_t i = 0; i < STARTS_COUNT; i++)
		way->starts[i] += figures->starts[i];
	way->ended.count += figures->ended.count;
	way->ended.cpu_us += figures->ended.cpu_us;
	way->ended.faults += figures->ended.faults;
	way->ended.context_switches += figures->ended.context_switches;
	way->ended.ahead_count += figures->ended.ahead_count;
	way->ended.start_cpu_us += figures->ended.start_cpu_us;
	way->ended.start_faults += figures->ended.start_faults;
}

static void add_spans(struct way_reading *way, const struct spans *spans, uint64_t now_s)
{
	uint32_t rates[RATE_SECONDS];

	histogram_merge(&way->spans->queue, &spans->queue);
	histogram_merge(&way->spans->start, &spans->start);
	histogram_merge(&way->spans->first_byte, &spans->first_byte);
	histogram_merge(&way->spans->total, &spans->total);
	rate_read(&spans->rate, now_s, rates);
	for (size_t i = 0; i < RATE_SECONDS; i++)
		way->rates[i] += rates[i];
}

int reading_add_to_way(const struct reading *reading, const struct place *place, const struct usage_reading *usage, struct way_reading *way)
{
	const struct figures *figures = place->entry->figures;

	way->handlers++;
	add_totals(&way->totals, &figures->totals);
	add_origins(way, figures);
	if (usage->is_known && reading_is_ours(place)) {
		way->cpu_us += usage->cpu_us;
		way->cpu_requests += figures->totals.requests;
		if (usage->max_rss_kib > way->max_rss_kib)
			way->max_rss_kib = usage->max_rss_kib;
	}
	if (figures->spans == NULL)
		return 0;
	if (way->spans == NULL)
		way->spans = calloc(1, sizeof(*way->spans));
	if (way->spans == NULL)
		return -1;
	add_spans(way, figures->spans, reading_now_s(reading));
	return 0;
}
