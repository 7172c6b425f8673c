/*
 * compare.c - `fcgi-host compare`: reads the command line into a plan, runs it, and
 * reports.
 */
#include "cli/call_body.h"
#include "cli/cli.h"
#include "cli/compare_plan.h"

#include "base/bytes.h"
#include "compare/report.h"
#include "compare/run.h"
#include "compare/suite.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_INTERRUPTED = 130, STATUS_MAX_BYTES = 64 << 20 };

static volatile sig_atomic_t is_interrupted;

static void on_signal(int signal)
{
	(void)signal;
	is_interrupted = 1;
}

/* The second one ends us at once. */
static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* As a shell would take it again. */
static char *command_text(int argc, char **argv)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (out == NULL)
		return NULL;
	fputs("fcgi-host", out);
	for (int i = 0; i < argc; i++) {
		bool is_plain = argv[i][0] != '\0' &&
			argv[i][strspn(argv[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+=,-")] == '\0';

		fputs(is_plain ? " " : " '", out);
		for (const char *c = argv[i]; *c != '\0'; c++)
			if (*c == '\'')
				fputs("'\\''", out);
			else
				fputc(*c, out);
		if (!is_plain)
			fputc('\'', out);
	}
	fclose(out);
	return text;
}

/* How often the handler is asked for now, by the host that runs with this file; 0 when none does. */
static double rate_now(const char *file, const char *handler)
{
	struct json_object *status = NULL, *handlers = NULL, *value = NULL;
	struct bytes answer;
	struct err err;
	double requests = 0, uptime_ms = 0;

	bytes_init(&answer, STATUS_MAX_BYTES);
	if (cli_ask(file, "status\n", &answer, &err) == 0 && bytes_append(&answer, "", 1) == 0)
		status = json_tokener_parse((const char *)bytes_data(&answer));
	bytes_fini(&answer);
	if (json_object_object_get_ex(status, "uptime_ms", &value))
		uptime_ms = json_object_get_double(value);
	json_object_object_get_ex(status, "handlers", &handlers);
	for (size_t i = 0; handlers != NULL && i < json_object_array_length(handlers); i++) {
		struct json_object *each = json_object_array_get_idx(handlers, i), *totals = NULL;

		if (json_object_object_get_ex(each, "name", &value) && strcmp(json_object_get_string(value), handler) == 0 &&
		    json_object_object_get_ex(each, "totals", &totals) && json_object_object_get_ex(totals, "requests", &value))
			requests = json_object_get_double(value);
	}
	json_object_put(status);
	return uptime_ms > 0 ? requests * 1000 / uptime_ms : 0;
}

static int write_html(const struct report *report, const char *file)
{
	FILE *out = fopen(file, "we");

	if (out == NULL) {
		fprintf(stderr, "fcgi-host compare: %s: %s\n", file, strerror(errno));
		return -1;
	}
	report_html(report, out);
	if (fclose(out) != 0) {
		fprintf(stderr, "fcgi-host compare: %s: %s\n", file, strerror(errno));
		return -1;
	}
	return 0;
}

static bool has_any_figures(const struct report *report)
{
	for (size_t i = 0; i < report->count; i++)
		for (size_t j = 0; report->comparisons[i].ways != NULL && j < report->comparisons[i].comparison->ways_count; j++)
			if (way_has_figures(&report->comparisons[i].ways[j]))
				return true;
	return false;
}

static int write_reports(const struct report *report, const struct compare_options *options)
{
	int status = EXIT_FINE;

	if (options->as_json)
		report_json(report, stdout);
	else if (options->as_csv)
		report_csv(report, stdout);
	else
		report_text(report, stdout);
	if (options->html != NULL && write_html(report, options->html) < 0)
		status = EXIT_MISTAKE;
	if (fflush(stdout) != 0)
		status = EXIT_MISTAKE;
	if (report->is_partial) {
		fputs("fcgi-host compare: interrupted: the results are partial\n", stderr);
		return EXIT_INTERRUPTED;
	}
	if (!has_any_figures(report)) {
		fputs("fcgi-host compare: nothing could be measured\n", stderr);
		return EXIT_MISTAKE;
	}
	return status;
}

static int run(struct plan *plan, const struct compare_options *options, char *command)
{
	struct report report = { .plan = plan, .command = command };
	struct err err;
	int status;

	if (options->handler != NULL)
		report.rate_per_s = rate_now(options->config_file, options->handler);
	catch_signals();
	if (compare_run(&report, &is_interrupted, &err) < 0) {
		fprintf(stderr, "fcgi-host compare: %s\n", err.text);
		status = EXIT_MISTAKE;
	} else {
		status = write_reports(&report, options);
	}
	report_fini(&report);
	return status;
}

static int run_suite(const struct compare_options *options, char *command)
{
	struct config_report report;
	struct plan plan = { 0 };
	struct suite *suite;
	int status = EXIT_MISTAKE;

	config_report_init(&report);
	suite = suite_load(options->suite, &plan, &report);
	cli_print_report(&report);
	config_report_fini(&report);
	if (suite != NULL)
		status = run(&plan, options, command);
	else
		free(command);
	plan_fini(&plan);
	suite_free(&suite);
	return status;
}

static int run_handler(struct compare_options *options, char *command)
{
	struct config *config = NULL;
	struct plan plan = { 0 };
	struct err err;
	int status = EXIT_MISTAKE;

	if (compare_plan_make(options, &plan, &config, &err) < 0) {
		fprintf(stderr, "fcgi-host compare: %s\n", err.text);
		free(command);
	} else {
		status = run(&plan, options, command);
	}
	plan_fini(&plan);
	config_free(&config);
	return status;
}

int cli_compare(int argc, char **argv)
{
	struct compare_options options;
	char *command;
	int status;

	if (compare_options_read(&options, argc, argv) < 0) {
		compare_options_fini(&options);
		return cli_usage("compare", CLI_COMPARE_USAGE);
	}
	command = command_text(argc, argv);
	status = options.suite != NULL ? run_suite(&options, command) : run_handler(&options, command);
	compare_options_fini(&options);
	return status;
}
