/* What several commands share. */
#include "cli/cli.h"

#include "config/config.h"

#include <stdio.h>

static void write_all(const struct bytes *text, FILE *out)
{
	if (text->len > 0)
		fwrite(bytes_data(text), 1, text->len, out);
}

void cli_print_report(const struct config_report *report)
{
	write_all(&report->warnings, stderr);
	write_all(&report->errors, stderr);
}

struct config *cli_load(const char *file)
{
	struct config_report report;
	struct config *config;

	config_report_init(&report);
	config = config_load(file, &report);
	cli_print_report(&report);
	config_report_fini(&report);
	return config;
}

int cli_usage(const char *command, const char *usage)
{
	fprintf(stderr, "usage: fcgi-host %s %s\n", command, usage);
	return EXIT_USAGE;
}
