/*
 * What goes to a FastCGI program: the variables, and the body as far as it may.
 */
#include "serve/fastcgi_request.h"

#include <errno.h>
#include <fastcgi.h>
#include <sys/socket.h>

enum {
	OUT_WINDOW_BYTES = 64 * 1024,
	ACCEPT_POLL_MS = 5,
};

void fastcgi_set_events(struct fcgi_request *f)
{
	int events = 0;

	if (f->link == NULL)
		return;
	if (f->link->is_connecting || f->out.len > 0)
		events |= WATCH_WRITE;
	if (!f->link->is_connecting && answer_room(f->request) > 0)
		events |= WATCH_READ;
	watch_set(f->link->watch, events);
}

int fastcgi_queue_start(struct fcgi_request *f)
{
	struct request *request = f->request;
	struct vars *vars = request_variables(request, f->worker != NULL);
	struct bytes block;
	uint8_t begin[16];
	int status = -1;

	if (vars == NULL)
		return -1;
	bytes_init(&block, vars_bytes(vars) + vars_count(vars) * 8);
	fcgi_put_begin(begin, FASTCGI_ID, FCGI_RESPONDER, f->worker != NULL ? FCGI_KEEP_CONN : 0);
	if (vars_to_params(vars, &block) == 0 && bytes_append(&f->out, begin, sizeof(begin)) == 0 &&
	    fcgi_put_stream(&f->out, FCGI_PARAMS, FASTCGI_ID, bytes_data(&block), block.len) == 0 &&
	    fcgi_put_stream(&f->out, FCGI_PARAMS, FASTCGI_ID, NULL, 0) == 0)
		status = 0;
	bytes_fini(&block);
	vars_free(&vars);
	return status;
}

void fastcgi_confirm(struct fcgi_request *f)
{
	if (f->is_confirmed)
		return;
	f->is_confirmed = true;
	if (f->unconfirmed > 0) {
		body_consume(&f->request->body, f->unconfirmed);
		f->unconfirmed = 0;
		request_on_body_taken(f->request);
	}
}

/* More of the body is there, or to come, than memory holds. */
static bool is_memory_used_up(const struct fcgi_request *f)
{
	const struct body *body = &f->request->body;

	return body_waiting(body) > body->spool.memory.len || bytes_room(&body->spool.memory) == 0;
}

static void queue_body_end(struct fcgi_request *f)
{
	if (!f->has_stdin_ended)
		f->has_stdin_ended = fcgi_put_stream(&f->out, FCGI_STDIN, FASTCGI_ID, NULL, 0) == 0;
}

/* A worker that has not accepted yet may die without having seen the request;
 * until then as much of the body as memory holds is kept for another one. */
static void queue_unconfirmed(struct fcgi_request *f)
{
	const struct bytes *memory = &f->request->body.spool.memory;
	size_t fresh = memory->len - f->unconfirmed;

	if (fresh > 0 && fcgi_put_stream(&f->out, FCGI_STDIN, FASTCGI_ID, bytes_data(memory) + f->unconfirmed, fresh) == 0)
		f->unconfirmed += fresh;
	if (is_memory_used_up(f))
		fastcgi_wait(f, ACCEPT_POLL_MS);
	else if (f->request->body.is_complete)
		queue_body_end(f);
}

static void queue_confirmed(struct fcgi_request *f)
{
	struct request *request = f->request;
	struct slice piece;
	struct err err;

	while (f->out.len < OUT_WINDOW_BYTES && body_waiting(&request->body) > 0) {
		if (body_peek(&request->body, &piece, &err) < 0) {
			request_fail(request, 502, NULL, "%s", err.text);
			return;
		}
		if (fcgi_put_stream(&f->out, FCGI_STDIN, FASTCGI_ID, piece.ptr, piece.len) < 0)
			return;
		body_consume(&request->body, piece.len);
		request_on_body_taken(request);
	}
	if (body_is_spent(&request->body))
		queue_body_end(f);
}

static void queue_body(struct fcgi_request *f)
{
	if (f->is_aborting || f->is_stopping || f->has_ended || f->request->is_body_unwanted)
		return;
	if (!f->is_confirmed && is_memory_used_up(f) && worker_has_accepted(f->worker))
		fastcgi_confirm(f);
	if (f->is_confirmed)
		queue_confirmed(f);
	else
		queue_unconfirmed(f);
}

void fastcgi_send(struct fcgi_request *f)
{
	ssize_t n;

	if (f->link == NULL || f->link->is_connecting)
		return;
	queue_body(f);
	while (f->link != NULL && f->out.len > 0) {
		n = send(f->link->fd, bytes_data(&f->out), f->out.len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			/* An answer may have come before the worker closed. */
			bytes_clear(&f->out);
			f->is_confirmed = true;         /* it has accepted, and nothing is kept */
			f->unconfirmed = 0;
			request_on_body_refused(f->request);
			break;
		}
		bytes_consume(&f->out, (size_t)n);
		queue_body(f);
	}
	bytes_release(&f->out);
	fastcgi_set_events(f);
}
