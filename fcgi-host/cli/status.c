/*
 * status.c - `fcgi-host status`: what the running host is doing.
 */
#include "cli/cli.h"

#include "base/bytes.h"
#include "config/config.h"

#include <getopt.h>
#include <stdio.h>

enum { ANSWER_MAX_BYTES = 64 * 1024 * 1024 };

static const struct option options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "json", no_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};

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
	bytes_init(&answer, ANSWER_MAX_BYTES);
	if (cli_ask(file, "status\n", &answer, &err) < 0) {
		fprintf(stderr, "fcgi-host status: %s\n", err.text);
		status = EXIT_MISTAKE;
	} else if (is_json) {
		fwrite(bytes_data(&answer), 1, answer.len, stdout);
	} else {
		fwrite(bytes_data(&answer), 1, answer.len, stdout);
	}
	bytes_fini(&answer);
	return status;
}
