/* Slices, numbers, misspelt words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static void numbers_are_digits_only_and_fit(void **state)
{
	uint64_t n = 0;

	(void)state;
	assert_int_equal(text_to_u64(slice_of("18446744073709551615"), &n), 0);
	assert_true(n == UINT64_MAX);
	assert_int_equal(text_to_u64(slice_of("18446744073709551616"), &n), -1);
	assert_int_equal(text_to_u64(slice_of(""), &n), -1);
	assert_int_equal(text_to_u64(slice_of("-1"), &n), -1);
	assert_int_equal(text_to_u64(slice_of("1 "), &n), -1);
}

static void a_misspelt_word_finds_its_neighbour_and_no_stranger(void **state)
{
	static const char *const words[] = { "timeout", "handler", "env", "command", NULL };

	(void)state;
	assert_string_equal(text_nearest("timout", words), "timeout");
	assert_string_equal(text_nearest("commnad", words), "command");
	assert_string_equal(text_nearest("evn", words) ? "found" : "none", "none");
	assert_null(text_nearest("zebra", words));
	assert_null(text_nearest("", words));
}

static void trimming_takes_blanks_from_both_ends(void **state)
{
	(void)state;
	assert_true(slice_is(slice_trim(slice_of(" \t a b\t")), "a b"));
	assert_true(slice_is(slice_trim(slice_of("  ")), ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_digits_only_and_fit),
		cmocka_unit_test(a_misspelt_word_finds_its_neighbour_and_no_stranger),
		cmocka_unit_test(trimming_takes_blanks_from_both_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
