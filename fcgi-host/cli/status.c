/*
 * status.c - `fcgi-host status`: what the running host is doing, as JSON or as
 * a table made from the same.
 */
#include "cli/cli.h"

#include "base/bytes.h"
#include "cli/members.h"
#include "config/config.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MIN_COLUMNS = 7 };

static const struct option options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "json", no_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};

/* Tables. */

static void print_host(struct json_object *host)
{
	struct json_object *listeners = member(host, "listeners");
	char uptime[MEMBER_TEXT_BYTES];

	printf("fcgi-host %s, pid %s, %s for %s, %s\n", member_text(host, "version"), member_text(host, "pid"), member_text(host, "state"),
		member_span(host, "uptime_ms", uptime), member_text(host, "config"));
	for (size_t i = 0; i < members_count(listeners); i++) {
		struct json_object *listener = json_object_array_get_idx(listeners, i);

		printf("  %s: %s, backlog %s\n", member_text(listener, "address"), member_text(listener, "state"), member_text(listener, "backlog"));
	}
	printf("  %s connections, %s processes", member_text(host, "connections"), member_text(host, "processes"));
	if (member_number(host, "max_processes") > 0)
		printf(" of %s", member_text(host, "max_processes"));
	printf(", reloaded %s times%s, %s log lines dropped, %s requests without a handler\n", member_text(host, "reloads"),
		json_object_get_boolean(member(host, "reloading")) ? " and reloading now" : "",
		member_text(host, "log_lines_dropped"), member_text(member(host, "unrouted"), "requests"));
}

static int name_columns(struct json_object *handlers)
{
	size_t columns = NAME_MIN_COLUMNS;

	for (size_t i = 0; i < members_count(handlers); i++) {
		size_t len = strlen(member_text(json_object_array_get_idx(handlers, i), "name"));

		columns = len > columns ? len : columns;
	}
	return (int)columns;
}

static const char *process_of(struct json_object *handler)
{
	if (json_object_get_boolean(member(handler, "retired")))
		return "retired";
	return member(handler, "connect") != NULL ? "connect" : member_text(handler, "process");
}

static void print_handler(struct json_object *handler, int columns)
{
	struct json_object *processes = member(handler, "processes"), *totals = member(handler, "totals");
	struct json_object *latency = member(handler, "latency_ms");
	char p50[MEMBER_TEXT_BYTES], p95[MEMBER_TEXT_BYTES], p99[MEMBER_TEXT_BYTES], next[MEMBER_TEXT_BYTES];

	printf("%-*s %-11s %4s %4s %5s %4s %4s %5s %9s %7" PRIu64 " %8s %8s %8s %8s %8s\n", columns, member_text(handler, "name"),
		process_of(handler), member_text(processes, "idle"), member_text(processes, "busy"), member_text(processes, "starting"),
		member_text(processes, "stopping"), member_text(member(member(handler, "configured"), "workers"), "max"),
		member_text(handler, "waiting"), member_text(totals, "requests"), member_number(totals, "5xx") + member_number(totals, "broken"),
		member_text(handler, "restarts"), member_span(latency, "p50", p50), member_span(latency, "p95", p95), member_span(latency, "p99", p99),
		member_span(handler, "next_try_ms", next));
}

static void print_processes(struct json_object *handler, int columns)
{
	struct json_object *list = member(handler, "process_list");
	char age[MEMBER_TEXT_BYTES], request_age[MEMBER_TEXT_BYTES], cpu[MEMBER_TEXT_BYTES], rss[MEMBER_TEXT_BYTES];

	for (size_t i = 0; i < members_count(list); i++) {
		struct json_object *process = json_object_array_get_idx(list, i);

		printf("%-*s %7s %-8s %8s %8s %8s %10s %8s %s\n", columns, member_text(handler, "name"), member_text(process, "pid"),
			member_text(process, "state"), member_span(process, "age_ms", age), member_text(process, "requests"),
			member_span(process, "cpu_ms", cpu), member_memory(process, "rss_kib", rss),
			member_span(process, "request_age_ms", request_age), member_text(process, "request"));
	}
}

static void print_tables(struct json_object *host)
{
	struct json_object *handlers = member(host, "handlers");
	int columns = name_columns(handlers);

	print_host(host);
	printf("\n%-*s %-11s %4s %4s %5s %4s %4s %5s %9s %7s %8s %8s %8s %8s %8s\n", columns, "HANDLER", "PROCESS",
		"IDLE", "BUSY", "START", "STOP", "MAX", "WAIT", "REQUESTS", "ERRORS", "RESTARTS", "P50", "P95", "P99", "NEXT TRY");
	for (size_t i = 0; i < members_count(handlers); i++)
		print_handler(json_object_array_get_idx(handlers, i), columns);
	printf("\n%-*s %7s %-8s %8s %8s %8s %10s %8s %s\n", columns, "HANDLER", "PID", "STATE", "AGE", "REQUESTS", "CPU", "MEMORY",
		"SINCE", "REQUEST");
	for (size_t i = 0; i < members_count(handlers); i++)
		print_processes(json_object_array_get_idx(handlers, i), columns);
}

static int print_json(const char *file, struct err *err)
{
	struct bytes answer;
	int status;

	bytes_init(&answer, STATUS_MAX_BYTES);
	status = cli_ask(file, "status\n", &answer, err);
	if (status == 0 && bytes_data(&answer)[0] != '{')
		status = err_set(err, "the host answers: %.*s", (int)answer.len, (const char *)bytes_data(&answer));
	else if (status == 0)
		fwrite(bytes_data(&answer), 1, answer.len, stdout);
	bytes_fini(&answer);
	return status;
}

static int print(const char *file, struct err *err)
{
	struct json_object *host = members_ask(file, err);

	if (host == NULL)
		return -1;
	print_tables(host);
	json_object_put(host);
	return 0;
}

int cli_status(int argc, char **argv)
{
	const char *file = config_default_file();
	bool is_json = false;
	struct err err;
	int option;

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
	if ((is_json ? print_json(file, &err) : print(file, &err)) == 0)
		return EXIT_FINE;
	fprintf(stderr, "fcgi-host status: %s\n", err.text);
	return EXIT_MISTAKE;
}
