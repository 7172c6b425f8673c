#include "serve/answer.h"
#include "serve/client.h"
#include "serve/request.h"

#include "base/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { ID = 7, MUCH_BYTES = 1024 * 1024 };

/* A request whose backend is this test, on a client whose web server is too. */
static struct host *host;
static struct config config;
static struct site site;
static struct handler_config handler;
static struct request *request;
static struct timer *look;
static int server;              /* the web server's end */
static char *wire;              /* what it has got */
static size_t wire_len;
static char *out;               /* the STDOUT in it */
static size_t out_len;
static unsigned records;        /* of STDOUT that were not empty */
static bool has_end, is_broken;

static void on_hook(struct request *r)
{
	(void)r;
}

static void on_kill(struct request *r, int signal)
{
	(void)r;
	(void)signal;
}

static const struct backend fake = {
	.on_body = on_hook, .on_room = on_hook, .end = on_hook, .kill = on_kill, .free = on_hook,
};

static void on_look(void *ctx)
{
	(void)ctx;
	loop_stop(host->loop);
}

static int begin(void **state)
{
	const struct log_options options = { .file = "/dev/null" };
	struct err err;
	int fds[2];

	(void)state;
	wire = calloc(1, MUCH_BYTES);
	out = calloc(1, MUCH_BYTES);
	host = calloc(1, sizeof(*host));
	host->loop = loop_new(&err);
	look = timer_new(host->loop, on_look, NULL);
	config = (struct config){ .params_max_bytes = 65536 };
	site = (struct site){ .refs = 1, .host = host, .config = &config, .routes = route_table_new(&config, &err) };
	host->site = &site;
	handler = (struct handler_config){ .name = (char *)"tested", .header.max_bytes = 4096 };
	if (log_open(&options, &err) < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0 ||
	    client_open(host, fds[0], true, &err) < 0)
		return -1;
	server = fds[1];
	fcntl(server, F_SETFL, O_NONBLOCK);
	request = host->clients->request = request_new(host->clients, ID, true);
	request->handler = &handler;
	request->backend = &fake;
	request->state = REQUEST_RUNNING;
	request->cgi.method = request->method = "GET";
	request->body.is_complete = true;
	answer_init(request);
	wire_len = out_len = records = 0;
	has_end = is_broken = false;
	return 0;
}

static int end(void **state)
{
	(void)state;
	while (host->clients != NULL) {
		struct client *client = host->clients;

		client_free(&client);
	}
	request->cgi = (struct cgi_request){ .method = NULL };
	request_free(&request);
	close(server);
	timer_free(&look);
	route_table_free(&site.routes);
	loop_free(&host->loop);
	free(host);
	free(wire);
	free(out);
	log_close();
	return 0;
}

static void put(const char *text)
{
	answer_put(request, text, strlen(text));
}

/* Takes the records that are whole. */
static void decode(void)
{
	size_t at = 0;

	out_len = records = 0;
	while (!is_broken && at + 8 <= wire_len) {
		const unsigned char *head = (const unsigned char *)wire + at;
		size_t len = (size_t)head[4] << 8 | head[5], whole = 8 + len + head[6];

		is_broken = head[0] != 1;
		if (is_broken || at + whole > wire_len)
			break;
		assert_int_equal(head[2] << 8 | head[3], ID);
		assert_false(has_end && at + whole == wire_len && head[1] != 3);
		has_end = head[1] == 3;
		if (head[1] == 6) {
			memcpy(out + out_len, head + 8, len);
			out_len += len;
			records += len > 0;
		}
		at += whole;
	}
	out[out_len] = '\0';
}

/* All that the web server has got so far, as one text. */
static const char *sent(void)
{
	ssize_t n;

	do {
		timer_set(look, 1);
		loop_run(host->loop);
		n = read(server, wire + wire_len, MUCH_BYTES - wire_len);
		wire_len += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	decode();
	return out;
}

static void is_whole(const char *expected)
{
	assert_string_equal(sent(), expected);
	assert_true(has_end);
	assert_false(is_broken);
	assert_null(request->client);
}

static void is_502(const char *reason)
{
	assert_int_equal(strncmp(sent(), "Status: 502 Bad Gateway\r\n", 25), 0);
	assert_true(has_end);
	assert_int_equal(request->status, 502);
	if (strstr(request->reason, reason) == NULL)
		fail_msg("not \"%s\": %s", reason, request->reason);
}

static void the_header_goes_whole_in_one_record_however_it_comes(void **state)
{
	static const char text[] = "Content-Type: text/plain\nX-A: 1\n\nbody";

	(void)state;
	for (size_t i = 0; i < sizeof(text) - 1; i++)
		answer_put(request, text + i, 1);
	request_on_output_end(request, false);
	is_whole("Status: 200 OK\r\nContent-Type: text/plain\r\nX-A: 1\r\n\r\nbody");
	assert_int_equal(records, 1 + 4);
	assert_int_equal(request->answer.body_bytes, 4);
	assert_int_equal(request->status, 200);
}

static void nothing_is_sent_before_the_header_is_complete(void **state)
{
	(void)state;
	put("Content-Type: text/plain\n");
	assert_string_equal(sent(), "");
	assert_false(request->answer.is_out);
	put("\n");
	assert_string_equal(sent(), "Status: 200 OK\r\nContent-Type: text/plain\r\n\r\n");
	assert_false(has_end);
}

static void an_answer_is_over_when_it_is_as_long_as_declared(void **state)
{
	(void)state;
	put("Content-Type: text/plain\nContent-Length: 5\n\nhel");
	sent();
	assert_false(has_end);
	put("lo and more");
	is_whole("Status: 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello");
	assert_true(request->answer.was_cut);
	put("and more");                        /* thrown away */
	request_on_output_end(request, false);
	is_whole("Status: 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello");
}

static void a_shorter_one_is_broken(void **state)
{
	(void)state;
	put("Content-Type: text/plain\nContent-Length: 5\n\nhel");
	request_on_output_end(request, false);
	sent();
	assert_true(is_broken);
	assert_false(has_end);
	assert_non_null(strstr(request->reason, "after 3 of 5 bytes"));
}

static void one_that_ends_in_a_death_is_broken(void **state)
{
	(void)state;
	put("Content-Type: text/plain\n\nhel");
	request_on_output_end(request, true);
	sent();
	assert_true(is_broken);
}

static void no_header_is_502(void **state)
{
	(void)state;
	request_on_output_end(request, false);
	is_502("no answer");
}

static void half_a_header_is_502_and_says_how_it_began(void **state)
{
	(void)state;
	put("Content-Type: text/plain\n");
	request_on_output_end(request, false);
	is_502("it began with: Content-Type: text/plain");
}

static void a_bad_header_is_502_once_the_end_is_known(void **state)
{
	(void)state;
	put("Status: nonsense\n\nbody");
	assert_string_equal(sent(), "");
	assert_int_equal(answer_room(request), SCRATCH_BYTES);  /* the rest is read all the same */
	put("more");
	request_on_output_end(request, false);
	is_502("Status");
}

static void a_header_that_is_too_large_is_502(void **state)
{
	char line[3000];

	(void)state;
	memset(line, 'x', sizeof(line));
	memcpy(line, "X-A: ", 5);
	line[sizeof(line) - 2] = '\n';
	line[sizeof(line) - 1] = '\0';
	put(line);
	put(line);
	put("\n");
	request_on_output_end(request, false);
	is_502("header too large");
}

static void while_the_body_comes_in_the_answer_is_held_back(void **state)
{
	char much[1024];

	(void)state;
	memset(much, 'x', sizeof(much));
	request->body.is_complete = false;
	put("Content-Type: text/plain\n\n");
	assert_int_equal(body_room(&request->body), SIZE_MAX);  /* and the body may be spooled */
	assert_string_equal(sent(), "");
	assert_false(request->answer.is_out);
	while (answer_room(request) >= sizeof(much))
		answer_put(request, much, sizeof(much));
	assert_int_equal(answer_room(request), 0);
	assert_int_equal(spool_waiting(&request->answer.held), ANSWER_HELD_BYTES);
	assert_string_equal(sent(), "");
	request_stdin_end(request);
	sent();
	assert_int_equal(strncmp(out, "Status: 200 OK\r\n", 16), 0);
	assert_int_equal(out_len, strlen("Status: 200 OK\r\nContent-Type: text/plain\r\n\r\n") + ANSWER_HELD_BYTES);
	assert_int_equal(answer_room(request), CLIENT_WINDOW_BYTES);
}

static void what_is_held_goes_when_the_handler_has_ended(void **state)
{
	(void)state;
	request->body.is_complete = false;
	put("Content-Type: text/plain\n\nearly");
	assert_string_equal(sent(), "");
	request_on_output_end(request, false);
	is_whole("Status: 200 OK\r\nContent-Type: text/plain\r\n\r\nearly");
}

static void what_was_held_is_no_answer_when_the_request_fails(void **state)
{
	(void)state;
	request->body.is_complete = false;
	put("Content-Type: text/plain\n\nearly");
	request_fail(request, 504, NULL, "too late");
	sent();
	assert_int_equal(strncmp(out, "Status: 504 ", 12), 0);
	assert_null(strstr(out, "early"));
	assert_true(has_end);
}

static void an_answer_to_head_has_no_body(void **state)
{
	(void)state;
	request->cgi.method = request->method = "HEAD";
	put("Content-Type: text/plain\nContent-Length: 5\n\nhello");
	is_whole("Status: 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\n");
	assert_int_equal(request->answer.body_bytes, 0);
}

static void a_redirect_to_none_of_our_routes_is_an_ordinary_one(void **state)
{
	(void)state;
	put("Location: /elsewhere\n\n");
	assert_string_equal(sent(), "");        /* a body may follow */
	request_on_output_end(request, false);
	is_whole("Status: 302 Found\r\nLocation: /elsewhere\r\n\r\n");
}

static void a_redirect_with_a_body_is_an_ordinary_one(void **state)
{
	(void)state;
	put("Location: /elsewhere\n\n");
	put("see there");
	request_on_output_end(request, false);
	is_whole("Status: 302 Found\r\nLocation: /elsewhere\r\n\r\nsee there");
}

static void a_slow_web_server_stops_the_handler(void **state)
{
	uint8_t *buffer;
	size_t size, all = 0;

	(void)state;
	put("Content-Type: application/octet-stream\n\n");
	while (answer_room(request) > 0) {      /* nobody reads, the loop does not run */
		buffer = answer_buffer(request, &size);
		assert_true(size >= 1 && size <= answer_room(request));
		memset(buffer, 'x', size);
		answer_commit(request, buffer, size);
		all += size;
	}
	assert_in_range(all, CLIENT_WINDOW_BYTES - 256, CLIENT_WINDOW_BYTES);
	request_on_output_end(request, false);
	sent();
	assert_true(has_end);
	assert_int_equal(out_len, all + strlen("Status: 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n"));
	assert_int_equal(request->answer.body_bytes, all);
}

static void when_nobody_listens_any_more_all_is_read_and_thrown_away(void **state)
{
	(void)state;
	put("Content-Type: text/plain\n\n");
	close(server);
	server = -1;
	while (request->client != NULL) {
		timer_set(look, 1);
		loop_run(host->loop);
	}
	assert_int_equal(answer_room(request), SCRATCH_BYTES);
	put("more");
	request_on_output_end(request, false);
	assert_non_null(strstr(request->reason, "the web server closed the connection"));
}

/* A stdio function: no header, and an answer only once it has ended well. */

static void as_function(uint64_t hold_bytes)
{
	answer_fini(&request->answer);
	handler.protocol = PROTOCOL_STDIO;
	handler.content_type = (char *)"text/x-test";
	handler.hold_bytes = hold_bytes;
	answer_init(request);
}

static void end_function(int exit_status)
{
	request->has_exit = true;
	request->wait_status = exit_status << 8;
	request_on_output_end(request, exit_status != 0);
}

static void a_functions_output_is_sent_when_it_has_ended_well(void **state)
{
	(void)state;
	as_function(1000);
	put("Status: 500\n\n");
	put("hello");
	assert_string_equal(sent(), "");
	end_function(0);
	is_whole("Status: 200 OK\r\nContent-Type: text/x-test\r\nContent-Length: 18\r\n\r\nStatus: 500\n\nhello");
	assert_int_equal(request->answer.body_bytes, 18);
}

static void a_function_may_say_nothing(void **state)
{
	(void)state;
	as_function(1000);
	end_function(0);
	is_whole("Status: 200 OK\r\nContent-Type: text/x-test\r\nContent-Length: 0\r\n\r\n");
}

static void a_function_that_fails_is_502(void **state)
{
	(void)state;
	as_function(1000);
	put("half");
	end_function(3);
	is_502("the function failed: exit status 3");
	assert_null(strstr(out, "half"));
}

static void a_functions_answer_to_head_has_its_length(void **state)
{
	(void)state;
	as_function(3);
	request->cgi.method = request->method = "HEAD";
	put("hello");
	assert_string_equal(sent(), "");
	end_function(0);
	is_whole("Status: 200 OK\r\nContent-Type: text/x-test\r\nContent-Length: 5\r\n\r\n");
	assert_int_equal(request->answer.body_bytes, 0);
}

static void what_passes_hold_is_sent_as_it_comes(void **state)
{
	(void)state;
	as_function(5);
	put("hello");
	assert_string_equal(sent(), "");
	put("!");
	assert_string_equal(sent(), "Status: 200 OK\r\nContent-Type: text/x-test\r\n\r\nhello!");
	put("more");
	end_function(0);
	is_whole("Status: 200 OK\r\nContent-Type: text/x-test\r\n\r\nhello!more");
	assert_int_equal(request->answer.body_bytes, 10);
}

static void a_failure_past_hold_breaks_the_answer(void **state)
{
	(void)state;
	as_function(0);
	put("hello");
	end_function(1);
	sent();
	assert_true(is_broken);
	assert_false(has_end);
	assert_non_null(strstr(request->reason, "exit status 1 in the body, after 5 bytes"));
}

static void past_hold_it_still_waits_for_the_body_of_the_request(void **state)
{
	(void)state;
	as_function(3);
	request->body.is_complete = false;
	put("hello");
	assert_string_equal(sent(), "");
	assert_int_equal(answer_room(request), ANSWER_HELD_BYTES - 5);
	request_stdin_end(request);
	assert_string_equal(sent(), "Status: 200 OK\r\nContent-Type: text/x-test\r\n\r\nhello");
}

static void a_held_answer_goes_out_as_the_web_server_takes_it(void **state)
{
	char much[8192];

	(void)state;
	memset(much, 'x', sizeof(much));
	as_function(MUCH_BYTES);
	for (size_t i = 0; i < MUCH_BYTES / 2; i += sizeof(much))
		answer_put(request, much, sizeof(much));
	end_function(0);
	assert_non_null(request->client);               /* far from over */
	assert_true(request->client->out.len <= CLIENT_WINDOW_BYTES + 1024);
	request_on_over(request);                       /* the process makes room for another */
	assert_non_null(request->client);
	assert_int_equal(request->state, REQUEST_OVER);
	request->state = REQUEST_RUNNING;               /* or the request is freed, once all is taken */
	sent();
	assert_true(has_end);
	assert_int_equal(out_len, MUCH_BYTES / 2 + strlen("Status: 200 OK\r\nContent-Type: text/x-test\r\nContent-Length: 524288\r\n\r\n"));
	assert_false(answer_is_waiting(&request->answer));
}

static void the_times_are_one_more_field(void **state)
{
	unsigned whole, part;
	const char *at;

	(void)state;
	handler.server_timing = true;
	request->queued_ns = 1000000;
	request->granted_ns = 3500000;
	request->started_ns = 5000000;
	put("Server-Timing: db;dur=3\nContent-Type: text/plain\n\nbody");
	at = strstr(sent(), "Server-Timing: db;dur=3\r\n");
	assert_non_null(at);
	at = strstr(at + 1, "Server-Timing: queue;dur=2.500, start;dur=1.500, handler;dur=");
	assert_non_null(at);
	assert_int_equal(sscanf(strstr(at, "handler;"), "handler;dur=%u.%3u", &whole, &part), 2);
}

static void our_own_answers_have_the_times_too(void **state)
{
	(void)state;
	handler.server_timing = true;
	request->queued_ns = 1;
	request_fail(request, 503, "Retry-After: 1\r\n", "full");
	assert_non_null(strstr(sent(), "Retry-After: 1\r\nServer-Timing: queue;dur="));
	assert_null(strstr(out, "start"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_header_goes_whole_in_one_record_however_it_comes, begin, end),
		cmocka_unit_test_setup_teardown(nothing_is_sent_before_the_header_is_complete, begin, end),
		cmocka_unit_test_setup_teardown(an_answer_is_over_when_it_is_as_long_as_declared, begin, end),
		cmocka_unit_test_setup_teardown(a_shorter_one_is_broken, begin, end),
		cmocka_unit_test_setup_teardown(one_that_ends_in_a_death_is_broken, begin, end),
		cmocka_unit_test_setup_teardown(no_header_is_502, begin, end),
		cmocka_unit_test_setup_teardown(half_a_header_is_502_and_says_how_it_began, begin, end),
		cmocka_unit_test_setup_teardown(a_bad_header_is_502_once_the_end_is_known, begin, end),
		cmocka_unit_test_setup_teardown(a_header_that_is_too_large_is_502, begin, end),
		cmocka_unit_test_setup_teardown(while_the_body_comes_in_the_answer_is_held_back, begin, end),
		cmocka_unit_test_setup_teardown(what_is_held_goes_when_the_handler_has_ended, begin, end),
		cmocka_unit_test_setup_teardown(what_was_held_is_no_answer_when_the_request_fails, begin, end),
		cmocka_unit_test_setup_teardown(an_answer_to_head_has_no_body, begin, end),
		cmocka_unit_test_setup_teardown(a_redirect_to_none_of_our_routes_is_an_ordinary_one, begin, end),
		cmocka_unit_test_setup_teardown(a_redirect_with_a_body_is_an_ordinary_one, begin, end),
		cmocka_unit_test_setup_teardown(a_slow_web_server_stops_the_handler, begin, end),
		cmocka_unit_test_setup_teardown(a_functions_output_is_sent_when_it_has_ended_well, begin, end),
		cmocka_unit_test_setup_teardown(a_function_may_say_nothing, begin, end),
		cmocka_unit_test_setup_teardown(a_function_that_fails_is_502, begin, end),
		cmocka_unit_test_setup_teardown(a_functions_answer_to_head_has_its_length, begin, end),
		cmocka_unit_test_setup_teardown(what_passes_hold_is_sent_as_it_comes, begin, end),
		cmocka_unit_test_setup_teardown(a_failure_past_hold_breaks_the_answer, begin, end),
		cmocka_unit_test_setup_teardown(past_hold_it_still_waits_for_the_body_of_the_request, begin, end),
		cmocka_unit_test_setup_teardown(a_held_answer_goes_out_as_the_web_server_takes_it, begin, end),
		cmocka_unit_test_setup_teardown(the_times_are_one_more_field, begin, end),
		cmocka_unit_test_setup_teardown(our_own_answers_have_the_times_too, begin, end),
		cmocka_unit_test_setup_teardown(when_nobody_listens_any_more_all_is_read_and_thrown_away, begin, end),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
