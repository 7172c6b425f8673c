/* The one growable buffer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"

static void never_passes_its_maximum(void **state)
{
	struct bytes b;

	(void)state;
	bytes_init(&b, 10);
	assert_int_equal(bytes_append(&b, "0123456789", 10), 0);
	assert_int_equal(bytes_append(&b, "x", 1), -1);
	assert_null(bytes_reserve(&b, 1));
	assert_int_equal(b.len, 10);
	bytes_consume(&b, 4);
	assert_int_equal(bytes_append(&b, "abcd", 4), 0);
	assert_memory_equal(bytes_data(&b), "456789abcd", 10);
	bytes_fini(&b);
}

static void a_queue_that_is_filled_and_emptied_keeps_its_order(void **state)
{
	struct bytes b;
	unsigned char put = 0, got = 0;

	(void)state;
	bytes_init(&b, 1000);
	for (int round = 0; round < 5000; round++) {
		for (int i = 0; i < round % 37 && bytes_room(&b) > 0; i++, put++)
			assert_int_equal(bytes_append(&b, &put, 1), 0);
		for (int i = 0; i < round % 31 && b.len > 0; i++, got++) {
			assert_int_equal(*bytes_data(&b), got);
			bytes_consume(&b, 1);
		}
	}
	bytes_fini(&b);
}

static void printf_does_not_keep_its_terminator(void **state)
{
	struct bytes b;

	(void)state;
	bytes_init(&b, 100);
	assert_int_equal(bytes_printf(&b, "%d-%s", 7, "x"), 0);
	assert_int_equal(b.len, 3);
	assert_memory_equal(bytes_data(&b), "7-x", 3);
	bytes_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_passes_its_maximum),
		cmocka_unit_test(a_queue_that_is_filled_and_emptied_keeps_its_order),
		cmocka_unit_test(printf_does_not_keep_its_terminator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
