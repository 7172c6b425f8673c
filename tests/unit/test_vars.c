#include "wire/vars.h"
#include "wire/fcgi_params.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void last_value_wins_in_first_order(void **state)
{
	struct vars *vars = vars_new(1000);

	(void)state;
	assert_int_equal(vars_set_text(vars, "A", "1"), VARS_SET);
	assert_int_equal(vars_set_text(vars, "B", ""), VARS_SET);
	assert_int_equal(vars_set_text(vars, "A", "a longer value"), VARS_REPLACED);
	assert_int_equal(vars_set_text(vars, "a", "other case"), VARS_SET);
	assert_int_equal(vars_count(vars), 3);
	assert_string_equal(vars_get(vars, "A"), "a longer value");
	assert_string_equal(vars_get(vars, "B"), "");
	assert_null(vars_get(vars, "C"));
	assert_string_equal(vars_at(vars, 0).name, "A");
	assert_int_equal(vars_at(vars, 0).value_len, 14);
	assert_int_equal(vars_bytes(vars), 1 + 14 + 2 + 1 + 0 + 2 + 1 + 10 + 2);
	vars_free(&vars);
	assert_null(vars);
	vars_free(&vars);
}

static void copies_from_another_set(void **state)
{
	struct vars *from = vars_new(1000), *to = vars_new(12);

	(void)state;
	vars_set_text(from, "A", "one");
	vars_set_text(from, "B", "");
	vars_set_text(from, "C", "too much");
	vars_set_text(to, "B", "b");
	assert_int_equal(vars_copy(to, from, 0), VARS_SET);
	assert_int_equal(vars_copy(to, from, 1), VARS_REPLACED);
	assert_int_equal(vars_copy(to, from, 2), VARS_FULL);
	assert_string_equal(vars_get(to, "A"), "one");
	assert_string_equal(vars_get(to, "B"), "");
	assert_null(vars_get(to, "C"));
	vars_free(&from);
	vars_free(&to);
}

static void bad_names_and_values_are_refused(void **state)
{
	struct vars *vars = vars_new(1000);

	(void)state;
	assert_null(vars_get(vars, "A"));
	assert_int_equal(vars_set_text(vars, "", "1"), VARS_REFUSED);
	assert_int_equal(vars_set_text(vars, "A=B", "1"), VARS_REFUSED);
	assert_int_equal(vars_set(vars, (struct slice){ "A\0B", 3 }, slice_of("1")), VARS_REFUSED);
	assert_int_equal(vars_set(vars, slice_of("A"), (struct slice){ "1\0", 2 }), VARS_REFUSED);
	assert_int_equal(vars_set_text(vars, "A", "x=y"), VARS_SET);
	assert_int_equal(vars_count(vars), 1);
	vars_free(&vars);
}

static void full_at_exactly_the_limit(void **state)
{
	struct vars *vars = vars_new(10);

	(void)state;
	assert_int_equal(vars_set_text(vars, "A", "12"), VARS_SET);
	assert_int_equal(vars_set_text(vars, "B", "123"), VARS_FULL);
	assert_int_equal(vars_set_text(vars, "B", "12"), VARS_SET);
	assert_int_equal(vars_set_text(vars, "A", "123"), VARS_FULL);
	assert_string_equal(vars_get(vars, "A"), "12");
	assert_int_equal(vars_set_text(vars, "A", ""), VARS_REPLACED);
	assert_int_equal(vars_set_text(vars, "C", ""), VARS_FULL);
	assert_int_equal(vars_set_text(vars, "B", "1234"), VARS_REPLACED);
	assert_string_equal(vars_get(vars, "B"), "1234");
	vars_free(&vars);
}

static void thousands_of_names(void **state)
{
	struct vars *vars = vars_new(1 << 20);
	char name[16], value[16];

	(void)state;
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 20000; i++) {
			snprintf(name, sizeof(name), "N%d", i);
			snprintf(value, sizeof(value), "%0*d", round * 4 + 1, i);
			assert_int_equal(vars_set_text(vars, name, value), round == 0 ? VARS_SET : VARS_REPLACED);
		}
	assert_int_equal(vars_count(vars), 20000);
	for (int i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "N%d", i);
		snprintf(value, sizeof(value), "%09d", i);
		assert_string_equal(vars_get(vars, name), value);
		assert_string_equal(vars_at(vars, (size_t)i).name, name);
	}
	vars_free(&vars);
}

/* Growing values leave holes; a set that kept them would pass any limit. */
static void replacing_for_ever_stays_small(void **state)
{
	struct vars *vars = vars_new(64);
	static const char value[] = "0123456789012345678901234567890";

	(void)state;
	for (size_t i = 0; i < 100000; i++) {
		assert_int_equal(vars_set(vars, slice_of("A"), (struct slice){ value, i % 32 }), i == 0 ? VARS_SET : VARS_REPLACED);
		assert_int_equal(strlen(vars_get(vars, "A")), i % 32);
	}
	vars_free(&vars);
}

static void own_text_may_be_set_again(void **state)
{
	struct vars *vars = vars_new(1 << 20);
	char name[16];

	(void)state;
	vars_set_text(vars, "A", "abcdefgh");
	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "N%d", i);
		assert_int_equal(vars_set_text(vars, name, vars_get(vars, "A")), VARS_SET);
		assert_string_equal(vars_get(vars, name), "abcdefgh");
	}
	assert_int_equal(vars_set_text(vars, "A", vars_get(vars, "A") + 3), VARS_REPLACED);
	assert_string_equal(vars_get(vars, "A"), "defgh");
	vars_free(&vars);
}

static void unset_keeps_the_order(void **state)
{
	struct vars *vars = vars_new(1000);

	(void)state;
	vars_unset(vars, "A");
	vars_set_text(vars, "A", "1");
	vars_set_text(vars, "B", "2");
	vars_set_text(vars, "C", "3");
	vars_unset(vars, "B");
	vars_unset(vars, "B");
	assert_int_equal(vars_count(vars), 2);
	assert_null(vars_get(vars, "B"));
	assert_string_equal(vars_get(vars, "C"), "3");
	assert_string_equal(vars_at(vars, 1).name, "C");
	assert_int_equal(vars_bytes(vars), 8);
	vars_free(&vars);
}

static void both_sinks(void **state)
{
	struct vars *vars = vars_new(1000);
	struct bytes out;

	(void)state;
	bytes_init(&out, 1000);
	assert_int_equal(vars_to_environ(vars, &out), 0);
	assert_int_equal(out.len, 0);
	vars_set_text(vars, "A", "1");
	vars_set_text(vars, "EMPTY", "");
	assert_int_equal(vars_to_environ(vars, &out), 0);
	assert_int_equal(out.len, vars_bytes(vars));
	assert_memory_equal(bytes_data(&out), "A=1\0EMPTY=\0", 11);
	bytes_clear(&out);
	assert_int_equal(vars_to_params(vars, &out), 0);
	assert_memory_equal(bytes_data(&out), "\1\1A1\5\0EMPTY", 11);
	bytes_fini(&out);
	bytes_init(&out, 10);
	assert_int_equal(vars_to_environ(vars, &out), -1);
	assert_int_equal(vars_to_params(vars, &out), -1);
	bytes_fini(&out);
	vars_free(&vars);
}

static void a_header_field_is_a_variable(void **state)
{
	static const struct { const char *field, *variable; } cases[] = {
		{ "Accept-Language", "HTTP_ACCEPT_LANGUAGE" }, { "X_1", "HTTP_X_1" },
		{ "content-type", "CONTENT_TYPE" }, { "Content-Length", "CONTENT_LENGTH" }, { "Content-Lengths", "HTTP_CONTENT_LENGTHS" },
		{ "", "" },
	};
	char buffer[VARS_FIELD_NAME_BYTES], longest[VARS_FIELD_NAME_BYTES];
	struct slice name;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		name = vars_field_name(slice_of(cases[i].field), buffer);
		assert_true(slice_is(name, cases[i].variable));
	}
	memset(longest, 'a', sizeof(longest));
	name = vars_field_name((struct slice){ longest, VARS_FIELD_NAME_BYTES - 5 }, buffer);
	assert_int_equal(name.len, VARS_FIELD_NAME_BYTES);
	name = vars_field_name((struct slice){ longest, VARS_FIELD_NAME_BYTES - 4 }, buffer);
	assert_int_equal(name.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(last_value_wins_in_first_order),
		cmocka_unit_test(copies_from_another_set),
		cmocka_unit_test(bad_names_and_values_are_refused),
		cmocka_unit_test(full_at_exactly_the_limit),
		cmocka_unit_test(thousands_of_names),
		cmocka_unit_test(replacing_for_ever_stays_small),
		cmocka_unit_test(own_text_may_be_set_again),
		cmocka_unit_test(unset_keeps_the_order),
		cmocka_unit_test(both_sinks),
		cmocka_unit_test(a_header_field_is_a_variable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
