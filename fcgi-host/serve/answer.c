#include "serve/answer.h"

#include "base/clock.h"
#include "base/log.h"
#include "serve/client.h"
#include "serve/request.h"
#include "serve/server_timing.h"

#include <string.h>

enum {
	FIRST_BYTES = 64,
	DROPPED_SAID = 8,       /* lines of a header, for one request */
};

static void on_dropped(void *ctx, struct slice text, const char *why)
{
	struct request *request = ctx;
	struct log_line line;

	if (++request->answer.dropped_lines > DROPPED_SAID)
		return;
	log_begin(&line, LOG_LEVEL_WARNING, "header_dropped");
	log_str(&line, "id", request->id);
	log_str(&line, "handler", request->handler->name);
	log_str(&line, "msg", why);
	log_slice(&line, "line", text);
	log_end(&line);
}

void answer_init(struct request *request)
{
	struct answer *answer = &request->answer;

	*answer = (struct answer){ .state = request->handler->protocol == PROTOCOL_STDIO ? ANSWER_HOLDING : ANSWER_HEADER };
	cgi_header_init(&answer->header, request->handler->header.max_bytes, on_dropped, request);
	bytes_init(&answer->head, request->handler->header.max_bytes);
	spool_init(&answer->held);
	bytes_init(&answer->first, FIRST_BYTES);
}

void answer_fini(struct answer *answer)
{
	cgi_header_fini(&answer->header);
	bytes_fini(&answer->head);
	spool_fini(&answer->held);
	bytes_fini(&answer->first);
}

/* nginx stops sending a body once it has seen a header, and mod_fcgid reads
 * nothing before it has sent all of it. */
static bool is_held(const struct request *request)
{
	return !request->body.is_complete && !request->answer.is_ended;
}

size_t answer_room(const struct request *request)
{
	const struct answer *answer = &request->answer;
	uint64_t held_bytes = spool_waiting(&answer->held);

	if (answer->state == ANSWER_HOLDING)
		return SCRATCH_BYTES;
	if (answer->state == ANSWER_SENT || answer->state == ANSWER_WHOLE || answer->state == ANSWER_BAD ||
	    request->client == NULL || answer->has_no_body)
		return SCRATCH_BYTES;   /* read and thrown away */
	if (is_held(request))
		return held_bytes < ANSWER_HELD_BYTES ? ANSWER_HELD_BYTES - (size_t)held_bytes : 0;
	if (held_bytes > 0)
		return 0;
	return client_room(request->client);
}

static bool can_read_directly(const struct request *request)
{
	const struct answer *answer = &request->answer;

	return answer->state == ANSWER_BODY && !answer_is_waiting(answer) &&
		!is_held(request) && !answer->has_no_body && request->client != NULL;
}

uint8_t *answer_buffer(struct request *request, size_t *size_out)
{
	size_t room = answer_room(request);
	uint8_t *buffer = NULL;

	*size_out = room < SCRATCH_BYTES ? room : SCRATCH_BYTES;
	if (can_read_directly(request) && room > 0) {
		if (*size_out > SCRATCH_BYTES - FCGI_HEADER_BYTES)
			*size_out = SCRATCH_BYTES - FCGI_HEADER_BYTES;
		buffer = client_reserve(request->client, *size_out);
	}
	return buffer != NULL ? buffer : request->host->scratch;
}

static void cut(struct request *request, size_t surplus)
{
	struct answer *answer = &request->answer;

	if (!answer->was_cut) {
		log_message(LOG_LEVEL_WARNING, "answer_cut", "id %s, handler %s: more body than its Content-Length of %llu; cut there (%zu bytes so far)",
			request->id, request->handler->name,
			(unsigned long long)answer->header.content_length, surplus);
		request_reason(request, "more body than Content-Length, cut");
	}
	answer->was_cut = true;
}

/* How much of `len` bytes of body may pass. */
static size_t allowed(struct request *request, size_t len)
{
	struct answer *answer = &request->answer;
	uint64_t left;

	if (answer->has_no_body)
		return 0;
	if (!answer->header.has_length)
		return len;
	left = answer->header.content_length - answer->body_bytes;
	if (len > left)
		cut(request, len - (size_t)left);
	return len < left ? len : (size_t)left;
}

static void count_body(struct answer *answer, size_t len)
{
	answer->body_bytes += len;
	if (answer->header.has_length && answer->body_bytes == answer->header.content_length)
		answer->state = ANSWER_WHOLE;
}

static void hold(struct request *request, const void *data, size_t len)
{
	struct err err;

	if (spool_put(&request->answer.held, data, len, &err) < 0)
		request_fail(request, 503, "Retry-After: 5\r\n", "%s", err.text);
}

static void put_body(struct request *request, const void *data, size_t len)
{
	struct answer *answer = &request->answer;
	size_t pass = allowed(request, len);

	if (request->client != NULL && pass > 0) {
		if (is_held(request) || answer_is_waiting(answer))
			hold(request, data, pass);
		else
			client_stdout(request->client, data, pass);
	}
	count_body(answer, pass);
}

/* The handler's own fields come first: where there is no room, it is left out. */
static void add_timing(struct request *request)
{
	char value[SERVER_TIMING_BYTES];

	if (request->handler->server_timing)
		cgi_header_add(&request->answer.header, "Server-Timing", server_timing(request, value));
}

static void begin_body(struct request *request)
{
	struct answer *answer = &request->answer;

	add_timing(request);
	if (cgi_header_write(&answer->header, &answer->head) < 0) {
		answer->state = ANSWER_BAD;
		answer->header.reason = "header too large (header.max)";
		return;
	}
	if (answer->head.len > 4096 && request->match.route != NULL &&
	    site_notice(request->site, request->match.route, NOTICE_BIG_HEADER))
		log_message(LOG_LEVEL_WARNING, "big_header", "handler %s: a header of %zu bytes: nginx needs fastcgi_buffer_size above its 4 KiB for that",
			request->handler->name, answer->head.len);
	answer->has_no_body = cgi_header_forbids_body(&answer->header, request->cgi.method);
	answer->status = answer->header.status;
	answer->state = ANSWER_BODY;
	if (answer->has_no_body || (answer->header.has_length && answer->header.content_length == 0))
		answer->state = ANSWER_WHOLE;
	if (!is_held(request))
		answer_release(request);
	request_set_timer(request);
}

static void put_header(struct request *request, struct slice *input)
{
	struct answer *answer = &request->answer;

	if (bytes_room(&answer->first) > 0)
		bytes_append(&answer->first, input->ptr,
			input->len < bytes_room(&answer->first) ? input->len : bytes_room(&answer->first));
	switch (cgi_header_read(&answer->header, input)) {
	case CGI_HEADER_MORE:
		break;
	case CGI_HEADER_BAD:
		answer->state = ANSWER_BAD;
		break;
	case CGI_HEADER_DONE:
		if (cgi_header_is_local_redirect(&answer->header))
			answer->state = ANSWER_REDIRECT;
		else
			begin_body(request);
		break;
	}
}

/* A stdio function's output. */

static bool is_head(const struct request *request)
{
	return strcmp(request->cgi.method, "HEAD") == 0;
}

void answer_begin_held(struct request *request)
{
	struct answer *answer = &request->answer;

	if (cgi_header_make(&answer->header, request->handler->content_type) == CGI_HEADER_BAD) {
		answer->state = ANSWER_BAD;
		return;
	}
	answer->header.has_length = answer->is_ended;
	answer->header.content_length = answer->output_bytes;
	if (!is_head(request))
		answer->body_bytes = answer->output_bytes;
	begin_body(request);
	if (answer->state == ANSWER_BODY && answer->is_ended)
		answer->state = ANSWER_WHOLE;
}

/* Of an answer to HEAD only the length counts, however long. */
static void put_output(struct request *request, struct slice output)
{
	struct answer *answer = &request->answer;

	answer->output_bytes += output.len;
	if (request->client == NULL || is_head(request))
		return;
	hold(request, output.ptr, output.len);
	if (answer->state == ANSWER_HOLDING && answer->output_bytes > request->handler->hold_bytes)
		answer_begin_held(request);
}

void answer_put(struct request *request, const void *data, size_t len)
{
	struct answer *answer = &request->answer;
	struct slice input = { data, len };

	if (len == 0)
		return;
	if (request->first_byte_ns == 0)
		request->first_byte_ns = clock_monotonic_ns();
	request->progress_ns = clock_monotonic_ns();
	if (answer->state == ANSWER_HOLDING) {
		put_output(request, input);
		request_on_output(request);
		return;
	}
	if (answer->state == ANSWER_HEADER)
		put_header(request, &input);
	if (answer->state == ANSWER_REDIRECT && input.len > 0)
		begin_body(request);    /* it has a body: an ordinary 302 */
	if (answer->state == ANSWER_BODY && input.len > 0)
		put_body(request, input.ptr, input.len);
	else if (answer->state == ANSWER_WHOLE && input.len > 0 && !answer->has_no_body)
		cut(request, input.len);
	request_on_output(request);
}

void answer_commit(struct request *request, const uint8_t *buffer, size_t len)
{
	size_t pass;

	if (buffer == request->host->scratch) {
		answer_put(request, buffer, len);
		return;
	}
	request->progress_ns = clock_monotonic_ns();
	pass = allowed(request, len);
	client_commit(request->client, pass);
	count_body(&request->answer, pass);
	request_on_output(request);
}

void answer_is_no_redirect(struct request *request)
{
	begin_body(request);
}

bool answer_is_waiting(const struct answer *answer)
{
	return answer->head.len > 0 || spool_waiting(&answer->held) > 0;
}

void answer_drop_held(struct answer *answer)
{
	bytes_fini(&answer->head);
	spool_fini(&answer->held);
}

void answer_release(struct request *request)
{
	struct answer *answer = &request->answer;
	struct slice piece;
	struct err err;

	if (request->client == NULL || !answer_is_waiting(answer))
		return;
	client_stdout(request->client, bytes_data(&answer->head), answer->head.len);
	bytes_fini(&answer->head);
	answer->is_out = true;
	while (spool_waiting(&answer->held) > 0 && client_room(request->client) > 0) {
		if (spool_peek(&answer->held, &piece, &err) < 0) {
			request_fail(request, 502, NULL, "%s", err.text);
			return;
		}
		if (piece.len > client_room(request->client))
			piece.len = client_room(request->client);
		client_stdout(request->client, piece.ptr, piece.len);
		spool_consume(&answer->held, piece.len);
	}
	if (spool_waiting(&answer->held) == 0)
		spool_fini(&answer->held);
}
