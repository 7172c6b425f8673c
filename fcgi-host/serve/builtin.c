#include "serve/builtin.h"

#include "config/address.h"
#include "serve/request.h"
#include "serve/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
	ANSWER_MAX_BYTES = 64 * 1024 * 1024,
	ANSWERS_MAX = 16,               /* at the same time: they wait in memory for who asked */
};

const struct handler_config builtin_handler = {
	.name = (char *)"builtin:status",
	.timeout = { .idle_ms = 60000, .total_ms = 300000, .kill_ms = 1000 },
	.body = { .max_bytes = 64 * 1024, .chunked = CHUNKED_STREAM },
	.header = { .max_bytes = 4096 },
	.on_abort = ABORT_KILL,
};

/* An answer on its way. */
struct builtin_answer {
	struct bytes left;              /* header and body, as a CGI program would write them */
	bool is_passing;                /* passing on may ask for more of it */
	bool is_over;
	struct defer over;
};

/* Who may ask. */

static bool is_allowed(const struct request *request)
{
	const struct route_config *route = request->match.route;
	const char *text = vars_get(request->front, "REMOTE_ADDR");
	struct sockaddr_storage peer;

	if (text == NULL || peer_parse(text, &peer) < 0)
		return false;
	return prefixes_contain(route->allow.count > 0 ? &route->allow : &private_prefixes, (struct sockaddr *)&peer);
}

/* What is asked for. */

enum form { FORM_PAGE, FORM_JSON, FORM_OPENMETRICS, FORM_UNKNOWN };

static enum form form_of(const struct request *request)
{
	struct slice query = slice_of(request->query);

	while (query.len > 0) {
		const char *end = memchr(query.ptr, '&', query.len);
		struct slice word = { query.ptr, end == NULL ? query.len : (size_t)(end - query.ptr) };

		if (slice_is(word, "format=json"))
			return FORM_JSON;
		if (slice_is(word, "format=openmetrics"))
			return FORM_OPENMETRICS;
		if (word.len >= 7 && memcmp(word.ptr, "format=", 7) == 0)
			return slice_is(word, "format=html") ? FORM_PAGE : FORM_UNKNOWN;
		query.ptr += word.len + (end != NULL);
		query.len -= word.len + (end != NULL);
	}
	return FORM_PAGE;
}

/* The answer. */

static int make_nonce(char nonce[STATUS_NONCE_BYTES])
{
	unsigned char random[(STATUS_NONCE_BYTES - 1) / 2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -1;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(nonce + 2 * i, 3, "%02x", random[i]);
	return 0;
}

static int put_head(struct bytes *out, const char *type, const char *more, size_t length)
{
	return bytes_printf(out, "Content-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
		"X-Content-Type-Options: nosniff\r\n%s\r\n", type, length, more);
}

static int put_page(struct bytes *head, struct bytes *body)
{
	char nonce[STATUS_NONCE_BYTES], policy[320];

	if (make_nonce(nonce) < 0 || status_page(nonce, body) < 0)
		return -1;
	snprintf(policy, sizeof(policy), "Content-Security-Policy: default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; "
		"connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
		"Referrer-Policy: no-referrer\r\n", nonce, nonce);
	return put_head(head, "text/html; charset=utf-8", policy, body->len);
}

static int put_form(struct host *host, enum form form, struct bytes *head, struct bytes *body)
{
	if (form == FORM_PAGE)
		return put_page(head, body);
	if (form == FORM_JSON)
		return status_json(host, body) < 0 ? -1 : put_head(head, "application/json", "", body->len);
	if (status_openmetrics(host, body) < 0)
		return -1;
	return put_head(head, "application/openmetrics-text; version=1.0.0; charset=utf-8", "", body->len);
}

static struct builtin_answer *make_answer(struct request *request, enum form form)
{
	struct builtin_answer *answer = calloc(1, sizeof(*answer));
	struct bytes body;

	if (answer == NULL)
		return NULL;
	bytes_init(&body, ANSWER_MAX_BYTES);
	bytes_init(&answer->left, ANSWER_MAX_BYTES + 4096);
	if (put_form(request->host, form, &answer->left, &body) < 0 || bytes_append(&answer->left, bytes_data(&body), body.len) < 0) {
		bytes_fini(&answer->left);
		free(answer);
		answer = NULL;
	}
	bytes_fini(&body);
	return answer;
}

/* Passing it on. */

static void on_over(void *ctx)
{
	request_on_over(ctx);
}

static void end_answer(struct request *request)
{
	struct builtin_answer *answer = request->backend_data;

	bytes_fini(&answer->left);
	defer_call(request->host->loop, &answer->over, on_over, request);
}

static void pass_on(struct request *request)
{
	struct builtin_answer *answer = request->backend_data;
	size_t room;

	if (answer->is_passing || answer->is_over)
		return;
	answer->is_passing = true;
	while (answer->left.len > 0 && (room = answer_room(request)) > 0) {
		size_t len = room < answer->left.len ? room : answer->left.len;

		answer_put(request, bytes_data(&answer->left), len);
		bytes_consume(&answer->left, len);
	}
	answer->is_passing = false;
	if (answer->left.len > 0)
		return;
	answer->is_over = true;
	request_on_output_end(request, false);
	end_answer(request);
}

static void take_no_body(struct request *request)
{
	request_on_body_refused(request);
}

static void kill_answer(struct request *request, int signal)
{
	(void)signal;
	end_answer(request);
}

static void free_answer(struct request *request)
{
	struct builtin_answer *answer = request->backend_data;

	defer_cancel(&answer->over);
	bytes_fini(&answer->left);
	free(answer);
	request->host->builtin_answers--;
}

/* No start(): there is no place in line to be given. */
static const struct backend backend_builtin = {
	.on_body = take_no_body,
	.on_room = pass_on,
	.end = end_answer,
	.kill = kill_answer,
	.free = free_answer,
};

void builtin_start(struct request *request)
{
	enum form form = form_of(request);
	struct builtin_answer *answer;

	if (!is_allowed(request)) {
		const char *peer = vars_get(request->front, "REMOTE_ADDR");

		request_fail(request, 403, NULL, "'%s' is none of the addresses that may ask (allow)", peer == NULL ? "" : peer);
		return;
	}
	if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) {
		request_fail(request, 405, "Allow: GET, HEAD\r\n", "%s is not allowed for %s", request->method, request->path);
		return;
	}
	if (form == FORM_UNKNOWN) {
		request_fail(request, 400, NULL, "no such format: html, json and openmetrics are there");
		return;
	}
	answer = request->host->builtin_answers < ANSWERS_MAX ? make_answer(request, form) : NULL;
	if (answer == NULL) {
		request_fail(request, 503, "Retry-After: 1\r\n", "no memory for the answer, or too many are on their way");
		return;
	}
	request->host->builtin_answers++;
	request->backend = &backend_builtin;
	request->backend_data = answer;
	request->state = REQUEST_RUNNING;
	request_set_timer(request);
	pass_on(request);
}
