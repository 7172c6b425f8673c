/* Every request is counted once, where it belongs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "serve/figures.h"

static const struct outcome no_spans = {
	.queue_us = FIGURES_NO_SPAN, .start_us = FIGURES_NO_SPAN, .first_byte_us = FIGURES_NO_SPAN, .total_us = FIGURES_NO_SPAN,
	.spawn_us = { FIGURES_NO_SPAN } };

static void add(struct figures *figures, enum request_end end, unsigned status)
{
	struct outcome outcome = no_spans;

	outcome.end = end;
	outcome.status = status;
	figures_add(figures, &outcome);
}

static void classes_and_names(void **state)
{
	struct figures *figures = figures_new();
	const struct totals *totals = &figures->totals;

	(void)state;
	add(figures, REQUEST_END_WHOLE, 200);
	add(figures, REQUEST_END_WHOLE, 204);
	add(figures, REQUEST_END_WHOLE, 302);
	add(figures, REQUEST_END_WHOLE, 404);
	add(figures, REQUEST_END_FAILED, 504);
	add(figures, REQUEST_END_FAILED, 503);
	add(figures, REQUEST_END_FAILED, 502);
	add(figures, REQUEST_END_CLIENT_GONE, 499);
	add(figures, REQUEST_END_BROKEN, 200);
	add(figures, REQUEST_END_NONE, 0);
	assert_int_equal(totals->requests, 10);
	assert_int_equal(totals->classes[0], 3);
	assert_int_equal(totals->classes[1], 1);
	assert_int_equal(totals->classes[2], 2);
	assert_int_equal(totals->classes[3], 3);
	assert_int_equal(totals->failures[FAILURE_TIMEOUTS], 1);
	assert_int_equal(totals->failures[FAILURE_REFUSED], 1);
	assert_int_equal(totals->failures[FAILURE_BAD_GATEWAY], 1);
	assert_int_equal(totals->failures[FAILURE_CLIENT_GONE], 1);
	assert_int_equal(totals->failures[FAILURE_BROKEN], 1);
	figures_unref(&figures);
}

static void what_a_handler_says_is_no_failure_of_ours(void **state)
{
	struct figures *figures = figures_new();

	(void)state;
	for (unsigned status = 502; status <= 504; status++)
		add(figures, REQUEST_END_WHOLE, status);
	assert_int_equal(figures->totals.classes[3], 3);
	for (int failure = 0; failure < FAILURES; failure++)
		assert_int_equal(figures->totals.failures[failure], failure == FAILURE_HANDLER_ERRORS ? 3 : 0);
	figures_unref(&figures);
}

static void spans_that_did_not_happen_are_left_out(void **state)
{
	struct figures *figures = figures_new();
	struct outcome outcome = no_spans;

	(void)state;
	outcome.queue_us = 7;
	figures_add(figures, &outcome);
	outcome.total_us = 30;
	figures_add(figures, &outcome);
	assert_int_equal(figures->spans->queue.count, 2);
	assert_int_equal(figures->spans->first_byte.count, 0);
	assert_int_equal(figures->spans->total.count, 1);
	assert_int_equal(histogram_percentile(&figures->spans->total, 50), 30);
	figures_unref(&figures);
}

static void each_request_is_one_kind_of_failure_at_most(void **state)
{
	static const enum request_end ends[] = { REQUEST_END_NONE, REQUEST_END_WHOLE, REQUEST_END_FAILED, REQUEST_END_BROKEN, REQUEST_END_CLIENT_GONE };
	struct figures *figures = figures_new();
	uint64_t sum = 0, expected = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		for (unsigned status = 200; status < 600; status++) {
			struct outcome outcome = no_spans;

			outcome.end = ends[i];
			outcome.status = status;
			expected += outcome_failure(&outcome) != FAILURE_NONE;
			figures_add(figures, &outcome);
		}
	for (int failure = 0; failure < FAILURES; failure++) {
		assert_non_null(failure_name((enum failure)failure));
		assert_true(figures->totals.failures[failure] > 0);
		sum += figures->totals.failures[failure];
	}
	assert_int_equal(sum, expected);
	assert_null(failure_name(FAILURE_NONE));
	figures_unref(&figures);
}

static void bytes_and_rates_add_up(void **state)
{
	struct figures *figures = figures_new();
	struct outcome outcome = no_spans;
	uint32_t rates[RATE_SECONDS];

	(void)state;
	outcome.bytes_in = 5;
	outcome.bytes_out = 70;
	outcome.at_s = 1000;
	figures_add(figures, &outcome);
	figures_add(figures, &outcome);
	assert_int_equal(figures->totals.bytes_in, 10);
	assert_int_equal(figures->totals.bytes_out, 140);
	rate_read(&figures->spans->rate, 1001, rates);
	assert_int_equal(rates[RATE_SECONDS - 1], 2);
	figures_unref(&figures);
}

static void usage_adds_up_and_memory_is_the_most(void **state)
{
	struct figures *figures = figures_new();

	(void)state;
	figures_add_ended(figures, &(struct process){ .usage = { .cpu_us = 5, .max_rss_kib = 900, .minor_faults = 37, .major_faults = 1, .context_switches = 3 } });
	figures_add_ended(figures, &(struct process){
		.usage = { .cpu_us = 6, .max_rss_kib = 800, .minor_faults = 3 }, .was_ahead = true,
		.start_usage = { .cpu_us = 70, .minor_faults = 20, .major_faults = 1 } });
	assert_int_equal(figures->ended.count, 2);
	assert_int_equal(figures->ended.cpu_us, 11);
	assert_int_equal(figures->ended.max_rss_kib, 900);
	assert_int_equal(figures->ended.faults, 41);
	assert_int_equal(figures->ended.ahead_count, 1);
	assert_int_equal(figures->ended.start_cpu_us, 70);
	assert_int_equal(figures->ended.start_faults, 21);
	assert_int_equal(figures->ended.context_switches, 3);
	figures_unref(&figures);
}

static void the_parts_of_a_process_are_summed_or_left_out_together(void **state)
{
	struct figures *figures = figures_new();
	struct outcome outcome = no_spans;

	(void)state;
	figures_add(figures, &outcome);
	assert_int_equal(figures->spawn.count, 0);
	for (uint64_t i = 0; i < SPAWN_PARTS_COUNT; i++)
		outcome.spawn_us[i] = 10 + i;
	figures_add(figures, &outcome);
	figures_add(figures, &outcome);
	assert_int_equal(figures->spawn.count, 2);
	assert_int_equal(figures->spawn.us[SPAWN_PART_START], 20);
	assert_int_equal(figures->spawn.us[SPAWN_PART_EXIT], 26);
	figures_unref(&figures);
}

static void the_last_reference_frees(void **state)
{
	struct figures *figures = figures_new(), *other = figures_ref(figures);

	(void)state;
	figures_unref(&figures);
	assert_null(figures);
	add(other, REQUEST_END_WHOLE, 200);
	assert_int_equal(other->totals.requests, 1);
	figures_unref(&other);
	figures_unref(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes_and_names),
		cmocka_unit_test(what_a_handler_says_is_no_failure_of_ours),
		cmocka_unit_test(spans_that_did_not_happen_are_left_out),
		cmocka_unit_test(each_request_is_one_kind_of_failure_at_most),
		cmocka_unit_test(bytes_and_rates_add_up),
		cmocka_unit_test(usage_adds_up_and_memory_is_the_most),
		cmocka_unit_test(the_parts_of_a_process_are_summed_or_left_out_together),
		cmocka_unit_test(the_last_reference_frees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
