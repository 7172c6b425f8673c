#include "compare/setup.h"

#include "base/bytes.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 300, END_PATIENCE_MS = 30000, LINES_MAX_BYTES = 1 << 20, LOOK_MS = 200 };

static int add(struct setup *setup, char *line)
{
	char *equals = strchr(line, '=');
	struct pair *more = equals == NULL ? NULL : realloc(setup->env, (setup->env_count + 1) * sizeof(*more));

	if (more == NULL)
		return -1;
	*equals = '\0';
	setup->env = more;
	more[setup->env_count++] = (struct pair){ strdup(line), strdup(equals + 1) };
	return 0;
}

/* 1: it is ready; 0: more is to come; -1: err. */
static int take_lines(struct setup *setup, struct bytes *text, struct err *err)
{
	char *end;

	while (text->len > 0 && (end = memchr(bytes_data(text), '\n', text->len)) != NULL) {
		char *line = (char *)bytes_data(text);
		size_t len = (size_t)(end - line) + 1;

		*end = '\0';
		if (strcmp(line, "ready") == 0)
			return 1;
		if (line[0] != '\0' && add(setup, line) < 0)
			return err_set(err, "the setup printed '%.100s', which is no NAME=VALUE", line);
		bytes_consume(text, len);
	}
	return 0;
}

static int wait_until_ready(struct setup *setup, int fd, const volatile sig_atomic_t *is_interrupted, struct err *err)
{
	uint64_t end_ns = clock_monotonic_ns() + PATIENCE_S * UINT64_C(1000000000);
	struct bytes text;
	int status = 0;

	bytes_init(&text, LINES_MAX_BYTES);
	while (status == 0) {
		struct pollfd watched = { .fd = fd, .events = POLLIN };
		char piece[4096];
		ssize_t n;

		if (is_interrupted != NULL && *is_interrupted)
			status = err_set(err, "interrupted");
		else if (clock_monotonic_ns() > end_ns)
			status = err_set(err, "the setup was not ready within %d s", PATIENCE_S);
		if (status != 0 || poll(&watched, 1, LOOK_MS) <= 0)
			continue;
		n = read(fd, piece, sizeof(piece));
		if (n == 0) {
			while (child_runs(&setup->child) && clock_monotonic_ns() < end_ns && poll(NULL, 0, 10) == 0)
				;
			status = child_tell(&setup->child, "the setup", err);
		} else if (n > 0 && bytes_append(&text, piece, (size_t)n) < 0) {
			status = err_set(err, "the setup prints too much");
		} else if (n > 0) {
			status = take_lines(setup, &text, err);
		}
	}
	bytes_fini(&text);
	return status > 0 ? 0 : -1;
}

int setup_start(struct setup *setup, char *const *argv, const char *folder, const volatile sig_atomic_t *is_interrupted,
	struct err *err)
{
	char own_folder[4096], output[4096];
	struct pair env = { (char *)"FCGI_HOST_SETUP_DIR", own_folder };
	struct child_spec spec = { .program = argv[0], .argv = argv, .env = &env, .env_count = 1, .output = output };
	int in[2], out[2], status;

	*setup = (struct setup){ .stdin_fd = -1 };
	snprintf(own_folder, sizeof(own_folder), "%s/setup", folder);
	snprintf(output, sizeof(output), "%s/setup.out", folder);
	if (mkdir(own_folder, 0711) != 0 || pipe2(in, O_CLOEXEC) != 0)
		return err_set_errno(err, errno, "the setup");
	if (pipe2(out, O_CLOEXEC) != 0) {
		close(in[0]);
		close(in[1]);
		return err_set_errno(err, errno, "the setup");
	}
	spec.stdin_fd = in[0];
	spec.stdout_fd = out[1];
	status = child_start(&setup->child, &spec, err);
	close(in[0]);
	close(out[1]);
	setup->stdin_fd = in[1];
	if (status == 0)
		status = wait_until_ready(setup, out[0], is_interrupted, err);
	close(out[0]);
	return status;
}

void setup_stop(struct setup *setup)
{
	uint64_t end_ns = clock_monotonic_ns() + END_PATIENCE_MS * UINT64_C(1000000);

	if (setup->stdin_fd >= 0)
		close(setup->stdin_fd);
	setup->stdin_fd = -1;
	/* It takes down what it made before it is told to. */
	while (child_runs(&setup->child) && clock_monotonic_ns() < end_ns)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	child_stop(&setup->child, 1000);
	for (size_t i = 0; i < setup->env_count; i++) {
		free(setup->env[i].name);
		free(setup->env[i].value);
	}
	free(setup->env);
	setup->env = NULL;
	setup->env_count = 0;
}
