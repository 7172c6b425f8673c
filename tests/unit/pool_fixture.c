#include "pool_fixture.h"

#include "base/log.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { LOOK_MS = 3, SLOW_START_MS = 200 };

/* The worker. */

static void note_start(const char *file)
{
	int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0 && write(fd, "s", 1) == 1)
		close(fd);
}

static _Noreturn void serve(void)
{
	for (;;) {
		int fd = accept(STDIN_FILENO, NULL, NULL);

		if (fd >= 0)
			close(fd);
	}
}

void pool_fixture_worker(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	char *program = argv[0], *slash = strrchr(program, '/');

	if (argc < 2)
		return;
	*slash = '\0';
	if (chdir(program) < 0)
		_exit(100);
	note_start("starts");
	if (strcmp(mode, "die") == 0 && access("repaired", F_OK) < 0)
		_exit(3);
	if (strcmp(mode, "stubborn") == 0)
		signal(SIGTERM, SIG_IGN);
	if (strcmp(mode, "say") == 0 && write(STDERR_FILENO, "hello\n", 6) != 6)
		_exit(101);
	if (strcmp(mode, "slow") == 0)
		usleep(SLOW_START_MS * 1000);
	if (strcmp(mode, "deaf") == 0)
		for (;;)
			pause();
	serve();
}

/* The pool. */

void pool_fixture_program(struct pool_fixture *fixture, bool is_there)
{
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(len > 0);
	self[len] = '\0';
	if (is_there)
		assert_int_equal(symlink(self, fixture->program), 0);
	else
		assert_int_equal(unlink(fixture->program), 0);
}

void pool_fixture_init(struct pool_fixture *fixture, const char *mode)
{
	struct handler_config *handler = &fixture->base.handler;
	struct log_options log = { .file = fixture->log, .level = LOG_LEVEL_DEBUG };
	struct err err;

	*fixture = (struct pool_fixture){ .pool = NULL };
	fixture_init(&fixture->base);
	snprintf(fixture->program, sizeof(fixture->program), "%s/program", fixture->base.folder);
	snprintf(fixture->log, sizeof(fixture->log), "%s/log", fixture->base.folder);
	assert_int_equal(log_open(&log, &err), 0);
	pool_fixture_program(fixture, true);
	fixture->command[0] = fixture->program;
	fixture->command[1] = (char *)mode;
	handler->command = fixture->command;
	handler->process = PROCESS_PERSISTENT;
	handler->protocol = PROTOCOL_FASTCGI;
	handler->workers.max = 4;
	handler->queue.max = 10;
	handler->queue.timeout_ms = 15000;
	handler->timeout.start_ms = 15000;
	handler->timeout.kill_ms = 15000;
}

static void on_look(void *ctx)
{
	struct pool_fixture *fixture = ctx;

	loop_stop(fixture->base.loop);
}

void pool_fixture_begin(struct pool_fixture *fixture)
{
	struct err err = { "" };

	fixture_begin(&fixture->base);
	fixture->look = timer_new(fixture->base.loop, on_look, fixture);
	fixture->pool = pool_new(&fixture->base.handler, 0, &fixture->budget, fixture->base.loop, fixture->base.spawner,
		fixture->base.folder, &err);
	assert_non_null(fixture->pool);
}

void pool_fixture_end(struct pool_fixture *fixture)
{
	pool_free(&fixture->pool);
	timer_free(&fixture->look);
	log_close();
	fixture_end(&fixture->base);
}

void pool_fixture_turn(struct pool_fixture *fixture)
{
	timer_set(fixture->look, LOOK_MS);
	loop_run(fixture->base.loop);
}

void pool_fixture_until_gone(struct pool_fixture *fixture, pid_t pid)
{
	while (is_running(pid))
		pool_fixture_turn(fixture);
}

static size_t read_file(const struct pool_fixture *fixture, const char *name, char *out, size_t out_size)
{
	char path[128];
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", fixture->base.folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, out, out_size - 1);
		close(fd);
	}
	out[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

unsigned pool_fixture_starts(const struct pool_fixture *fixture)
{
	char text[4096];

	return (unsigned)read_file(fixture, "starts", text, sizeof(text));
}

unsigned pool_fixture_logged(const struct pool_fixture *fixture, const char *what)
{
	static char text[1024 * 1024];
	unsigned count = 0;

	read_file(fixture, "log", text, sizeof(text));
	for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
		count++;
	return count;
}

/* Waiters. */

static void on_ready(void *ctx, const struct pool_result *result)
{
	struct customer *customer = ctx;

	assert_false(customer->is_answered);
	customer->is_answered = true;
	customer->result = *result;
	customer->order = ++customer->fixture->answers;
	if (result->worker != NULL)
		customer->pid = result->worker->process.pid;
	if (customer->to_cancel != NULL)
		pool_cancel(&customer->to_cancel->waiter);
}

void customer_come(struct customer *customer, struct pool_fixture *fixture)
{
	struct customer *to_cancel = customer->to_cancel;

	*customer = (struct customer){ .fixture = fixture, .to_cancel = to_cancel };
	customer->waiter.on_ready = on_ready;
	customer->waiter.ctx = customer;
	pool_acquire(fixture->pool, &customer->waiter);
	assert_false(customer->is_answered);    /* never from inside the call */
}

enum pool_answer customer_wait(struct customer *customer)
{
	while (!customer->is_answered)
		pool_fixture_turn(customer->fixture);
	return customer->result.answer;
}

static void on_gone(void *ctx)
{
	struct customer *customer = ctx;

	customer->is_worker_gone = true;
}

void customer_listen(struct customer *customer)
{
	customer->result.worker->on_gone = on_gone;
	customer->result.worker->ctx = customer;
}

void customer_leave(struct customer *customer, bool is_good)
{
	pool_release(customer->fixture->pool, customer->result.worker, is_good);
}
