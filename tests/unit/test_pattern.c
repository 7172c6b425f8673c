/* The paths of routes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/pattern.h"

static void good_paths(void **state)
{
	static const struct {
		const char *path;
		bool is_prefix;
		unsigned segments;
		uint64_t names;
	} cases[] = {
		{ "/", false, 1, 0 }, { "/*", true, 0, 0 }, { "/hello", false, 1, 0 }, { "/a/b/", false, 3, 0 },
		{ "/git/*", true, 1, 0 }, { "/users/{id}", false, 2, UINT64_C(1) << 62 }, { "/{a}/x/{b_2}/*", true, 3, UINT64_C(5) << 61 },
		{ "/ä b", false, 1, 0 }, { "/100%", false, 1, 0 }, { "/a.b/..c", false, 2, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pattern pattern;
		assert_int_equal(pattern_parse(cases[i].path, &pattern, NULL), 0);
		assert_int_equal(pattern.is_prefix, cases[i].is_prefix);
		assert_int_equal(pattern.segments, cases[i].segments);
		assert_true(pattern.names == cases[i].names);
	}
}

static void bad_paths_say_why(void **state)
{
	static const struct {
		const char *path, *says;
	} cases[] = {
		{ "", "begin with '/'" }, { "hello", "begin with '/'" }, { "*", "begin with '/'" }, { "//", "empty segment" },
		{ "/a//b", "empty segment" }, { "/a//*", "empty segment" }, { "//*", "empty segment" }, { "/a*", "at the end only" },
		{ "/*/a", "at the end only" }, { "/**", "at the end only" }, { "/a/*x", "at the end only" }, { "/{id", "whole segment" },
		{ "/{}", "whole segment" }, { "/x{id}", "whole segment" }, { "/{id}.json", "whole segment" }, { "/{a-b}", "letters" },
		{ "/{1a}", "letters" }, { "/{a}/{a}", "twice" }, { "/{a}/{A}/*", "twice" }, { "/a?b", "query" }, { "/a#b", "query" },
		{ "/a%20b", "decoded" }, { "/a/../b", "'..'" }, { "/./b", "'..'" }, { "/a\nb", "control" },
		{ "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}/{j}/{k}/{l}/{m}/{n}/{o}/{p}/{q}", "more than 16" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pattern pattern;
		struct err err;
		assert_int_equal(pattern_parse(cases[i].path, &pattern, &err), -1);
		if (strstr(err.text, cases[i].says) == NULL)
			fail_msg("%s: %s", cases[i].path, err.text);
	}
}

static void segments_are_bounded(void **state)
{
	char path[2 * 64 + 1] = "";
	struct pattern pattern;

	(void)state;
	for (int i = 0; i < 63; i++)
		strcat(path, "/a");
	assert_int_equal(pattern_parse(path, &pattern, NULL), 0);
	strcat(path, "/a");
	assert_int_equal(pattern_parse(path, &pattern, NULL), -1);
}

static void names_do_not_tell_patterns_apart(void **state)
{
	(void)state;
	assert_true(pattern_is_same("/u/{id}", "/u/{name}"));
	assert_true(pattern_is_same("/{a}/*", "/{b}/*"));
	assert_false(pattern_is_same("/u/{id}", "/u/{id}/*"));
	assert_false(pattern_is_same("/u/{id}", "/u/id"));
	assert_false(pattern_is_same("/u", "/u/"));
	assert_false(pattern_is_same("/", "/*"));
	assert_int_equal(pattern_hash("/u/{id}", "x"), pattern_hash("/u/{name}", "X"));
	assert_int_not_equal(pattern_hash("/u", NULL), pattern_hash("/u/*", NULL));
}

static void get_stands_for_head(void **state)
{
	char get[] = "GET", head[] = "HEAD", post[] = "POST";
	char *const gets[] = { get, NULL }, *const heads[] = { head, NULL }, *const posts[] = { post, NULL };

	(void)state;
	assert_true(methods_take(gets, "HEAD"));
	assert_false(methods_take(heads, "GET"));
	assert_true(methods_take(NULL, "ANY"));
	assert_false(methods_take(gets, "get"));
	assert_true(methods_overlap(gets, heads));
	assert_true(methods_overlap(heads, gets));
	assert_true(methods_overlap(posts, NULL));
	assert_false(methods_overlap(posts, gets));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_paths),
		cmocka_unit_test(bad_paths_say_why),
		cmocka_unit_test(segments_are_bounded),
		cmocka_unit_test(names_do_not_tell_patterns_apart),
		cmocka_unit_test(get_stands_for_head),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
