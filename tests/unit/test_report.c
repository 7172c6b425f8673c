/* How figures and texts are written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compare/report.h"
#include "compare/report_charts.h"

#include <stdlib.h>
#include <string.h>

static void figures_have_three_digits_or_a_few_more(void **state)
{
	static const struct { double value; const char *text; } figures[] = {
		{ 0, "0" }, { 0.0424, "0.042" }, { 0.9994, "0.999" }, { 0.9996, "1.00" }, { 9.994, "9.99" }, { 9.996, "10.0" },
		{ 99.94, "99.9" }, { 99.96, "100" }, { 1240.4, "1240" }, { -12.34, "-12.3" },
	};
	char text[FIGURE_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		assert_string_equal(figure(figures[i].value, text), figures[i].text);
}

static void a_ratio_says_whether_it_shows_a_difference(void **state)
{
	char text[RATIO_BYTES];

	(void)state;
	assert_string_equal(ratio_text(&(struct estimate){ 1.02, 1.01, 1.04, true, true }, text), "1.02 (1.01 to 1.04)");
	assert_string_equal(ratio_text(&(struct estimate){ 1.02, 0.98, 1.04, true, false }, text), "1.02 (0.980 to 1.04), no difference shown");
	assert_string_equal(ratio_text(&(struct estimate){ .is_known = false }, text), "too few blocks");
}

typedef void text_fn(const char *text, FILE *out);

static void check(text_fn *function, const char *text, const char *wanted)
{
	char *written = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&written, &len);

	function(text, out);
	fclose(out);
	assert_string_equal(written, wanted);
	free(written);
}

static void paragraphs_are_broken_between_words(void **state)
{
	char sixty[61], text[200], wanted[200];

	(void)state;
	memset(sixty, 'x', 60);
	sixty[60] = '\0';
	snprintf(text, sizeof(text), "%s %.59s ab\ncd\n", sixty, sixty);
	snprintf(wanted, sizeof(wanted), "%s %.59s\nab\ncd\n", sixty, sixty);
	check(paragraph_text, text, wanted);
	check(paragraph_text, "one two\n", "one two\n");
	check(paragraph_text, "", "");
}

static void text_on_the_page_is_no_markup(void **state)
{
	(void)state;
	check(html_text, "<a href=\"x\">&amp;</a>", "&lt;a href=&quot;x&quot;&gt;&amp;amp;&lt;/a&gt;");
	check(html_text, "a\x01" "b\n\xc3\xa4", "a b\n\xc3\xa4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_have_three_digits_or_a_few_more),
		cmocka_unit_test(a_ratio_says_whether_it_shows_a_difference),
		cmocka_unit_test(paragraphs_are_broken_between_words),
		cmocka_unit_test(text_on_the_page_is_no_markup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
