/*
 * One connection: reading, writing, and how it ends.  What its records say is in
 * client_records.c.
 */
#include "serve/client_private.h"

#include "base/log.h"
#include "serve/request.h"

#include <errno.h>
#include <fastcgi.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	OUT_MAX_BYTES = 4 * CLIENT_WINDOW_BYTES,
	DRAIN_IDLE_MS = 5000,           /* what is still sent to us is read this long after its last byte */
	TAKE_MS = 60000,                /* for the end of an answer that no handler gave */
	SPEAK_MS = 200,                 /* when the host stops, for a request that is on its way */
};

static void on_event(void *ctx, int events);
static void read_some(struct client *client);
static void flush(void *ctx);

void client_flush_soon(struct client *client)
{
	defer_call(client->host->loop, &client->flush, flush, client);
}

static void give_up(struct client *client)
{
	client->state = CLIENT_DEAD;
	bytes_clear(&client->out);
	client_flush_soon(client);
}

static size_t stdin_room(const struct client *client)
{
	return client->request == NULL ? SCRATCH_BYTES : request_stdin_room(client->request);
}

static void set_events(struct client *client)
{
	int events = 0;

	if (client->state == CLIENT_DEAD) {
		watch_set(client->watch, 0);
		return;
	}
	if (!client->is_read_closed && stdin_room(client) > 0)
		events |= WATCH_READ;
	else if (client->is_read_closed || client->is_half_closed)
		events |= WATCH_GONE;
	else
		events |= WATCH_HANGUP;
	if (client->out.len > 0)
		events |= WATCH_WRITE;
	watch_set(client->watch, events);
}

/* Open and free. */

/* The host stops, and no request was on its way, or it has just come. */
static void read_the_last(struct client *client)
{
	if (!client->is_read_closed)
		read_some(client);
	if (client->request == NULL)
		client_close_after_last_words(client);
	set_events(client);
}

static void on_time(void *ctx)
{
	struct client *client = ctx;
	enum client_wait what = client->wait;

	client->wait = CLIENT_WAIT_NONE;
	if (what == CLIENT_WAIT_SPEAK) {
		read_the_last(client);
		return;
	}
	if (what == CLIENT_WAIT_TAKE)
		log_message(LOG_LEVEL_WARNING, "client", "a web server did not take the end of an answer within %llu ms: connection closed",
			(unsigned long long)client->take_ms);
	give_up(client);
}

static void wait_for(struct client *client, enum client_wait what, uint64_t ms)
{
	if (client->timer == NULL)
		client->timer = timer_new(client->host->loop, on_time, client);
	if (client->timer == NULL) {
		give_up(client);
		return;
	}
	client->wait = what;
	timer_set(client->timer, ms);
}

void client_stop_waiting(struct client *client)
{
	if (client->wait != CLIENT_WAIT_NONE)
		timer_clear(client->timer);
	client->wait = CLIENT_WAIT_NONE;
}

int client_open(struct host *host, int fd, bool is_unix, struct err *err)
{
	struct client *client = calloc(1, sizeof(*client));

	if (client == NULL) {
		close(fd);
		return err_set(err, "no memory for a connection");
	}
	client->watch = watch_new(host->loop, fd, on_event, client, err);
	if (client->watch == NULL) {
		close(fd);
		free(client);
		return -1;
	}
	client->host = host;
	client->fd = fd;
	client->is_unix = is_unix;
	bytes_init(&client->out, OUT_MAX_BYTES);
	bytes_init(&client->values, FCGI_MAX_CONTENT);
	client->next = host->clients;
	if (client->next != NULL)
		client->next->prev = client;
	host->clients = client;
	host->clients_count++;
	watch_set(client->watch, WATCH_READ);
	return 0;
}

void client_free(struct client **client_ptr)
{
	struct client *client = *client_ptr;
	struct host *host = client->host;

	if (client->request != NULL) {
		struct request *request = client->request;

		client->request = NULL;
		request_on_client_gone(request);
	}
	if (client->prev != NULL)
		client->prev->next = client->next;
	else
		host->clients = client->next;
	if (client->next != NULL)
		client->next->prev = client->prev;
	host->clients_count--;
	defer_cancel(&client->flush);
	watch_close(&client->watch, &client->fd);
	timer_free(&client->timer);
	bytes_fini(&client->out);
	bytes_fini(&client->values);
	free(client);
	*client_ptr = NULL;
	host_descriptor_freed(host);
	host_check_stop(host);
}

/* Writing. */

size_t client_room(const struct client *client)
{
	if (client->state == CLIENT_DEAD)
		return 0;
	return client->out.len < CLIENT_WINDOW_BYTES ? CLIENT_WINDOW_BYTES - client->out.len : 0;
}

void client_put(struct client *client, const void *data, size_t len)
{
	if (client->state == CLIENT_DEAD)
		return;
	if (bytes_append(&client->out, data, len) < 0)
		give_up(client);
	else
		client_flush_soon(client);
}

void client_stdout(struct client *client, const void *data, size_t len)
{
	if (client->state == CLIENT_DEAD || len == 0)
		return;
	if (fcgi_put_stream(&client->out, FCGI_STDOUT, client->request->fcgi_id, data, len) < 0)
		give_up(client);
	else
		client_flush_soon(client);
}

uint8_t *client_reserve(struct client *client, size_t size)
{
	uint8_t *room;

	if (client->state == CLIENT_DEAD)
		return NULL;
	room = bytes_reserve(&client->out, size + FCGI_HEADER_BYTES);
	return room == NULL ? NULL : room + FCGI_HEADER_BYTES;
}

void client_commit(struct client *client, size_t len)
{
	uint8_t *header = bytes_data(&client->out) + client->out.len;

	if (len == 0)
		return;
	fcgi_put_header(header, FCGI_STDOUT, client->request->fcgi_id, (uint16_t)len, 0);
	bytes_commit(&client->out, len + FCGI_HEADER_BYTES);
	client_flush_soon(client);
}

void client_put_end(struct client *client, uint16_t id, uint32_t app_status, uint8_t protocol_status)
{
	uint8_t record[16];

	fcgi_put_end(record, id, app_status, protocol_status);
	client_put(client, record, sizeof(record));
}

void client_close_after_last_words(struct client *client)
{
	if (client->state == CLIENT_OPEN)
		client->state = CLIENT_LAST_WORDS;
	client_flush_soon(client);
}

/* What is queued by now must be taken all the same. */
static void let_go(struct client *client)
{
	const struct request *request = client->request;

	client->take_ms = request->handler != NULL ? request->handler->timeout.idle_ms : TAKE_MS;
	client->request = NULL;
}

/* nginx keeps a connection when END_REQUEST is the last that it has read, and may
 * send the next request before it sees the end.  More than that, and it closes. */
static void put_no_more(struct client *client)
{
	const char *server = client->request->front == NULL ? NULL : vars_get(client->request->front, "SERVER_SOFTWARE");
	uint8_t record[16];

	if (server == NULL || strncmp(server, "nginx/", strlen("nginx/")) != 0)
		return;
	fcgi_put_unknown_type(record, FCGI_END_REQUEST);
	client_put(client, record, sizeof(record));
}

void client_end_request(struct client *client, uint32_t app_status)
{
	struct request *request = client->request;
	uint8_t empty[8];

	fcgi_put_header(empty, FCGI_STDOUT, request->fcgi_id, 0, 0);
	client_put(client, empty, sizeof(empty));
	client_put_end(client, request->fcgi_id, app_status, FCGI_REQUEST_COMPLETE);
	if (request->keep_connection && client->host->state != HOST_RUNNING)
		put_no_more(client);
	let_go(client);
	if (!request->keep_connection || client->host->state != HOST_RUNNING)
		client_close_after_last_words(client);
	client_flush_soon(client);
}

/* END_REQUEST looks complete to every web server, and a plain close does to
 * some: a record of a version that does not exist looks complete to none. */
void client_break(struct client *client)
{
	static const uint8_t broken[8] = { 0xff };

	let_go(client);
	client_put(client, broken, sizeof(broken));
	if (client->state == CLIENT_OPEN)
		client->state = CLIENT_BREAKING;
	client_flush_soon(client);
}

void client_resume(struct client *client)
{
	client_flush_soon(client);
}

/* A web server that has just taken this connection for a request would not send a
 * POST a second time: one between requests is closed a moment later. */
void client_stop(struct client *client)
{
	bool is_free = client->request == NULL && client->state == CLIENT_OPEN;

	if (is_free && !client->is_read_closed)
		read_some(client);
	if (is_free && client->request == NULL && client->state == CLIENT_OPEN && !client->is_read_closed)
		wait_for(client, CLIENT_WAIT_SPEAK, SPEAK_MS);
	else if (client->request == NULL)
		client_close_after_last_words(client);
	set_events(client);
}

bool client_is_awaited(const struct client *client)
{
	return client->wait == CLIENT_WAIT_SPEAK;
}

static void begin_drain(struct client *client)
{
	if (client->state == CLIENT_DRAINING)
		return;
	client->state = CLIENT_DRAINING;
	shutdown(client->fd, SHUT_WR);
	if (client->is_read_closed)
		give_up(client);
	else
		wait_for(client, CLIENT_WAIT_DRAIN, DRAIN_IDLE_MS);
	host_check_stop(client->host);
}

/* True when something was written. */
static bool write_some(struct client *client)
{
	ssize_t n = send(client->fd, bytes_data(&client->out), client->out.len, MSG_NOSIGNAL);

	if (n > 0) {
		bytes_consume(&client->out, (size_t)n);
		return true;
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		give_up(client);
	return false;
}

/* While it has a request, the limits of that count. */
static void watch_last_bytes(struct client *client, bool has_moved)
{
	bool is_left = client->request == NULL && client->out.len > 0;

	if (is_left && client->take_ms > 0 && (has_moved || client->wait == CLIENT_WAIT_NONE))
		wait_for(client, CLIENT_WAIT_TAKE, client->take_ms);
	else if (!is_left && client->wait == CLIENT_WAIT_TAKE)
		client_stop_waiting(client);
}

/* The one place that writes, and that frees a client which is done. */
static void flush(void *ctx)
{
	struct client *client = ctx;
	bool has_moved = client->out.len > 0 && write_some(client);

	if (client->state == CLIENT_DEAD) {
		client_free(&client);
		return;
	}
	if (has_moved && client->request != NULL)
		request_on_client_room(client->request);
	watch_last_bytes(client, has_moved);
	if (client->out.len == 0) {
		bytes_release(&client->out);
		if (client->state == CLIENT_BREAKING) {
			client_free(&client);
			return;
		}
		if (client->state == CLIENT_LAST_WORDS && client->request == NULL)
			begin_drain(client);
		if (client->is_read_closed && client->request == NULL)
			give_up(client);
	}
	set_events(client);
}

/* Reading. */

static bool is_hung_up(const struct client *client)
{
	struct pollfd pfd = { .fd = client->fd };

	return !client->is_unix || poll(&pfd, 1, 0) < 0 || (pfd.revents & (POLLHUP | POLLERR)) != 0;
}

/* A client that has sent all of a request may shut down its writing and still
 * wait for the answer.  On a unix socket that can be told from leaving. */
static void on_read_end(struct client *client)
{
	bool is_waiting = client->out.len > 0 || (client->request != NULL && client->request->body.is_complete);

	client->is_read_closed = true;
	if (!is_waiting || client->state == CLIENT_DRAINING || (client->request != NULL && is_hung_up(client)))
		give_up(client);
	else
		client_flush_soon(client);
}

static void on_bad_peer(struct client *client)
{
	log_message(LOG_LEVEL_WARNING, "protocol", "a client did not speak FastCGI (record type %u, id %u): connection closed",
		client->decoder.type, client->decoder.id);
	give_up(client);
}

static void read_some(struct client *client)
{
	size_t room = stdin_room(client);
	ssize_t n;

	if (room == 0)
		return;
	n = read(client->fd, client->host->scratch, room < SCRATCH_BYTES ? room : SCRATCH_BYTES);
	if (n > 0) {
		if (client->state == CLIENT_DRAINING)
			wait_for(client, CLIENT_WAIT_DRAIN, DRAIN_IDLE_MS);
		else if (client_take(client, (struct slice){ (char *)client->host->scratch, (size_t)n }) < 0)
			on_bad_peer(client);
	} else if (n == 0) {
		on_read_end(client);
	} else if (errno != EAGAIN && errno != EINTR) {
		give_up(client);
	}
}

/* Where nothing can be read now: whoever left is gone, whoever has only shut
 * down its writing waits for the answer. */
static void on_hangup(struct client *client, int events)
{
	if ((events & WATCH_HANGUP) == 0)
		return;
	client->is_half_closed = true;
	if (is_hung_up(client))
		give_up(client);
}

static void on_event(void *ctx, int events)
{
	struct client *client = ctx;

	if (client->state == CLIENT_DEAD)
		return;
	if (stdin_room(client) == 0)
		on_hangup(client, events);
	else if (events & WATCH_READ)
		read_some(client);
	if ((events & WATCH_WRITE) && client->state != CLIENT_DEAD)
		client_flush_soon(client);
	set_events(client);
}
