#include "base/clock.h"
#include "base/log.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { MUCH_BYTES = 4 * 1024 * 1024 };

static char folder[64];
static char path[128];
static char *text;      /* what was read of it; MUCH_BYTES long */

static int begin(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/fcgi-host-test-XXXXXX");
	text = calloc(1, MUCH_BYTES + 1);
	if (text == NULL || mkdtemp(folder) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/log", folder);
	return 0;
}

static int end(void **state)
{
	(void)state;
	log_on_waiting(NULL, NULL);
	log_close();
	unlink(path);
	free(text);
	return rmdir(folder);
}

static void open_log(enum log_format format, enum log_level level)
{
	const struct log_options options = { .file = path, .format = format, .level = level };
	struct err err = { "" };

	assert_int_equal(log_open(&options, &err), 0);
	assert_string_equal(err.text, "");
}

static const char *contents(const char *file)
{
	FILE *in = fopen(file, "r");

	assert_non_null(in);
	text[fread(text, 1, MUCH_BYTES, in)] = '\0';
	fclose(in);
	return text;
}

/* The last line of the file from the field after `event` on, without its end. */
static const char *fields(void)
{
	char *last, *newline;

	contents(path);
	newline = strrchr(text, '\n');
	assert_non_null(newline);
	assert_int_equal(newline[1], '\0');
	*newline = '\0';
	last = strrchr(text, '\n');
	last = last == NULL ? text : last + 1;
	last = strstr(last, "event");
	assert_non_null(last);
	last = strpbrk(last, ", ");
	return last == NULL ? "" : last + 1;
}

static void log_value(const char *value, size_t len)
{
	struct log_line line;

	log_begin(&line, LOG_LEVEL_INFO, "test");
	log_slice(&line, "v", (struct slice){ value, len });
	log_end(&line);
}

static const char *logged(const char *value)
{
	log_value(value, strlen(value));
	return fields();
}

static unsigned lines_in(const char *from)
{
	unsigned count = 0;

	for (; *from != '\0'; from++)
		count += *from == '\n';
	return count;
}

static unsigned quotes_in(const char *from)
{
	unsigned count = 0;

	for (; *from != '\0'; from++)
		count += *from == '"';
	return count;
}

static void a_line_has_time_level_and_event_first(void **state)
{
	char stamp[32], level[32], event[32];

	(void)state;
	open_log(LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
	log_message(LOG_LEVEL_WARNING, "greeting", "hello %s", "you");
	assert_int_equal(sscanf(contents(path), "time=%31s level=%31s event=%31s", stamp, level, event), 3);
	assert_int_equal(strlen(stamp), 24);
	assert_string_equal(level, "warning");
	assert_string_equal(event, "greeting");
	assert_string_equal(fields(), "msg=\"hello you\"");
}

static void both_formats_have_the_same_fields(void **state)
{
	static const char *const expected[] = {
		"s=plain null=- u=18446744073709551615 i=-5 ms=12.345 none=-",
		"\"s\":\"plain\",\"null\":null,\"u\":18446744073709551615,\"i\":-5,\"ms\":12.345,\"none\":null}",
	};

	(void)state;
	for (int format = LOG_FORMAT_TEXT; format <= LOG_FORMAT_JSON; format++) {
		struct log_line line;

		open_log(format, LOG_LEVEL_INFO);
		log_begin(&line, LOG_LEVEL_INFO, "test");
		log_str(&line, "s", "plain");
		log_str(&line, "null", NULL);
		log_u64(&line, "u", UINT64_MAX);
		log_i64(&line, "i", -5);
		log_ms(&line, "ms", 12345678);
		log_none(&line, "none");
		log_end(&line);
		assert_string_equal(fields(), expected[format]);
	}
	contents(path);
	assert_non_null(strstr(text, "{\"time\":\""));
}

static void text_quotes_what_is_not_a_plain_word(void **state)
{
	(void)state;
	open_log(LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
	assert_string_equal(logged("plain/word:1,2"), "v=plain/word:1,2");
	assert_string_equal(logged(""), "v=\"\"");
	assert_string_equal(logged("-"), "v=\"-\"");            /* not the absent value */
	assert_string_equal(logged("two words"), "v=\"two words\"");
	assert_string_equal(logged("a=b"), "v=\"a=b\"");
	assert_string_equal(logged("say \"x\" \\ y"), "v=\"say \\\"x\\\" \\\\ y\"");
	assert_string_equal(logged("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x99\x82"), "v=\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x99\x82\"");
}

static void control_bytes_and_bad_utf_8_are_escaped(void **state)
{
	static const struct { const char *value, *in_text, *in_json; } cases[] = {
		{ "a\r\n\tb", "a\\r\\n\\tb", "a\\r\\n\\tb" },
		{ "\x1b[31mred\x7f", "\\x1b[31mred\\x7f", "\\\\x1b[31mred\\\\x7f" },
		{ "\xff\xfe", "\\xff\\xfe", "\\\\xff\\\\xfe" },
		{ "\xc0\xaf", "\\xc0\\xaf", "\\\\xc0\\\\xaf" },                         /* overlong */
		{ "\xe0\x80\xaf", "\\xe0\\x80\\xaf", "\\\\xe0\\\\x80\\\\xaf" },
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80", "\\\\xed\\\\xa0\\\\x80" },         /* half of a surrogate pair */
		{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "\\\\xf4\\\\x90\\\\x80\\\\x80" },
		{ "\xc2\x9b" "31m", "\\xc2\\x9b31m", "\\\\xc2\\\\x9b31m" },             /* CSI in one character */
		{ "\xe2\x80\xa8\xe2\x80\xae", "\\xe2\\x80\\xa8\\xe2\\x80\\xae", "\\\\xe2\\\\x80\\\\xa8\\\\xe2\\\\x80\\\\xae" },
		{ "cut \xe2\x82", "cut \\xe2\\x82", "cut \\\\xe2\\\\x82" },
	};
	char expected[128];

	(void)state;
	for (int format = LOG_FORMAT_TEXT; format <= LOG_FORMAT_JSON; format++) {
		open_log(format, LOG_LEVEL_INFO);
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			if (format == LOG_FORMAT_TEXT)
				snprintf(expected, sizeof(expected), "v=\"%s\"", cases[i].in_text);
			else
				snprintf(expected, sizeof(expected), "\"v\":\"%s\"}", cases[i].in_json);
			assert_string_equal(logged(cases[i].value), expected);
		}
		log_value("a\0b", 3);
		assert_string_equal(fields(), format == LOG_FORMAT_TEXT ? "v=\"a\\x00b\"" : "\"v\":\"a\\\\x00b\"}");
	}
}

static void nobody_forges_a_line(void **state)
{
	static const char forged[] = "x\" reason=-\ntime=2026-01-01T00:00:00.000Z level=info event=request id=1 status=200\n{\"time\":\"";

	(void)state;
	for (int format = LOG_FORMAT_TEXT; format <= LOG_FORMAT_JSON; format++) {
		open_log(format, LOG_LEVEL_INFO);
		log_value(forged, strlen(forged));
		log_message(LOG_LEVEL_INFO, "test", "%s", forged);
	}
	contents(path);
	assert_int_equal(lines_in(text), 4);
	assert_null(strstr(text, "\ntime=2026-01-01"));
	assert_null(strstr(text, "x\" "));      /* the quote does not end the value */
}

static void lines_below_the_level_are_not_written(void **state)
{
	(void)state;
	open_log(LOG_FORMAT_TEXT, LOG_LEVEL_WARNING);
	assert_true(log_wants(LOG_LEVEL_ERROR));
	assert_true(log_wants(LOG_LEVEL_WARNING));
	assert_false(log_wants(LOG_LEVEL_INFO));
	log_message(LOG_LEVEL_INFO, "a", "not this");
	log_message(LOG_LEVEL_DEBUG, "b", "nor this");
	log_message(LOG_LEVEL_ERROR, "c", "this");
	assert_int_equal(lines_in(contents(path)), 1);
	assert_non_null(strstr(text, "event=c"));
}

static void a_value_that_is_too_long_is_cut_and_the_line_stays_whole(void **state)
{
	enum { LONG_BYTES = 300 * 1024 };
	char *value = malloc(LONG_BYTES + 1);

	(void)state;
	memset(value, '\1', LONG_BYTES);
	value[LONG_BYTES] = '\0';
	for (int format = LOG_FORMAT_TEXT; format <= LOG_FORMAT_JSON; format++) {
		struct log_line line;
		const char *last;

		open_log(format, LOG_LEVEL_INFO);
		log_begin(&line, LOG_LEVEL_INFO, "test");
		log_str(&line, "path", value);
		log_str(&line, "query", value);
		log_u64(&line, "status", 200);
		log_end(&line);
		last = fields();
		assert_true(strlen(last) < 512 * 1024);
		assert_int_equal(quotes_in(last), format == LOG_FORMAT_TEXT ? 4 : 2 * 3 + 2 * 2);
		last += strlen(last) - (format == LOG_FORMAT_TEXT ? 14 : 15);
		assert_string_equal(last, format == LOG_FORMAT_TEXT ? "01\" status=200" : "\",\"status\":200}");
	}
	free(value);
}

static void a_line_of_64_kib_is_logged_whole(void **state)
{
	enum { LINE_BYTES = 64 * 1024 };
	char *value = malloc(LINE_BYTES);

	(void)state;
	memset(value, '\1', LINE_BYTES);
	open_log(LOG_FORMAT_JSON, LOG_LEVEL_INFO);
	log_value(value, LINE_BYTES);
	assert_int_equal(strlen(fields()), strlen("\"v\":\"\"}") + 5 * LINE_BYTES);
	free(value);
}

static void the_path_is_opened_again_and_the_old_file_left_alone(void **state)
{
	char old[160];
	struct err err;

	(void)state;
	snprintf(old, sizeof(old), "%s.1", path);
	open_log(LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
	log_message(LOG_LEVEL_INFO, "a", "before");
	assert_int_equal(rename(path, old), 0);
	log_message(LOG_LEVEL_INFO, "a", "between");
	assert_int_equal(log_reopen(&err), 0);
	log_message(LOG_LEVEL_INFO, "a", "after");
	assert_string_equal(fields(), "msg=after");
	assert_int_equal(lines_in(text), 0);    /* its end was taken off: one line */
	assert_int_equal(lines_in(contents(old)), 2);
	unlink(old);
}

static void when_the_path_cannot_be_opened_again_the_old_file_stays(void **state)
{
	char old[160];
	struct err err = { "" };

	(void)state;
	snprintf(old, sizeof(old), "%s.1", path);
	open_log(LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
	assert_int_equal(rename(path, old), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(log_reopen(&err), -1);
	assert_non_null(strstr(err.text, path));
	log_message(LOG_LEVEL_INFO, "a", "still here");
	assert_int_equal(lines_in(contents(old)), 1);
	rmdir(path);
	unlink(old);
}

static void a_destination_that_cannot_be_opened_is_said(void **state)
{
	const struct log_options options = { .file = "/nonexistent/log" };
	struct err err = { "" };

	(void)state;
	open_log(LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
	assert_int_equal(log_open(&options, &err), -1);
	assert_non_null(strstr(err.text, "/nonexistent/log"));
	log_message(LOG_LEVEL_INFO, "a", "goes on in the former one");
	assert_int_equal(lines_in(contents(path)), 1);
}

static void a_pipe_without_a_reader_is_an_error_and_not_a_wait(void **state)
{
	const struct log_options options = { .file = path };
	struct err err = { "" };

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(log_open(&options, &err), -1);
	assert_string_not_equal(err.text, "");
}

/* Reads all that can be read of the pipe now, behind what was read before. */
static size_t take(int fd, size_t have)
{
	ssize_t n;

	while (have < MUCH_BYTES && (n = read(fd, text + have, MUCH_BYTES - have)) > 0)
		have += (size_t)n;
	text[have] = '\0';
	return have;
}

static void a_slow_reader_costs_lines_that_are_counted_and_never_a_wait(void **state)
{
	uint64_t before = log_lines_dropped(), dropped, written = 0;
	unsigned long long said = 0;
	char value[1000], stuck;
	size_t have = 0;
	int fd;

	(void)state;
	memset(value, 'v', sizeof(value));
	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	open_log(LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
	for (; log_lines_dropped() - before < 500; written++)
		log_value(value, sizeof(value));
	dropped = log_lines_dropped() - before;
	assert_false(log_flush());
	while (!log_flush())
		have = take(fd, have);
	have = take(fd, have);
	assert_int_equal(lines_in(text), written - dropped);
	log_value("last", 4);
	have = take(fd, have);
	assert_int_equal(lines_in(text), written - dropped + 2);
	assert_int_equal(sscanf(strstr(text, "event=log_dropped"), "event=log_dropped lines=%llu ms%c", &said, &stuck), 2);
	assert_int_equal(said, dropped);
	assert_non_null(strstr(strstr(text, "event=log_dropped"), "v=last"));
	close(fd);
}

static void lines_for_a_reader_that_is_gone_are_counted(void **state)
{
	uint64_t before = log_lines_dropped();
	int fd;

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	open_log(LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
	close(fd);
	log_value("lost", 4);
	assert_true(log_flush());
	assert_int_equal(log_lines_dropped() - before, 1);
	unlink(path);
	open_log(LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
	log_value("found", 5);
	assert_int_equal(lines_in(contents(path)), 2);
	assert_non_null(strstr(text, "event=log_dropped lines=1 "));
}

static void count_call(void *ctx)
{
	++*(unsigned *)ctx;
}

static void whoever_flushes_is_told_once_that_lines_wait(void **state)
{
	unsigned calls = 0;

	(void)state;
	open_log(LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
	log_on_waiting(count_call, &calls);
	log_value("a", 1);
	log_value("b", 1);
	assert_int_equal(calls, 1);
	assert_int_equal(lines_in(contents(path)), 0);
	assert_true(log_flush());
	assert_int_equal(lines_in(contents(path)), 2);
	log_value("c", 1);
	assert_int_equal(calls, 2);
	log_close();
	assert_int_equal(lines_in(contents(path)), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_line_has_time_level_and_event_first, begin, end),
		cmocka_unit_test_setup_teardown(both_formats_have_the_same_fields, begin, end),
		cmocka_unit_test_setup_teardown(text_quotes_what_is_not_a_plain_word, begin, end),
		cmocka_unit_test_setup_teardown(control_bytes_and_bad_utf_8_are_escaped, begin, end),
		cmocka_unit_test_setup_teardown(nobody_forges_a_line, begin, end),
		cmocka_unit_test_setup_teardown(lines_below_the_level_are_not_written, begin, end),
		cmocka_unit_test_setup_teardown(a_value_that_is_too_long_is_cut_and_the_line_stays_whole, begin, end),
		cmocka_unit_test_setup_teardown(a_line_of_64_kib_is_logged_whole, begin, end),
		cmocka_unit_test_setup_teardown(the_path_is_opened_again_and_the_old_file_left_alone, begin, end),
		cmocka_unit_test_setup_teardown(when_the_path_cannot_be_opened_again_the_old_file_stays, begin, end),
		cmocka_unit_test_setup_teardown(a_destination_that_cannot_be_opened_is_said, begin, end),
		cmocka_unit_test_setup_teardown(a_pipe_without_a_reader_is_an_error_and_not_a_wait, begin, end),
		cmocka_unit_test_setup_teardown(a_slow_reader_costs_lines_that_are_counted_and_never_a_wait, begin, end),
		cmocka_unit_test_setup_teardown(lines_for_a_reader_that_is_gone_are_counted, begin, end),
		cmocka_unit_test_setup_teardown(whoever_flushes_is_told_once_that_lines_wait, begin, end),
	};

	signal(SIGPIPE, SIG_IGN);
	alarm(60);      /* a write that blocks fails */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
