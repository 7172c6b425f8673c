/* Percentiles that are near enough, and merging that loses nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/histogram.h"

static struct histogram *new_histogram(void)
{
	struct histogram *histogram = calloc(1, sizeof(*histogram));

	assert_non_null(histogram);
	return histogram;
}

static void assert_near(uint64_t value, uint64_t exact)
{
	uint64_t off = value > exact ? value - exact : exact - value;

	assert_true(off <= exact / 64 + 1);
}

static void nothing_has_no_percentiles(void **state)
{
	struct histogram *h = new_histogram();

	(void)state;
	assert_int_equal(histogram_percentile(h, 50), 0);
	assert_int_equal(histogram_percentile(h, 100), 0);
	free(h);
}

static void one_value_is_every_percentile_exactly(void **state)
{
	struct histogram *h = new_histogram();

	(void)state;
	histogram_add(h, 1234567);
	assert_int_equal(histogram_percentile(h, 0), 1234567);
	assert_int_equal(histogram_percentile(h, 50), 1234567);
	assert_int_equal(histogram_percentile(h, 100), 1234567);
	free(h);
}

static void small_values_are_exact(void **state)
{
	struct histogram *h = new_histogram();

	(void)state;
	for (uint64_t us = 1; us <= 63; us++)
		histogram_add(h, us);
	for (uint64_t us = 1; us <= 63; us++)
		assert_int_equal(histogram_percentile(h, 100.0 * (double)us / 63 - 0.01), us);
	free(h);
}

static void every_size_of_value_is_near_enough(void **state)
{
	struct histogram *h = new_histogram();

	(void)state;
	/* Three values, so that the one in the middle is neither least nor greatest. */
	for (uint64_t us = 1; us < (uint64_t)1 << HISTOGRAM_VALUE_BITS; us += us / 7 + 1) {
		*h = (struct histogram){ 0 };
		histogram_add(h, 0);
		histogram_add(h, us);
		histogram_add(h, UINT64_MAX);
		assert_near(histogram_percentile(h, 50), us);
	}
	free(h);
}

static void percentiles_of_many_values_are_those_of_the_sorted_list(void **state)
{
	static const double percents[] = { 1, 50, 90, 95, 99, 99.9 };
	struct histogram *h = new_histogram();
	uint64_t values[6];

	(void)state;
	/* 17 and 100003 have no common divisor: each of 0 to 100002, times 100, once. */
	for (uint64_t i = 0; i < 100003; i++)
		histogram_add(h, i * 17 % 100003 * 100);
	histogram_percentiles(h, percents, 6, values);
	for (int i = 0; i < 6; i++)
		assert_near(values[i], (uint64_t)(percents[i] * 1000.03) * 100);
	assert_int_equal(histogram_percentile(h, 0), 0);
	assert_int_equal(histogram_percentile(h, 100), 100002 * 100);
	free(h);
}

static void what_is_too_long_counts_as_the_longest(void **state)
{
	struct histogram *h = new_histogram();

	(void)state;
	histogram_add(h, 1);
	histogram_add(h, (uint64_t)1 << 50);
	histogram_add(h, UINT64_MAX);
	assert_int_equal(h->count, 3);
	assert_int_equal(h->counts[HISTOGRAM_BUCKETS - 1], 2);
	assert_true(histogram_percentile(h, 100) == UINT64_MAX);
	free(h);
}

static void merged_parts_are_the_whole(void **state)
{
	static const double percents[] = { 0, 50, 99, 100 };
	struct histogram *whole = new_histogram(), *parts = new_histogram(), *part = new_histogram();
	uint64_t expected[4], merged[4];

	(void)state;
	for (uint64_t us = 3; us < 5000; us++)
		histogram_add(whole, us * us);
	for (int third = 0; third < 3; third++) {
		*part = (struct histogram){ 0 };
		for (uint64_t us = 3 + (uint64_t)third; us < 5000; us += 3)
			histogram_add(part, us * us);
		histogram_merge(parts, part);
	}
	*part = (struct histogram){ 0 };
	histogram_merge(parts, part);
	histogram_percentiles(whole, percents, 4, expected);
	histogram_percentiles(parts, percents, 4, merged);
	assert_memory_equal(expected, merged, sizeof(expected));
	assert_int_equal(parts->count, whole->count);
	assert_int_equal(parts->min_us, 9);
	free(whole);
	free(parts);
	free(part);
}

static void counts_below_powers_of_two_and_the_sum_are_exact(void **state)
{
	struct histogram *h = new_histogram();
	uint64_t below[20], expected[20] = { 0 }, sum = 0;
	unsigned random = 3;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		random = random * 1103515245 + 12345;
		uint64_t us = (random >> 8) >> (i % 24);
		/* At the bounds too. */
		if (i % 5 == 0)
			us = ((uint64_t)1 << (i % 28)) - (uint64_t)(i % 2);
		histogram_add(h, us);
		sum += us;
		for (unsigned bit = 0; bit < 20; bit++)
			expected[bit] += us < (uint64_t)1 << (8 + bit);
	}
	histogram_below_powers(h, 8, 20, below);
	assert_memory_equal(below, expected, sizeof(below));
	assert_int_equal(h->sum_us, sum);
	free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_has_no_percentiles),
		cmocka_unit_test(one_value_is_every_percentile_exactly),
		cmocka_unit_test(small_values_are_exact),
		cmocka_unit_test(every_size_of_value_is_near_enough),
		cmocka_unit_test(percentiles_of_many_values_are_those_of_the_sorted_list),
		cmocka_unit_test(what_is_too_long_counts_as_the_longest),
		cmocka_unit_test(merged_parts_are_the_whole),
		cmocka_unit_test(counts_below_powers_of_two_and_the_sum_are_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
