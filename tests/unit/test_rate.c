/* Every count is in its second, and in no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rate.h"

static uint32_t sum(const uint32_t counts[RATE_SECONDS])
{
	uint32_t all = 0;

	for (size_t i = 0; i < RATE_SECONDS; i++)
		all += counts[i];
	return all;
}

static void a_count_moves_from_the_newest_place_to_the_oldest(void **state)
{
	struct rate rate = { 0 };
	uint32_t counts[RATE_SECONDS];

	(void)state;
	rate_add(&rate, 500);
	rate_add(&rate, 500);
	rate_read(&rate, 500, counts);
	assert_int_equal(sum(counts), 0);       /* the second is not over */
	for (uint64_t now = 501; now <= 560; now++) {
		rate_read(&rate, now, counts);
		assert_int_equal(counts[RATE_SECONDS - (now - 500)], 2);
		assert_int_equal(sum(counts), 2);
	}
	rate_read(&rate, 561, counts);
	assert_int_equal(sum(counts), 0);
}

static void it_agrees_with_a_list_of_all_that_was_counted(void **state)
{
	static uint32_t all[1000];
	struct rate rate = { 0 };
	uint32_t counts[RATE_SECONDS];
	unsigned random = 7;

	(void)state;
	for (uint64_t now = 0; now < 1000; now++) {
		random = random * 1103515245 + 12345;
		/* With pauses that are longer than what is kept. */
		for (unsigned n = (now / 100) % 3 == 1 ? 0 : (random >> 16) % 4; n > 0; n--, all[now]++)
			rate_add(&rate, now);
		rate_read(&rate, now, counts);
		for (uint64_t i = 0; i < RATE_SECONDS; i++)
			assert_int_equal(counts[i], now + i < RATE_SECONDS ? 0 : all[now + i - RATE_SECONDS]);
	}
}

static void after_a_long_pause_nothing_old_is_left(void **state)
{
	struct rate rate = { 0 };
	uint32_t counts[RATE_SECONDS];

	(void)state;
	for (uint64_t now = 100; now < 200; now++)
		rate_add(&rate, now);
	rate_add(&rate, 100000);
	rate_read(&rate, 100001, counts);
	assert_int_equal(sum(counts), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_count_moves_from_the_newest_place_to_the_oldest),
		cmocka_unit_test(it_agrees_with_a_list_of_all_that_was_counted),
		cmocka_unit_test(after_a_long_pause_nothing_old_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
