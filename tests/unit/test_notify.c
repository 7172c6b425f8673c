#include "base/clock.h"
#include "base/loop.h"
#include "serve/notify.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { DEADLINE_MS = 10000 };

/* The manager that is told: a datagram socket, and the loop that it listens in. */
struct manager {
	struct loop *loop;
	struct watch *watch;
	struct timer *deadline;
	int fd;
	char name[108];                 /* as NOTIFY_SOCKET has it */
	unsigned watchdogs;             /* told while the loop ran */
};

static const char *receive(struct manager *manager)
{
	static char text[256];
	ssize_t n = recv(manager->fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static void on_message(void *ctx, int events)
{
	struct manager *manager = ctx;

	(void)events;
	assert_string_equal(receive(manager), "WATCHDOG=1\n");
	if (++manager->watchdogs == 3)
		loop_stop(manager->loop);
}

static void on_deadline(void *ctx)
{
	(void)ctx;
	fail_msg("no word for the watchdog in %d ms", DEADLINE_MS);
}

static void manager_begin(struct manager *manager, bool is_abstract)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct err err;
	size_t len = (size_t)snprintf(manager->name, sizeof(manager->name), "%stest_notify.%d", is_abstract ? "@" : "/tmp/", (int)getpid());

	manager->watchdogs = 0;
	manager->loop = loop_new(&err);
	assert_non_null(manager->loop);
	manager->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	memcpy(address.sun_path, manager->name, len);
	if (is_abstract)
		address.sun_path[0] = '\0';
	else
		unlink(manager->name);
	assert_int_equal(bind(manager->fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)), 0);
	manager->watch = watch_new(manager->loop, manager->fd, on_message, manager, &err);
	manager->deadline = timer_new(manager->loop, on_deadline, manager);
	setenv("NOTIFY_SOCKET", manager->name, 1);
}

static void manager_end(struct manager *manager)
{
	watch_free(&manager->watch);
	timer_free(&manager->deadline);
	loop_free(&manager->loop);
	close(manager->fd);
	if (manager->name[0] == '/')
		unlink(manager->name);
}

/* The number after `name`, which is at the start of a line. */
static uint64_t number_of(const char *message, const char *name)
{
	const char *at = strstr(message, name);
	uint64_t value = 0;

	assert_non_null(at);
	assert_true(at == message || at[-1] == '\n');
	assert_int_equal(sscanf(at + strlen(name), "%" SCNu64, &value), 1);
	return value;
}

static void tell_a_life(bool is_abstract)
{
	struct manager manager;
	struct notify *notify;
	uint64_t before_us = clock_monotonic_ns() / 1000, told_us;
	const char *message;

	manager_begin(&manager, is_abstract);
	notify = notify_open(manager.loop);
	assert_non_null(notify);
	assert_null(getenv("NOTIFY_SOCKET"));
	assert_string_equal(receive(&manager), "");

	notify_ready(notify);
	assert_string_equal(receive(&manager), "READY=1\n");
	notify_reloading(notify);
	message = receive(&manager);
	assert_int_equal(number_of(message, "RELOADING="), 1);
	told_us = number_of(message, "MONOTONIC_USEC=");
	assert_true(told_us >= before_us && told_us <= clock_monotonic_ns() / 1000);
	notify_ready(notify);
	assert_string_equal(receive(&manager), "READY=1\n");
	notify_stopping(notify, 2500);
	message = receive(&manager);
	assert_int_equal(number_of(message, "STOPPING="), 1);
	assert_true(number_of(message, "EXTEND_TIMEOUT_USEC=") > 2500000);
	assert_string_equal(receive(&manager), "");

	notify_free(&notify);
	assert_null(notify);
	manager_end(&manager);
}

static void the_life_of_a_host_is_told_at_a_path(void **state)
{
	(void)state;
	tell_a_life(false);
}

static void the_life_of_a_host_is_told_at_an_abstract_name(void **state)
{
	(void)state;
	tell_a_life(true);
}

static void the_watchdog_is_told_from_the_loop(void **state)
{
	struct manager manager;
	struct notify *notify;
	char pid[32];
	uint64_t begun_ns;

	(void)state;
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	manager_begin(&manager, true);
	setenv("WATCHDOG_USEC", "100000", 1);
	setenv("WATCHDOG_PID", pid, 1);
	notify = notify_open(manager.loop);
	assert_null(getenv("WATCHDOG_USEC"));
	assert_null(getenv("WATCHDOG_PID"));
	notify_ready(notify);
	assert_string_equal(receive(&manager), "READY=1\n");
	assert_string_equal(receive(&manager), "WATCHDOG=1\n");

	begun_ns = clock_monotonic_ns();
	watch_set(manager.watch, WATCH_READ);
	timer_set(manager.deadline, DEADLINE_MS);
	loop_run(manager.loop);
	assert_int_equal(manager.watchdogs, 3);
	assert_true(clock_monotonic_ns() - begun_ns >= 3 * 45 * 1000000ull);    /* at half of its time, not more often */
	notify_free(&notify);
	manager_end(&manager);
}

static void another_process_s_watchdog_is_not_ours(void **state)
{
	struct manager manager;
	struct notify *notify;

	(void)state;
	manager_begin(&manager, true);
	setenv("WATCHDOG_USEC", "100000", 1);
	setenv("WATCHDOG_PID", "1", 1);
	notify = notify_open(manager.loop);
	notify_ready(notify);
	assert_string_equal(receive(&manager), "READY=1\n");
	assert_string_equal(receive(&manager), "");
	notify_free(&notify);
	manager_end(&manager);
}

static void nobody_is_told_where_nobody_asks(void **state)
{
	static const char *const names[] = { NULL, "", "relative", "@", "/", "vsock:2:1", "/nowhere/at/all" };
	struct err err;
	struct loop *loop = loop_new(&err);

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct notify *notify;

		if (names[i] != NULL)
			setenv("NOTIFY_SOCKET", names[i], 1);
		notify = notify_open(loop);
		assert_null(notify);
		notify_ready(notify);
		notify_reloading(notify);
		notify_stopping(notify, 1);
		notify_free(&notify);
	}
	loop_free(&loop);
}

static void a_manager_that_has_gone_is_no_matter(void **state)
{
	struct manager manager;
	struct notify *notify;

	(void)state;
	manager_begin(&manager, true);
	notify = notify_open(manager.loop);
	watch_free(&manager.watch);
	close(manager.fd);
	manager.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	notify_ready(notify);
	notify_stopping(notify, 1);
	notify_free(&notify);
	manager_end(&manager);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_life_of_a_host_is_told_at_a_path),
		cmocka_unit_test(the_life_of_a_host_is_told_at_an_abstract_name),
		cmocka_unit_test(the_watchdog_is_told_from_the_loop),
		cmocka_unit_test(another_process_s_watchdog_is_not_ours),
		cmocka_unit_test(nobody_is_told_where_nobody_asks),
		cmocka_unit_test(a_manager_that_has_gone_is_no_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
