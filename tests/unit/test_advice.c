/* Which way costs least from which rate on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compare/advice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 10 MiB of 1000 are 1 %; 0.95 ms of CPU saved a request are 1 % of 2 CPUs at 21.05 a second. */
static void a_worker_pays_from_where_its_memory_is_worth_the_cpu_that_it_saves(void **state)
{
	static const struct advice_way ways[] = { { "per-request", 1, 0 }, { "persistent", 0.05, 10 } };
	struct advice advice;

	(void)state;
	advice_make(&advice, ways, 2, 2, 1000);
	assert_int_equal(advice.count, 2);
	assert_int_equal(advice.steps[0].way, 0);
	assert_true(advice.steps[0].from_per_s <= 0);
	assert_int_equal(advice.steps[1].way, 1);
	assert_true(fabs(advice.steps[1].from_per_s - 0.01 / (0.00095 / 2)) < 1e-9);
}

static void what_is_never_cheapest_is_left_out(void **state)
{
	static const struct advice_way ways[] = {
		{ "persistent", 0.1, 10 }, { "dear", 2, 20 }, { "per-request", 1, 0 }, { "between", 0.9, 9 }, { "half", 0.3, 2 },
	};
	struct advice advice;

	(void)state;
	advice_make(&advice, ways, 5, 1, 1000);
	assert_int_equal(advice.count, 3);
	assert_int_equal(advice.steps[0].way, 2);
	assert_int_equal(advice.steps[1].way, 4);
	assert_int_equal(advice.steps[2].way, 0);
	assert_true(fabs(advice.steps[1].from_per_s - 0.002 / 0.0007) < 1e-9);
	assert_true(fabs(advice.steps[2].from_per_s - 0.008 / 0.0002) < 1e-9);
}

/* Whatever the ways are, at any rate the step that is in force has the least cost. */
static void each_step_is_the_cheapest_where_it_is_in_force(void **state)
{
	struct random { unsigned value; } random = { 7 };

	(void)state;
	for (int run = 0; run < 200; run++) {
		struct advice_way ways[6];
		struct advice advice;

		for (int i = 0; i < 6; i++) {
			random.value = random.value * 1103515245 + 12345;
			ways[i] = (struct advice_way){ "x", 0.01 + (random.value >> 16) % 1000 / 100.0, (random.value >> 8) % 50 };
		}
		advice_make(&advice, ways, 6, 4, 2000);
		assert_in_range(advice.count, 1, 6);
		for (double rate = 0.001; rate < 1e5; rate *= 1.7) {
			size_t at = 0;
			double ours, least = INFINITY;

			while (at + 1 < advice.count && advice.steps[at + 1].from_per_s <= rate)
				at++;
			for (int i = 0; i < 6; i++)
				least = fmin(least, ways[i].idle_mib / 2000 + ways[i].cpu_ms / 4000 * rate);
			ours = ways[advice.steps[at].way].idle_mib / 2000 + ways[advice.steps[at].way].cpu_ms / 4000 * rate;
			assert_true(ours <= least * (1 + 1e-9));
		}
	}
}

static void one_that_is_better_in_both_is_the_answer_at_any_rate(void **state)
{
	static const struct advice_way ways[] = { { "per-request", 1, 1 }, { "persistent", 0.5, 0 } };
	struct advice advice;

	(void)state;
	advice_make(&advice, ways, 2, 2, 1000);
	assert_int_equal(advice.count, 1);
	assert_int_equal(advice.steps[0].way, 1);
	advice_make(&advice, ways, 0, 2, 1000);
	assert_int_equal(advice.count, 0);
	advice_make(&advice, ways, 2, 2, 0);
	assert_int_equal(advice.count, 0);
}

static void rates_are_told_as_people_say_them(void **state)
{
	static const struct { double per_s; const char *text; } rates[] = {
		{ 1234.4, "1234 requests a second" }, { 3.46, "3.5 requests a second" }, { 0.5, "one request per 2.0 s" },
		{ 1.0 / 21, "one request per 21 s" }, { 1.0 / 600, "one request per 10 minutes" }, { 1.0 / 36000, "one request per 10 hours" },
	};
	char text[ADVICE_RATE_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		assert_string_equal(advice_rate(rates[i].per_s, text), rates[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_pays_from_where_its_memory_is_worth_the_cpu_that_it_saves),
		cmocka_unit_test(what_is_never_cheapest_is_left_out),
		cmocka_unit_test(each_step_is_the_cheapest_where_it_is_in_force),
		cmocka_unit_test(one_that_is_better_in_both_is_the_answer_at_any_rate),
		cmocka_unit_test(rates_are_told_as_people_say_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
