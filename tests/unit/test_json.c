/* JSON that every reader takes, whatever the values are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static void assert_json(const struct bytes *out, const char *expected)
{
	assert_int_equal(out->len, strlen(expected));
	assert_memory_equal(bytes_data(out), expected, out->len);
}

static void members_commas_and_numbers(void **state)
{
	struct bytes out;
	struct json json;

	(void)state;
	bytes_init(&out, 1000);
	json_init(&json, &out);
	json_begin(&json, NULL, '{');
	json_u64(&json, "zero", 0);
	json_u64(&json, "most", UINT64_MAX);
	json_begin(&json, "empty", '[');
	json_end(&json, ']');
	json_begin(&json, "list", '[');
	json_begin(&json, NULL, '{');
	json_bool(&json, "yes", true);
	json_end(&json, '}');
	json_null(&json, NULL);
	json_end(&json, ']');
	json_ms(&json, "a", 12345);
	json_ms(&json, "b", 7);
	json_end(&json, '}');
	assert_false(json.is_full);
	assert_json(&out, "{\"zero\":0,\"most\":18446744073709551615,\"empty\":[],\"list\":[{\"yes\":true},null],\"a\":12.345,\"b\":0.007}");
	bytes_fini(&out);
}

static void text_cannot_leave_its_quotes(void **state)
{
	struct bytes out;
	struct json json;

	(void)state;
	bytes_init(&out, 1000);
	json_init(&json, &out);
	json_begin(&json, NULL, '[');
	json_str(&json, NULL, "a\"b\\c\nd\x01" "e\xc3\xbc\xff");
	json_str(&json, NULL, NULL);
	json_end(&json, ']');
	assert_false(json.is_full);
	assert_json(&out, "[\"a\\\"b\\\\c\\nd\\\\x01e\xc3\xbc\\\\xff\",null]");
	bytes_fini(&out);
}

static void a_full_buffer_is_noticed(void **state)
{
	struct bytes out;
	struct json json;

	(void)state;
	bytes_init(&out, 8);
	json_init(&json, &out);
	json_str(&json, NULL, "ab");
	assert_true(json.is_full);
	bytes_clear(&out);
	json_init(&json, &out);
	json_u64(&json, NULL, 123456789);
	assert_true(json.is_full);
	bytes_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_commas_and_numbers),
		cmocka_unit_test(text_cannot_leave_its_quotes),
		cmocka_unit_test(a_full_buffer_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
