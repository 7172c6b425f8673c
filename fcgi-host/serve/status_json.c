/* The JSON of a reading: see doc/fcgi-host.8 for its members. */
#include "serve/status.h"

#include "base/json.h"
#include "base/log.h"
#include "serve/listener.h"
#include "serve/reading.h"
#include "serve/request.h"
#include "serve/site.h"

#include <stdlib.h>
#include <unistd.h>

enum { RATE_MEAN_SECONDS = 10 };

struct writer {
	struct reading *reading;
	struct json json;
	struct way_reading ways[PROCESS_MODES_MAX];
};

static void put_optional_ms(struct json *json, const char *name, bool is_there, uint64_t us)
{
	if (is_there)
		json_ms(json, name, us);
	else
		json_null(json, name);
}

/* Figures. */

static void put_totals(struct json *json, const char *name, const struct totals *totals)
{
	static const char *const classes[] = { "2xx", "3xx", "4xx", "5xx" };

	json_begin(json, name, '{');
	json_u64(json, "requests", totals->requests);
	for (int i = 0; i < 4; i++)
		json_u64(json, classes[i], totals->classes[i]);
	for (int failure = 0; failure < FAILURES; failure++)
		json_u64(json, failure_name((enum failure)failure), totals->failures[failure]);
	json_u64(json, "retried", totals->retried);
	json_u64(json, "bytes_in", totals->bytes_in);
	json_u64(json, "bytes_out", totals->bytes_out);
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
	json_ms(json, "mean", histogram->sum_us / histogram->count);
	json_end(json, '}');
}

static void put_spans(struct json *json, const struct spans *spans)
{
	put_percentiles(json, "latency_ms", spans == NULL ? NULL : &spans->total);
	put_percentiles(json, "first_byte_ms", spans == NULL ? NULL : &spans->first_byte);
	put_percentiles(json, "start_ms", spans == NULL ? NULL : &spans->start);
	put_percentiles(json, "queue_ms", spans == NULL ? NULL : &spans->queue);
}

static void put_rates(struct json *json, const uint32_t rates[RATE_SECONDS])
{
	uint64_t recent = 0;

	for (size_t i = RATE_SECONDS - RATE_MEAN_SECONDS; i < RATE_SECONDS; i++)
		recent += rates[i];
	/* Thousandths, as json_ms() writes them. */
	json_ms(json, "requests_per_second", recent * 1000 / RATE_MEAN_SECONDS);
	json_begin(json, "per_second", '[');
	for (size_t i = 0; i < RATE_SECONDS; i++)
		json_u64(json, NULL, rates[i]);
	json_end(json, ']');
}

static void put_rate(struct writer *writer, const struct spans *spans)
{
	uint32_t rates[RATE_SECONDS];

	if (spans == NULL) {
		json_ms(&writer->json, "requests_per_second", 0);
		json_null(&writer->json, "per_second");
		return;
	}
	rate_read(&spans->rate, reading_now_s(writer->reading), rates);
	put_rates(&writer->json, rates);
}

/* Processes. */

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

static void put_process(void *ctx, const struct process_reading *process)
{
	struct json *json = ctx;

	json_begin(json, NULL, '{');
	if (process->pid > 0)
		json_u64(json, "pid", (uint64_t)process->pid);
	else
		json_null(json, "pid");
	json_str(json, "state", process->is_zygote ? "zygote" : worker_state_name(process->state));
	json_ms(json, "age_ms", process->age_us);
	json_u64(json, "requests", process->requests);
	json_str(json, "request", process->request == NULL ? NULL : process->request->id);
	put_optional_ms(json, "request_age_ms", process->request != NULL, process->request_age_us);
	put_optional_ms(json, "cpu_ms", process->is_seen, process->look.cpu_us);
	if (process->is_seen)
		json_u64(json, "rss_kib", process->look.rss_kib);
	else
		json_null(json, "rss_kib");
	json_end(json, '}');
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

static void put_usage(struct json *json, const struct place *place, const struct usage_reading *usage)
{
	uint64_t requests = place->entry->figures->totals.requests;

	put_optional_ms(json, "cpu_ms", usage->is_known, usage->cpu_us);
	put_optional_ms(json, "cpu_per_request_ms", usage->is_known && requests > 0 && reading_is_ours(place),
		requests > 0 ? usage->cpu_us / requests : 0);
	if (usage->is_known)
		json_u64(json, "max_rss_kib", usage->max_rss_kib);
	else
		json_null(json, "max_rss_kib");
}

static void put_starts(struct json *json, const struct usage_reading *usage, const struct pool_reading *pool)
{
	json_u64(json, "started", usage->started);
	json_u64(json, "restarts", usage->restarts);
	json_u64(json, "died", pool->ended.died);
	json_u64(json, "early_deaths", pool->early_deaths);
	put_optional_ms(json, "next_try_ms", pool->next_try_ns > 0, pool->next_try_ns / 1000);
}

static void put_who(struct json *json, const struct place *place, const struct pool_reading *pool)
{
	const struct handler_config *handler = pool_handler(place->entry->pool);

	json_str(json, "name", handler->name);
	json_str(json, "protocol", config_protocol_name(handler->protocol));
	json_str(json, "process", config_process_name(handler->process));
	json_str(json, "connect", handler->connect.text);
	json_bool(json, "retired", pool->is_retired && !place->is_in_use);
	json_u64(json, "generation", pool_generation(place->entry->pool));
	put_configured(json, handler);
	put_counts(json, pool);
	json_u64(json, "zygotes", pool->zygotes);
	json_u64(json, "waiting", pool->waiting);
	json_ms(json, "longest_wait_ms", pool->longest_wait_ns / 1000);
}

/* Where the processes for one request each came from, and sums over those that have
 * ended, so that two readings tell what lay between them. */
static void put_origins(struct json *json, const uint64_t starts[STARTS_COUNT], const struct ended *ended)
{
	json_begin(json, "starts", '{');
	json_u64(json, "cold", starts[START_COLD]);
	json_u64(json, "parked", starts[START_PARKED]);
	json_u64(json, "forked", starts[START_FORKED]);
	json_end(json, '}');
	json_begin(json, "ended", '{');
	json_u64(json, "count", ended->count);
	json_ms(json, "cpu_ms", ended->cpu_us);
	json_u64(json, "faults", ended->faults);
	json_u64(json, "context_switches", ended->context_switches);
	json_u64(json, "waited", ended->ahead_count);
	json_ms(json, "start_cpu_ms", ended->start_cpu_us);
	json_u64(json, "start_faults", ended->start_faults);
	json_end(json, '}');
}

static void put_spawned(struct json *json, const struct figures *figures)
{
	static const char *const names[] = { "start_ms", "first_byte_ms", "end_ms", "exit_ms" };

	json_begin(json, "spawn", '{');
	json_u64(json, "count", figures->spawn.count);
	for (int i = 0; i < SPAWN_PARTS_COUNT; i++)
		json_ms(json, names[i], figures->spawn.us[i]);
	json_end(json, '}');
}

static void put_handler(struct writer *writer, const struct place *place)
{
	struct json *json = &writer->json;
	const struct figures *figures = place->entry->figures;
	unsigned way = (unsigned)pool_handler(place->entry->pool)->process;
	struct usage_reading usage;
	struct pool_reading pool;

	reading_pool(place, &pool);
	json_begin(json, NULL, '{');
	put_who(json, place, &pool);
	put_totals(json, "totals", &figures->totals);
	put_rate(writer, figures->spans);
	put_spans(json, figures->spans);
	json_begin(json, "process_list", '[');
	reading_processes(writer->reading, place, put_process, json, &usage);
	json_end(json, ']');
	put_starts(json, &usage, &pool);
	put_usage(json, place, &usage);
	put_origins(json, figures->starts, &figures->ended);
	put_spawned(json, figures);
	json_end(json, '}');
	if (place->is_in_use && way < PROCESS_MODES_MAX &&
	    reading_add_to_way(writer->reading, place, &usage, &writer->ways[way]) < 0)
		json->is_full = true;
}

static void put_way(struct json *json, enum process_mode process, const struct way_reading *way)
{
	json_begin(json, NULL, '{');
	json_str(json, "process", config_process_name(process));
	json_u64(json, "handlers", way->handlers);
	put_totals(json, "totals", &way->totals);
	put_rates(json, way->rates);
	put_spans(json, way->spans);
	put_optional_ms(json, "cpu_per_request_ms", way->cpu_requests > 0, way->cpu_requests > 0 ? way->cpu_us / way->cpu_requests : 0);
	json_u64(json, "max_rss_kib", way->max_rss_kib);
	put_origins(json, way->starts, &way->ended);
	json_end(json, '}');
}

static void put_failure(struct json *json, const struct failed_request *failed)
{
	json_begin(json, NULL, '{');
	json_str(json, "time", failed->time);
	json_str(json, "kind", failure_name(failed->failure));
	json_str(json, "id", failed->id);
	json_str(json, "handler", failed->handler[0] == '\0' ? NULL : failed->handler);
	json_str(json, "method", failed->method);
	json_str(json, "path", failed->path);
	json_u64(json, "status", failed->status);
	json_ms(json, "total_ms", failed->total_us);
	json_str(json, "reason", failed->reason[0] == '\0' ? NULL : failed->reason);
	json_end(json, '}');
}

static void put_handlers(struct writer *writer)
{
	struct json *json = &writer->json;
	const struct failures *failures = &writer->reading->host->failures;

	json_begin(json, "handlers", '[');
	for (size_t i = 0; i < writer->reading->places_count && !json->is_full; i++)
		put_handler(writer, &writer->reading->places[i]);
	json_end(json, ']');
	json_begin(json, "by_process", '[');
	for (unsigned i = 0; i < PROCESS_MODES_MAX; i++)
		if (writer->ways[i].handlers > 0)
			put_way(json, (enum process_mode)i, &writer->ways[i]);
	json_end(json, ']');
	json_begin(json, "failures", '[');
	for (size_t i = 0; failures_at(failures, i) != NULL; i++)
		put_failure(json, failures_at(failures, i));
	json_end(json, ']');
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

static void put_host(struct json *json, const struct reading *reading)
{
	const struct host *host = reading->host;

	json_str(json, "version", PACKAGE_VERSION);
	json_u64(json, "pid", (uint64_t)getpid());
	json_str(json, "state", host_state_name(host->state));
	json_ms(json, "uptime_ms", reading_age_us(reading, host->begun_ns));
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
	put_totals(json, "builtin", &host->builtin->totals);
}

int status_json(struct host *host, struct bytes *out)
{
	struct reading reading;
	struct writer writer = { .reading = &reading };
	struct json *json = &writer.json;

	json_init(json, out);
	if (reading_begin(&reading, host) < 0)
		json->is_full = true;
	json_begin(json, NULL, '{');
	put_host(json, &reading);
	put_handlers(&writer);
	json_end(json, '}');
	for (unsigned i = 0; i < PROCESS_MODES_MAX; i++)
		free(writer.ways[i].spans);
	reading_end(&reading);
	return json->is_full ? -1 : bytes_append_text(out, "\n");
}
