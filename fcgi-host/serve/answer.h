/*
 * answer.h - the handler's answer on its way to the web server.
 *
 * Header first: read, checked and sent whole, in one record.  While the body of
 * the request is still coming in, the start of the answer is held back; and that
 * of a stdio function, whose output is all body, until it is known how it ended.
 */
#ifndef FCGI_HOST_SERVE_ANSWER_H
#define FCGI_HOST_SERVE_ANSWER_H

#include "base/bytes.h"
#include "serve/spool.h"
#include "wire/cgi_header.h"

#include <stdbool.h>
#include <stdint.h>

struct request;

enum { ANSWER_HELD_BYTES = 64 * 1024 };

enum answer_state {
	ANSWER_HEADER,          /* the header is not complete */
	ANSWER_HOLDING,         /* stdio: whether there is an answer, its exit status says */
	ANSWER_REDIRECT,        /* a local redirect, if no body follows */
	ANSWER_BODY,
	ANSWER_WHOLE,           /* as long as it was declared, or allowed, to be */
	ANSWER_BAD,             /* the header is none: 502 */
	ANSWER_SENT,            /* END_REQUEST is queued, the transfer is broken, or nobody listens */
};

struct answer {
	enum answer_state state;
	struct cgi_header header;
	struct bytes head;              /* the header as sent on, while it is held */
	struct spool held;              /* body that is held, or that waits for the web server */
	uint64_t output_bytes;          /* of a stdio function, while it is HOLDING */
	struct bytes first;             /* the first bytes, for the message about a bad header */
	unsigned dropped_lines;         /* of the header; the first ones are logged */
	bool is_out;                    /* something was queued for the web server */
	bool has_no_body;               /* HEAD, 204, 304 */
	bool is_ended;                  /* the handler will write no more */
	bool was_cut;                   /* more body than Content-Length */
	unsigned status;                /* as the client sees it; 0 before */
	uint64_t body_bytes;            /* of body, from the handler and allowed to pass */
};

void answer_init(struct request *request);
void answer_fini(struct answer *answer);

/* How many bytes of output are welcome now; 0: wait for on_room. */
size_t answer_room(const struct request *request);

/* Where to read output to: directly in front of the web server where that is
 * possible.  `size` bytes at most, at least 1 when answer_room() is not 0. */
uint8_t *answer_buffer(struct request *request, size_t *size_out);
/* `len` bytes were read into what answer_buffer() returned. */
void answer_commit(struct request *request, const uint8_t *buffer, size_t len);
/* Output from elsewhere. */
void answer_put(struct request *request, const void *data, size_t len);

/* The local redirect leads to none of our routes: it is an ordinary 302. */
void answer_is_no_redirect(struct request *request);

/* HOLDING is over: the function has ended well, or written more than `hold`. */
void answer_begin_held(struct request *request);

/* Nothing holds it back any more: passes on of what waits as much as there is room. */
void answer_release(struct request *request);
/* Nobody will take what waits. */
void answer_drop_held(struct answer *answer);
/* There was no room for all of it. */
bool answer_is_waiting(const struct answer *answer);

#endif
