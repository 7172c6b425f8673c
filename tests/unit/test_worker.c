#include "pool_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static unsigned changes;

static void on_change(struct worker *worker)
{
	(void)worker;
	changes++;
}

static struct worker *start(struct pool_fixture *fixture)
{
	struct err err = { "" };
	struct worker *worker;

	changes = 0;
	worker = worker_start(&fixture->base.handler, 0, fixture->base.folder, fixture->base.loop, fixture->base.spawner,
		on_change, NULL, &err);
	assert_string_equal(err.text, "");
	assert_non_null(worker);
	assert_int_equal(changes, 0);
	return worker;
}

static void until_gone(struct pool_fixture *fixture, const struct worker *worker)
{
	while (worker->process.state != PROCESS_GONE)
		pool_fixture_turn(fixture);
}

static void until_started(struct pool_fixture *fixture, const struct worker *worker)
{
	while (worker->process.state == PROCESS_STARTING || changes == 0)
		pool_fixture_turn(fixture);
}

static int connect_to(const struct worker *worker)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (const struct sockaddr *)&worker->address, sizeof(worker->address)), 0);
	return fd;
}

static void a_worker_accepts_on_a_socket_of_its_own(void **state)
{
	struct pool_fixture fixture;
	struct worker *one, *two;
	struct stat st;
	char path[sizeof(one->address.sun_path)], byte;
	int fd;

	(void)state;
	pool_fixture_init(&fixture, "serve");
	pool_fixture_begin(&fixture);
	one = start(&fixture);
	two = start(&fixture);
	assert_string_not_equal(one->address.sun_path, two->address.sun_path);
	memcpy(path, one->address.sun_path, sizeof(path));
	until_started(&fixture, one);
	fd = connect_to(one);
	assert_int_equal(read(fd, &byte, 1), 0);        /* it takes it, and closes it */
	assert_true(worker_has_accepted(one));
	close(fd);
	worker_free(&one);
	assert_null(one);
	assert_int_equal(stat(path, &st), -1);          /* the socket goes too */
	worker_free(&two);
	pool_fixture_end(&fixture);
}

static void a_connection_that_nobody_has_accepted_is_told(void **state)
{
	struct pool_fixture fixture;
	struct worker *worker;
	int fd;

	(void)state;
	pool_fixture_init(&fixture, "die");
	pool_fixture_begin(&fixture);
	worker = start(&fixture);
	fd = connect_to(worker);
	assert_false(worker_has_accepted(worker));
	until_gone(&fixture, worker);
	assert_false(worker_has_accepted(worker));
	close(fd);
	worker_free(&worker);
	pool_fixture_end(&fixture);
}

static void an_end_is_logged_with_its_status(void **state)
{
	struct pool_fixture fixture;
	struct worker *worker;

	(void)state;
	pool_fixture_init(&fixture, "die");
	pool_fixture_begin(&fixture);
	worker = start(&fixture);
	until_gone(&fixture, worker);
	assert_true(changes >= 1);
	assert_int_equal(pool_fixture_logged(&fixture, "level=warning event=worker_exit handler=tested"), 1);
	assert_int_equal(pool_fixture_logged(&fixture, "exit=3"), 1);
	worker_free(&worker);
	pool_fixture_end(&fixture);
}

static void a_worker_that_was_told_to_end_is_nothing_to_warn_of(void **state)
{
	struct pool_fixture fixture;
	struct worker *worker;

	(void)state;
	pool_fixture_init(&fixture, "serve");
	pool_fixture_begin(&fixture);
	worker = start(&fixture);
	until_started(&fixture, worker);
	worker->state = WORKER_STOPPING;
	worker_stop(worker);
	until_gone(&fixture, worker);
	assert_int_equal(worker->process.wait_status, SIGTERM);
	assert_int_equal(pool_fixture_logged(&fixture, "level=debug event=worker_exit"), 1);
	worker_free(&worker);
	pool_fixture_end(&fixture);
}

static void count_close(void *link)
{
	++*(unsigned *)link;
}

static void its_link_is_closed_before_it_is_told_to_end(void **state)
{
	struct pool_fixture fixture;
	struct worker *worker;
	unsigned closed = 0;

	(void)state;
	pool_fixture_init(&fixture, "serve");
	pool_fixture_begin(&fixture);
	worker = start(&fixture);
	worker->link = &closed;
	worker->close_link = count_close;
	worker_stop(worker);
	assert_int_equal(closed, 1);
	worker_free(&worker);
	assert_int_equal(closed, 1);
	pool_fixture_end(&fixture);
}

static void stderr_is_logged_with_the_pid_of_the_worker(void **state)
{
	struct pool_fixture fixture;
	struct worker *worker;
	char expected[128];

	(void)state;
	pool_fixture_init(&fixture, "say");
	pool_fixture_begin(&fixture);
	worker = start(&fixture);
	while (pool_fixture_logged(&fixture, "event=stderr") == 0)
		pool_fixture_turn(&fixture);
	snprintf(expected, sizeof(expected), "event=stderr id=- handler=tested pid=%d msg=hello\n", (int)worker->process.pid);
	assert_true(worker->process.pid > 0);
	assert_int_equal(pool_fixture_logged(&fixture, expected), 1);
	worker_free(&worker);
	pool_fixture_end(&fixture);
}

static void a_program_that_is_not_there_is_a_failed_start(void **state)
{
	struct pool_fixture fixture;
	struct worker *worker;

	(void)state;
	if (is_under_valgrind())
		skip();
	pool_fixture_init(&fixture, "serve");
	pool_fixture_program(&fixture, false);
	pool_fixture_begin(&fixture);
	worker = start(&fixture);
	until_gone(&fixture, worker);
	assert_int_equal(worker->process.failed_step, SPAWN_STEP_EXEC);
	assert_int_equal(changes, 1);
	worker_free(&worker);
	pool_fixture_end(&fixture);
}

static void without_a_folder_for_its_socket_nothing_is_started(void **state)
{
	char folder[200];
	struct pool_fixture fixture;
	struct err err = { "" };

	(void)state;
	memset(folder, 'x', sizeof(folder));
	folder[0] = '/';
	folder[sizeof(folder) - 1] = '\0';
	pool_fixture_init(&fixture, "serve");
	pool_fixture_begin(&fixture);
	assert_null(worker_start(&fixture.base.handler, 0, "/nonexistent", fixture.base.loop, fixture.base.spawner, on_change, NULL, &err));
	assert_non_null(strstr(err.text, "/nonexistent"));
	assert_null(worker_start(&fixture.base.handler, 0, folder, fixture.base.loop, fixture.base.spawner, on_change, NULL, &err));
	assert_non_null(strstr(err.text, "too long"));
	assert_int_equal(spawner_starting_count(fixture.base.spawner), 0);
	pool_fixture_end(&fixture);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_accepts_on_a_socket_of_its_own),
		cmocka_unit_test(a_connection_that_nobody_has_accepted_is_told),
		cmocka_unit_test(an_end_is_logged_with_its_status),
		cmocka_unit_test(a_worker_that_was_told_to_end_is_nothing_to_warn_of),
		cmocka_unit_test(its_link_is_closed_before_it_is_told_to_end),
		cmocka_unit_test(stderr_is_logged_with_the_pid_of_the_worker),
		cmocka_unit_test(a_program_that_is_not_there_is_a_failed_start),
		cmocka_unit_test(without_a_folder_for_its_socket_nothing_is_started),
	};

	pool_fixture_worker(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
