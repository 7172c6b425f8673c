#include "wire/cgi_header.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static unsigned dropped_count;
static char dropped_line[256];

static void on_dropped(void *ctx, struct slice line, const char *why)
{
	(void)ctx;
	assert_non_null(why);
	dropped_count++;
	snprintf(dropped_line, sizeof(dropped_line), "%.*s", (int)line.len, line.ptr);
}

/* Reads `text` in pieces; returns what was not taken. */
static struct slice read_pieces(struct cgi_header *header, struct slice text, size_t piece, size_t max_bytes)
{
	cgi_header_init(header, max_bytes, on_dropped, NULL);
	dropped_count = 0;
	while (text.len > 0 && header->state == CGI_HEADER_MORE) {
		struct slice input = { text.ptr, text.len < piece ? text.len : piece };
		size_t before = input.len;

		cgi_header_read(header, &input);
		text.ptr += before - input.len;
		text.len -= before - input.len;
	}
	return text;
}

/* The header as sent on, and the body, whatever the pieces. */
static void check_answer(struct slice text, const char *wanted, struct slice body, unsigned dropped)
{
	for (size_t piece = 1; piece <= text.len; piece++) {
		struct cgi_header header;
		struct slice rest = read_pieces(&header, text, piece, 8192);
		struct bytes out;

		if (header.state == CGI_HEADER_BAD)
			fail_msg("%s", header.reason);
		assert_int_equal(header.state, CGI_HEADER_DONE);
		bytes_init(&out, 8192);
		assert_int_equal(cgi_header_write(&header, &out), 0);
		bytes_append(&out, "", 1);
		assert_string_equal((char *)bytes_data(&out), wanted);
		assert_int_equal(rest.len, body.len);
		assert_memory_equal(rest.ptr, body.ptr, body.len);
		assert_int_equal(dropped_count, dropped);
		bytes_fini(&out);
		cgi_header_fini(&header);
	}
}

static void check(const char *text, const char *wanted, const char *body, unsigned dropped)
{
	check_answer(slice_of(text), wanted, slice_of(body), dropped);
}

static void check_bad(const char *text, const char *part_of_reason)
{
	size_t len = strlen(text);

	for (size_t piece = 1; piece <= len; piece++) {
		struct cgi_header header;

		read_pieces(&header, slice_of(text), piece, 200);
		assert_int_equal(header.state, CGI_HEADER_BAD);
		assert_non_null(strstr(header.reason, part_of_reason));
		cgi_header_fini(&header);
	}
}

static void line_ends_of_any_kind(void **state)
{
	(void)state;
	check("Content-Type: text/plain\r\nX-A: 1\nX-B: 2\r\n\n\r\n\nraw",
		"Status: 200 OK\r\nContent-Type: text/plain\r\nX-A: 1\r\nX-B: 2\r\n\r\n", "\r\n\nraw", 0);
}

static void status_in_any_dress(void **state)
{
	(void)state;
	check("content-type:text/plain\nstatus:\t 418\n\nteapot\n",
		"Status: 418 I'm a teapot\r\ncontent-type: text/plain\r\n\r\n", "teapot\n", 0);
	check("STATUS: 404\n\n", "Status: 404 Not Found\r\n\r\n", "", 0);
	check("Status : 599\tMy own\treason \n\n", "Status: 599 My own\treason\r\n\r\n", "", 0);
	check("Status: 599\n\n", "Status: 599 Unknown\r\n\r\n", "", 0);
}

static void malformed_status_is_bad(void **state)
{
	static const char *const values[] = {
		"", "0", "20", "100", "199", "600", "200x", "2000", "200OK", "-200", "2 00", "OK", "0200", "200\001", "+20", "404\r\r",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		char text[64];

		snprintf(text, sizeof(text), "Status: %s\n\n", values[i]);
		check_bad(text, "malformed Status");
	}
	check_bad("Status: 200\nStatus: 200\n\n", "two Status");
}

static void stray_lines_are_dropped(void **state)
{
	(void)state;
	check("<!--: marker\nContent-Type: text/html\n\n<p>trace</p>\n",
		"Status: 200 OK\r\nContent-Type: text/html\r\n\r\n", "<p>trace</p>\n", 1);
	assert_string_equal(dropped_line, "<!--: marker");
	check("X-A: 1\n two\n\tthree\n: none\nno colon\nX B: 1\nX-C: a\rb\nX-D: \033[0m\nX-E: 2\n\n",
		"Status: 200 OK\r\nX-A: 1\r\nX-E: 2\r\n\r\n", "", 7);
	check("X-\xc3\xa4: 1\nX-A: \xc3\xa4\n\n", "Status: 200 OK\r\nX-A: \xc3\xa4\r\n\r\n", "", 1);
	check("Connection: close\nkeep-alive: 5\nTransfer-Encoding: chunked\nTE: x\nTrailer: x\nUpgrade: x\n"
		"Proxy-Connection: x\nX-A:\n\n", "Status: 200 OK\r\nX-A: \r\n\r\n", "", 7);
}

static void repeated_fields_stay_in_order(void **state)
{
	(void)state;
	check("Set-Cookie: a=1; expires=Thu, 01-Jan-1970 00:00:10 GMT\nSet-Cookie: b=2\n\n",
		"Status: 200 OK\r\nSet-Cookie: a=1; expires=Thu, 01-Jan-1970 00:00:10 GMT\r\nSet-Cookie: b=2\r\n\r\n", "", 0);
}

static void content_length_is_one_number(void **state)
{
	static const char *const values[] = { "", "x", "-1", "+1", "1, 1", "1 1", "18446744073709551616", "1\001" };

	(void)state;
	check("Content-Length: 5\nX-A: 1\ncontent-length:5\n\nhello",
		"Status: 200 OK\r\nX-A: 1\r\nContent-Length: 5\r\n\r\n", "hello", 0);
	check("Status: 204\nContent-Length: 0\n\n", "Status: 204 No Content\r\n\r\n", "", 0);
	check("Status: 304\nContent-Length: 7\n\n", "Status: 304 Not Modified\r\nContent-Length: 7\r\n\r\n", "", 0);
	check_bad("Content-Length: 5\nContent-Length: 6\n\n", "two different");
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		char text[64];

		snprintf(text, sizeof(text), "Content-Length: %s\n\n", values[i]);
		check_bad(text, "no number");
	}
}

static void no_cgi_header_is_bad(void **state)
{
	struct cgi_header header;

	(void)state;
	check_bad("\nbody", "no header");
	check_bad("\r\nbody", "no header");
	check_bad("just text\n\nbody", "no header");
	check_bad("HTTP/1.1 404 Not Found\nX-A: 1\n\n", "HTTP status line");
	read_pieces(&header, (struct slice){ "X-A: \0\n\n", 8 }, 100, 200);
	assert_int_equal(header.state, CGI_HEADER_BAD);
	assert_non_null(strstr(header.reason, "NUL"));
	cgi_header_fini(&header);
	read_pieces(&header, slice_of("X-A: 1\nX-B: 2"), 100, 200);
	assert_int_equal(header.state, CGI_HEADER_MORE);
	cgi_header_fini(&header);
}

static void size_counts_as_sent_on(void **state)
{
	/* "Status: 200 OK\r\n" 16, "X: 1\r\n" 6, "\r\n" 2 */
	struct cgi_header header;
	char text[400];

	(void)state;
	read_pieces(&header, slice_of("X:1\n\n"), 100, 24);
	assert_int_equal(header.state, CGI_HEADER_DONE);
	cgi_header_fini(&header);
	read_pieces(&header, slice_of("X:1\n\n"), 100, 23);
	assert_int_equal(header.state, CGI_HEADER_BAD);
	cgi_header_fini(&header);
	memset(text, 'x', sizeof(text));
	text[399] = '\0';
	check_bad(text, "too large");
	for (size_t i = 0; i < 398; i += 2)
		text[i] = '\n', text[i + 1] = 'x';
	text[0] = 'x';
	memcpy(text + 390, "\nX: 1\n\n", 8);
	read_pieces(&header, slice_of(text), 7, 180);
	assert_int_equal(header.state, CGI_HEADER_BAD);
	cgi_header_fini(&header);
	memset(text, ' ', sizeof(text));
	memcpy(text + 392, "\n\n\n\n\n\n", 7);
	check_bad(text, "too large");
}

static bool is_local(const char *text)
{
	struct cgi_header header;
	bool result;

	read_pieces(&header, slice_of(text), 1000, 1000);
	result = cgi_header_is_local_redirect(&header);
	cgi_header_fini(&header);
	return result;
}

static void location_is_302_or_local(void **state)
{
	(void)state;
	check("Location: https://example.org/x\n\n", "Status: 302 Found\r\nLocation: https://example.org/x\r\n\r\n", "", 0);
	check("Status: 303 See Other\nLocation: /x\n\n", "Status: 303 See Other\r\nLocation: /x\r\n\r\n", "", 0);
	check("Location: \nX-A: 1\n\n", "Status: 200 OK\r\nX-A: 1\r\n\r\n", "", 1);
	check("Location: /a\nLocation: /b\n\n", "Status: 302 Found\r\nLocation: /a\r\n\r\n", "", 1);
	assert_true(is_local("Location: /x?y=z\n\n"));
	assert_true(is_local("location:/\n\nbody"));
	assert_true(is_local("Connection: close\nLocation: /x\n\n"));
	assert_false(is_local("Location: //host/x\n\n"));
	assert_false(is_local("Location: /\\host/x\n\n"));
	assert_false(is_local("Location: /x#y\n\n"));
	assert_false(is_local("Location: x\n\n"));
	assert_false(is_local("Location: http://host/x\n\n"));
	assert_false(is_local("Location: /x\nX-A: 1\n\n"));
	assert_false(is_local("Location: /x\nContent-Length: 0\n\n"));
	assert_false(is_local("Status: 302\nLocation: /x\n\n"));
	assert_false(is_local("Location: /x\n"));
}

static void answers_without_a_body(void **state)
{
	struct cgi_header header;

	(void)state;
	read_pieces(&header, slice_of("Status: 204\n\n"), 100, 100);
	assert_true(cgi_header_forbids_body(&header, "GET"));
	cgi_header_fini(&header);
	read_pieces(&header, slice_of("X: 1\n\n"), 100, 100);
	assert_false(cgi_header_forbids_body(&header, "GET"));
	assert_true(cgi_header_forbids_body(&header, "HEAD"));
	cgi_header_fini(&header);
}

static void body_bytes_are_not_touched(void **state)
{
	(void)state;
	check_answer((struct slice){ "X: 1\n\n\0\r\n\r\nStatus: 500\n\n", 24 }, "Status: 200 OK\r\nX: 1\r\n\r\n",
		(struct slice){ "\0\r\n\r\nStatus: 500\n\n", 18 }, 0);
}

static void full_output_stays_unchanged(void **state)
{
	struct cgi_header header;
	struct bytes out;

	(void)state;
	read_pieces(&header, slice_of("X: 1\n\n"), 100, 100);
	bytes_init(&out, 23);
	assert_int_equal(cgi_header_write(&header, &out), -1);
	assert_int_equal(out.len, 0);
	bytes_fini(&out);
	cgi_header_fini(&header);
}

static void is_written(const struct cgi_header *header, const char *wanted)
{
	struct bytes out;

	bytes_init(&out, 8192);
	assert_int_equal(cgi_header_write(header, &out), 0);
	bytes_append(&out, "", 1);
	assert_string_equal((char *)bytes_data(&out), wanted);
	bytes_fini(&out);
}

static void a_header_can_be_made_and_added_to(void **state)
{
	struct cgi_header header;

	(void)state;
	cgi_header_init(&header, 200, NULL, NULL);
	assert_int_equal(cgi_header_make(&header, "text/plain"), CGI_HEADER_DONE);
	is_written(&header, "Status: 200 OK\r\nContent-Type: text/plain\r\n\r\n");
	header.has_length = true;
	header.content_length = 7;
	assert_int_equal(cgi_header_add(&header, "X-A", "1"), 0);
	is_written(&header, "Status: 200 OK\r\nContent-Type: text/plain\r\nX-A: 1\r\nContent-Length: 7\r\n\r\n");
	cgi_header_fini(&header);
}

static void a_field_that_does_not_fit_is_not_added(void **state)
{
	struct cgi_header header;
	char value[200];

	(void)state;
	memset(value, 'x', sizeof(value));
	value[sizeof(value) - 1] = '\0';
	cgi_header_init(&header, 200, NULL, NULL);
	assert_int_equal(cgi_header_make(&header, "text/plain"), CGI_HEADER_DONE);
	assert_int_equal(cgi_header_add(&header, "X-A", value), -1);
	is_written(&header, "Status: 200 OK\r\nContent-Type: text/plain\r\n\r\n");
	cgi_header_fini(&header);
	cgi_header_init(&header, 200, NULL, NULL);
	assert_int_equal(cgi_header_make(&header, value), CGI_HEADER_BAD);
	cgi_header_fini(&header);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_can_be_made_and_added_to),
		cmocka_unit_test(a_field_that_does_not_fit_is_not_added),
		cmocka_unit_test(line_ends_of_any_kind),
		cmocka_unit_test(status_in_any_dress),
		cmocka_unit_test(malformed_status_is_bad),
		cmocka_unit_test(stray_lines_are_dropped),
		cmocka_unit_test(repeated_fields_stay_in_order),
		cmocka_unit_test(content_length_is_one_number),
		cmocka_unit_test(no_cgi_header_is_bad),
		cmocka_unit_test(size_counts_as_sent_on),
		cmocka_unit_test(location_is_302_or_local),
		cmocka_unit_test(answers_without_a_body),
		cmocka_unit_test(body_bytes_are_not_touched),
		cmocka_unit_test(full_output_stays_unchanged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
