/*
 * serve.c - `fcgi-host serve`: runs in the foreground.
 */
#include "cli/cli.h"

#include "base/log.h"
#include "config/config.h"
#include "process/socket_folder.h"
#include "process/spawn.h"
#include "serve/host.h"
#include "serve/identity.h"
#include "serve/listener.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_PASSED_FD = 3, PASSED_MAX = 64 };

/* A descriptor 0, 1 or 2 that is closed would become somebody's socket. */
static void open_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

static int keep(struct inherited *inherited, int fd)
{
	inherited->fds[inherited->count++] = fd;
	return fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* spawn-fcgi, mod_fcgid and lighttpd pass the socket as descriptor 0. */
static void take_standard_input(struct inherited *inherited)
{
	int fd;

	if (listener_check_inherited(STDIN_FILENO, NULL) < 0)
		return;
	fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, FIRST_PASSED_FD);
	if (fd < 0)
		return;
	keep(inherited, fd);
	close(STDIN_FILENO);
	open_standard_descriptors();
}

/* sd_listen_fds(3). */
static void take_systemd(struct inherited *inherited)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	unsigned long passed;

	if (pid == NULL || count == NULL || strtol(pid, NULL, 10) != (long)getpid())
		return;
	passed = strtoul(count, NULL, 10);
	for (unsigned long i = 0; i < passed && inherited->count < PASSED_MAX; i++)
		keep(inherited, FIRST_PASSED_FD + (int)i);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
}

/* The log, and in it what the configuration's reader had to warn of. */
static int open_log(const struct config *config, struct config_report *report, struct err *err)
{
	struct log_options options = {
		.file = config->log.file,
		.format = config->log.format,
		.level = config->log.level,
	};
	char *line, *rest = NULL;

	if (log_open(&options, err) < 0)
		return -1;
	if (bytes_append(&report->warnings, "", 1) < 0)
		return 0;
	for (line = strtok_r((char *)bytes_data(&report->warnings), "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		log_message(LOG_LEVEL_WARNING, "config", "%s", line);
	return 0;
}

/* Takes ownership of `config`. */
static int start(struct config *config, struct config_report *report, const struct inherited *inherited)
{
	struct err err;
	bool may_start = geteuid() == 0 || identity_check_handlers(config, &err) == 0;
	static char folder[SOCKET_FOLDER_BYTES];
	struct spawn_cleanup cleanup = { .folder = folder, .has_sockets = inherited->count == 0 };
	struct spawner *spawner = NULL;

	if (may_start && socket_folder_make(folder, &config->user, &err) == 0)
		spawner = spawner_fork(config, &cleanup, &err);
	if (spawner == NULL || open_log(config, report, &err) < 0) {
		fprintf(stderr, "fcgi-host: %s\n", err.text);
		if (spawner != NULL)
			spawner_free(&spawner);
		socket_folder_remove(folder);
		config_free(&config);
		return EXIT_MISTAKE;
	}
	return host_run(config, spawner, folder, inherited);
}

int cli_serve(int argc, char **argv)
{
	const char *file = config_default_file();
	int fds[PASSED_MAX + 1];
	struct inherited inherited = { .fds = fds };
	struct config_report report;
	struct config *config;
	int option, status = EXIT_MISTAKE;

	while ((option = getopt(argc, argv, "c:")) != -1) {
		if (option != 'c')
			return cli_usage("serve", CLI_SERVE_USAGE);
		file = optarg;
	}
	if (optind != argc)
		return cli_usage("serve", CLI_SERVE_USAGE);
	open_standard_descriptors();
	take_systemd(&inherited);
	take_standard_input(&inherited);
	config_report_init(&report);
	config = config_load(file, &report);
	if (config == NULL)
		cli_print_report(&report);
	else
		status = start(config, &report, &inherited);
	config_report_fini(&report);
	return status;
}
