/* Percentiles that are near enough, moments that are exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "compare/latencies.h"

#include <math.h>

static struct latencies *new_latencies(void)
{
	struct latencies *latencies = calloc(1, sizeof(*latencies));

	assert_non_null(latencies);
	return latencies;
}

static void nothing_has_no_figures(void **state)
{
	struct latencies *l = new_latencies();

	(void)state;
	assert_int_equal(latencies_percentile_ns(l, 50), 0);
	assert_true(latencies_mean_ns(l) == 0 && latencies_deviation_ns(l) == 0);
	free(l);
}

static void mean_and_deviation_are_exact(void **state)
{
	struct latencies *l = new_latencies();

	(void)state;
	for (uint64_t i = 1; i <= 5; i++)
		latencies_add(l, i * 1000003);
	assert_true(fabs(latencies_mean_ns(l) - 3000009.0) < 1e-6);
	assert_true(fabs(latencies_deviation_ns(l) - 1000003 * sqrt(2.5)) < 1e-3);
	assert_int_equal(l->min_ns, 1000003);
	assert_int_equal(l->max_ns, 5000015);
	free(l);
}

static void percentiles_are_off_by_at_most_one_in_512(void **state)
{
	struct latencies *l = new_latencies();

	(void)state;
	for (uint64_t i = 1; i <= 100000; i++)
		latencies_add(l, i * 977);
	for (double percent = 1; percent < 100; percent += 0.5) {
		double exact = percent / 100 * 100000 * 977, got = (double)latencies_percentile_ns(l, percent);

		assert_true(fabs(got - exact) <= exact / 512 + 977);
	}
	assert_int_equal(latencies_percentile_ns(l, 0), 977);
	assert_int_equal(latencies_percentile_ns(l, 100), 97700000);
	free(l);
}

static void ranks_are_not_moved_by_rounding(void **state)
{
	struct latencies *l = new_latencies();

	(void)state;
	for (int i = 0; i < 990; i++)
		latencies_add(l, 1000);
	for (int i = 0; i < 10; i++)
		latencies_add(l, 200000000);
	assert_true(latencies_percentile_ns(l, 99) < 1010);
	assert_true(latencies_percentile_ns(l, 99.1) > 199000000);
	free(l);
}

static void a_whole_is_what_its_parts_merge_into(void **state)
{
	struct latencies *whole = new_latencies(), *parts = new_latencies(), *other = new_latencies();

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		latencies_add(whole, i * i * 7919);
		latencies_add(i % 3 == 0 ? parts : other, i * i * 7919);
	}
	latencies_merge(parts, other);
	assert_memory_equal(whole->counts, parts->counts, sizeof(whole->counts));
	assert_int_equal(whole->count, parts->count);
	assert_int_equal(whole->min_ns, parts->min_ns);
	assert_int_equal(whole->max_ns, parts->max_ns);
	free(whole);
	free(parts);
	free(other);
}

static void what_is_too_long_counts_as_very_long(void **state)
{
	struct latencies *l = new_latencies();

	(void)state;
	latencies_add(l, 1);
	latencies_add(l, UINT64_MAX);
	latencies_add(l, UINT64_MAX - 1);
	assert_true(latencies_percentile_ns(l, 60) > UINT64_C(1) << 41);
	assert_true(latencies_percentile_ns(l, 100) == UINT64_MAX);
	free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_has_no_figures),
		cmocka_unit_test(mean_and_deviation_are_exact),
		cmocka_unit_test(percentiles_are_off_by_at_most_one_in_512),
		cmocka_unit_test(ranks_are_not_moved_by_rounding),
		cmocka_unit_test(a_whole_is_what_its_parts_merge_into),
		cmocka_unit_test(what_is_too_long_counts_as_very_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
