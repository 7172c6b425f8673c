#include "pool_fixture.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* Workers. */

static void a_worker_is_started_when_somebody_comes_and_used_again(void **state)
{
	struct pool_fixture fixture;
	struct customer customer = { 0 };
	pid_t pid;

	(void)state;
	pool_fixture_init(&fixture, "serve");
	pool_fixture_begin(&fixture);
	pool_open(fixture.pool);
	pool_fixture_turn(&fixture);
	assert_int_equal(pool_fixture_starts(&fixture), 0);
	customer_come(&customer, &fixture);
	assert_int_equal(customer_wait(&customer), POOL_READY);
	pid = customer.pid;
	assert_true(is_running(pid));
	assert_int_equal(customer.result.worker->state, WORKER_BUSY);
	customer_leave(&customer, true);
	customer_come(&customer, &fixture);
	assert_int_equal(customer_wait(&customer), POOL_READY);
	assert_int_equal(customer.pid, pid);
	assert_int_equal(customer.result.worker->requests, 1);
	customer_leave(&customer, true);
	assert_int_equal(pool_fixture_starts(&fixture), 1);
	pool_fixture_end(&fixture);
	assert_true(ends_soon(pid));
}

static struct pool_reading reading_of(const struct pool_fixture *fixture)
{
	struct pool_reading reading;

	pool_read(fixture->pool, &reading);
	return reading;
}

static void everybody_gets_a_worker_up_to_the_limit_and_then_in_order(void **state)
{
	struct pool_fixture fixture;
	struct customer customers[5] = { 0 };

	(void)state;
	pool_fixture_init(&fixture, "serve");
	fixture.base.handler.workers.max = 2;
	pool_fixture_begin(&fixture);
	for (int i = 0; i < 5; i++)
		customer_come(&customers[i], &fixture);
	customer_wait(&customers[0]);
	customer_wait(&customers[1]);
	assert_int_not_equal(customers[0].pid, customers[1].pid);
	assert_int_equal(reading_of(&fixture).waiting, 3);
	for (unsigned i = 2; i < 5; i++) {
		customer_leave(&customers[i - 2], true);
		assert_int_equal(customer_wait(&customers[i]), POOL_READY);
		assert_int_equal(customers[i].order, i + 1);
	}
	assert_int_equal(pool_fixture_starts(&fixture), 2);
	pool_fixture_end(&fixture);
}

static void min_workers_are_there_before_anybody_comes(void **state)
{
	struct pool_fixture fixture;

	(void)state;
	pool_fixture_init(&fixture, "serve");
	fixture.base.handler.workers.min = 2;
	pool_fixture_begin(&fixture);
	pool_open(fixture.pool);
	while (pool_fixture_starts(&fixture) < 2)
		pool_fixture_turn(&fixture);
	pool_fixture_turn(&fixture);
	assert_int_equal(pool_fixture_starts(&fixture), 2);
	pool_fixture_end(&fixture);
}

static void after_max_requests_a_worker_is_replaced(void **state)
{
	struct pool_fixture fixture;
	struct customer customer = { 0 };
	pid_t pid;

	(void)state;
	pool_fixture_init(&fixture, "serve");
	fixture.base.handler.workers.max_requests = 2;
	pool_fixture_begin(&fixture);
	customer_come(&customer, &fixture);
	customer_wait(&customer);
	pid = customer.pid;
	customer_leave(&customer, true);
	customer_come(&customer, &fixture);
	customer_wait(&customer);
	assert_int_equal(customer.pid, pid);
	customer_leave(&customer, true);
	customer_come(&customer, &fixture);
	customer_wait(&customer);
	assert_int_not_equal(customer.pid, pid);
	pool_fixture_until_gone(&fixture, pid);
	customer_leave(&customer, true);
	pool_fixture_end(&fixture);
}

/* In the time that another takes to start, this one would have had enough. */
static void where_starting_takes_long_a_replacement_is_started_early(void **state)
{
	struct pool_fixture fixture;
	struct customer customer = { 0 };

	(void)state;
	pool_fixture_init(&fixture, "slow");
	fixture.base.handler.workers.max_requests = 60;
	pool_fixture_begin(&fixture);
	for (int i = 0; i < 32; i++) {
		customer_come(&customer, &fixture);
		customer_wait(&customer);
		customer_leave(&customer, true);
	}
	for (int i = 0; i < 200 && pool_fixture_starts(&fixture) < 2; i++)
		pool_fixture_turn(&fixture);
	assert_int_equal(pool_fixture_starts(&fixture), 2);
	pool_fixture_end(&fixture);
}

/* Both have had enough, and for both another is ready. */
static void workers_are_replaced_one_after_another(void **state)
{
	struct pool_fixture fixture;
	struct customer first = { 0 }, second = { 0 };
	unsigned most = 0;

	(void)state;
	pool_fixture_init(&fixture, "stubborn");
	fixture.base.handler.workers.min = 2;
	fixture.base.handler.workers.max = 2;
	fixture.base.handler.workers.max_requests = 40;
	fixture.base.handler.workers.jitter_percent = 50;
	fixture.base.handler.timeout.kill_ms = 400;
	pool_fixture_begin(&fixture);
	for (int i = 0; i < 41; i++) {
		customer_come(&first, &fixture);
		customer_come(&second, &fixture);
		customer_wait(&first);
		customer_wait(&second);
		customer_leave(&first, true);
		customer_leave(&second, true);
		pool_fixture_turn(&fixture);
		if (reading_of(&fixture).stopping > most)
			most = reading_of(&fixture).stopping;
	}
	assert_int_equal(most, 1);
	while (pool_fixture_logged(&fixture, "event=worker_killed") == 0)
		pool_fixture_turn(&fixture);
	pool_fixture_end(&fixture);
}

static void a_worker_that_is_not_good_is_ended(void **state)
{
	struct pool_fixture fixture;
	struct customer customer = { 0 };
	pid_t pid;

	(void)state;
	pool_fixture_init(&fixture, "serve");
	pool_fixture_begin(&fixture);
	customer_come(&customer, &fixture);
	customer_wait(&customer);
	pid = customer.pid;
	customer_leave(&customer, false);
	pool_fixture_until_gone(&fixture, pid);
	customer_come(&customer, &fixture);
	assert_int_equal(customer_wait(&customer), POOL_READY);
	assert_int_not_equal(customer.pid, pid);
	pool_fixture_end(&fixture);
}

static void idle_workers_end_but_for_the_least_number(void **state)
{
	struct pool_fixture fixture;
	struct customer first = { 0 }, second = { 0 };

	(void)state;
	pool_fixture_init(&fixture, "serve");
	fixture.base.handler.workers.min = 1;
	fixture.base.handler.workers.idle_timeout_ms = 30;
	pool_fixture_begin(&fixture);
	customer_come(&first, &fixture);
	customer_come(&second, &fixture);
	customer_wait(&first);
	customer_wait(&second);
	customer_leave(&first, true);
	customer_leave(&second, true);
	pool_fixture_until_gone(&fixture, first.pid);   /* idle for longer */
	assert_true(is_running(second.pid));
	customer_come(&first, &fixture);
	assert_int_equal(customer_wait(&first), POOL_READY);
	assert_int_equal(first.pid, second.pid);
	assert_int_equal(pool_fixture_starts(&fixture), 2);
	pool_fixture_end(&fixture);
}

static void whoever_has_a_worker_that_ends_is_told_and_hands_it_back(void **state)
{
	struct pool_fixture fixture;
	struct customer customer = { 0 };

	(void)state;
	pool_fixture_init(&fixture, "serve");
	fixture.base.handler.workers.max = 1;
	pool_fixture_begin(&fixture);
	customer_come(&customer, &fixture);
	customer_wait(&customer);
	customer_listen(&customer);
	kill(customer.pid, SIGKILL);
	while (!customer.is_worker_gone)
		pool_fixture_turn(&fixture);
	assert_int_equal(customer.result.worker->state, WORKER_GONE);
	assert_int_equal(customer.result.worker->process.wait_status, SIGKILL);
	pool_stop_borrowed(fixture.pool, customer.result.worker);       /* nothing happens */
	assert_false(pool_is_empty(fixture.pool));
	customer_leave(&customer, false);
	assert_true(pool_is_empty(fixture.pool));
	customer_come(&customer, &fixture);
	assert_int_equal(customer_wait(&customer), POOL_READY);
	pool_fixture_end(&fixture);
}

static void a_borrowed_worker_is_stopped_and_stays_borrowed(void **state)
{
	struct pool_fixture fixture;
	struct customer customer = { 0 };

	(void)state;
	pool_fixture_init(&fixture, "serve");
	pool_fixture_begin(&fixture);
	customer_come(&customer, &fixture);
	customer_wait(&customer);
	customer_listen(&customer);
	pool_stop_borrowed(fixture.pool, customer.result.worker);
	assert_int_equal(customer.result.worker->state, WORKER_STOPPING);
	while (!customer.is_worker_gone)
		pool_fixture_turn(&fixture);
	assert_int_equal(customer.result.worker->process.wait_status, SIGTERM);
	assert_false(pool_is_empty(fixture.pool));
	customer_leave(&customer, true);
	assert_true(pool_is_empty(fixture.pool));
	pool_fixture_end(&fixture);
}

static void a_stopped_worker_that_was_handed_back_goes_by_itself(void **state)
{
	struct pool_fixture fixture;
	struct customer customer = { 0 };

	(void)state;
	pool_fixture_init(&fixture, "serve");
	pool_fixture_begin(&fixture);
	customer_come(&customer, &fixture);
	customer_wait(&customer);
	customer_listen(&customer);
	pool_stop_borrowed(fixture.pool, customer.result.worker);
	customer_leave(&customer, true);
	while (!pool_is_empty(fixture.pool))
		pool_fixture_turn(&fixture);
	assert_false(customer.is_worker_gone);  /* it is nobody's any more */
	pool_fixture_end(&fixture);
}

static void a_worker_that_ignores_term_is_killed(void **state)
{
	struct pool_fixture fixture;
	struct customer customer = { 0 };

	(void)state;
	pool_fixture_init(&fixture, "stubborn");
	fixture.base.handler.timeout.kill_ms = 50;
	pool_fixture_begin(&fixture);
	customer_come(&customer, &fixture);
	customer_wait(&customer);
	customer_listen(&customer);
	pool_stop_borrowed(fixture.pool, customer.result.worker);
	while (!customer.is_worker_gone)
		pool_fixture_turn(&fixture);
	assert_int_equal(customer.result.worker->process.wait_status, SIGKILL);
	assert_int_equal(pool_fixture_logged(&fixture, "event=worker_killed"), 1);
	customer_leave(&customer, false);
	pool_fixture_end(&fixture);
}

/* What an operator has memory for is max, not max and those that take their time. */
static void a_worker_that_is_ending_counts_until_it_is_gone(void **state)
{
	struct pool_fixture fixture;
	struct customer first = { 0 }, second = { 0 };

	(void)state;
	pool_fixture_init(&fixture, "stubborn");
	fixture.base.handler.workers.max = 1;
	fixture.base.handler.timeout.kill_ms = 100;
	pool_fixture_begin(&fixture);
	customer_come(&first, &fixture);
	customer_wait(&first);
	customer_leave(&first, false);
	customer_come(&second, &fixture);
	assert_int_equal(customer_wait(&second), POOL_READY);
	assert_int_equal(pool_fixture_logged(&fixture, "event=worker_killed"), 1);
	assert_false(is_running(first.pid));
	customer_leave(&second, true);
	pool_fixture_end(&fixture);
}

/* Places. */

static void places_are_given_up_to_the_limit_and_then_in_order(void **state)
{
	struct pool_fixture fixture;
	struct customer customers[4] = { 0 };

	(void)state;
	pool_fixture_init(&fixture, "serve");
	fixture.base.handler.process = PROCESS_PER_REQUEST;
	fixture.base.handler.workers.max = 2;
	pool_fixture_begin(&fixture);
	for (int i = 0; i < 4; i++)
		customer_come(&customers[i], &fixture);
	customer_wait(&customers[1]);
	assert_int_equal(customers[0].result.answer, POOL_READY);
	assert_null(customers[0].result.worker);
	pool_fixture_turn(&fixture);
	assert_false(customers[2].is_answered);
	customer_leave(&customers[1], true);
	assert_int_equal(customer_wait(&customers[2]), POOL_READY);
	assert_false(customers[3].is_answered);
	customer_leave(&customers[0], true);
	assert_int_equal(customer_wait(&customers[3]), POOL_READY);
	assert_int_equal(pool_fixture_starts(&fixture), 0);
	customer_leave(&customers[2], true);
	customer_leave(&customers[3], true);
	assert_true(pool_is_empty(fixture.pool));
	pool_fixture_end(&fixture);
}

/* The line. */

static void who_comes_when_the_line_is_full_is_refused(void **state)
{
	struct pool_fixture fixture;
	struct customer customers[5] = { 0 };

	(void)state;
	pool_fixture_init(&fixture, "serve");
	fixture.base.handler.process = PROCESS_PER_REQUEST;
	fixture.base.handler.workers.max = 1;
	fixture.base.handler.queue.max = 2;
	pool_fixture_begin(&fixture);
	for (int i = 0; i < 5; i++)
		customer_come(&customers[i], &fixture);
	assert_int_equal(customer_wait(&customers[0]), POOL_READY);
	assert_int_equal(customer_wait(&customers[3]), POOL_LINE_FULL);
	assert_int_equal(customer_wait(&customers[4]), POOL_LINE_FULL);
	assert_true(customers[4].result.retry_after_s >= 1);
	assert_non_null(strstr(customers[4].result.err.text, "queue.max (2)"));
	assert_false(customers[1].is_answered);
	assert_false(customers[2].is_answered);
	pool_cancel(&customers[1].waiter);
	pool_cancel(&customers[2].waiter);
	customer_leave(&customers[0], true);
	pool_fixture_end(&fixture);
}

static void who_waits_too_long_is_refused(void **state)
{
	struct pool_fixture fixture;
	struct customer first = { 0 }, second = { 0 }, third = { 0 };

	(void)state;
	pool_fixture_init(&fixture, "serve");
	fixture.base.handler.process = PROCESS_PER_REQUEST;
	fixture.base.handler.workers.max = 1;
	fixture.base.handler.queue.timeout_ms = 60;
	pool_fixture_begin(&fixture);
	customer_come(&first, &fixture);
	customer_wait(&first);
	customer_come(&second, &fixture);
	pool_fixture_turn(&fixture);
	customer_come(&third, &fixture);
	assert_int_equal(customer_wait(&second), POOL_LINE_TIMEOUT);
	assert_true(clock_monotonic_ns() - second.waiter.since_ns >= 60 * 1000000);
	assert_true(second.result.retry_after_s >= 1);
	assert_int_equal(customer_wait(&third), POOL_LINE_TIMEOUT);
	assert_true(clock_monotonic_ns() - third.waiter.since_ns >= 60 * 1000000);
	assert_false(third.order < second.order);
	customer_leave(&first, true);
	pool_fixture_end(&fixture);
}

static void who_has_cancelled_hears_nothing(void **state)
{
	struct pool_fixture fixture;
	struct customer customers[4] = { 0 };

	(void)state;
	pool_fixture_init(&fixture, "serve");
	fixture.base.handler.process = PROCESS_PER_REQUEST;
	pool_fixture_begin(&fixture);
	customers[1].to_cancel = &customers[2];         /* inside the callback */
	for (int i = 0; i < 4; i++)
		customer_come(&customers[i], &fixture);
	pool_cancel(&customers[0].waiter);
	pool_cancel(&customers[0].waiter);
	assert_int_equal(customer_wait(&customers[3]), POOL_READY);
	assert_true(customers[1].is_answered);
	assert_false(customers[0].is_answered);
	assert_false(customers[2].is_answered);
	pool_cancel(&customers[3].waiter);              /* has its answer */
	assert_int_equal(reading_of(&fixture).waiting, 0);
	pool_fixture_end(&fixture);
}

/* Starts that fail. */

static void a_program_that_is_not_there_is_an_answer_at_once_to_all(void **state)
{
	struct pool_fixture fixture;
	struct customer customers[4] = { 0 };

	(void)state;
	if (is_under_valgrind())
		skip();
	pool_fixture_init(&fixture, "serve");
	fixture.base.handler.workers.min = 1;
	pool_fixture_program(&fixture, false);
	pool_fixture_begin(&fixture);
	for (int i = 0; i < 4; i++)
		customer_come(&customers[i], &fixture);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(customer_wait(&customers[i]), POOL_START_FAILED);
		assert_int_equal(customers[i].result.failed_step, SPAWN_STEP_EXEC);
		assert_int_equal(customers[i].result.failed_errno, ENOENT);
	}
	pool_fixture_program(&fixture, true);
	customer_come(&customers[0], &fixture);
	assert_int_equal(customer_wait(&customers[0]), POOL_READY);     /* no pause */
	pool_fixture_end(&fixture);
}

static void while_others_work_a_start_that_fails_is_not_tried_in_a_circle(void **state)
{
	struct pool_fixture fixture;
	struct customer first = { 0 }, second = { 0 };

	(void)state;
	if (is_under_valgrind())
		skip();
	pool_fixture_init(&fixture, "serve");
	fixture.base.handler.queue.timeout_ms = 700;
	pool_fixture_begin(&fixture);
	customer_come(&first, &fixture);
	customer_wait(&first);
	pool_fixture_program(&fixture, false);
	customer_come(&second, &fixture);
	assert_int_equal(customer_wait(&second), POOL_LINE_TIMEOUT);
	assert_in_range(pool_fixture_logged(&fixture, "event=worker_start"), 1, 2);
	pool_fixture_program(&fixture, true);
	customer_come(&second, &fixture);
	assert_int_equal(customer_wait(&second), POOL_READY);           /* it comes back by itself */
	assert_int_not_equal(second.pid, first.pid);
	pool_fixture_end(&fixture);
}

static void while_others_work_who_waits_gets_the_next_that_is_free(void **state)
{
	struct pool_fixture fixture;
	struct customer first = { 0 }, second = { 0 };

	(void)state;
	if (is_under_valgrind())
		skip();
	pool_fixture_init(&fixture, "serve");
	pool_fixture_begin(&fixture);
	customer_come(&first, &fixture);
	customer_wait(&first);
	pool_fixture_program(&fixture, false);
	customer_come(&second, &fixture);
	while (pool_fixture_logged(&fixture, "event=worker_start") == 0)
		pool_fixture_turn(&fixture);
	assert_false(second.is_answered);
	customer_leave(&first, true);
	assert_int_equal(customer_wait(&second), POOL_READY);
	assert_int_equal(second.pid, first.pid);
	pool_fixture_end(&fixture);
}

static void workers_that_die_at_their_start_make_a_pause_and_a_repair_ends_it(void **state)
{
	struct pool_fixture fixture;
	struct customer customer = { 0 };
	uint64_t begun = clock_monotonic_ns();
	unsigned starts;

	(void)state;
	pool_fixture_init(&fixture, "die");
	pool_fixture_begin(&fixture);
	customer_come(&customer, &fixture);
	assert_int_equal(customer_wait(&customer), POOL_PAUSED);
	assert_true(customer.result.retry_after_s >= 1);
	starts = pool_fixture_starts(&fixture);
	assert_int_equal(starts, 1);
	customer_come(&customer, &fixture);             /* no start, and no wait either */
	assert_int_equal(customer_wait(&customer), POOL_PAUSED);
	assert_int_equal(pool_fixture_starts(&fixture), starts);
	assert_int_equal(pool_fixture_logged(&fixture, "event=worker_pause"), 1);
	fixture_file(&fixture.base, "repaired", "", 0600);
	do
		customer_come(&customer, &fixture);
	while (customer_wait(&customer) == POOL_PAUSED);
	assert_int_equal(customer.result.answer, POOL_READY);
	assert_true(clock_monotonic_ns() - begun >= 500 * 1000000u);
	assert_int_equal(pool_fixture_starts(&fixture), starts + 1);
	customer_leave(&customer, true);
	pool_fixture_end(&fixture);
}

static void after_a_pause_one_worker_tries_for_all(void **state)
{
	struct pool_fixture fixture;

	(void)state;
	pool_fixture_init(&fixture, "die");
	fixture.base.handler.workers.min = 3;
	pool_fixture_begin(&fixture);
	pool_open(fixture.pool);
	while (pool_fixture_logged(&fixture, "event=worker_pause") < 2)
		pool_fixture_turn(&fixture);
	assert_int_equal(pool_fixture_starts(&fixture), 3 + 1);
	pool_fixture_end(&fixture);
}

/* The end. */

static void on_empty(void *ctx)
{
	++*(unsigned *)ctx;
}

static void closing_refuses_who_waits_and_ends_all_workers(void **state)
{
	struct pool_fixture fixture;
	struct customer first = { 0 }, second = { 0 }, third = { 0 }, late = { 0 };
	unsigned empty = 0;

	(void)state;
	pool_fixture_init(&fixture, "serve");
	fixture.base.handler.workers.max = 2;
	pool_fixture_begin(&fixture);
	customer_come(&first, &fixture);
	customer_come(&second, &fixture);
	customer_wait(&first);
	customer_wait(&second);
	customer_leave(&second, true);                  /* idle */
	customer_come(&second, &fixture);
	customer_wait(&second);
	customer_come(&third, &fixture);
	pool_close(fixture.pool, on_empty, &empty);
	customer_come(&late, &fixture);
	assert_int_equal(customer_wait(&third), POOL_STOPPED);
	assert_int_equal(customer_wait(&late), POOL_STOPPED);
	customer_leave(&first, true);
	pool_fixture_until_gone(&fixture, first.pid);
	assert_int_equal(empty, 0);
	assert_true(is_running(second.pid));            /* somebody has it */
	customer_leave(&second, true);
	while (empty == 0)
		pool_fixture_turn(&fixture);
	assert_true(pool_is_empty(fixture.pool));
	assert_false(is_running(second.pid));
	assert_int_equal(pool_fixture_starts(&fixture), 2);
	pool_fixture_end(&fixture);
}

static void closing_an_empty_pool_says_so_from_the_loop(void **state)
{
	struct pool_fixture fixture;
	unsigned empty = 0;

	(void)state;
	pool_fixture_init(&fixture, "serve");
	pool_fixture_begin(&fixture);
	pool_close(fixture.pool, on_empty, &empty);
	assert_int_equal(empty, 0);
	while (empty == 0)
		pool_fixture_turn(&fixture);
	pool_fixture_end(&fixture);
}

static void a_pool_that_closes_ends_workers_that_are_starting(void **state)
{
	struct pool_fixture fixture;
	struct customer customer = { 0 };
	unsigned empty = 0;

	(void)state;
	pool_fixture_init(&fixture, "deaf");
	pool_fixture_begin(&fixture);
	customer_come(&customer, &fixture);
	while (pool_fixture_starts(&fixture) == 0)
		pool_fixture_turn(&fixture);
	pool_close(fixture.pool, on_empty, &empty);
	assert_int_equal(customer_wait(&customer), POOL_STOPPED);
	while (empty == 0)
		pool_fixture_turn(&fixture);
	assert_int_equal(pool_fixture_logged(&fixture, "event=worker_pause"), 0);       /* it was told to */
	pool_fixture_end(&fixture);
}

static void a_retired_pool_still_serves_who_waits(void **state)
{
	struct pool_fixture fixture;
	struct customer first = { 0 }, second = { 0 };
	unsigned empty = 0;

	(void)state;
	pool_fixture_init(&fixture, "serve");
	fixture.base.handler.workers.max = 1;
	pool_fixture_begin(&fixture);
	customer_come(&first, &fixture);
	customer_wait(&first);
	customer_come(&second, &fixture);
	pool_retire(fixture.pool, on_empty, &empty);
	pool_fixture_turn(&fixture);
	assert_false(second.is_answered);
	customer_leave(&first, true);
	assert_int_equal(customer_wait(&second), POOL_READY);
	assert_int_equal(empty, 0);
	customer_leave(&second, true);
	while (empty == 0)
		pool_fixture_turn(&fixture);
	assert_false(is_running(second.pid));
	pool_fixture_end(&fixture);
}

static void a_pool_is_freed_with_workers_in_every_state(void **state)
{
	struct pool_fixture fixture;
	struct customer customers[3] = { 0 };

	(void)state;
	pool_fixture_init(&fixture, "serve");
	pool_fixture_begin(&fixture);
	for (int i = 0; i < 3; i++)
		customer_come(&customers[i], &fixture);
	customer_wait(&customers[0]);
	customer_wait(&customers[1]);
	customer_wait(&customers[2]);
	customer_leave(&customers[0], true);
	customer_leave(&customers[1], false);
	pool_fixture_end(&fixture);
	for (int i = 0; i < 3; i++)
		assert_true(ends_soon(customers[i].pid));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_is_started_when_somebody_comes_and_used_again),
		cmocka_unit_test(everybody_gets_a_worker_up_to_the_limit_and_then_in_order),
		cmocka_unit_test(min_workers_are_there_before_anybody_comes),
		cmocka_unit_test(after_max_requests_a_worker_is_replaced),
		cmocka_unit_test(where_starting_takes_long_a_replacement_is_started_early),
		cmocka_unit_test(workers_are_replaced_one_after_another),
		cmocka_unit_test(a_worker_that_is_not_good_is_ended),
		cmocka_unit_test(idle_workers_end_but_for_the_least_number),
		cmocka_unit_test(whoever_has_a_worker_that_ends_is_told_and_hands_it_back),
		cmocka_unit_test(a_borrowed_worker_is_stopped_and_stays_borrowed),
		cmocka_unit_test(a_stopped_worker_that_was_handed_back_goes_by_itself),
		cmocka_unit_test(a_worker_that_ignores_term_is_killed),
		cmocka_unit_test(a_worker_that_is_ending_counts_until_it_is_gone),
		cmocka_unit_test(places_are_given_up_to_the_limit_and_then_in_order),
		cmocka_unit_test(who_comes_when_the_line_is_full_is_refused),
		cmocka_unit_test(who_waits_too_long_is_refused),
		cmocka_unit_test(who_has_cancelled_hears_nothing),
		cmocka_unit_test(a_program_that_is_not_there_is_an_answer_at_once_to_all),
		cmocka_unit_test(while_others_work_a_start_that_fails_is_not_tried_in_a_circle),
		cmocka_unit_test(while_others_work_who_waits_gets_the_next_that_is_free),
		cmocka_unit_test(workers_that_die_at_their_start_make_a_pause_and_a_repair_ends_it),
		cmocka_unit_test(after_a_pause_one_worker_tries_for_all),
		cmocka_unit_test(closing_refuses_who_waits_and_ends_all_workers),
		cmocka_unit_test(closing_an_empty_pool_says_so_from_the_loop),
		cmocka_unit_test(a_pool_that_closes_ends_workers_that_are_starting),
		cmocka_unit_test(a_retired_pool_still_serves_who_waits),
		cmocka_unit_test(a_pool_is_freed_with_workers_in_every_state),
	};

	pool_fixture_worker(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
