#include "spawn_fixture.h"

#include "base/clock.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { DEADLINE_MS = 20000 };

void fixture_init(struct fixture *fixture)
{
	*fixture = (struct fixture){ .folder = "/tmp/fcgi-host-test-XXXXXX" };
	assert_non_null(mkdtemp(fixture->folder));
	assert_int_equal(chmod(fixture->folder, 0755), 0);
	fixture->config.handlers = &fixture->handler;
	fixture->config.handlers_count = 1;
	fixture->handler.name = (char *)"tested";
}

void fixture_shell(struct fixture *fixture, const char *text)
{
	static char *command[4] = { (char *)"/bin/sh", (char *)"-c" };

	command[2] = (char *)text;
	fixture->handler.command = command;
}

static void on_lost(void *ctx)
{
	struct fixture *fixture = ctx;

	fixture->lost++;
	loop_stop(fixture->loop);
}

static void on_deadline(void *ctx)
{
	(void)ctx;
	fail_msg("nothing happened for %d ms", DEADLINE_MS);
}

void fixture_begin(struct fixture *fixture)
{
	struct err err = { "" };

	fixture->spawner = spawner_fork(&fixture->config, &(struct spawn_cleanup){ .folder = "" }, &err);
	assert_string_equal(err.text, "");
	fixture->loop = loop_new(&err);
	assert_non_null(fixture->loop);
	fixture->deadline = timer_new(fixture->loop, on_deadline, fixture);
	timer_set(fixture->deadline, DEADLINE_MS);
	assert_int_equal(spawner_attach(fixture->spawner, fixture->loop, on_lost, fixture, &err), 0);
}

void fixture_end(struct fixture *fixture)
{
	char command[128];

	spawner_free(&fixture->spawner);
	timer_free(&fixture->deadline);
	loop_free(&fixture->loop);
	snprintf(command, sizeof(command), "rm -rf %s", fixture->folder);
	assert_int_equal(system(command), 0);
}

const char *fixture_file(struct fixture *fixture, const char *name, const char *text, int mode)
{
	static char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, (mode_t)mode), 0);
	close(fd);
	return path;
}

static void on_started(void *ctx)
{
	struct run *run = ctx;

	run->is_started = true;
	loop_stop(run->fixture->loop);
}

static void on_gone(void *ctx)
{
	struct run *run = ctx;

	run->is_gone = true;
	loop_stop(run->fixture->loop);
}

static void on_output(void *ctx, int events)
{
	struct run *run = ctx;
	char buf[4096];
	ssize_t n = read(run->out_fd, buf, sizeof(buf));

	(void)events;
	if (n > 0)
		bytes_append(&run->output, buf, (size_t)n);
	if (n == 0) {
		watch_set(run->watch, 0);
		run->is_read = true;
	}
	loop_stop(run->fixture->loop);
}

void run_start(struct run *run, struct fixture *fixture, struct spawn_request *request)
{
	struct err err = { "" };
	int fds[2];

	*run = (struct run){ .fixture = fixture };
	run->process = (struct process){ .on_started = on_started, .on_gone = on_gone, .ctx = run };
	bytes_init(&run->output, 1024 * 1024);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	run->out_fd = fds[0];
	request->fds[0] = -1;
	request->fds[1] = request->fds[2] = fds[1];
	process_start(fixture->spawner, &run->process, request, &err);
	assert_string_equal(err.text, "");
	close(fds[1]);
	run->watch = watch_new(fixture->loop, fds[0], on_output, run, &err);
	assert_non_null(run->watch);
	watch_set(run->watch, WATCH_READ);
}

void run_until(struct run *run, const bool *fact)
{
	while (!*fact)
		loop_run(run->fixture->loop);
}

void run_fini(struct run *run)
{
	watch_free(&run->watch);
	close(run->out_fd);
	bytes_fini(&run->output);
}

const char *run_whole(struct run *run, struct fixture *fixture, struct spawn_request *request)
{
	run_start(run, fixture, request);
	run_until(run, &run->is_gone);
	run_until(run, &run->is_read);
	bytes_append(&run->output, "", 1);
	return (const char *)bytes_data(&run->output);
}

bool is_running(pid_t pid)
{
	char path[64], text[512];
	const char *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	state = strrchr(text, ')');
	return state != NULL && state[2] != 'Z' && state[2] != 'X';
}

bool ends_soon(pid_t pid)
{
	uint64_t until = clock_monotonic_ns() + 5000000000u;

	while (is_running(pid) && clock_monotonic_ns() < until)
		poll(NULL, 0, 2);
	return !is_running(pid);
}

bool is_under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload != NULL && strstr(preload, "vgpreload") != NULL;
}
