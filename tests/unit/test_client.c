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

enum { ID = 3, MUCH_BYTES = 1024 * 1024 };

/* One connection; the web server's end is this test's.  There are no routes. */
static struct host *host;
static struct config config;
static struct site site;
static struct timer *look;
static int server;
static uint8_t got[MUCH_BYTES];
static size_t got_len;
static bool is_closed;

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
	host = calloc(1, sizeof(*host));
	host->loop = loop_new(&err);
	host->unrouted = figures_new();
	look = timer_new(host->loop, on_look, NULL);
	config = (struct config){ .params_max_bytes = 65536 };
	site = (struct site){ .refs = 1, .host = host, .config = &config, .routes = route_table_new(&config, &err) };
	host->site = &site;
	if (log_open(&options, &err) < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0 ||
	    client_open(host, fds[0], true, &err) < 0)
		return -1;
	server = fds[1];
	fcntl(server, F_SETFL, O_NONBLOCK);
	got_len = 0;
	is_closed = false;
	return 0;
}

static int end(void **state)
{
	(void)state;
	while (host->clients != NULL) {
		struct client *client = host->clients;

		client_free(&client);
	}
	close(server);
	defer_cancel(&host->stop_check);
	timer_free(&look);
	route_table_free(&site.routes);
	loop_free(&host->loop);
	figures_unref(&host->unrouted);
	free(host);
	log_close();
	return 0;
}

/* A whole request for a path that is none of our routes. */
static void ask(void)
{
	static const char params[] = "\x0e\x03REQUEST_METHODGET" "\x0b\x02SCRIPT_NAME/x";
	struct bytes out;
	uint8_t start[16];

	bytes_init(&out, 4096);
	fcgi_put_begin(start, ID, 1, 1);
	bytes_append(&out, start, sizeof(start));
	fcgi_put_stream(&out, 4, ID, params, sizeof(params) - 1);
	fcgi_put_stream(&out, 4, ID, NULL, 0);
	fcgi_put_stream(&out, 5, ID, NULL, 0);
	assert_int_equal(write(server, bytes_data(&out), out.len), out.len);
	bytes_fini(&out);
}

static void turn(void)
{
	ssize_t n;

	timer_set(look, 1);
	loop_run(host->loop);
	n = read(server, got + got_len, sizeof(got) - got_len - 1);
	is_closed |= n == 0;
	got_len += n > 0 ? (size_t)n : 0;
}

/* Runs until the web server has an answer, or the connection is closed. */
static bool is_answered(void)
{
	while (!is_closed && memmem(got, got_len, "Status: 404", 11) == NULL)
		turn();
	return memmem(got, got_len, "Status: 404", 11) != NULL;
}

static void a_kept_connection_carries_one_request_after_another(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		ask();
		assert_true(is_answered());
		got_len = 0;
	}
	assert_false(is_closed);
}

static void a_request_that_is_in_the_socket_when_the_host_stops_is_answered(void **state)
{
	(void)state;
	ask();
	assert_true(is_answered());
	got_len = 0;
	ask();
	host->state = HOST_DRAINING;
	client_stop(host->clients);
	assert_true(is_answered());
	while (!is_closed)
		turn();
}

static void a_connection_between_requests_is_closed_a_moment_after_the_host_stops(void **state)
{
	(void)state;
	ask();
	assert_true(is_answered());
	host->state = HOST_DRAINING;
	client_stop(host->clients);
	assert_true(client_is_awaited(host->clients));
	turn();
	assert_false(is_closed);
	while (!is_closed)
		turn();
}

static void a_new_connection_may_speak_for_a_moment(void **state)
{
	(void)state;
	host->state = HOST_DRAINING;
	client_stop(host->clients);
	assert_true(client_is_awaited(host->clients));
	turn();
	assert_false(is_closed);
	ask();
	assert_true(is_answered());
}

static void one_that_says_nothing_is_closed_after_that(void **state)
{
	(void)state;
	host->state = HOST_DRAINING;
	client_stop(host->clients);
	while (!is_closed)
		turn();
	assert_int_equal(got_len, 0);
}

static void who_leaves_after_shutting_down_its_writing_is_noticed(void **state)
{
	(void)state;
	ask();
	shutdown(server, SHUT_WR);
	assert_true(is_answered());
	close(server);
	server = -1;
	while (host->clients != NULL) {
		timer_set(look, 1);
		loop_run(host->loop);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_kept_connection_carries_one_request_after_another, begin, end),
		cmocka_unit_test_setup_teardown(a_request_that_is_in_the_socket_when_the_host_stops_is_answered, begin, end),
		cmocka_unit_test_setup_teardown(a_connection_between_requests_is_closed_a_moment_after_the_host_stops, begin, end),
		cmocka_unit_test_setup_teardown(a_new_connection_may_speak_for_a_moment, begin, end),
		cmocka_unit_test_setup_teardown(one_that_says_nothing_is_closed_after_that, begin, end),
		cmocka_unit_test_setup_teardown(who_leaves_after_shutting_down_its_writing_is_noticed, begin, end),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
