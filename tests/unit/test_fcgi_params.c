#include "wire/fcgi_params.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void lengths_round_trip(void **state)
{
	static const size_t lens[] = { 0, 1, 123, 127, 128, 200, 9000, 70000 };
	enum { COUNT = sizeof(lens) / sizeof(lens[0]) };
	static char text[70000];
	struct bytes out;
	struct slice block, name, value;

	(void)state;
	memset(text, 'x', sizeof(text));
	bytes_init(&out, 1 << 20);
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(fcgi_put_pair(&out, (struct slice){ text, lens[i] },
			(struct slice){ text, lens[COUNT - 1 - i] }), 0);
	block = (struct slice){ (const char *)bytes_data(&out), out.len };
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(fcgi_next_pair(&block, &name, &value), FCGI_PAIR_OK);
		assert_int_equal(name.len, lens[i]);
		assert_int_equal(value.len, lens[COUNT - 1 - i]);
	}
	assert_int_equal(fcgi_next_pair(&block, &name, &value), FCGI_PAIR_NONE);
	bytes_fini(&out);
}

static void four_bytes_may_hold_a_small_length(void **state)
{
	struct slice block = { "\x80\0\0\3\x80\0\0\1ABC1", 12 }, name, value;

	(void)state;
	assert_int_equal(fcgi_next_pair(&block, &name, &value), FCGI_PAIR_OK);
	assert_true(slice_is(name, "ABC") && slice_is(value, "1"));
	assert_int_equal(block.len, 0);
}

static void lengths_past_the_end_are_bad(void **state)
{
	static const struct slice blocks[] = {
		{ "\1", 1 }, { "\x80", 1 }, { "\x80\0\0", 3 }, { "\1\1A", 3 }, { "\4\0ABC", 5 },
		{ "\1\x80\0\0", 4 }, { "\xff\xff\xff\xff\xff\xff\xff\xff", 8 }, { "\1\xff\xff\xff\xff" "A", 6 },
		{ "\xff\xff\xff\xff\1A", 6 },
	};
	struct slice name, value;

	(void)state;
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		struct slice block = blocks[i];

		assert_int_equal(fcgi_next_pair(&block, &name, &value), FCGI_PAIR_BAD);
	}
}

static void full_output_stays_unchanged(void **state)
{
	struct bytes out;

	(void)state;
	bytes_init(&out, 4);
	assert_int_equal(fcgi_put_pair(&out, slice_of("AB"), slice_of("1")), -1);
	assert_int_equal(out.len, 0);
	assert_int_equal(fcgi_put_pair(&out, slice_of("A"), slice_of("1")), 0);
	bytes_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_round_trip),
		cmocka_unit_test(four_bytes_may_hold_a_small_length),
		cmocka_unit_test(lengths_past_the_end_are_bad),
		cmocka_unit_test(full_output_stays_unchanged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
