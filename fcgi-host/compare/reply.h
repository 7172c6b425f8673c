/*
 * reply.h - one answer as it comes in, of HTTP/1.1 or as a CGI program writes it
 * (the STDOUT of FastCGI): where it ends, its status, and whether its body is the
 * one expected.  Pure; takes any pieces.
 */
#ifndef FCGI_HOST_COMPARE_REPLY_H
#define FCGI_HOST_COMPARE_REPLY_H

#include "base/bytes.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum reply_state {
	REPLY_HEAD, REPLY_BODY, REPLY_CHUNK_SIZE, REPLY_CHUNK, REPLY_CHUNK_END, REPLY_TRAILER,
	REPLY_DONE,
	REPLY_BAD,                      /* see `reason` */
};

struct reply {
	/* Set by reply_init(), kept by reply_reset(). */
	bool is_http, is_head_request;
	struct bytes head;              /* with the blank line, once complete */
	/* Of this answer. */
	enum reply_state state;
	const char *reason;             /* static text, when BAD */
	size_t line_start;              /* of the line being read, in `head` */
	unsigned status;                /* 0 until the head is complete */
	bool has_length, is_chunked, must_close;
	uint64_t content_length, left;  /* left: of the body or the chunk */
	uint64_t body_bytes;
	bool is_wrong;                  /* the body differs from the expected one */
	/* Set by the caller after reply_reset(), where wanted. */
	const struct bytes *expected;   /* body; borrowed; NULL: any */
	struct bytes *kept;             /* the body goes here; borrowed; NULL: nowhere */
};

void reply_init(struct reply *reply, bool is_http, bool is_head_request);
void reply_fini(struct reply *reply);
void reply_reset(struct reply *reply);          /* for the next answer */

/* Takes from the front of *input; HTTP: never more than this answer. */
enum reply_state reply_take(struct reply *reply, struct slice *input);

/* The stream has ended: END_REQUEST, or the connection was closed. */
enum reply_state reply_end(struct reply *reply);

#endif
