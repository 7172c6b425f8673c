/*
 * The body of a request on its way in: from the client, within its limits, to
 * whoever has the request.
 */
#include "serve/request_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "serve/client.h"
#include "serve/dispatch.h"

#include <inttypes.h>

size_t request_stdin_room(const struct request *request)
{
	if (request->state == REQUEST_PARAMS || request->body.is_complete || request->is_body_unwanted)
		return SCRATCH_BYTES;
	return body_room(&request->body);
}

static void on_body_complete(struct request *request)
{
	request->body.is_complete = true;
	request->body_end_ns = request->progress_ns = clock_monotonic_ns();
	if (request->state == REQUEST_SPOOLING)
		dispatch_spooled(request);
	else if (request_is_with_handler(request) && !request->is_body_unwanted)
		request->backend->on_body(request);
	if (request_is_with_handler(request))
		request_on_output(request);     /* what was held back may go */
	if (request_is_with_handler(request))
		request->backend->on_room(request);
	request_set_timer(request);
}

static void say_cut(struct request *request)
{
	if (!request->is_body_cut)
		log_message(LOG_LEVEL_WARNING, "body_cut", "id %s: more body than CONTENT_LENGTH of %" PRIu64 ", cut there",
			request->id, request->cgi.content_length);
	request->is_body_cut = true;
}

/* -1: the request has been answered. */
static int check_body_limits(struct request *request, size_t len)
{
	const struct handler_config *handler = request->handler;

	if (!request->cgi.has_length && handler->body.chunked == CHUNKED_REJECT) {
		request_fail(request, 411, NULL, "a body without CONTENT_LENGTH, and body.chunked is reject");
		return -1;
	}
	if (request->body.received_bytes + len > handler->body.max_bytes) {
		request_fail(request, 413, NULL, "body over body.max (%" PRIu64 " bytes)", handler->body.max_bytes);
		return -1;
	}
	return 0;
}

void request_stdin(struct request *request, struct slice data)
{
	struct err err;

	if (request->state == REQUEST_PARAMS || request->answer.state == ANSWER_SENT || request->hops > 0)
		return;
	if (request->cgi.has_length && request->body.received_bytes + data.len > request->cgi.content_length) {
		say_cut(request);
		data.len = (size_t)(request->cgi.content_length - request->body.received_bytes);
	}
	if (data.len == 0 || check_body_limits(request, data.len) < 0)
		return;
	request->progress_ns = clock_monotonic_ns();
	if (request->is_body_unwanted) {
		request->body.received_bytes += data.len;
	} else if (body_put(&request->body, data.ptr, data.len, &err) < 0) {
		request_fail(request, 503, "Retry-After: 5\r\n", "%s", err.text);
		return;
	}
	if (request->cgi.has_length && request->body.received_bytes == request->cgi.content_length)
		on_body_complete(request);
	else if (request_is_with_handler(request) && !request->is_body_unwanted)
		request->backend->on_body(request);
}

void request_stdin_end(struct request *request)
{
	if (request->state == REQUEST_PARAMS || request->body.is_complete || request->answer.state == ANSWER_SENT)
		return;
	if (request->cgi.has_length && request->body.received_bytes < request->cgi.content_length) {
		request_fail(request, 400, NULL, "the body ended after %" PRIu64 " of %" PRIu64 " bytes",
			request->body.received_bytes, request->cgi.content_length);
		return;
	}
	on_body_complete(request);
}

void request_on_body_taken(struct request *request)
{
	request->progress_ns = clock_monotonic_ns();
	if (request->client != NULL && !request->body.is_complete)
		client_resume(request->client);
}

void request_on_body_refused(struct request *request)
{
	request->is_body_unwanted = true;
	body_discard(&request->body);
	if (request->client != NULL)
		client_resume(request->client);
}
