/*
 * What becomes of the answer: when it may go out, when it is whole, and what to
 * say of one that is not.  How it is read and held is in answer.c.
 */
#include "serve/request_private.h"

#include "serve/client.h"
#include "serve/dispatch.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>

static uint32_t app_status(const struct request *request)
{
	if (!request->has_exit)
		return 0;
	if (WIFSIGNALED(request->wait_status))
		return 128u + (uint32_t)WTERMSIG(request->wait_status);
	return (uint32_t)WEXITSTATUS(request->wait_status);
}

static void complete(struct request *request)
{
	request->status = request->answer.status;
	client_end_request(request->client, app_status(request));
	request_leave_client(request, REQUEST_END_WHOLE);
	request_set_timer(request);
	if (request_is_with_handler(request))
		request->backend->on_room(request);     /* the rest is thrown away */
}

/* "exit status 3", "signal 11", or that neither is known. */
static const char *describe_exit(const struct request *request, char *out, size_t out_size)
{
	if (!request->has_exit)
		snprintf(out, out_size, "it closed its output");
	else if (WIFSIGNALED(request->wait_status))
		snprintf(out, out_size, "signal %d", WTERMSIG(request->wait_status));
	else
		snprintf(out, out_size, "exit status %d", WEXITSTATUS(request->wait_status));
	return out;
}

static void fail_bad_header(struct request *request, const char *what)
{
	const struct bytes *first = &request->answer.first;
	char exit_text[64];

	if (first->len == 0)
		request_fail(request, 502, NULL, "no answer: %s", describe_exit(request, exit_text, sizeof(exit_text)));
	else
		request_fail(request, 502, NULL, "%s (%s); it began with: %.*s", what,
			describe_exit(request, exit_text, sizeof(exit_text)), (int)first->len, (const char *)bytes_data(first));
}

void request_fail_header(struct request *request)
{
	fail_bad_header(request, request->answer.header.reason);
}

static void fail_short(struct request *request, bool is_lost)
{
	const struct answer *answer = &request->answer;
	char exit_text[64];

	describe_exit(request, exit_text, sizeof(exit_text));
	if (answer->header.has_length)
		request_fail(request, 502, NULL, "the answer ended after %" PRIu64 " of %" PRIu64 " bytes: %s",
			answer->body_bytes, answer->header.content_length, exit_text);
	else
		request_fail(request, 502, NULL, "%s in the body, after %" PRIu64 " bytes", is_lost ? exit_text : "ended", answer->body_bytes);
}

static void fail_function(struct request *request)
{
	char exit_text[64];

	request_fail(request, 502, NULL, "the function failed: %s", describe_exit(request, exit_text, sizeof(exit_text)));
}

static void on_ended(struct request *request)
{
	struct answer *answer = &request->answer;

	if (answer->state == ANSWER_REDIRECT && !request->is_lost) {
		if (dispatch_can_redirect(request)) {
			request->is_redirecting = true;
			return;
		}
		answer_is_no_redirect(request);
	}
	if (answer->state == ANSWER_HOLDING)
		fail_function(request);
	else if (answer->state == ANSWER_HEADER)
		fail_bad_header(request, answer->header.read_bytes > 0 ? "the header has no end" : "no header");
	else if (answer->state == ANSWER_BAD)
		fail_bad_header(request, answer->header.reason);
	else if (answer->state == ANSWER_BODY && (request->is_lost || answer->header.has_length))
		fail_short(request, request->is_lost);
	else if (answer->state == ANSWER_BODY || answer->state == ANSWER_WHOLE)
		complete(request);
	else
		fail_short(request, request->is_lost);
}

/* With the first byte of an answer the body must come in whether the handler
 * reads or not. */
static void let_body_come(struct request *request)
{
	if (request->body.is_complete || request->first_byte_ns == 0)
		return;
	body_allow_spool(&request->body);
	client_resume(request->client);
}

/* Whatever changed: is there something to pass on, is it over? */
void request_on_output(struct request *request)
{
	struct answer *answer = &request->answer;

	if (request->client == NULL || answer->state == ANSWER_SENT || request->is_redirecting)
		return;
	if (answer->state == ANSWER_BAD && !answer->is_ended) {
		request_set_timer(request);     /* most end now, and how is worth saying */
		return;
	}
	if (!answer->is_ended && (!request->body.is_complete || answer->state == ANSWER_HOLDING)) {
		let_body_come(request);
		return;
	}
	if (answer->state == ANSWER_HOLDING && !request->is_lost)
		answer_begin_held(request);
	if (answer->state != ANSWER_HOLDING)
		answer_release(request);
	if (request->client == NULL || (answer->state != ANSWER_HOLDING && answer_is_waiting(answer)))
		return;         /* request_on_client_room() goes on */
	if (answer->state == ANSWER_WHOLE)
		complete(request);
	else if (answer->is_ended)
		on_ended(request);
}

void request_on_output_end(struct request *request, bool is_lost)
{
	request->answer.is_ended = true;
	request->is_lost = is_lost;
	request_on_output(request);
}
