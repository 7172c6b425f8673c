/*
 * body.h - a request's body between the web server and the handler.
 *
 * A queue in bounded memory: at most BODY_MEMORY_BYTES, and where the answer
 * must not wait for the handler to read (body_allow_spool()), any further bytes
 * go to an unlinked temporary file.
 */
#ifndef FCGI_HOST_SERVE_BODY_H
#define FCGI_HOST_SERVE_BODY_H

#include "serve/spool.h"

#include <stdbool.h>
#include <stdint.h>

enum { BODY_MEMORY_BYTES = SPOOL_MEMORY_BYTES };

struct body {
	struct spool spool;             /* what waits */
	bool may_spool;
	bool is_complete;               /* the web server has sent its end */
	uint64_t received_bytes;        /* from the web server, in all */
};

void body_init(struct body *body);
void body_fini(struct body *body);

/* How much body_put() takes now; SIZE_MAX once it may spool. */
size_t body_room(const struct body *body);
void body_allow_spool(struct body *body);

/* Takes all of it (len <= body_room()).  -1 with err: no memory, or the disk. */
int body_put(struct body *body, const void *data, size_t len, struct err *err);

/* The next bytes for the handler, empty when none wait.  Valid until the next
 * call.  -1 with err when the file cannot be read. */
int body_peek(struct body *body, struct slice *out, struct err *err);
void body_consume(struct body *body, size_t len);
uint64_t body_waiting(const struct body *body);

/* Nothing waits and nothing more will come. */
bool body_is_spent(const struct body *body);

/* Throws away what waits and what is still to come. */
void body_discard(struct body *body);

#endif
