/*
 * FastCGI to a persistent worker of ours, or to a server that somebody else
 * runs (`connect:`).  One connection carries one request at a time; between
 * requests a connection to our own worker stays open with the worker.
 */
#include "serve/backend.h"

#include "base/clock.h"
#include "base/log.h"
#include "process/exiting.h"
#include "serve/request.h"
#include "wire/fcgi.h"

#include <errno.h>
#include <fastcgi.h>
#include <linux/sockios.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	ID = 1,                         /* of every request: a connection has one at a time */
	OUT_WINDOW_BYTES = 64 * 1024,
	OUT_MAX_BYTES = 64 * 1024 * 1024,       /* params.max bounds it long before */
	EXIT_WAIT_MS = 50,              /* between the loss of a connection and the news of the exit */
	ACCEPT_POLL_MS = 5,
	ABORT_WAIT_MS = 1000,           /* a worker may end an aborted request by itself */
};

/* A connection.  Belongs to a request, or to the idle worker as its link. */
struct link {
	int fd;
	struct watch *watch;
	struct loop *loop;
	struct worker *worker;          /* NULL with connect: */
	struct fcgi_request *owner;     /* NULL while idle */
	bool is_connecting;
};

struct fcgi_request {
	struct request *request;
	struct link *link;              /* NULL once it is lost */
	struct worker *worker;          /* borrowed; NULL with connect: */
	struct fcgi_decoder decoder;
	uint8_t fixed[FCGI_BODY_BYTES];
	uint8_t fixed_len;
	struct bytes out;
	size_t unconfirmed;             /* of body: sent, but still ours while the worker has not accepted */
	bool is_confirmed;              /* the worker has accepted: what is sent is taken */
	bool link_was_kept;             /* the connection had carried a request before */
	bool has_stdin_ended;           /* the empty STDIN record is queued */
	bool has_answered;              /* a byte of STDOUT, or END_REQUEST */
	bool has_ended;                 /* END_REQUEST came */
	bool is_aborting;
	bool is_stopping;               /* the worker has been told to end */
	bool is_gone;                   /* the worker has ended */
	size_t left_bytes;              /* of its answer, in the socket when it ended */
	struct timer *timer;            /* what is awaited: an exit, an accept, the end of an aborted request */
	struct defer handed_back;
};

static void on_event(void *ctx, int events);
static void on_worker_gone(void *ctx);

/* Connections. */

static void link_close(void *ctx)
{
	struct link *link = ctx;

	watch_free(&link->watch);
	close(link->fd);
	free(link);
}

static int address_of(const struct worker *worker, const struct address *connect_to,
	const struct sockaddr **address_out, socklen_t *len_out)
{
	if (worker != NULL) {
		*address_out = (const struct sockaddr *)&worker->address;
		*len_out = sizeof(worker->address);
	} else {
		*address_out = (const struct sockaddr *)&connect_to->sockaddr;
		*len_out = connect_to->sockaddr_len;
	}
	return (*address_out)->sa_family;
}

/* NULL with err; is_full: the other side's backlog is full. */
static struct link *link_open(struct request *request, struct worker *worker, bool *is_full_out, struct err *err)
{
	const struct sockaddr *address;
	socklen_t address_len;
	int family = address_of(worker, &request->handler->connect, &address, &address_len);
	struct link *link = calloc(1, sizeof(*link));

	if (link == NULL) {
		err_set(err, "no memory for a connection");
		return NULL;
	}
	link->worker = worker;
	link->loop = request->host->loop;
	link->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (link->fd < 0) {
		err_set_errno(err, errno, "socket for a worker");
		free(link);
		return NULL;
	}
	if (connect(link->fd, address, address_len) < 0) {
		if (errno != EINPROGRESS) {
			*is_full_out = errno == EAGAIN;
			err_set_errno(err, errno, "connect to %s",
				worker != NULL ? worker->address.sun_path : request->handler->connect.text);
			link_close(link);
			return NULL;
		}
		link->is_connecting = true;
	}
	link->watch = watch_new(link->loop, link->fd, on_event, link, err);
	if (link->watch == NULL) {
		link_close(link);
		return NULL;
	}
	return link;
}

/* A kept connection that its worker has closed meanwhile is no use. */
static bool is_link_alive(const struct link *link)
{
	char byte;

	return recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static struct link *take_link(struct worker *worker)
{
	struct link *link = worker->link;

	worker->link = NULL;
	if (link != NULL && !is_link_alive(link)) {
		link_close(link);
		return NULL;
	}
	return link;
}

/* Everything the worker was sent has been read by it. */
static bool is_all_taken(const struct link *link)
{
	int unread = 0;

	return ioctl(link->fd, SIOCOUTQ, &unread) == 0 && unread == 0;
}

static void drop_link(struct fcgi_request *f)
{
	if (f->link != NULL)
		link_close(f->link);
	f->link = NULL;
}

static void keep_link(struct fcgi_request *f)
{
	f->link->owner = NULL;
	f->worker->link = f->link;
	f->worker->close_link = link_close;
	watch_set(f->link->watch, WATCH_READ);
	f->link = NULL;
}

/* Handing back. */

static void hand_back(struct fcgi_request *f, bool is_good)
{
	struct request *request = f->request;
	struct pool *pool = request->pool;
	struct worker *worker = f->worker;

	drop_link(f);
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

/* Sending. */

static void set_events(struct fcgi_request *f)
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

static int queue_start(struct fcgi_request *f)
{
	struct request *request = f->request;
	struct vars *vars = request_variables(request, f->worker != NULL);
	struct bytes block;
	uint8_t begin[16];
	int status = -1;

	if (vars == NULL)
		return -1;
	bytes_init(&block, vars_bytes(vars) + vars_count(vars) * 8);
	fcgi_put_begin(begin, ID, FCGI_RESPONDER, f->worker != NULL ? FCGI_KEEP_CONN : 0);
	if (vars_to_params(vars, &block) == 0 && bytes_append(&f->out, begin, sizeof(begin)) == 0 &&
	    fcgi_put_stream(&f->out, FCGI_PARAMS, ID, bytes_data(&block), block.len) == 0 &&
	    fcgi_put_stream(&f->out, FCGI_PARAMS, ID, NULL, 0) == 0)
		status = 0;
	bytes_fini(&block);
	vars_free(&vars);
	return status;
}

static void confirm(struct fcgi_request *f)
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

static void on_time(void *ctx);

static void wait_ms(struct fcgi_request *f, uint64_t ms)
{
	if (f->timer == NULL)
		f->timer = timer_new(f->request->host->loop, on_time, f);
	if (f->timer != NULL)
		timer_set(f->timer, ms);
}

/* More of the body is there, or to come, than memory holds. */
static bool is_memory_used_up(const struct fcgi_request *f)
{
	const struct body *body = &f->request->body;

	return body_waiting(body) > body->memory.len || bytes_room(&body->memory) == 0;
}

/* A worker that has not accepted yet may die without having seen the request;
 * until then as much of the body as memory holds is kept for another one. */
static void queue_unconfirmed(struct fcgi_request *f)
{
	const struct bytes *memory = &f->request->body.memory;
	size_t fresh = memory->len - f->unconfirmed;

	if (fresh > 0 && fcgi_put_stream(&f->out, FCGI_STDIN, ID, bytes_data(memory) + f->unconfirmed, fresh) == 0)
		f->unconfirmed += fresh;
	if (is_memory_used_up(f))
		wait_ms(f, ACCEPT_POLL_MS);
	else if (f->request->body.is_complete && !f->has_stdin_ended)
		f->has_stdin_ended = fcgi_put_stream(&f->out, FCGI_STDIN, ID, NULL, 0) == 0;
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
		if (fcgi_put_stream(&f->out, FCGI_STDIN, ID, piece.ptr, piece.len) < 0)
			return;
		body_consume(&request->body, piece.len);
		request_on_body_taken(request);
	}
	if (body_is_spent(&request->body) && !f->has_stdin_ended)
		f->has_stdin_ended = fcgi_put_stream(&f->out, FCGI_STDIN, ID, NULL, 0) == 0;
}

static void queue_body(struct fcgi_request *f)
{
	if (f->is_aborting || f->is_stopping || f->has_ended || f->request->is_body_unwanted)
		return;
	if (!f->is_confirmed && is_memory_used_up(f) && worker_has_accepted(f->worker))
		confirm(f);
	if (f->is_confirmed)
		queue_confirmed(f);
	else
		queue_unconfirmed(f);
}

static bool read_some(struct fcgi_request *f);

static void send_some(struct fcgi_request *f)
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
	set_events(f);
}

/* Losing the connection, or the worker. */

static bool may_retry(const struct fcgi_request *f)
{
	const struct request *request = f->request;
	bool is_safe = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0 ||
		strcmp(request->method, "OPTIONS") == 0;

	if (f->has_answered || request->was_retried || request->client == NULL || request->state == REQUEST_ENDING ||
	    f->is_aborting || f->is_stopping)
		return false;
	if (is_safe && request->body.is_complete && request->body.received_bytes == 0)
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

/* Nothing of this request will come any more. */
static void conclude(struct fcgi_request *f, bool is_worker_good)
{
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
	int left = 0;

	f->is_gone = true;
	if (f->link != NULL && !f->is_stopping && ioctl(f->link->fd, FIONREAD, &left) == 0 && left > 0)
		f->left_bytes = (size_t)left;
	read_left(f);
}

/* Closed without END_REQUEST: the process has ended too, in most cases, and its
 * exit tells why. */
static void on_lost(struct fcgi_request *f)
{
	drop_link(f);
	if (f->is_stopping || f->is_gone)
		return;         /* on_worker_gone() follows, or calls */
	if (f->worker == NULL)
		conclude(f, true);
	else
		wait_ms(f, EXIT_WAIT_MS);
}

/* The connection is gone: is the process too? */
static void on_closed_alone(struct fcgi_request *f)
{
	if (process_is_exiting(f->worker->process.pid))
		wait_ms(f, EXIT_WAIT_MS);
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
		send_some(f);
}

/* Receiving. */

static void on_end_request(struct fcgi_request *f)
{
	struct fcgi_end end;

	fcgi_get_end(f->fixed, &end);
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
	size_t part;

	if (f->decoder.id != ID || f->has_ended)
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
		part = sizeof(f->fixed) - f->fixed_len;
		part = content.len < part ? content.len : part;
		memcpy(f->fixed + f->fixed_len, content.ptr, part);
		f->fixed_len = (uint8_t)(f->fixed_len + part);
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
			f->fixed_len = 0;
			break;
		case FCGI_CONTENT:
			on_content(f, content);
			break;
		case FCGI_END:
			if (f->decoder.type == FCGI_END_REQUEST && f->decoder.id == ID && f->fixed_len == FCGI_BODY_BYTES && !f->has_ended)
				on_end_request(f);
			break;
		}
	}
}

/* END_REQUEST has come: can the connection carry another request? */
static void settle(struct fcgi_request *f)
{
	bool is_clean = f->worker != NULL && f->link != NULL && !f->is_stopping && f->out.len == 0 && f->has_stdin_ended &&
		f->decoder.header_len == 0 && is_all_taken(f->link);

	if (f->is_stopping)
		return;
	if (is_clean)
		keep_link(f);
	else
		drop_link(f);
	finish_soon(f);
}

/* True when something was read. */
static bool read_some(struct fcgi_request *f)
{
	struct host *host = f->request->host;
	size_t room = answer_room(f->request);
	ssize_t n;

	if (room == 0) {
		set_events(f);
		return false;
	}
	room = room < SCRATCH_BYTES ? room : SCRATCH_BYTES;
	if (f->is_gone && room > f->left_bytes)
		room = f->left_bytes;
	n = read(f->link->fd, host->scratch, room);
	if (n > 0) {
		f->left_bytes -= f->is_gone ? (size_t)n : 0;
		confirm(f);
		if (take(f, (struct slice){ (char *)host->scratch, (size_t)n }) < 0) {
			request_fail(f->request, 502, NULL, "the program does not speak FastCGI");
			on_lost(f);
		} else if (f->has_ended) {
			settle(f);
		} else {
			set_events(f);
		}
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		on_lost(f);
	}
	return n > 0;
}

static void on_connected(struct fcgi_request *f)
{
	int errnum = 0;
	socklen_t len = sizeof(errnum);

	getsockopt(f->link->fd, SOL_SOCKET, SO_ERROR, &errnum, &len);
	if (errnum != 0) {
		request_fail(f->request, 502, NULL, "connect to %s: %s", f->request->handler->connect.text, strerror(errnum));
		finish(f, true);
		return;
	}
	f->link->is_connecting = false;
	request_on_started(f->request, 0, clock_monotonic_ns());
	send_some(f);
}

static void on_event(void *ctx, int events)
{
	struct link *link = ctx;
	struct fcgi_request *f = link->owner;

	if (f == NULL) {
		/* An idle link has nothing to say but its end. */
		link->worker->link = NULL;
		link_close(link);
		return;
	}
	if (link->is_connecting) {
		on_connected(f);
		return;
	}
	if (events & WATCH_WRITE)
		send_some(f);
	if ((events & WATCH_READ) && f->link == link && f->is_gone)
		read_left(f);
	else if ((events & WATCH_READ) && f->link == link)
		read_some(f);
}

/* The hooks. */

static void on_body(struct request *request)
{
	struct fcgi_request *f = request->backend_data;

	send_some(f);
}

static void on_room(struct request *request)
{
	struct fcgi_request *f = request->backend_data;

	set_events(f);
}

static void end(struct request *request)
{
	struct fcgi_request *f = request->backend_data;

	if (f->has_ended || f->handed_back.next != NULL)
		return;
	if (f->worker == NULL || f->is_gone) {
		drop_link(f);
		finish_soon(f);
		return;
	}
	/* A client that left is no reason to end a worker that is about to finish. */
	if (request->status == 499 && request->body.is_complete && f->link != NULL) {
		f->is_aborting = true;
		wait_ms(f, ABORT_WAIT_MS);
		set_events(f);
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
	drop_link(f);
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
		request_fail_to_connect(request, "%s", err->text);
	else
		request_fail_to_start(request, "%s", err->text);
}

static void start(struct request *request, const struct pool_result *grant)
{
	struct fcgi_request *f = calloc(1, sizeof(*f));
	struct err err = { "no memory for a request" };
	bool is_full = false;

	if (f == NULL) {
		pool_release(request->pool, grant->worker, true);
		request_fail_to_start(request, "%s", err.text);
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
		f->link = take_link(f->worker);
	}
	f->is_confirmed = f->link != NULL || f->worker == NULL;
	f->link_was_kept = f->link != NULL;
	if (f->link == NULL)
		f->link = link_open(request, f->worker, &is_full, &err);
	if (f->link == NULL || queue_start(f) < 0) {
		fail_start(f, is_full, &err);
		return;
	}
	f->link->owner = f;
	if (!f->link->is_connecting)
		request_on_started(request, f->worker != NULL ? f->worker->process.pid : 0, clock_monotonic_ns());
	send_some(f);
	set_events(f);
}

const struct backend backend_fastcgi = {
	.name = "fastcgi",
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
