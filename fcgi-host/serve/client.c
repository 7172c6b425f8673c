#include "serve/client.h"

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
	LINGER_MS = 250,                /* a web server that sends a request to us does so within this time */
	MAX_REQUESTS_SAID = 65535,      /* to GET_VALUES: we queue what we cannot run */
};

/* Where the content of the record being read goes. */
enum sink { SINK_SKIP, SINK_BEGIN, SINK_PARAMS, SINK_STDIN, SINK_VALUES };

static void on_event(void *ctx, int events);
static void flush(void *ctx);
static void read_some(struct client *client);
static void on_time(void *ctx);

/* Before the loop waits again, so that what one turn queues leaves at once. */
static void flush_soon(struct client *client)
{
	defer_call(client->host->loop, &client->flush, flush, client);
}

static void give_up(struct client *client)
{
	client->state = CLIENT_DEAD;
	bytes_clear(&client->out);
	flush_soon(client);
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
	else if (!client->is_read_closed && !client->is_half_closed)
		events |= WATCH_HANGUP;
	if (client->out.len > 0)
		events |= WATCH_WRITE;
	watch_set(client->watch, events);
}

/* Open and free. */

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

static void put(struct client *client, const void *data, size_t len)
{
	if (client->state == CLIENT_DEAD)
		return;
	if (bytes_append(&client->out, data, len) < 0)
		give_up(client);
	else
		flush_soon(client);
}

void client_stdout(struct client *client, const void *data, size_t len)
{
	if (client->state == CLIENT_DEAD || len == 0)
		return;
	if (fcgi_put_stream(&client->out, FCGI_STDOUT, client->request->fcgi_id, data, len) < 0)
		give_up(client);
	else
		flush_soon(client);
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
	flush_soon(client);
}

static void put_end(struct client *client, uint16_t id, uint32_t app_status, uint8_t protocol_status)
{
	uint8_t record[16];

	fcgi_put_end(record, id, app_status, protocol_status);
	put(client, record, sizeof(record));
}

static void close_after_last_words(struct client *client)
{
	if (client->state == CLIENT_OPEN || client->state == CLIENT_LINGERING)
		client->state = CLIENT_LAST_WORDS;
	flush_soon(client);
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
	put(client, record, sizeof(record));
}

void client_end_request(struct client *client, uint32_t app_status)
{
	struct request *request = client->request;
	uint8_t empty[8];

	fcgi_put_header(empty, FCGI_STDOUT, request->fcgi_id, 0, 0);
	put(client, empty, sizeof(empty));
	put_end(client, request->fcgi_id, app_status, FCGI_REQUEST_COMPLETE);
	if (request->keep_connection && client->host->state != HOST_RUNNING)
		put_no_more(client);
	client->request = NULL;
	if (!request->keep_connection || client->host->state != HOST_RUNNING)
		close_after_last_words(client);
	flush_soon(client);
}

/* END_REQUEST looks complete to every web server, and a plain close does to
 * some: a record of a version that does not exist looks complete to none. */
void client_break(struct client *client)
{
	static const uint8_t broken[8] = { 0xff };

	client->request = NULL;
	put(client, broken, sizeof(broken));
	if (client->state == CLIENT_OPEN)
		client->state = CLIENT_BREAKING;
	flush_soon(client);
}

void client_resume(struct client *client)
{
	flush_soon(client);
}

static bool start_timer(struct client *client, uint64_t ms)
{
	if (client->timer == NULL)
		client->timer = timer_new(client->host->loop, on_time, client);
	if (client->timer != NULL)
		timer_set(client->timer, ms);
	return client->timer != NULL;
}

/* A web server that has just taken this connection for a request would not send
 * a POST a second time, so the connection lingers before it is closed. */
void client_stop(struct client *client)
{
	if (client->request == NULL && client->state <= CLIENT_LINGERING && !client->is_read_closed)
		read_some(client);
	if (client->request == NULL && client->state == CLIENT_OPEN && start_timer(client, LINGER_MS))
		client->state = CLIENT_LINGERING;
	else if (client->request == NULL)
		close_after_last_words(client);
	set_events(client);
}

static void on_time(void *ctx)
{
	struct client *client = ctx;

	if (client->state == CLIENT_LINGERING)
		client_stop(client);
	else
		give_up(client);
	host_check_stop(client->host);
}

static void begin_drain(struct client *client)
{
	if (client->state == CLIENT_DRAINING)
		return;
	client->state = CLIENT_DRAINING;
	shutdown(client->fd, SHUT_WR);
	if (client->is_read_closed || !start_timer(client, DRAIN_IDLE_MS))
		give_up(client);
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

static int begin_request(struct client *client)
{
	struct fcgi_begin begin;
	uint16_t id = client->decoder.id;

	if (client->decoder.content_len != FCGI_BODY_BYTES)
		return -1;
	fcgi_get_begin(client->fixed.bytes, &begin);
	if (client->request != NULL && client->request->fcgi_id == id)
		return -1;
	if (client->request != NULL) {
		put_end(client, id, 0, FCGI_CANT_MPX_CONN);
		return 0;
	}
	if (client->state > CLIENT_LINGERING)
		return 0;
	if (begin.role != FCGI_RESPONDER) {
		put_end(client, id, 0, FCGI_UNKNOWN_ROLE);
		if ((begin.flags & FCGI_KEEP_CONN) == 0)
			close_after_last_words(client);
		return 0;
	}
	if (client->state == CLIENT_LINGERING) {
		timer_clear(client->timer);
		client->state = CLIENT_OPEN;
	}
	client->request = request_new(client, id, (begin.flags & FCGI_KEEP_CONN) != 0);
	return client->request == NULL ? -1 : 0;
}

static int answer_values(struct client *client)
{
	struct slice asked = { (const char *)bytes_data(&client->values), client->values.len };
	int status = fcgi_put_values(&client->out, asked, MAX_REQUESTS_SAID, MAX_REQUESTS_SAID);

	bytes_fini(&client->values);
	flush_soon(client);
	return status;
}

/* Does this record belong to the request that is being read? */
static bool is_ours(const struct client *client)
{
	return client->request != NULL && client->request->fcgi_id == client->decoder.id;
}

static enum sink sink_of(const struct client *client)
{
	switch (client->decoder.type) {
	case FCGI_BEGIN_REQUEST: return SINK_BEGIN;
	case FCGI_PARAMS: return is_ours(client) ? SINK_PARAMS : SINK_SKIP;
	case FCGI_STDIN: return is_ours(client) ? SINK_STDIN : SINK_SKIP;
	case FCGI_GET_VALUES: return client->decoder.id == 0 ? SINK_VALUES : SINK_SKIP;
	default: return SINK_SKIP;
	}
}

static bool is_management(uint8_t type)
{
	return type >= FCGI_GET_VALUES || type == 0;
}

static int on_record_start(struct client *client)
{
	client->fixed.len = 0;
	client->sink = (uint8_t)sink_of(client);
	return client->decoder.id == 0 && !is_management(client->decoder.type) ? -1 : 0;
}

static int on_record_content(struct client *client, struct slice content)
{
	/* An answer to an earlier record may have ended the request. */
	if ((client->sink == SINK_PARAMS || client->sink == SINK_STDIN) && !is_ours(client))
		return 0;
	switch ((enum sink)client->sink) {
	case SINK_SKIP:
		break;
	case SINK_BEGIN:
		fcgi_fixed_put(&client->fixed, content);
		break;
	case SINK_PARAMS:
		request_params(client->request, content);
		break;
	case SINK_STDIN:
		request_stdin(client->request, content);
		break;
	case SINK_VALUES:
		return bytes_append(&client->values, content.ptr, content.len);
	}
	return 0;
}

static int on_record_end(struct client *client)
{
	const struct fcgi_decoder *decoder = &client->decoder;
	uint8_t record[16];

	if (client->sink == SINK_BEGIN)
		return begin_request(client);
	if (client->sink == SINK_VALUES)
		return answer_values(client);
	if (decoder->id == 0) {
		fcgi_put_unknown_type(record, decoder->type);
		put(client, record, sizeof(record));
		return 0;
	}
	if (!is_ours(client))
		return 0;
	if (decoder->type == FCGI_ABORT_REQUEST)
		request_abort(client->request);
	else if (client->sink == SINK_PARAMS && decoder->content_len == 0)
		request_params_end(client->request);
	else if (client->sink == SINK_STDIN && decoder->content_len == 0)
		request_stdin_end(client->request);
	return 0;
}

/* -1: the peer does not speak FastCGI, or not to the rules. */
static int take(struct client *client, struct slice input)
{
	struct slice content;

	for (;;) {
		int status = 0;

		switch (fcgi_decode(&client->decoder, &input, &content)) {
		case FCGI_MORE: return 0;
		case FCGI_BAD: return -1;
		case FCGI_START: status = on_record_start(client); break;
		case FCGI_CONTENT: status = on_record_content(client, content); break;
		case FCGI_END: status = on_record_end(client); break;
		}
		if (status < 0)
			return -1;
	}
}

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
		flush_soon(client);
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
			timer_set(client->timer, DRAIN_IDLE_MS);
		else if (take(client, (struct slice){ (char *)client->host->scratch, (size_t)n }) < 0)
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
		flush_soon(client);
	set_events(client);
}
