/*
 * main.c - picks the command.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *usage;
};

static const struct command commands[] = {
	{ "serve", cli_serve, CLI_SERVE_USAGE },
	{ "bridge", cli_bridge, CLI_BRIDGE_USAGE },
	{ "reload", cli_reload, CLI_RELOAD_USAGE },
	{ "status", cli_status, CLI_STATUS_USAGE },
	{ "top", cli_top, CLI_TOP_USAGE },
	{ "call", cli_call, CLI_CALL_USAGE },
	{ "compare", cli_compare, CLI_COMPARE_USAGE },
	{ "check", cli_check, CLI_CHECK_USAGE },
	{ "routes", cli_routes, CLI_ROUTES_USAGE },
	{ NULL, NULL, NULL }
};

static void print_usage(FILE *out)
{
	fprintf(out, "fcgi-host %s: one FastCGI application for many handlers\n\nusage:\n", PACKAGE_VERSION);
	for (const struct command *c = commands; c->name != NULL; c++)
		fprintf(out, "  fcgi-host %s %s\n", c->name, c->usage);
}

static int run(const struct command *command, int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--help") == 0) {
		printf("usage: fcgi-host %s %s\n", command->name, command->usage);
		return EXIT_FINE;
	}
	return command->run(argc, argv);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
		print_usage(stdout);
		return EXIT_FINE;
	}
	if (strcmp(name, "--version") == 0) {
		printf("fcgi-host %s\n", PACKAGE_VERSION);
		return EXIT_FINE;
	}
	for (const struct command *c = commands; c->name != NULL; c++)
		if (strcmp(name, c->name) == 0)
			return run(c, argc - 1, argv + 1);
	if (name[0] != '\0')
		fprintf(stderr, "fcgi-host: no command named '%s'\n", name);
	print_usage(stderr);
	return EXIT_USAGE;
}
