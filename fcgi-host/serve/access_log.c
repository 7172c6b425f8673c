/* The one line that every request leaves in the log, the one that a slow request
 * has before, and what a request adds to the figures of its handler. */
#include "base/clock.h"
#include "base/log.h"
#include "serve/client.h"
#include "serve/request.h"

#include <sys/wait.h>

static uint64_t end_of(const struct request *request)
{
	return request->answered_ns != 0 ? request->answered_ns : clock_monotonic_ns();
}

static uint64_t span_us(uint64_t from_ns, uint64_t to_ns)
{
	return from_ns == 0 || to_ns < from_ns ? FIGURES_NO_SPAN : (to_ns - from_ns) / 1000;
}

static struct figures *figures_of(const struct request *request)
{
	return request->handler != NULL ? request->figures : request->host->unrouted;
}

/* Of a process that was started for this request and answered it. */
static void put_spawn_parts(const struct request *request, uint64_t out[SPAWN_PARTS_COUNT])
{
	out[0] = FIGURES_NO_SPAN;
	if (!request->has_usage || request->end != REQUEST_END_WHOLE || request->first_byte_ns < request->started_ns ||
	    request->started_ns < request->granted_ns || request->output_end_ns < request->first_byte_ns)
		return;
	out[SPAWN_PART_START] = span_us(request->granted_ns, request->started_ns);
	out[SPAWN_PART_FIRST_BYTE] = span_us(request->started_ns, request->first_byte_ns);
	out[SPAWN_PART_END] = span_us(request->first_byte_ns, request->output_end_ns);
	out[SPAWN_PART_EXIT] = request->exited_ns < request->output_end_ns ? 0 : span_us(request->output_end_ns, request->exited_ns);
}

static void add_to_figures(const struct request *request)
{
	uint64_t end_ns = end_of(request);
	struct outcome outcome = {
		.end = request->end,
		.status = request->status,
		.was_retried = request->was_retried,
		.start = request->start,
		.queue_us = span_us(request->queued_ns, request->granted_ns),
		.start_us = span_us(request->granted_ns, request->started_ns),
		.first_byte_us = span_us(request->begun_ns, request->first_byte_ns),
		/* What was refused at once would make the handler look fast. */
		.total_us = request->started_ns == 0 ? FIGURES_NO_SPAN : span_us(request->begun_ns, end_ns),
		.bytes_in = request->body.received_bytes,
		.bytes_out = request->answer.body_bytes,
		.at_s = end_ns / 1000000000,
	};

	put_spawn_parts(request, outcome.spawn_us);
	figures_add(figures_of(request), &outcome);
	if (outcome_failure(&outcome) != FAILURE_NONE)
		failures_add(&request->host->failures, request, &outcome);
}

static void put_span(struct log_line *line, const char *name, uint64_t from_ns, uint64_t to_ns)
{
	if (from_ns == 0 || to_ns < from_ns)
		log_none(line, name);
	else
		log_ms(line, name, to_ns - from_ns);
}

static void put_who(struct log_line *line, const struct request *request)
{
	const struct handler_config *handler = request->handler;

	log_str(line, "id", request->id);
	log_str(line, "route", request->route_path);
	log_str(line, "handler", handler == NULL ? NULL : handler->name);
	log_str(line, "process", handler == NULL || request->pool == NULL ? NULL : config_process_name(handler->process));
	if (request->pid > 0)
		log_i64(line, "pid", request->pid);
	else
		log_none(line, "pid");
}

static const char *const start_names[STARTS_COUNT] = {
	[START_NONE] = NULL, [START_COLD] = "cold", [START_PARKED] = "parked", [START_FORKED] = "forked",
};

static void put_times(struct log_line *line, const struct request *request)
{
	put_span(line, "queue_ms", request->queued_ns, request->granted_ns);
	put_span(line, "start_ms", request->granted_ns, request->started_ns);
	put_span(line, "first_byte_ms", request->begun_ns, request->first_byte_ns);
	put_span(line, "total_ms", request->begun_ns, end_of(request));
}

static uint64_t faults_of(const struct process_usage *usage)
{
	return usage->minor_faults + usage->major_faults;
}

static void put_usage(struct log_line *line, const struct request *request)
{
	if (request->has_usage) {
		log_ms(line, "cpu_ms", request->usage.cpu_us * 1000);
		log_u64(line, "rss_kib", request->usage.max_rss_kib);
		log_u64(line, "faults", faults_of(&request->usage));
	} else {
		log_none(line, "cpu_ms");
		log_none(line, "rss_kib");
		log_none(line, "faults");
	}
}

/* Only of a handler whose processes wait, so that the other lines stay as they are. */
static void put_start(struct log_line *line, const struct request *request)
{
	log_str(line, "start", start_names[request->start]);
	if (request->has_usage && request->start > START_COLD) {
		log_ms(line, "start_cpu_ms", request->start_usage.cpu_us * 1000);
		log_u64(line, "start_faults", faults_of(&request->start_usage));
	} else {
		log_none(line, "start_cpu_ms");
		log_none(line, "start_faults");
	}
}

static void put_exit(struct log_line *line, const struct request *request)
{
	if (request->has_exit && WIFEXITED(request->wait_status))
		log_i64(line, "exit", WEXITSTATUS(request->wait_status));
	else
		log_none(line, "exit");
	if (request->has_exit && WIFSIGNALED(request->wait_status))
		log_i64(line, "signal", WTERMSIG(request->wait_status));
	else
		log_none(line, "signal");
}

void request_log(const struct request *request)
{
	bool is_bad = request->status >= 500 || request->reason[0] != '\0';
	struct log_line line;

	add_to_figures(request);
	log_begin(&line, is_bad ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "request");
	put_who(&line, request);
	log_str(&line, "method", request->cgi.method);
	log_str(&line, "path", request->cgi.path);
	if (request->status != 0)
		log_u64(&line, "status", request->status);
	else
		log_none(&line, "status");
	log_u64(&line, "bytes_in", request->body.received_bytes);
	log_u64(&line, "bytes_out", request->answer.body_bytes);
	put_times(&line, request);
	put_usage(&line, request);
	put_exit(&line, request);
	log_str(&line, "reason", request->reason[0] == '\0' ? NULL : request->reason);
	if (request->handler != NULL && config_is_waiting(request->handler))
		put_start(&line, request);
	log_end(&line);
}

/* What a request waits for now. */
static const char *stage_of(const struct request *request)
{
	bool is_body_awaited = !request->body.is_complete && body_waiting(&request->body) == 0;

	switch (request->state) {
	case REQUEST_PARAMS: return "params";
	case REQUEST_SPOOLING: return "body";
	case REQUEST_WAITING: return "queue";
	case REQUEST_STARTING: return "start";
	case REQUEST_RUNNING: break;
	case REQUEST_ENDING: return "end";
	case REQUEST_OVER: return "client";
	}
	if (client_room(request->client) == 0)
		return "client";
	if (is_body_awaited && !request->is_body_unwanted)
		return "body";
	return request->first_byte_ns == 0 ? "handler" : "answer";
}

void request_log_slow(const struct request *request)
{
	struct log_line line;

	log_begin(&line, LOG_LEVEL_WARNING, "slow");
	put_who(&line, request);
	log_str(&line, "method", request->cgi.method);
	log_str(&line, "path", request->cgi.path);
	log_str(&line, "stage", stage_of(request));
	log_ms(&line, "elapsed_ms", clock_monotonic_ns() - request->begun_ns);
	log_end(&line);
}
