/* Which answers are the same, but for what changes from request to request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compare/answers.h"

#include <stdlib.h>
#include <string.h>

static struct answer answer_of(unsigned status, const char *text)
{
	struct answer answer = { .status = status };

	bytes_init(&answer.body, 1 << 20);
	assert_int_equal(bytes_append_text(&answer.body, text), 0);
	return answer;
}

static void leave_out(struct left_out *left_out, const char *one, const char *other)
{
	struct answer a = answer_of(200, one), b = answer_of(200, other);

	answers_leave_out(left_out, &a, &b);
	bytes_fini(&a.body);
	bytes_fini(&b.body);
}

/* "" when they are the same. */
static const char *difference(const struct left_out *left_out, unsigned status, const char *text, const char *wanted)
{
	static struct err err;
	struct answer a = answer_of(status, text), b = answer_of(200, wanted);
	int rc = answers_compare(left_out, &a, &b, &err);

	bytes_fini(&a.body);
	bytes_fini(&b.body);
	return rc == 0 ? "" : err.text;
}

static void answers_are_compared_byte_for_byte(void **state)
{
	struct left_out *none = calloc(1, sizeof(*none));
	char text[512];

	(void)state;
	assert_string_equal(difference(none, 200, "a\nb\n", "a\nb\n"), "");
	assert_string_equal(difference(none, 200, "", ""), "");
	assert_string_equal(difference(none, 404, "a", "a"), "its status is 404 instead of 200");
	assert_string_equal(difference(none, 200, "a\nB\n", "a\nb\n"), "line 2 of the body is 'B' instead of 'b'");
	assert_string_equal(difference(none, 200, "a\n", "a\nb\n"), "its body has 2 bytes instead of 4");
	assert_string_equal(difference(none, 200, "a", "a\n"), "line 1 of the body, 'a', has no line feed");
	assert_string_equal(difference(none, 200, "a\n", "a"), "line 1 of the body, 'a', has a line feed");
	assert_string_equal(difference(none, 200, "0123456789012345678901234567890123456789012345678901234567890a", "0123456789012345678901234567890123456789012345678901234567890b"),
		"line 1 of the body differs after its first 60 bytes, '012345678901234567890123456789012345678901234567890123456789'");
	assert_string_equal(difference(none, 200, "\x1b[2J", "a"), "line 1 of the body is '\\x1b[2J' instead of 'a'");
	answers_describe(none, text, sizeof(text));
	assert_string_equal(text, "byte for byte");
	free(none);
}

static void what_changes_in_one_way_is_left_out_of_all(void **state)
{
	struct left_out *left_out = calloc(1, sizeof(*left_out));
	char text[512];

	(void)state;
	leave_out(left_out, "a\n10:00\nb\n", "a\n10:01\nb\n");
	leave_out(left_out, "a\n10:02\nb\n", "a\n10:03\nb\n");
	assert_int_equal(left_out->count, 1);
	assert_string_equal(difference(left_out, 200, "a\n11:00\nb\n", "a\n10:00\nb\n"), "");
	assert_string_equal(difference(left_out, 200, "a\n11:00\nc\n", "a\n10:00\nb\n"), "line 3 of the body is 'c' instead of 'b'");
	answers_describe(left_out, text, sizeof(text));
	assert_string_equal(text, "byte for byte, but for what changes from request to request: line 2");
	free(left_out);
}

static void bodies_whose_lines_cannot_be_told_apart_count_by_their_status(void **state)
{
	struct left_out *left_out = calloc(1, sizeof(*left_out));
	char text[512];

	(void)state;
	leave_out(left_out, "a\nb\n", "a\n");
	assert_true(left_out->is_everything);
	assert_string_equal(difference(left_out, 200, "x", "y\nz"), "");
	assert_string_equal(difference(left_out, 500, "x", "x"), "its status is 500 instead of 200");
	answers_describe(left_out, text, sizeof(text));
	assert_string_equal(text, "status only: the bodies change from request to request");
	free(left_out);
}

static void a_long_list_of_lines_is_cut(void **state)
{
	struct left_out *left_out = calloc(1, sizeof(*left_out));
	char text[512];

	(void)state;
	leave_out(left_out, "1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n", "2\n2\n2\n2\n2\n2\n2\n2\n2\n2\n");
	answers_describe(left_out, text, sizeof(text));
	assert_string_equal(text, "byte for byte, but for what changes from request to request: line 1, 2, 3, 4, 5, 6, 7, 8, …");
	answers_describe(left_out, text, 20);
	assert_int_equal(strlen(text), 19);
	free(left_out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_compared_byte_for_byte),
		cmocka_unit_test(what_changes_in_one_way_is_left_out_of_all),
		cmocka_unit_test(bodies_whose_lines_cannot_be_told_apart_count_by_their_status),
		cmocka_unit_test(a_long_list_of_lines_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
