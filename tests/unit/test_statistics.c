/* Intervals that hold what is true about as often as they say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "compare/statistics.h"
#include "noise.h"

#include <math.h>

enum { PAIRS_MAX = 64 };

/* Pairs whose ratio is `ratio`, with noise of the given deviation on both. */
static void make_pairs(struct random *random, double *way, double *base, size_t count, double ratio, double noise)
{
	for (size_t i = 0; i < count; i++) {
		base[i] = 100 * exp(noise * noise_normal(random));
		way[i] = 100 * ratio * exp(noise * noise_normal(random));
	}
}

static void without_noise_the_ratio_is_exact(void **state)
{
	double way[] = { 20, 40, 60, 80, 100 }, base[] = { 10, 20, 30, 40, 50 };
	struct random random = { 1 };
	struct estimate estimate = statistics_ratio(way, base, 5, &random);

	(void)state;
	assert_true(estimate.is_known && estimate.is_shown);
	assert_true(fabs(estimate.value - 2) < 1e-9 && fabs(estimate.low - 2) < 1e-9 && fabs(estimate.high - 2) < 1e-9);
	estimate = statistics_difference(way, base, 5, &random);
	assert_true(estimate.is_shown && fabs(estimate.value - 30) < 1e-9);
}

static void the_same_shows_no_difference(void **state)
{
	double same[] = { 1, 2, 3, 4, 5, 6 };
	struct random random = { 1 };

	(void)state;
	assert_false(statistics_ratio(same, same, 6, &random).is_shown);
	assert_false(statistics_difference(same, same, 6, &random).is_shown);
}

static void a_few_pairs_show_nothing(void **state)
{
	double way[] = { 2, 2, 2 }, base[] = { 1, 1, 1 };
	struct random random = { 1 };

	(void)state;
	assert_false(statistics_ratio(way, base, 3, &random).is_known);
	assert_false(statistics_ratio(way, base, 0, &random).is_known);
}

static void the_interval_holds_the_truth_about_95_times_of_100(void **state)
{
	static const size_t sizes[] = { 6, 10, 20, 40 };
	double way[PAIRS_MAX], base[PAIRS_MAX];
	struct random random = { 42 };

	(void)state;
	for (size_t s = 0; s < 4; s++) {
		unsigned held = 0;

		for (int run = 0; run < 200; run++) {
			make_pairs(&random, way, base, sizes[s], 1.3, 0.05);
			struct estimate estimate = statistics_ratio(way, base, sizes[s], &random);

			held += estimate.low <= 1.3 && estimate.high >= 1.3;
		}
		assert_in_range(held, 180, 200);
	}
}

static void what_is_the_same_rarely_seems_different(void **state)
{
	static const size_t sizes[] = { 6, 10, 20, 40 };
	double way[PAIRS_MAX], base[PAIRS_MAX];
	struct random random = { 7 };

	(void)state;
	for (size_t s = 0; s < 4; s++) {
		unsigned shown = 0;

		for (int run = 0; run < 300; run++) {
			make_pairs(&random, way, base, sizes[s], 1, 0.1);
			shown += statistics_ratio(way, base, sizes[s], &random).is_shown;
		}
		assert_in_range(shown, 0, 9);
	}
}

static void one_disturbed_block_moves_it_little(void **state)
{
	double way[PAIRS_MAX], base[PAIRS_MAX];
	struct random random = { 3 };

	(void)state;
	make_pairs(&random, way, base, 20, 1.02, 0.001);
	way[4] *= 30;
	base[11] *= 5;
	struct estimate estimate = statistics_ratio(way, base, 20, &random);
	assert_true(estimate.is_shown);
	assert_true(fabs(estimate.value - 1.02) < 0.002);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_noise_the_ratio_is_exact),
		cmocka_unit_test(the_same_shows_no_difference),
		cmocka_unit_test(a_few_pairs_show_nothing),
		cmocka_unit_test(the_interval_holds_the_truth_about_95_times_of_100),
		cmocka_unit_test(what_is_the_same_rarely_seems_different),
		cmocka_unit_test(one_disturbed_block_moves_it_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
