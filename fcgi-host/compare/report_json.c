#include "compare/report.h"

#include "base/bytes.h"
#include "base/json.h"
#include "serve/figures.h"

#include <inttypes.h>
#include <math.h>

enum { JSON_MAX_BYTES = 64 << 20 };

static void put_number(struct json *json, const char *name, double value)
{
	char text[64];

	if (!isfinite(value)) {
		json_null(json, name);
		return;
	}
	snprintf(text, sizeof(text), "%.9g", value);
	json_number(json, name, text);
}

static void put_estimate(struct json *json, const char *name, const struct estimate *estimate, double unit)
{
	if (!estimate->is_known) {
		json_null(json, name);
		return;
	}
	json_begin(json, name, '{');
	put_number(json, "value", estimate->value / unit);
	put_number(json, "low", estimate->low / unit);
	put_number(json, "high", estimate->high / unit);
	json_bool(json, "is_shown", estimate->is_shown);
	json_end(json, '}');
}

static void put_machine(struct json *json, const struct machine *machine)
{
	json_begin(json, "machine", '{');
	json_u64(json, "cpus", machine->cpus);
	json_str(json, "cpu", machine->cpu);
	json_u64(json, "memory_kib", machine->memory_kib);
	json_str(json, "kernel", machine->kernel);
	json_str(json, "load", machine->load);
	json_str(json, "web_server", machine->web_server[0] == '\0' ? NULL : machine->web_server);
	json_end(json, '}');
}

static void put_load(struct json *json, const struct load_plan *load)
{
	json_begin(json, "load", '{');
	json_str(json, "kind", load->kind == SCHEDULE_OPEN ? "open" : "closed");
	json_u64(json, "requests", load->requests);
	json_u64(json, "concurrency", load->concurrency);
	put_number(json, "rate_per_s", load->rate_per_s);
	json_str(json, "method", load->method);
	json_str(json, "path", load->path);
	json_u64(json, "body_bytes", load->body_len);
	json_bool(json, "keep", load->keep);
	json_str(json, "via", via_name(load->via));
	json_end(json, '}');
}

static void put_latency(struct json *json, const struct latencies *latencies)
{
	static const double percents[] = { 50, 90, 95, 99, 99.9 };
	static const char *const names[] = { "p50", "p90", "p95", "p99", "p99.9" };

	json_begin(json, "latency_ms", '{');
	put_number(json, "min", (double)latencies->min_ns / 1e6);
	put_number(json, "mean", latencies_mean_ns(latencies) / 1e6);
	put_number(json, "sd", latencies_deviation_ns(latencies) / 1e6);
	for (int i = 0; i < 5; i++)
		put_number(json, names[i], (double)latencies_percentile_ns(latencies, percents[i]) / 1e6);
	put_number(json, "max", (double)latencies->max_ns / 1e6);
	json_end(json, '}');
}

static void put_usage(struct json *json, const struct way_result *way)
{
	if (!way->has_usage) {
		json_null(json, "usage");
		return;
	}
	json_begin(json, "usage", '{');
	json_begin(json, "cpu_ms", '{');
	for (int part = 0; part < USAGE_PARTS; part++)
		put_number(json, usage_part_name((enum usage_part)part), way_cpu_ms(way, (enum usage_part)part));
	put_number(json, "all", way_cpu_ms_all(way));
	json_end(json, '}');
	put_number(json, "page_faults", way_faults(way));
	put_number(json, "context_switches", way_switches(way));
	json_end(json, '}');
}

static void put_idle(struct json *json, const struct way_result *way)
{
	if (!way->has_idle) {
		json_null(json, "idle");
		return;
	}
	json_begin(json, "idle", '{');
	json_str(json, "measure", way->idle.is_resident ? "RSS" : "PSS");
	json_begin(json, "mib", '{');
	for (int part = 0; part < USAGE_PARTS; part++)
		put_number(json, usage_part_name((enum usage_part)part), way_idle_mib(way, (enum usage_part)part));
	json_end(json, '}');
	json_u64(json, "handler_processes", way->idle.processes[USAGE_HANDLERS]);
	json_end(json, '}');
}

static void put_spawn(struct json *json, const struct way_result *way)
{
	static const char *const names[] = { "start", "first_byte", "end", "exit" };

	if (way->spawn_count == 0) {
		json_null(json, "spawn_ms");
		return;
	}
	json_begin(json, "spawn_ms", '{');
	json_u64(json, "count", way->spawn_count);
	for (int part = 0; part < SPAWN_PARTS_COUNT; part++)
		put_number(json, names[part], (double)way->spawn_ns[part] / (double)way->spawn_count / 1e6);
	json_end(json, '}');
}

static void put_starts(struct json *json, const struct way_result *way)
{
	json_begin(json, "starts", '{');
	json_u64(json, "cold", way->starts_cold);
	json_u64(json, "ahead", way->starts_ahead);
	json_end(json, '}');
}

static void put_blocks(struct json *json, const struct series *series)
{
	json_begin(json, "block_mean_ms", '[');
	for (size_t i = 0; i < series->count; i++)
		put_number(json, NULL, series->blocks[i].answered == 0 ? NAN : series->blocks[i].sum_ns / (double)series->blocks[i].answered / 1e6);
	json_end(json, ']');
}

static void put_published(struct json *json, const struct comparison_result *comparison, const struct way_result *way)
{
	const struct published *published = &way->way->published;
	double ratio = published_ratio(comparison, way);

	json_begin(json, "published", '{');
	if (published->requests_per_s > 0)
		put_number(json, "requests_per_s", published->requests_per_s);
	if (published->mean_ms > 0)
		put_number(json, "mean_ms", published->mean_ms);
	if (published->p99_ms > 0)
		put_number(json, "p99_ms", published->p99_ms);
	if (ratio > 0)
		put_number(json, "ratio", ratio);
	if (published->note != NULL)
		json_str(json, "note", published->note);
	json_end(json, '}');
}

static const char *state_name(enum way_state state)
{
	switch (state) {
	case WAY_MEASURED: return "measured";
	case WAY_NOT_RUN: return "not run";
	case WAY_WRONG: return "wrong";
	case WAY_UNFINISHED: break;
	}
	return "unfinished";
}

static void put_way(struct json *json, const struct comparison_result *comparison, const struct way_result *way)
{
	json_begin(json, NULL, '{');
	json_str(json, "name", way->way->name);
	json_str(json, "title", way->way->title);
	json_str(json, "state", state_name(way->state));
	json_str(json, "reason", way->reason[0] == '\0' ? NULL : way->reason);
	if (way_has_figures(way)) {
		json_u64(json, "requests", way->series.answered);
		json_u64(json, "failed", way->series.failed);
		json_str(json, "trouble", way->trouble[0] == '\0' ? NULL : way->trouble);
		json_u64(json, "block_requests", way->block_requests);
		put_number(json, "requests_per_s", way_requests_per_s(way));
		put_latency(json, way->series.latencies);
		put_usage(json, way);
		put_idle(json, way);
		put_spawn(json, way);
		put_starts(json, way);
		put_estimate(json, "ratio", &way->ratio, 1);
		put_estimate(json, "difference_ms", &way->difference_ns, 1e6);
		put_blocks(json, &way->series);
	}
	put_published(json, comparison, way);
	json_end(json, '}');
}

static void put_comparison(struct json *json, const struct comparison_result *comparison)
{
	json_begin(json, NULL, '{');
	json_str(json, "name", comparison->comparison->name);
	json_str(json, "baseline", comparison->baseline == NO_WAY ? NULL : comparison->ways[comparison->baseline].way->name);
	json_u64(json, "blocks", comparison->blocks);
	json_str(json, "answers_compared", comparison->compared);
	put_estimate(json, "noise", &comparison->noise, 1);
	json_bool(json, "is_noisy", comparison->is_noisy);
	json_bool(json, "is_partial", comparison->is_partial);
	json_begin(json, "ways", '[');
	for (size_t i = 0; i < comparison->comparison->ways_count; i++)
		put_way(json, comparison, &comparison->ways[i]);
	json_end(json, ']');
	json_end(json, '}');
}

static void put_generator(struct json *json, const struct generator *generator)
{
	json_begin(json, "generator", '{');
	put_number(json, "cpu_share", generator->share);
	put_number(json, "cpu_ms", generator->requests == 0 ? NAN : (double)generator->cpu_ns / (double)generator->requests / 1e6);
	json_end(json, '}');
}

void report_json(const struct report *report, FILE *out)
{
	struct bytes text;
	struct json json;

	bytes_init(&text, JSON_MAX_BYTES);
	json_init(&json, &text);
	json_begin(&json, NULL, '{');
	json_str(&json, "version", PACKAGE_VERSION);
	json_str(&json, "command", report->command);
	json_str(&json, "began", report->began);
	put_number(&json, "elapsed_s", report->elapsed_s);
	json_bool(&json, "is_partial", report->is_partial);
	json_str(&json, "suite", report->plan->suite);
	put_machine(&json, &report->machine);
	put_load(&json, &report->plan->load);
	put_generator(&json, &report->generator);
	json_begin(&json, "comparisons", '[');
	for (size_t i = 0; i < report->count; i++)
		put_comparison(&json, &report->comparisons[i]);
	json_end(&json, ']');
	json_end(&json, '}');
	if (json.is_full)
		fputs("no memory for the report\n", stderr);
	else
		fprintf(out, "%.*s\n", (int)text.len, (const char *)bytes_data(&text));
	bytes_fini(&text);
}
