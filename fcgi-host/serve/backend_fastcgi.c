/*
 * FastCGI to a persistent worker of ours, or to a server that somebody else
 * runs (`connect:`).  One connection carries one request at a time; between
 * requests a connection to our own worker stays open with the worker.
 */
#include "serve/fastcgi_request.h"

#include "base/clock.h"
#include "base/log.h"
#include "process/exiting.h"

#include <errno.h>
#include <fastcgi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	OUT_MAX_BYTES = 64 * 1024 * 1024,       /* params.max bounds it long before */
	EXIT_WAIT_MS = 50,              /* between the loss of a connection and the news of the exit */
	ABORT_WAIT_MS = 1000,           /* a worker may end an aborted request by itself */
};

static bool read_some(struct fcgi_request *f);

/* Handing back. */

static void hand_back(struct fcgi_request *f, bool is_good)
{
	struct request *request = f->request;
	struct pool *pool = request->pool;
	struct worker *worker = f->worker;

	fastcgi_link_close(&f->link);
	f->worker = NULL;
	pool_release(pool, worker, is_good);
}

static void finish(struct fcgi_request *f, bool is_good)
{
	struct request *request = f->request;

	hand_back(f, is_good);
	request_on_over(request);
}

/* From the loop, since the request still speaks to us when it hears the end. */
static void on_handed_back(void *ctx)
{
	finish(ctx, true);
}

static void finish_soon(struct fcgi_request *f)
{
	defer_call(f->request->host->loop, &f->handed_back, on_handed_back, f);
}

/* The worker must end: the link stays open until it has, so that half a body
 * never looks like a whole one. */
static void stop_worker(struct fcgi_request *f)
{
	if (f->is_stopping)
		return;
	f->is_stopping = true;
	pool_stop_borrowed(f->request->pool, f->worker);
}

/* Losing the connection, or the worker. */

static bool is_empty(const struct request *request)
{
	return request->body.is_complete && request->body.received_bytes == 0;
}

static bool is_repeatable(const struct request *request)
{
	bool is_safe = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0 ||
		strcmp(request->method, "OPTIONS") == 0;

	return is_safe && is_empty(request);
}

static bool may_retry(const struct fcgi_request *f)
{
	const struct request *request = f->request;

	if (f->has_answered || request->was_retried || request->client == NULL || request->state == REQUEST_ENDING ||
	    f->is_aborting || f->is_stopping)
		return false;
	if (is_repeatable(request))
		return true;
	return f->worker != NULL && !f->is_confirmed && !f->link_was_kept && !worker_has_accepted(f->worker);
}

static void retry(struct fcgi_request *f, bool is_worker_good)
{
	struct request *request = f->request;

	log_message(LOG_LEVEL_INFO, "retry", "id %s, handler %s: pid %d ended without having answered; once more on another",
		request->id, request->handler->name, (int)request->pid);
	hand_back(f, is_worker_good);
	request_retry(request);
}

static void describe(const struct fcgi_request *f)
{
	if (f->has_ended || f->worker == NULL || f->worker->process.state != PROCESS_GONE)
		return;
	request_on_exit(f->request, &f->worker->process);
	f->request->has_usage = false;  /* of its whole life, not of this request */
}

static void learn(struct fcgi_request *f, enum leftover_habit habit)
{
	struct figures *figures = f->request->figures;

	if (f->link_had_leftover && figures->leftover == LEFTOVER_UNKNOWN)
		figures->leftover = habit;
}

/* Nothing of this request will come any more. */
static void conclude(struct fcgi_request *f, bool is_worker_good)
{
	learn(f, LEFTOVER_FATAL);
	if (may_retry(f)) {
		retry(f, is_worker_good);
		return;
	}
	describe(f);
	if (!f->has_ended)
		request_on_output_end(f->request, true);
	finish(f, is_worker_good);
}

/* The worker is gone: what it left in the socket is all that counts, whoever
 * else still holds the other end.  Read as fast as the client takes it. */
static void read_left(struct fcgi_request *f)
{
	while (f->link != NULL && !f->has_ended && f->left_bytes > 0 && read_some(f))
		;
	if (f->link != NULL && !f->has_ended && f->left_bytes > 0)
		return;
	defer_cancel(&f->handed_back);
	conclude(f, false);
}

static void on_worker_gone(void *ctx)
{
	struct fcgi_request *f = ctx;

	f->is_gone = true;
	if (f->link != NULL && !f->is_stopping)
		f->left_bytes = fastcgi_link_unread_bytes(f->link);
	read_left(f);
}

/* Closed without END_REQUEST: the process has ended too, in most cases, and its
 * exit tells why. */
static void on_lost(struct fcgi_request *f)
{
	fastcgi_link_close(&f->link);
	if (f->is_stopping || f->is_gone)
		return;         /* on_worker_gone() follows, or calls */
	if (f->worker == NULL)
		conclude(f, true);
	else
		fastcgi_wait(f, EXIT_WAIT_MS);
}

/* The connection is gone: is the process too? */
static void on_closed_alone(struct fcgi_request *f)
{
	if (process_is_exiting(f->worker->process.pid))
		fastcgi_wait(f, EXIT_WAIT_MS);
	else
		conclude(f, true);
}

static void on_time(void *ctx)
{
	struct fcgi_request *f = ctx;

	if (f->is_stopping || f->is_gone)
		return;
	if (f->is_aborting)
		stop_worker(f);
	else if (f->link == NULL)
		on_closed_alone(f);
	else
		fastcgi_send(f);
}

void fastcgi_wait(struct fcgi_request *f, uint64_t ms)
{
	if (f->timer == NULL)
		f->timer = timer_new(f->request->host->loop, on_time, f);
	if (f->timer != NULL)
		timer_set(f->timer, ms);
}

/* Receiving. */

static void on_end_request(struct fcgi_request *f)
{
	struct fcgi_end end;

	fcgi_get_end(f->fixed.bytes, &end);
	f->has_ended = f->has_answered = true;
	if (end.protocol_status != FCGI_REQUEST_COMPLETE) {
		request_fail(f->request, 503, "Retry-After: 1\r\n", "the program refused the request (protocolStatus %u)", end.protocol_status);
		return;
	}
	if (end.app_status != 0)
		request_reason(f->request, "appStatus %u", end.app_status);
	request_on_output_end(f->request, false);
}

static void on_content(struct fcgi_request *f, struct slice content)
{
	if (f->decoder.id != FASTCGI_ID || f->has_ended)
		return;
	switch (f->decoder.type) {
	case FCGI_STDOUT:
		f->has_answered = true;
		answer_put(f->request, content.ptr, content.len);
		break;
	case FCGI_STDERR:
		request_stderr(f->request, content.ptr, content.len);
		break;
	case FCGI_END_REQUEST:
		fcgi_fixed_put(&f->fixed, content);
		break;
	default:
		break;
	}
}

/* -1: not FastCGI. */
static int take(struct fcgi_request *f, struct slice input)
{
	struct slice content;

	for (;;) {
		switch (fcgi_decode(&f->decoder, &input, &content)) {
		case FCGI_MORE:
			return 0;
		case FCGI_BAD:
			return -1;
		case FCGI_START:
			f->fixed.len = 0;
			break;
		case FCGI_CONTENT:
			on_content(f, content);
			break;
		case FCGI_END:
			if (f->decoder.type == FCGI_END_REQUEST && f->decoder.id == FASTCGI_ID && f->fixed.len == FCGI_BODY_BYTES && !f->has_ended)
				on_end_request(f);
			break;
		}
	}
}

/* END_REQUEST has come: can the connection carry another request? */
static bool is_clean(struct fcgi_request *f)
{
	enum leftover_habit habit = f->request->figures->leftover;

	if (f->worker == NULL || f->link == NULL || f->out.len > 0 || !f->has_stdin_ended || f->decoder.header_len > 0)
		return false;
	if (habit == LEFTOVER_SKIPPED && is_empty(f->request))
		return true;
	f->link->has_leftover = !fastcgi_link_is_all_taken(f->link);
	return !f->link->has_leftover || (habit == LEFTOVER_UNKNOWN && is_empty(f->request));
}

static void settle(struct fcgi_request *f)
{
	if (f->is_stopping)
		return;
	learn(f, LEFTOVER_SKIPPED);
	if (is_clean(f))
		fastcgi_link_keep(&f->link);
	else
		fastcgi_link_close(&f->link);
	finish_soon(f);
}

/* True when something was read. */
static bool read_some(struct fcgi_request *f)
{
	struct host *host = f->request->host;
	size_t room = answer_room(f->request);
	ssize_t n;

	if (room == 0) {
		fastcgi_set_events(f);
		return false;
	}
	room = room < SCRATCH_BYTES ? room : SCRATCH_BYTES;
	if (f->is_gone && room > f->left_bytes)
		room = f->left_bytes;
	n = read(f->link->fd, host->scratch, room);
	if (n > 0) {
		f->left_bytes -= f->is_gone ? (size_t)n : 0;
		fastcgi_confirm(f);
		if (take(f, (struct slice){ (char *)host->scratch, (size_t)n }) < 0) {
			request_fail(f->request, 502, NULL, "the program does not speak FastCGI");
			on_lost(f);
		} else if (f->has_ended) {
			settle(f);
		} else {
			fastcgi_set_events(f);
		}
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		on_lost(f);
	}
	return n > 0;
}

static void on_connected(struct fcgi_request *f)
{
	int errnum = fastcgi_link_connected(f->link);

	if (errnum != 0) {
		request_fail(f->request, 502, NULL, "connect to %s: %s", f->request->handler->connect.text, strerror(errnum));
		finish(f, true);
		return;
	}
	request_on_started(f->request, 0, clock_monotonic_ns());
	fastcgi_send(f);
}

static void on_event(void *ctx, int events)
{
	struct fcgi_request *f = ctx;

	if (f->link->is_connecting) {
		on_connected(f);
		return;
	}
	if (events & WATCH_WRITE)
		fastcgi_send(f);
	if ((events & WATCH_READ) && f->link != NULL && f->is_gone)
		read_left(f);
	else if ((events & WATCH_READ) && f->link != NULL)
		read_some(f);
}

/* The hooks. */

static void on_body(struct request *request)
{
	struct fcgi_request *f = request->backend_data;

	fastcgi_send(f);
}

static void on_room(struct request *request)
{
	struct fcgi_request *f = request->backend_data;

	fastcgi_set_events(f);
}

static void end(struct request *request)
{
	struct fcgi_request *f = request->backend_data;

	if (f->has_ended || f->handed_back.next != NULL)
		return;
	if (f->worker == NULL || f->is_gone) {
		fastcgi_link_close(&f->link);
		finish_soon(f);
		return;
	}
	/* A client that left is no reason to end a worker that is about to finish. */
	if (request->status == 499 && request->body.is_complete && f->link != NULL) {
		f->is_aborting = true;
		fastcgi_wait(f, ABORT_WAIT_MS);
		fastcgi_set_events(f);
	} else {
		stop_worker(f);
	}
}

static void kill_worker(struct request *request, int signal)
{
	struct fcgi_request *f = request->backend_data;

	if (f->worker == NULL || f->is_gone) {
		/* Not a process of ours to signal: at the end it is given up. */
		if (signal == SIGKILL)
			request_fail(request, 503, "Retry-After: 1\r\n", "the host stopped before the answer was whole");
		return;
	}
	if (!f->is_stopping)
		stop_worker(f);
	process_signal(&f->worker->process, signal);
}

static void free_request(struct request *request)
{
	struct fcgi_request *f = request->backend_data;

	if (f == NULL)
		return;
	fastcgi_link_close(&f->link);
	timer_free(&f->timer);
	defer_cancel(&f->handed_back);
	bytes_fini(&f->out);
	free(f);
	request->backend_data = NULL;
}

static void fail_start(struct fcgi_request *f, bool is_full, const struct err *err)
{
	struct request *request = f->request;

	hand_back(f, true);
	if (request->handler->connect.text != NULL && !is_full)
		request_fail_to_connect(request, err);
	else
		request_fail_to_start(request, err);
}

/* A kept connection that fits: where it is not known yet what the program makes
 * of a leftover, only what can be repeated tries. */
static struct fastcgi_link *take_link(struct fcgi_request *f)
{
	struct fastcgi_link *link = fastcgi_link_take(f->worker);

	if (link != NULL && link->has_leftover && f->request->figures->leftover != LEFTOVER_SKIPPED && !is_repeatable(f->request))
		fastcgi_link_close(&link);
	f->link_had_leftover = link != NULL && link->has_leftover;
	return link;
}

static void start(struct request *request, const struct pool_result *grant)
{
	struct fcgi_request *f = calloc(1, sizeof(*f));
	struct err err = { "no memory for a request" };
	bool is_full = false;

	if (f == NULL) {
		pool_release(request->pool, grant->worker, true);
		request_fail_to_start(request, &err);
		return;
	}
	request->backend_data = f;
	f->request = request;
	f->worker = grant->worker;
	bytes_init(&f->out, OUT_MAX_BYTES);
	if (f->worker != NULL) {
		f->worker->on_gone = on_worker_gone;
		f->worker->ctx = f;
		f->worker->request_id = request->id;
		f->link = take_link(f);
	}
	f->is_confirmed = f->link != NULL || f->worker == NULL;
	f->link_was_kept = f->link != NULL;
	if (f->link == NULL)
		f->link = fastcgi_link_open(request->host->loop, f->worker, &request->handler->connect, &is_full, &err);
	if (f->link == NULL || fastcgi_queue_start(f) < 0) {
		fail_start(f, is_full, &err);
		return;
	}
	f->link->on_event = on_event;
	f->link->owner = f;
	if (!f->link->is_connecting)
		request_on_started(request, f->worker != NULL ? f->worker->process.pid : 0, clock_monotonic_ns());
	fastcgi_send(f);
	fastcgi_set_events(f);
}

const struct backend backend_fastcgi = {
	.start = start,
	.on_body = on_body,
	.on_room = on_room,
	.end = end,
	.kill = kill_worker,
	.free = free_request,
};

const struct backend *backend_for(const struct handler_config *handler)
{
	return handler->process == PROCESS_PERSISTENT ? &backend_fastcgi : &backend_cgi;
}
