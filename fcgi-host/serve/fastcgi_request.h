/*
 * fastcgi_request.h - a request that a FastCGI program has: what the parts of
 * the backend share, backend_fastcgi.c and fastcgi_send.c.  For them only.
 */
#ifndef FCGI_HOST_SERVE_FASTCGI_REQUEST_H
#define FCGI_HOST_SERVE_FASTCGI_REQUEST_H

#include "base/bytes.h"
#include "base/loop.h"
#include "serve/fastcgi_link.h"
#include "serve/request.h"
#include "wire/fcgi.h"

#include <stdbool.h>
#include <stdint.h>

enum { FASTCGI_ID = 1 };                /* of every request: a connection has one at a time */

struct fcgi_request {
	struct request *request;
	struct fastcgi_link *link;      /* NULL once it is lost */
	struct worker *worker;          /* borrowed; NULL with connect: */
	struct fcgi_decoder decoder;
	struct fcgi_fixed fixed;        /* of END_REQUEST */
	struct bytes out;
	size_t unconfirmed;             /* of body: sent, but still ours while the worker has not accepted */
	bool is_confirmed;              /* the worker has accepted: what is sent is taken */
	bool link_was_kept;             /* the connection had carried a request before */
	bool link_had_leftover;         /* and the program has not read the end of that one's body */
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

/* fastcgi_send.c */

/* The variables.  -1: no memory, or they pass params.max. */
int fastcgi_queue_start(struct fcgi_request *f);
/* Sends what is queued and what there is of the body, and sets the events. */
void fastcgi_send(struct fcgi_request *f);
/* The worker has accepted: of the body, what was sent need not be kept. */
void fastcgi_confirm(struct fcgi_request *f);
void fastcgi_set_events(struct fcgi_request *f);

/* backend_fastcgi.c */

/* Looks again after so long, at whatever is awaited. */
void fastcgi_wait(struct fcgi_request *f, uint64_t ms);

#endif
