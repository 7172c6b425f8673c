#include "base/lines.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* The lines so far, each in brackets; of a long one its length. */
struct seen {
	struct lines lines;
	struct bytes text;
};

static void on_line(void *ctx, struct slice line)
{
	struct seen *seen = ctx;

	if (line.len > 100)
		bytes_printf(&seen->text, "[%zu]", line.len);
	else
		bytes_printf(&seen->text, "[%.*s]", (int)line.len, line.ptr);
}

static void begin(struct seen *seen)
{
	lines_init(&seen->lines, on_line, seen);
	bytes_init(&seen->text, 1024 * 1024);
}

static void put(struct seen *seen, const char *text)
{
	lines_put(&seen->lines, text, strlen(text));
}

static const char *text_of(struct seen *seen)
{
	bytes_append(&seen->text, "", 1);
	seen->text.len--;
	return (const char *)bytes_data(&seen->text);
}

static void end(struct seen *seen)
{
	lines_fini(&seen->lines);
	bytes_fini(&seen->text);
}

static void lines_are_the_same_however_they_are_cut(void **state)
{
	static const char stream[] = "one\ntwo\r\n\n\r\nlast\nopen";
	struct seen seen;

	(void)state;
	for (size_t cut = 1; cut <= sizeof(stream); cut++) {
		begin(&seen);
		for (size_t at = 0; at < sizeof(stream) - 1; at += cut)
			lines_put(&seen.lines, stream + at, sizeof(stream) - 1 - at < cut ? sizeof(stream) - 1 - at : cut);
		assert_string_equal(text_of(&seen), "[one][two][][][last]");
		lines_fini(&seen.lines);
		assert_string_equal(text_of(&seen), "[one][two][][][last][open]");
		end(&seen);
	}
}

static void without_a_line_nothing_is_said(void **state)
{
	struct seen seen;

	(void)state;
	begin(&seen);
	lines_put(&seen.lines, "", 0);
	lines_fini(&seen.lines);
	assert_string_equal(text_of(&seen), "");
	end(&seen);
}

static void a_long_line_comes_in_pieces(void **state)
{
	char *much = malloc(3 * LINES_MAX_BYTES);
	struct seen seen;

	(void)state;
	memset(much, 'x', 3 * LINES_MAX_BYTES);
	begin(&seen);
	lines_put(&seen.lines, much, 2 * LINES_MAX_BYTES + 7);
	put(&seen, "\nnext\n");
	assert_string_equal(text_of(&seen), "[65536][65536][xxxxxxx][next]");
	assert_null(seen.lines.rest.base);      /* between lines no memory is kept */
	end(&seen);
	free(much);
}

static void a_line_of_the_greatest_length_is_one_line(void **state)
{
	char *line = malloc(LINES_MAX_BYTES + 1);
	struct seen seen;

	(void)state;
	memset(line, 'x', LINES_MAX_BYTES);
	line[LINES_MAX_BYTES] = '\n';
	for (size_t cut = 1; cut <= LINES_MAX_BYTES; cut += LINES_MAX_BYTES / 4) {
		begin(&seen);
		lines_put(&seen.lines, line, cut);
		lines_put(&seen.lines, line + cut, LINES_MAX_BYTES + 1 - cut);
		assert_string_equal(text_of(&seen), "[65536]");
		end(&seen);
	}
	begin(&seen);
	lines_put(&seen.lines, line, LINES_MAX_BYTES);
	put(&seen, "\n");
	assert_string_equal(text_of(&seen), "[65536]");
	end(&seen);
	free(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_the_same_however_they_are_cut),
		cmocka_unit_test(without_a_line_nothing_is_said),
		cmocka_unit_test(a_long_line_comes_in_pieces),
		cmocka_unit_test(a_line_of_the_greatest_length_is_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
