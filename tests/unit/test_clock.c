#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void the_monotonic_clock_never_goes_back(void **state)
{
	uint64_t last = clock_monotonic_ns();

	(void)state;
	assert_true(last > 0);
	for (int i = 0; i < 1000; i++) {
		uint64_t now = clock_monotonic_ns();

		assert_true(now >= last);
		last = now;
	}
}

static void a_stamp_is_now_in_utc_with_milliseconds(void **state)
{
	char stamp[25];
	struct tm tm = { 0 };
	int ms = -1, used = 0;
	time_t before = time(NULL), at;

	(void)state;
	clock_stamp(stamp, sizeof(stamp));
	assert_int_equal(sscanf(stamp, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		&tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms, &used), 7);
	assert_int_equal(used, strlen(stamp));
	assert_int_equal(strlen(stamp), 24);
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	at = timegm(&tm);
	assert_true(at >= before && at <= time(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_monotonic_clock_never_goes_back),
		cmocka_unit_test(a_stamp_is_now_in_utc_with_milliseconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
