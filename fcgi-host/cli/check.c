/*
 * check.c - `fcgi-host check`: says everything that is wrong with a
 * configuration, or prints it whole.
 */
#include "cli/cli.h"

#include "config/config.h"

#include <getopt.h>
#include <stdio.h>

static const struct option options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "print", no_argument, NULL, 'p' },
	{ NULL, 0, NULL, 0 },
};

static const char *plural(size_t count)
{
	return count == 1 ? "" : "s";
}

static int check(const char *file, bool is_print)
{
	struct config *config = cli_load(file);

	if (config == NULL)
		return EXIT_MISTAKE;
	if (is_print)
		config_print(config, stdout);
	else
		printf("%s: fine (%zu handler%s, %zu route%s)\n", file, config->handlers_count, plural(config->handlers_count),
			config->routes_count, plural(config->routes_count));
	config_free(&config);
	return fflush(stdout) == 0 && !ferror(stdout) ? EXIT_FINE : EXIT_MISTAKE;
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
			return cli_usage("check", CLI_CHECK_USAGE);
		}
	return optind < argc ? cli_usage("check", CLI_CHECK_USAGE) : check(file, is_print);
}
