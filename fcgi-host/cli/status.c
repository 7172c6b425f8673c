/*
 * status.c - `fcgi-host status`: what the running host is doing, as JSON or as
 * a table made from the same.
 */
#include "cli/cli.h"

#include "base/bytes.h"
#include "config/config.h"

#include <getopt.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

enum { ANSWER_MAX_BYTES = 64 * 1024 * 1024, SPAN_BYTES = 32, NAME_MIN_COLUMNS = 7 };

static const struct option options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "json", no_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};

/* Members; of another version of the host, some may not be there. */

static struct json_object *member(struct json_object *of, const char *name)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(of, name, &value);
	return value;
}

static uint64_t number(struct json_object *of, const char *name)
{
	return (uint64_t)json_object_get_int64(member(of, name));
}

static const char *text(struct json_object *of, const char *name)
{
	struct json_object *value = member(of, name);

	return value == NULL ? "-" : json_object_get_string(value);
}

static size_t length(struct json_object *array)
{
	return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

/* "0.42ms", "12.3s", "5m07s", "3h20m", "4d02h"; "-" where there is none. */
static const char *span(struct json_object *of, const char *name, char out[SPAN_BYTES])
{
	struct json_object *value = member(of, name);
	double ms = json_object_get_double(value);
	unsigned long long s = (unsigned long long)(ms / 1000);

	if (value == NULL)
		snprintf(out, SPAN_BYTES, "-");
	else if (ms < 1000)
		snprintf(out, SPAN_BYTES, ms < 10 ? "%.2fms" : "%.0fms", ms);
	else if (s < 60)
		snprintf(out, SPAN_BYTES, "%.1fs", ms / 1000);
	else if (s < 3600)
		snprintf(out, SPAN_BYTES, "%llum%02llus", s / 60, s % 60);
	else if (s < 86400)
		snprintf(out, SPAN_BYTES, "%lluh%02llum", s / 3600, s / 60 % 60);
	else
		snprintf(out, SPAN_BYTES, "%llud%02lluh", s / 86400, s / 3600 % 24);
	return out;
}

static const char *memory(struct json_object *of, const char *name, char out[SPAN_BYTES])
{
	struct json_object *value = member(of, name);

	if (value == NULL)
		snprintf(out, SPAN_BYTES, "-");
	else
		snprintf(out, SPAN_BYTES, "%.1fMiB", json_object_get_double(value) / 1024);
	return out;
}

/* Tables. */

static void print_host(struct json_object *host)
{
	struct json_object *listeners = member(host, "listeners");
	char uptime[SPAN_BYTES];

	printf("fcgi-host %s, pid %s, %s for %s, %s\n", text(host, "version"), text(host, "pid"), text(host, "state"),
		span(host, "uptime_ms", uptime), text(host, "config"));
	for (size_t i = 0; i < length(listeners); i++) {
		struct json_object *listener = json_object_array_get_idx(listeners, i);

		printf("  %s: %s, backlog %s\n", text(listener, "address"), text(listener, "state"), text(listener, "backlog"));
	}
	printf("  %s connections, %s processes", text(host, "connections"), text(host, "processes"));
	if (number(host, "max_processes") > 0)
		printf(" of %s", text(host, "max_processes"));
	printf(", reloaded %s times%s, %s log lines dropped, %s requests without a handler\n", text(host, "reloads"),
		json_object_get_boolean(member(host, "reloading")) ? " and reloading now" : "",
		text(host, "log_lines_dropped"), text(member(host, "unrouted"), "requests"));
}

static int name_columns(struct json_object *handlers)
{
	size_t columns = NAME_MIN_COLUMNS;

	for (size_t i = 0; i < length(handlers); i++) {
		size_t len = strlen(text(json_object_array_get_idx(handlers, i), "name"));

		columns = len > columns ? len : columns;
	}
	return (int)columns;
}

static const char *process_of(struct json_object *handler)
{
	if (json_object_get_boolean(member(handler, "retired")))
		return "retired";
	return member(handler, "connect") != NULL ? "connect" : text(handler, "process");
}

static void print_handler(struct json_object *handler, int columns)
{
	struct json_object *processes = member(handler, "processes"), *totals = member(handler, "totals");
	struct json_object *latency = member(handler, "latency_ms");
	char p50[SPAN_BYTES], p95[SPAN_BYTES], p99[SPAN_BYTES], next[SPAN_BYTES];

	printf("%-*s %-11s %4s %4s %5s %4s %4s %5s %9s %7" PRIu64 " %8s %8s %8s %8s %8s\n", columns, text(handler, "name"),
		process_of(handler), text(processes, "idle"), text(processes, "busy"), text(processes, "starting"),
		text(processes, "stopping"), text(member(member(handler, "configured"), "workers"), "max"),
		text(handler, "waiting"), text(totals, "requests"), number(totals, "5xx") + number(totals, "broken"),
		text(handler, "restarts"), span(latency, "p50", p50), span(latency, "p95", p95), span(latency, "p99", p99),
		span(handler, "next_try_ms", next));
}

static void print_processes(struct json_object *handler, int columns)
{
	struct json_object *list = member(handler, "process_list");
	char age[SPAN_BYTES], request_age[SPAN_BYTES], cpu[SPAN_BYTES], rss[SPAN_BYTES];

	for (size_t i = 0; i < length(list); i++) {
		struct json_object *process = json_object_array_get_idx(list, i);

		printf("%-*s %7s %-8s %8s %8s %8s %10s %8s %s\n", columns, text(handler, "name"), text(process, "pid"),
			text(process, "state"), span(process, "age_ms", age), text(process, "requests"),
			span(process, "cpu_ms", cpu), memory(process, "rss_kib", rss),
			span(process, "request_age_ms", request_age), text(process, "request"));
	}
}

static void print_tables(struct json_object *host)
{
	struct json_object *handlers = member(host, "handlers");
	int columns = name_columns(handlers);

	print_host(host);
	printf("\n%-*s %-11s %4s %4s %5s %4s %4s %5s %9s %7s %8s %8s %8s %8s %8s\n", columns, "HANDLER", "PROCESS",
		"IDLE", "BUSY", "START", "STOP", "MAX", "WAIT", "REQUESTS", "ERRORS", "RESTARTS", "P50", "P95", "P99", "NEXT TRY");
	for (size_t i = 0; i < length(handlers); i++)
		print_handler(json_object_array_get_idx(handlers, i), columns);
	printf("\n%-*s %7s %-8s %8s %8s %8s %10s %8s %s\n", columns, "HANDLER", "PID", "STATE", "AGE", "REQUESTS", "CPU", "MEMORY",
		"SINCE", "REQUEST");
	for (size_t i = 0; i < length(handlers); i++)
		print_processes(json_object_array_get_idx(handlers, i), columns);
}

static int print(struct bytes *answer, bool is_json, struct err *err)
{
	struct json_object *host;

	if (answer->len < 2 || bytes_data(answer)[0] != '{' || bytes_append(answer, "", 1) < 0)
		return err_set(err, "the host answers: %.*s", (int)answer->len, (const char *)bytes_data(answer));
	if (is_json) {
		fputs((const char *)bytes_data(answer), stdout);
		return 0;
	}
	host = json_tokener_parse((const char *)bytes_data(answer));
	if (host == NULL)
		return err_set(err, "the answer of the host is no JSON");
	print_tables(host);
	json_object_put(host);
	return 0;
}

int cli_status(int argc, char **argv)
{
	const char *file = config_default_file();
	bool is_json = false;
	struct bytes answer;
	struct err err;
	int option, status = EXIT_FINE;

	while ((option = getopt_long(argc, argv, "c:", options, NULL)) != -1) {
		if (option == 'c')
			file = optarg;
		else if (option == 'j')
			is_json = true;
		else
			return cli_usage("status", CLI_STATUS_USAGE);
	}
	if (optind != argc)
		return cli_usage("status", CLI_STATUS_USAGE);
	bytes_init(&answer, ANSWER_MAX_BYTES + 1);
	if (cli_ask(file, "status\n", &answer, &err) < 0 || print(&answer, is_json, &err) < 0) {
		fprintf(stderr, "fcgi-host status: %s\n", err.text);
		status = EXIT_MISTAKE;
	}
	bytes_fini(&answer);
	return status;
}
