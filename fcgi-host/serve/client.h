/*
 * client.h - one connection from a web server: FastCGI records in and out.
 *
 * It holds at most one request, from BEGIN_REQUEST until END_REQUEST has been
 * queued.  The client frees itself, always from the loop; a request that still
 * runs then is told by request_on_client_gone() first.
 */
#ifndef FCGI_HOST_SERVE_CLIENT_H
#define FCGI_HOST_SERVE_CLIENT_H

#include "base/bytes.h"
#include "base/loop.h"
#include "serve/host.h"
#include "wire/fcgi.h"

#include <stdbool.h>
#include <stdint.h>

enum { CLIENT_WINDOW_BYTES = 64 * 1024 };       /* of an answer that waits for the web server */

enum client_state {
	CLIENT_OPEN,
	CLIENT_LAST_WORDS,      /* written, then shut down for writing and drained */
	CLIENT_BREAKING,        /* written, then closed so that the transfer looks broken */
	CLIENT_DRAINING,        /* shut down for writing */
	CLIENT_DEAD,            /* nothing can be written any more */
};

/* What the peer has yet to do, in its time. */
enum client_wait {
	CLIENT_WAIT_NONE,
	CLIENT_WAIT_TAKE,       /* to take the end of its last answer */
	CLIENT_WAIT_SPEAK,      /* to send its request, as the host stops */
	CLIENT_WAIT_DRAIN,      /* to send the rest of what nobody wants */
};

struct client {
	struct host *host;
	enum client_state state;
	int fd;
	struct watch *watch;
	struct fcgi_decoder decoder;
	uint8_t sink;                   /* where the content of this record goes, see client.c */
	struct fcgi_fixed fixed;        /* of a BEGIN_REQUEST */
	bool is_unix;
	bool is_read_closed;            /* the peer has shut down its writing, and all of it is read */
	bool is_half_closed;            /* it has, and there is more to read */
	struct bytes values;            /* body of a GET_VALUES */
	struct request *request;        /* NULL between requests */
	struct bytes out;               /* records that wait to be written */
	struct defer flush;
	uint64_t take_ms;               /* for the end of the last answer to be taken; 0: no limit */
	enum client_wait wait;
	struct timer *timer;            /* of `wait`; NULL at first */
	struct client *next, *prev;     /* host->clients */
};

/* Takes ownership of fd.  -1 with err: fd is closed. */
int client_open(struct host *host, int fd, bool is_unix, struct err *err);

/* Bytes of the answer that may still be queued; none once the connection is given up. */
size_t client_room(const struct client *client);

/* Queues STDOUT, in one record if that holds it.  Never fails: without memory
 * the connection is given up. */
void client_stdout(struct client *client, const void *data, size_t len);

/* Room for `size` bytes of STDOUT to be read into directly, or NULL. */
uint8_t *client_reserve(struct client *client, size_t size);
void client_commit(struct client *client, size_t len);

/* The request is over on this connection, which is then free for the next one
 * or closed as the web server asked. */
void client_end_request(struct client *client, uint32_t app_status);

/* The answer cannot be completed: closes so that every web server sees it. */
void client_break(struct client *client);

/* The body has room again. */
void client_resume(struct client *client);

/* Closes a connection between requests; one with a request, even one that is
 * still to be read, is closed after it. */
void client_stop(struct client *client);
/* Then: nothing of a request is there yet, but one may be on its way. */
bool client_is_awaited(const struct client *client);
void client_free(struct client **client);

#endif
