/*
 * A reading as OpenMetrics 1.0 (https://openmetrics.io): a table of families,
 * and for each the samples of every handler.
 *
 * The bounds of histograms are powers of two of a microsecond, since those are
 * the ones that base/histogram.h can count exactly.
 */
#include "serve/status.h"

#include "base/log.h"
#include "serve/reading.h"
#include "serve/site.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
	LABELS_BYTES = 224,
	FIRST_BOUND_BITS = 8,           /* 256 us */
	BOUNDS = 19,                    /* to 67 s */
};

/* A handler, read once for all families. */
struct row {
	const struct place *place;
	struct pool_reading pool;
	struct usage_reading usage;
	char labels[LABELS_BYTES];
};

struct writer {
	struct bytes *out;
	const struct reading *reading;
	struct row *rows;
	size_t rows_count;
	bool is_full;
};

struct family {
	const char *name, *type, *unit, *help;  /* unit: NULL without one */
	void (*put_host)(struct writer *writer, const struct family *family);   /* either this */
	void (*put_row)(struct writer *writer, const struct family *family, const struct row *row);     /* or this */
	size_t span;                            /* of histograms: which of struct spans */
};

#define put(writer, ...) ((writer)->is_full |= bytes_printf((writer)->out, __VA_ARGS__) < 0)

/* Samples. */

static void put_count(struct writer *writer, const struct family *family, const char *labels, uint64_t value)
{
	const char *suffix = family->type[0] == 'c' ? "_total" : "";

	if (labels[0] == '\0')
		put(writer, "%s%s %" PRIu64 "\n", family->name, suffix, value);
	else
		put(writer, "%s%s{%s} %" PRIu64 "\n", family->name, suffix, labels, value);
}

static void put_labelled(struct writer *writer, const struct family *family, const char *labels, const char *label, uint64_t value)
{
	char all[LABELS_BYTES + 64];

	snprintf(all, sizeof(all), "%s%s%s", labels, labels[0] == '\0' ? "" : ",", label);
	put_count(writer, family, all, value);
}

static void put_codes(struct writer *writer, const struct family *family, const char *labels, const struct totals *totals)
{
	uint64_t rest = totals->requests;
	char label[32];

	for (int i = 0; i < 4; i++) {
		snprintf(label, sizeof(label), "code=\"%dxx\"", i + 2);
		put_labelled(writer, family, labels, label, totals->classes[i]);
		rest -= totals->classes[i];
	}
	put_labelled(writer, family, labels, "code=\"none\"", rest);
}

/* The host. */

static void put_info(struct writer *writer, const struct family *family)
{
	put(writer, "%s_info{version=\"%s\"} 1\n", family->name, PACKAGE_VERSION);
}

static void put_start_time(struct writer *writer, const struct family *family)
{
	uint64_t up_ms = reading_age_us(writer->reading, writer->reading->host->begun_ns) / 1000;
	struct timespec now;
	uint64_t start_ms;

	clock_gettime(CLOCK_REALTIME, &now);
	start_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 - up_ms;
	put(writer, "%s %" PRIu64 ".%03" PRIu64 "\n", family->name, start_ms / 1000, start_ms % 1000);
}

static void put_reloads(struct writer *writer, const struct family *family)
{
	put_count(writer, family, "", writer->reading->host->reloads);
}

static void put_connections(struct writer *writer, const struct family *family)
{
	put_count(writer, family, "", writer->reading->host->clients_count);
}

static void put_dropped(struct writer *writer, const struct family *family)
{
	put_count(writer, family, "", log_lines_dropped());
}

static void put_unrouted(struct writer *writer, const struct family *family)
{
	put_codes(writer, family, "", &writer->reading->host->unrouted->totals);
}

static void put_builtin(struct writer *writer, const struct family *family)
{
	put_codes(writer, family, "", &writer->reading->host->builtin->totals);
}

/* Handlers. */

static const struct totals *totals_of(const struct row *row)
{
	return &row->place->entry->figures->totals;
}

static const struct handler_config *handler_of(const struct row *row)
{
	return pool_handler(row->place->entry->pool);
}

static void put_processes(struct writer *writer, const struct family *family, const struct row *row)
{
	put_labelled(writer, family, row->labels, "state=\"idle\"", row->pool.idle);
	put_labelled(writer, family, row->labels, "state=\"busy\"", row->pool.busy);
	put_labelled(writer, family, row->labels, "state=\"starting\"", row->pool.starting);
	put_labelled(writer, family, row->labels, "state=\"stopping\"", row->pool.stopping);
}

static void put_zygotes(struct writer *writer, const struct family *family, const struct row *row)
{
	if (handler_of(row)->process == PROCESS_ZYGOTE)
		put_count(writer, family, row->labels, row->pool.zygotes);
}

static void put_processes_limit(struct writer *writer, const struct family *family, const struct row *row)
{
	put_count(writer, family, row->labels, handler_of(row)->workers.max);
}

static void put_waiting(struct writer *writer, const struct family *family, const struct row *row)
{
	put_count(writer, family, row->labels, row->pool.waiting);
}

static void put_waiting_limit(struct writer *writer, const struct family *family, const struct row *row)
{
	put_count(writer, family, row->labels, handler_of(row)->queue.max);
}

static void put_requests(struct writer *writer, const struct family *family, const struct row *row)
{
	put_codes(writer, family, row->labels, totals_of(row));
}

static void put_failures(struct writer *writer, const struct family *family, const struct row *row)
{
	char label[48];

	for (int failure = 0; failure < FAILURES; failure++) {
		snprintf(label, sizeof(label), "kind=\"%s\"", failure_name((enum failure)failure));
		put_labelled(writer, family, row->labels, label, totals_of(row)->failures[failure]);
	}
}

static void put_retries(struct writer *writer, const struct family *family, const struct row *row)
{
	put_count(writer, family, row->labels, totals_of(row)->retried);
}

static void put_bytes_in(struct writer *writer, const struct family *family, const struct row *row)
{
	put_count(writer, family, row->labels, totals_of(row)->bytes_in);
}

static void put_bytes_out(struct writer *writer, const struct family *family, const struct row *row)
{
	put_count(writer, family, row->labels, totals_of(row)->bytes_out);
}

static void put_starts(struct writer *writer, const struct family *family, const struct row *row)
{
	put_count(writer, family, row->labels, row->usage.started);
}

static void put_restarts(struct writer *writer, const struct family *family, const struct row *row)
{
	put_count(writer, family, row->labels, row->usage.restarts);
}

static void put_deaths(struct writer *writer, const struct family *family, const struct row *row)
{
	put_count(writer, family, row->labels, row->pool.ended.died);
}

/* Of handlers whose processes have one request each. */

static bool has_starts(const struct row *row)
{
	return !row->pool.has_workers && reading_is_ours(row->place);
}

static void put_request_starts(struct writer *writer, const struct family *family, const struct row *row)
{
	const uint64_t *starts = row->place->entry->figures->starts;

	if (!has_starts(row))
		return;
	put_labelled(writer, family, row->labels, "start=\"cold\"", starts[START_COLD]);
	put_labelled(writer, family, row->labels, "start=\"parked\"", starts[START_PARKED]);
	put_labelled(writer, family, row->labels, "start=\"forked\"", starts[START_FORKED]);
}

static const struct ended *ended_of(const struct row *row)
{
	return &row->place->entry->figures->ended;
}

static void put_ended(struct writer *writer, const struct family *family, const struct row *row)
{
	const struct ended *ended = ended_of(row);

	if (!has_starts(row))
		return;
	put_labelled(writer, family, row->labels, "waited=\"no\"", ended->count - ended->ahead_count);
	put_labelled(writer, family, row->labels, "waited=\"yes\"", ended->ahead_count);
}

static void put_seconds(struct writer *writer, const struct family *family, const struct row *row, uint64_t us)
{
	put(writer, "%s_total{%s} %" PRIu64 ".%06" PRIu64 "\n", family->name, row->labels, us / 1000000, us % 1000000);
}

static void put_request_cpu(struct writer *writer, const struct family *family, const struct row *row)
{
	if (has_starts(row))
		put_seconds(writer, family, row, ended_of(row)->cpu_us);
}

static void put_start_cpu(struct writer *writer, const struct family *family, const struct row *row)
{
	if (has_starts(row))
		put_seconds(writer, family, row, ended_of(row)->start_cpu_us);
}

static void put_request_faults(struct writer *writer, const struct family *family, const struct row *row)
{
	if (has_starts(row))
		put_count(writer, family, row->labels, ended_of(row)->faults);
}

static void put_start_faults(struct writer *writer, const struct family *family, const struct row *row)
{
	if (has_starts(row))
		put_count(writer, family, row->labels, ended_of(row)->start_faults);
}

/* What is not known is left out: a gap, not a nought. */
static bool is_usage_known(const struct row *row)
{
	return row->usage.is_known && reading_is_ours(row->place);
}

static void put_cpu(struct writer *writer, const struct family *family, const struct row *row)
{
	if (is_usage_known(row))
		put_seconds(writer, family, row, row->usage.cpu_us);
}

static void put_memory(struct writer *writer, const struct family *family, const struct row *row)
{
	if (is_usage_known(row))
		put_count(writer, family, row->labels, row->usage.max_rss_kib * 1024);
}

static void put_histogram(struct writer *writer, const struct family *family, const struct row *row)
{
	const struct spans *spans = row->place->entry->figures->spans;
	const struct histogram *histogram;
	uint64_t below[BOUNDS];

	if (spans == NULL)
		return;
	histogram = (const struct histogram *)((const char *)spans + family->span);
	histogram_below_powers(histogram, FIRST_BOUND_BITS, BOUNDS, below);
	for (unsigned i = 0; i < BOUNDS; i++) {
		uint64_t us = (uint64_t)1 << (FIRST_BOUND_BITS + i);

		put(writer, "%s_bucket{%s,le=\"%" PRIu64 ".%06" PRIu64 "\"} %" PRIu64 "\n", family->name, row->labels,
			us / 1000000, us % 1000000, below[i]);
	}
	put(writer, "%s_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n", family->name, row->labels, histogram->count);
	put(writer, "%s_sum{%s} %" PRIu64 ".%06" PRIu64 "\n", family->name, row->labels,
		histogram->sum_us / 1000000, histogram->sum_us % 1000000);
	put(writer, "%s_count{%s} %" PRIu64 "\n", family->name, row->labels, histogram->count);
}

static const struct family families[] = {
	{ "fcgi_host", "info", NULL, "The version that runs.", .put_host = put_info },
	{ "fcgi_host_start_time_seconds", "gauge", "seconds", "When the host was started, since 1970.", .put_host = put_start_time },
	{ "fcgi_host_reloads", "counter", NULL, "Configurations taken since the start.", .put_host = put_reloads },
	{ "fcgi_host_connections", "gauge", NULL, "Connections of web servers.", .put_host = put_connections },
	{ "fcgi_host_log_lines_dropped", "counter", NULL, "Lines that the log's reader was too slow for.", .put_host = put_dropped },
	{ "fcgi_host_unrouted_requests", "counter", NULL, "Requests that no route takes, by class of status.", .put_host = put_unrouted },
	{ "fcgi_host_builtin_requests", "counter", NULL, "Requests that builtin routes answered, by class of status.",
		.put_host = put_builtin },
	{ "fcgi_host_processes", "gauge", NULL, "Processes of the handler by state.", .put_row = put_processes },
	{ "fcgi_host_zygotes", "gauge", NULL, "Processes that fork those of the handler, and are not among them.", .put_row = put_zygotes },
	{ "fcgi_host_processes_limit", "gauge", NULL, "workers.max of the handler.", .put_row = put_processes_limit },
	{ "fcgi_host_waiting_requests", "gauge", NULL, "Requests in line for a process.", .put_row = put_waiting },
	{ "fcgi_host_waiting_requests_limit", "gauge", NULL, "queue.max of the handler.", .put_row = put_waiting_limit },
	{ "fcgi_host_requests", "counter", NULL, "Requests that are over, by class of status; none: without one.", .put_row = put_requests },
	{ "fcgi_host_failures", "counter", NULL, "Requests that failed, by kind.", .put_row = put_failures },
	{ "fcgi_host_retries", "counter", NULL, "Requests given to a second worker.", .put_row = put_retries },
	{ "fcgi_host_request_body_bytes", "counter", "bytes", "Bodies of requests.", .put_row = put_bytes_in },
	{ "fcgi_host_response_body_bytes", "counter", "bytes", "Bodies of answers.", .put_row = put_bytes_out },
	{ "fcgi_host_process_starts", "counter", NULL, "Processes started.", .put_row = put_starts },
	{ "fcgi_host_process_restarts", "counter", NULL, "Workers and waiting processes started in the place of one that had ended.",
		.put_row = put_restarts },
	{ "fcgi_host_process_deaths", "counter", NULL, "Workers and waiting processes that ended without being told to.", .put_row = put_deaths },
	{ "fcgi_host_request_starts", "counter", NULL, "Requests with a process of their own, by how it was started.",
		.put_row = put_request_starts },
	{ "fcgi_host_request_processes_ended", "counter", NULL, "Processes of one request each; waited: started before it.",
		.put_row = put_ended },
	{ "fcgi_host_request_cpu_seconds", "counter", "seconds", "Time of the processor that such processes used for their request.",
		.put_row = put_request_cpu },
	{ "fcgi_host_start_cpu_seconds", "counter", "seconds", "Time of the processor that those which waited had used before.",
		.put_row = put_start_cpu },
	{ "fcgi_host_request_page_faults", "counter", NULL, "Page faults of such processes for their request.",
		.put_row = put_request_faults },
	{ "fcgi_host_start_page_faults", "counter", NULL, "Page faults of those which waited, before.", .put_row = put_start_faults },
	{ "fcgi_host_cpu_seconds", "counter", "seconds", "Time of the processor that processes have used.", .put_row = put_cpu },
	{ "fcgi_host_process_memory_max_bytes", "gauge", "bytes", "The most memory that one process held.", .put_row = put_memory },
	{ "fcgi_host_request_queue_seconds", "histogram", "seconds", "In line for a process.",
		.put_row = put_histogram, .span = offsetof(struct spans, queue) },
	{ "fcgi_host_request_start_seconds", "histogram", "seconds", "From then until the process was there.",
		.put_row = put_histogram, .span = offsetof(struct spans, start) },
	{ "fcgi_host_request_first_byte_seconds", "histogram", "seconds", "From the beginning to the first byte of the answer.",
		.put_row = put_histogram, .span = offsetof(struct spans, first_byte) },
	{ "fcgi_host_request_duration_seconds", "histogram", "seconds", "From the beginning to the end; of those that a handler was given.",
		.put_row = put_histogram, .span = offsetof(struct spans, total) },
};

static void put_family(struct writer *writer, const struct family *family)
{
	put(writer, "# TYPE %s %s\n", family->name, family->type);
	if (family->unit != NULL)
		put(writer, "# UNIT %s %s\n", family->name, family->unit);
	put(writer, "# HELP %s %s\n", family->name, family->help);
	if (family->put_host != NULL)
		family->put_host(writer, family);
	for (size_t i = 0; family->put_row != NULL && i < writer->rows_count && !writer->is_full; i++)
		family->put_row(writer, family, &writer->rows[i]);
}

/* `generation` tells a handler from the one of that name before a reload, which
 * may still have requests: its counts are other ones. */
static void fill_row(struct row *row, struct reading *reading, const struct place *place)
{
	row->place = place;
	reading_pool(place, &row->pool);
	reading_processes(reading, place, NULL, NULL, &row->usage);
	/* A name has no character that would have to be escaped. */
	snprintf(row->labels, sizeof(row->labels), "handler=\"%s\",protocol=\"%s\",process=\"%s\",generation=\"%u\"", handler_of(row)->name,
		config_protocol_name(handler_of(row)->protocol), config_process_name(handler_of(row)->process),
		pool_generation(place->entry->pool));
}

int status_openmetrics(struct host *host, struct bytes *out)
{
	struct reading reading;
	struct writer writer = { .out = out, .reading = &reading };

	writer.is_full = reading_begin(&reading, host) < 0;
	writer.rows = calloc(reading.places_count + 1, sizeof(*writer.rows));
	writer.is_full |= writer.rows == NULL;
	for (; !writer.is_full && writer.rows_count < reading.places_count; writer.rows_count++)
		fill_row(&writer.rows[writer.rows_count], &reading, &reading.places[writer.rows_count]);
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]) && !writer.is_full; i++)
		put_family(&writer, &families[i]);
	put(&writer, "# EOF\n");
	free(writer.rows);
	reading_end(&reading);
	return writer.is_full ? -1 : 0;
}
