/* Answers as a client of compare reads them, in one piece and split everywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compare/reply.h"

#include <string.h>

struct seen { enum reply_state state; unsigned status; bool must_close, is_wrong; size_t left; char body[256]; };

/* Taken in two pieces, divided at `at`; with the end of the stream if `is_ended`. */
static struct seen read_split(const char *text, size_t len, size_t at, bool is_http, bool is_head, bool is_ended, const char *expected)
{
	struct seen seen = { .left = 0 };
	struct bytes body, wanted;
	struct reply reply;
	struct slice first = { text, at }, second = { text + at, len - at };

	bytes_init(&body, 4096);
	bytes_init(&wanted, 4096);
	reply_init(&reply, is_http, is_head);
	reply.kept = &body;
	if (expected != NULL && bytes_append_text(&wanted, expected) == 0)
		reply.expected = &wanted;
	if (at > 0)
		reply_take(&reply, &first);
	seen.left = first.len;
	if (seen.left == 0 && second.len > 0) {
		reply_take(&reply, &second);
		seen.left = second.len;
	} else {
		seen.left += second.len;
	}
	if (is_ended)
		reply_end(&reply);
	seen.state = reply.state;
	seen.status = reply.status;
	seen.must_close = reply.must_close;
	seen.is_wrong = reply.is_wrong;
	memcpy(seen.body, body.len > 0 ? bytes_data(&body) : (const uint8_t *)"", body.len);
	reply_fini(&reply);
	bytes_fini(&body);
	bytes_fini(&wanted);
	return seen;
}

static void check_http(const char *text, enum reply_state state, unsigned status, const char *body, bool must_close, bool is_ended)
{
	size_t len = strlen(text);

	for (size_t at = 0; at <= len; at++) {
		struct seen seen = read_split(text, len, at, true, false, is_ended, NULL);

		assert_int_equal(seen.state, state);
		if (state != REPLY_DONE)
			continue;
		assert_int_equal(seen.status, status);
		assert_string_equal(seen.body, body);
		assert_int_equal(seen.must_close, must_close);
		assert_int_equal(seen.left, 0);
	}
}

static void http_ends_where_its_header_says(void **state)
{
	(void)state;
	check_http("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", REPLY_DONE, 200, "hello", false, false);
	check_http("HTTP/1.1 200 OK\r\ncontent-length:0\r\nConnection: close\r\n\r\n", REPLY_DONE, 200, "", true, false);
	check_http("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", REPLY_DONE, 200, "ok", true, false);
	check_http("HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: Keep-Alive\r\n\r\nok", REPLY_DONE, 200, "ok", false, false);
	check_http("HTTP/1.1 204 No Content\r\n\r\n", REPLY_DONE, 204, "", false, false);
	check_http("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r\n", REPLY_DONE, 200, "hello", false, false);
	check_http("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", REPLY_DONE, 200, "ok", false, false);
	check_http("HTTP/1.1 200 OK\r\n\r\nuntil the end", REPLY_DONE, 200, "until the end", true, true);
}

static void http_that_is_cut_or_broken_is_no_answer(void **state)
{
	static const char *const cut[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "HTTP/1.1 200 OK\r\nContent-Le",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
	};
	static const char *const broken[] = {
		"HTTP/2 200 OK\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++)
		check_http(cut[i], REPLY_BAD, 0, "", false, true);
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
		check_http(broken[i], REPLY_BAD, 0, "", false, false);
}

static void what_follows_an_answer_is_left(void **state)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1";
	struct seen seen = read_split(text, sizeof(text) - 1, 0, true, false, false, NULL);

	(void)state;
	assert_int_equal(seen.state, REPLY_DONE);
	assert_int_equal(seen.left, 8);
}

static void an_answer_to_head_has_no_body(void **state)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n";
	struct seen seen = read_split(text, sizeof(text) - 1, 10, true, true, false, NULL);

	(void)state;
	assert_int_equal(seen.state, REPLY_DONE);
	assert_string_equal(seen.body, "");
}

static void cgi_has_its_status_and_ends_with_the_stream(void **state)
{
	static const char text[] = "Content-Type: text/plain\nStatus: 404 Not Found\n\nnothing\n", plain[] = "X: y\r\n\r\nhello";

	(void)state;
	for (size_t at = 0; at < sizeof(text); at++) {
		struct seen seen = read_split(text, sizeof(text) - 1, at, false, false, true, NULL);

		assert_int_equal(seen.state, REPLY_DONE);
		assert_int_equal(seen.status, 404);
		assert_string_equal(seen.body, "nothing\n");
	}
	assert_int_equal(read_split(plain, sizeof(plain) - 1, 5, false, false, true, NULL).status, 200);
	assert_int_equal(read_split("", 0, 0, false, false, true, NULL).state, REPLY_BAD);
	assert_int_equal(read_split("X: y\r\n", 6, 0, false, false, true, NULL).state, REPLY_BAD);
	assert_int_equal(read_split("Content-Length: 3\n\nab", 21, 0, false, false, true, NULL).state, REPLY_BAD);
}

static void another_body_than_the_expected_one_is_wrong(void **state)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
	static const struct { const char *expected; bool is_wrong; } cases[] = {
		{ "hello", false }, { "hellO", true }, { "hell", true }, { "hello!", true }, { "", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t at = 0; at < sizeof(text); at++)
			assert_int_equal(read_split(text, sizeof(text) - 1, at, true, false, false, cases[i].expected).is_wrong, cases[i].is_wrong);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(http_ends_where_its_header_says),
		cmocka_unit_test(http_that_is_cut_or_broken_is_no_answer),
		cmocka_unit_test(what_follows_an_answer_is_left),
		cmocka_unit_test(an_answer_to_head_has_no_body),
		cmocka_unit_test(cgi_has_its_status_and_ends_with_the_stream),
		cmocka_unit_test(another_body_than_the_expected_one_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
