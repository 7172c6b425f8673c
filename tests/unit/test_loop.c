#include "base/clock.h"
#include "base/loop.h"

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { NAMES_MAX = 64 };

/* What ran, in order, by a letter each. */
static char names[NAMES_MAX];

static struct loop *begin(void)
{
	struct err err;
	struct loop *loop = loop_new(&err);

	assert_non_null(loop);
	names[0] = '\0';
	return loop;
}

static void say(char name)
{
	size_t len = strlen(names);

	assert_true(len + 1 < sizeof(names));
	names[len] = name;
	names[len + 1] = '\0';
}

/* Deferred calls. */

struct call {
	struct defer defer;
	struct loop *loop;
	char name;
	struct call *to_defer, *to_cancel;
	bool is_last;
};

static void on_call(void *ctx)
{
	struct call *call = ctx;

	say(call->name);
	if (call->to_defer != NULL)
		defer_call(call->loop, &call->to_defer->defer, on_call, call->to_defer);
	if (call->to_cancel != NULL)
		defer_cancel(&call->to_cancel->defer);
	if (call->is_last)
		loop_stop(call->loop);
}

static void call_later(struct call *call, struct loop *loop, char name)
{
	call->loop = loop;
	call->name = name;
	defer_call(loop, &call->defer, on_call, call);
}

static void deferred_calls_run_once_and_in_order(void **state)
{
	struct loop *loop = begin();
	struct call a = { 0 }, b = { 0 }, c = { .is_last = true };

	(void)state;
	call_later(&a, loop, 'a');
	call_later(&b, loop, 'b');
	call_later(&a, loop, 'a');      /* it waits already */
	call_later(&c, loop, 'c');
	assert_string_equal(names, "");
	loop_run(loop);
	assert_string_equal(names, "abc");
	call_later(&a, loop, 'a');
	c.is_last = true;
	call_later(&c, loop, 'c');
	loop_run(loop);
	assert_string_equal(names, "abcac");
	loop_free(&loop);
	assert_null(loop);
}

static void a_call_may_cancel_another_of_its_round(void **state)
{
	struct loop *loop = begin();
	struct call a = { 0 }, b = { 0 }, c = { 0 }, d = { .is_last = true };

	(void)state;
	a.to_cancel = &b;
	c.to_cancel = &a;       /* has run */
	call_later(&a, loop, 'a');
	call_later(&b, loop, 'b');
	call_later(&c, loop, 'c');
	call_later(&d, loop, 'd');
	loop_run(loop);
	assert_string_equal(names, "acd");
	assert_null(b.defer.next);
	loop_free(&loop);
}

static void a_call_deferred_in_a_call_runs_in_the_next_round(void **state)
{
	struct loop *loop = begin();
	struct call a = { 0 }, b = { 0 }, again = { .is_last = true };

	(void)state;
	a.to_defer = &again;
	again.loop = loop;
	again.name = 'x';
	call_later(&a, loop, 'a');
	call_later(&b, loop, 'b');
	loop_run(loop);
	assert_string_equal(names, "abx");
	loop_free(&loop);
}

static void a_cancelled_call_does_not_run_even_as_the_only_one(void **state)
{
	struct loop *loop = begin();
	struct call a = { 0 }, b = { .is_last = true };

	(void)state;
	call_later(&a, loop, 'a');
	defer_cancel(&a.defer);
	defer_cancel(&a.defer);
	call_later(&b, loop, 'b');
	loop_run(loop);
	assert_string_equal(names, "b");
	loop_free(&loop);
}

/* Timers. */

struct bell {
	struct timer *timer;
	struct loop *loop;
	char name;
	struct bell *to_free;
	bool is_last;
};

static void on_bell(void *ctx)
{
	struct bell *bell = ctx;

	say(bell->name);
	if (bell->to_free != NULL)
		timer_free(&bell->to_free->timer);
	if (bell->is_last)
		loop_stop(bell->loop);
}

static void bell_new(struct bell *bell, struct loop *loop, char name)
{
	*bell = (struct bell){ .loop = loop, .name = name };
	bell->timer = timer_new(loop, on_bell, bell);
	assert_non_null(bell->timer);
}

static void timers_fire_once_in_the_order_of_their_times(void **state)
{
	struct loop *loop = begin();
	struct bell a, b, c;
	uint64_t begun;

	(void)state;
	bell_new(&a, loop, 'a');
	bell_new(&b, loop, 'b');
	bell_new(&c, loop, 'c');
	c.is_last = true;
	begun = clock_monotonic_ns();
	timer_set(c.timer, 30);
	timer_set(b.timer, 15);
	timer_set(a.timer, 0);
	loop_run(loop);
	assert_string_equal(names, "abc");
	assert_true(clock_monotonic_ns() - begun >= 29000000);
	timer_free(&a.timer);
	timer_free(&b.timer);
	timer_free(&c.timer);
	loop_free(&loop);
}

static void a_timer_that_is_set_again_moves(void **state)
{
	struct loop *loop = begin();
	struct bell a, b, c;

	(void)state;
	bell_new(&a, loop, 'a');
	bell_new(&b, loop, 'b');
	bell_new(&c, loop, 'c');
	b.is_last = true;
	timer_set(a.timer, 100000);
	timer_set(b.timer, 20);
	timer_set(c.timer, 1);
	timer_set(a.timer, 1);          /* nearer */
	timer_set(c.timer, 100000);     /* farther */
	loop_run(loop);
	assert_string_equal(names, "ab");
	timer_set(c.timer, 1);
	timer_clear(c.timer);
	timer_set(b.timer, 20);
	loop_run(loop);
	assert_string_equal(names, "abb");
	timer_free(&a.timer);
	timer_free(&b.timer);
	timer_free(&c.timer);
	loop_free(&loop);
}

static void a_timer_may_free_itself_and_others(void **state)
{
	struct loop *loop = begin();
	struct bell a, b, c;

	(void)state;
	bell_new(&a, loop, 'a');
	bell_new(&b, loop, 'b');
	bell_new(&c, loop, 'c');
	a.to_free = &b;                 /* due in the same round */
	c.to_free = &c;
	c.is_last = true;
	timer_set(a.timer, 1);
	timer_set(b.timer, 1);
	timer_set(c.timer, 5);
	loop_run(loop);
	assert_string_equal(names, "ac");
	assert_null(b.timer);
	assert_null(c.timer);
	timer_free(&a.timer);
	loop_free(&loop);
}

/* Descriptors. */

struct end {
	struct loop *loop;
	struct watch *watch;
	int fd;
	size_t piece;                   /* how much is read at once */
	size_t read_bytes;
	int error;                      /* of the last read, 0: the end */
	bool is_over;
	struct end *to_free;
	unsigned events_count;
	int events;
};

static void end_new(struct end *end, struct loop *loop, int fd, watch_fn *on_event)
{
	struct err err;

	*end = (struct end){ .loop = loop, .fd = fd, .piece = 3 };
	end->watch = watch_new(loop, fd, on_event, end, &err);
	assert_non_null(end->watch);
}

static void on_readable(void *ctx, int events)
{
	struct end *end = ctx;
	char buf[64];
	ssize_t n = read(end->fd, buf, end->piece);

	end->events_count++;
	end->events |= events;
	if (n > 0) {
		end->read_bytes += (size_t)n;
		return;
	}
	end->is_over = true;
	watch_free(&end->watch);        /* inside its own callback */
	loop_stop(end->loop);
}

static void all_is_read_and_then_the_end(void **state)
{
	struct loop *loop = begin();
	struct end end;
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	end_new(&end, loop, fds[0], on_readable);
	watch_set(end.watch, WATCH_READ);
	assert_int_equal(write(fds[1], "0123456789", 10), 10);
	close(fds[1]);
	loop_run(loop);
	assert_true(end.is_over);
	assert_int_equal(end.read_bytes, 10);
	close(fds[0]);
	loop_free(&loop);
}

/* A peer that closes with input unread is an error here, behind what it sent. */
static void what_came_before_an_error_is_read_and_then_the_error(void **state)
{
	struct loop *loop = begin();
	struct end end;
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	end_new(&end, loop, fds[0], on_readable);
	watch_set(end.watch, WATCH_READ);
	assert_int_equal(write(fds[0], "never read", 10), 10);
	assert_int_equal(write(fds[1], "0123456789", 10), 10);
	close(fds[1]);
	loop_run(loop);
	assert_true(end.is_over);
	assert_int_equal(end.read_bytes, 10);
	close(fds[0]);
	loop_free(&loop);
}

static void on_first(void *ctx, int events)
{
	struct end *end = ctx;

	end->events_count++;
	end->events |= events;
	if (end->to_free != NULL)
		watch_free(&end->to_free->watch);
	watch_set(end->watch, 0);
	loop_stop(end->loop);
}

static void after_watch_free_nothing_runs_any_more(void **state)
{
	struct loop *loop = begin();
	struct end a, b;
	struct call last = { .is_last = true };
	int fds_a[2], fds_b[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds_a), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds_b), 0);
	end_new(&a, loop, fds_a[0], on_first);
	end_new(&b, loop, fds_b[0], on_first);
	a.to_free = &b;                 /* both are due in one round: only one runs */
	b.to_free = &a;
	watch_set(a.watch, WATCH_WRITE);
	watch_set(b.watch, WATCH_WRITE);
	loop_run(loop);
	assert_int_equal(a.events_count + b.events_count, 1);
	call_later(&last, loop, 'z');
	loop_run(loop);
	assert_int_equal(a.events_count + b.events_count, 1);
	watch_free(&a.watch);
	watch_free(&b.watch);
	watch_free(&b.watch);
	for (int i = 0; i < 2; i++) {
		close(fds_a[i]);
		close(fds_b[i]);
	}
	loop_free(&loop);
}

static void a_stopped_watch_goes_on_when_it_is_set_again(void **state)
{
	struct loop *loop = begin();
	struct end end;
	struct call last = { .is_last = true };
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	end_new(&end, loop, fds[0], on_first);
	assert_int_equal(write(fds[1], "x", 1), 1);
	call_later(&last, loop, 'z');
	loop_run(loop);
	assert_int_equal(end.events_count, 0);
	watch_set(end.watch, WATCH_READ);
	loop_run(loop);
	assert_int_equal(end.events_count, 1);
	assert_int_equal(end.events, WATCH_READ);
	watch_set(end.watch, WATCH_READ | WATCH_WRITE);
	loop_run(loop);
	assert_int_equal(end.events, WATCH_READ | WATCH_WRITE);
	watch_free(&end.watch);
	close(fds[0]);
	close(fds[1]);
	loop_free(&loop);
}

static void a_peer_that_leaves_is_a_hangup(void **state)
{
	struct loop *loop = begin();
	struct end end;
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	end_new(&end, loop, fds[0], on_first);
	watch_set(end.watch, WATCH_HANGUP);
	close(fds[1]);
	loop_run(loop);
	assert_true(end.events & WATCH_HANGUP);
	watch_free(&end.watch);
	close(fds[0]);
	loop_free(&loop);
}

static void end_look(void *ctx)
{
	loop_stop(ctx);
}

/* Shutting down is not leaving, and is no reason to wake up. */
static void who_only_waits_hears_of_the_end_of_both_ways(void **state)
{
	struct loop *loop = begin();
	struct timer *look = timer_new(loop, end_look, loop);
	struct end end;
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	end_new(&end, loop, fds[0], on_first);
	shutdown(fds[1], SHUT_WR);
	watch_set(end.watch, WATCH_GONE);
	timer_set(look, 20);
	loop_run(loop);
	assert_int_equal(end.events, 0);
	close(fds[1]);
	loop_run(loop);
	assert_true(end.events & WATCH_HANGUP);
	watch_free(&end.watch);
	timer_free(&look);
	close(fds[0]);
	loop_free(&loop);
}

static void what_cannot_be_watched_is_refused(void **state)
{
	struct loop *loop = begin();
	struct err err = { "" };

	(void)state;
	assert_null(watch_new(loop, -1, on_first, NULL, &err));
	assert_string_not_equal(err.text, "");
	loop_free(&loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deferred_calls_run_once_and_in_order),
		cmocka_unit_test(a_call_may_cancel_another_of_its_round),
		cmocka_unit_test(a_call_deferred_in_a_call_runs_in_the_next_round),
		cmocka_unit_test(a_cancelled_call_does_not_run_even_as_the_only_one),
		cmocka_unit_test(timers_fire_once_in_the_order_of_their_times),
		cmocka_unit_test(a_timer_that_is_set_again_moves),
		cmocka_unit_test(a_timer_may_free_itself_and_others),
		cmocka_unit_test(all_is_read_and_then_the_end),
		cmocka_unit_test(what_came_before_an_error_is_read_and_then_the_error),
		cmocka_unit_test(after_watch_free_nothing_runs_any_more),
		cmocka_unit_test(a_stopped_watch_goes_on_when_it_is_set_again),
		cmocka_unit_test(a_peer_that_leaves_is_a_hangup),
		cmocka_unit_test(who_only_waits_hears_of_the_end_of_both_ways),
		cmocka_unit_test(what_cannot_be_watched_is_refused),
	};

	alarm(60);      /* a test that waits for ever fails */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
