/*
 * check.c - `fcgi-host check`: says everything that is wrong with a
 * configuration, or prints it whole.
 */
#include "cli/cli.h"

#include "config/config.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const struct option options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "print", no_argument, NULL, 'p' },
	{ NULL, 0, NULL, 0 },
};

static void write_all(const struct bytes *text, FILE *out)
{
	if (text->len > 0)
		fwrite(bytes_data(text), 1, text->len, out);
}

static const char *plural(size_t count)
{
	return count == 1 ? "" : "s";
}

static void say_fine(const char *file, const struct config *config, const struct config_report *report)
{
	printf("%s: fine", file);
	if (report->warnings_count > 0)
		printf(", with %u warning%s", report->warnings_count, plural(report->warnings_count));
	printf(" (%zu handler%s, %zu route%s)\n", config->handlers_count, plural(config->handlers_count), config->routes_count,
		plural(config->routes_count));
}

static int check(const char *file, bool is_print)
{
	struct config_report report;

	config_report_init(&report);
	struct config *config = config_load(file, &report);
	write_all(&report.errors, stderr);
	write_all(&report.warnings, stderr);
	if (config == NULL)
		fprintf(stderr, "%s: %u error%s\n", file, report.errors_count, plural(report.errors_count));
	else if (is_print)
		config_print(config, stdout);
	else
		say_fine(file, config, &report);
	int status = config == NULL || fflush(stdout) != 0 ? EXIT_MISTAKE : EXIT_FINE;
	config_free(&config);
	config_report_fini(&report);
	return status;
}

static int usage(void)
{
	fputs("usage: fcgi-host check " CLI_CHECK_USAGE "\n", stderr);
	return EXIT_USAGE;
}

int cli_check(int argc, char **argv)
{
	const char *file = config_default_file();
	bool is_print = false;
	int option;

	optind = 1;
	while ((option = getopt_long(argc, argv, "+c:", options, NULL)) != -1)
		switch (option) {
		case 'c':
			file = optarg;
			break;
		case 'p':
			is_print = true;
			break;
		default:
			return usage();
		}
	return optind < argc ? usage() : check(file, is_print);
}
