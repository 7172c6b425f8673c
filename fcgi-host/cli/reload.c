/*
 * reload.c - `fcgi-host reload`: makes the running host take its configuration
 * again, and waits for what comes of it.
 */
#include "cli/cli.h"

#include "base/bytes.h"
#include "config/config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <unistd.h>

enum { ANSWER_MAX_BYTES = 4 * 1024 * 1024 };

static int say(struct bytes *answer)
{
	char *text = (char *)bytes_data(answer);
	char *notes = strchr(text, '\n');
	bool is_fine = strncmp(text, "ok\n", 3) == 0;

	if (notes != NULL && notes[1] != '\0')
		fputs(notes + 1, stderr);
	return is_fine ? EXIT_FINE : EXIT_MISTAKE;
}

int cli_reload(int argc, char **argv)
{
	const char *file = config_default_file();
	struct bytes answer;
	struct err err;
	int option, status;

	while ((option = getopt(argc, argv, "c:")) != -1) {
		if (option != 'c')
			return cli_usage("reload", CLI_RELOAD_USAGE);
		file = optarg;
	}
	if (optind != argc)
		return cli_usage("reload", CLI_RELOAD_USAGE);
	bytes_init(&answer, ANSWER_MAX_BYTES);
	if (cli_ask(file, "reload\n", &answer, &err) < 0 || bytes_append(&answer, "", 1) < 0) {
		fprintf(stderr, "fcgi-host reload: %s\n", err.text);
		status = EXIT_MISTAKE;
	} else {
		status = say(&answer);
	}
	bytes_fini(&answer);
	return status;
}
