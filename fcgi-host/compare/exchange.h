/*
 * exchange.h - one request and its answer over a target's protocol.
 */
#ifndef FCGI_HOST_COMPARE_EXCHANGE_H
#define FCGI_HOST_COMPARE_EXCHANGE_H

#include "compare/reply.h"
#include "compare/target.h"
#include "wire/fcgi.h"

struct exchange {
	bool is_http;
	struct fcgi_decoder decoder;
	struct fcgi_fixed end;          /* of END_REQUEST */
	struct reply reply;
};

enum exchange_progress {
	EXCHANGE_WAITING,
	EXCHANGE_ANSWERED,              /* wholly, in `reply` */
	EXCHANGE_BROKEN,                /* reply.reason says why */
};

void exchange_init(struct exchange *exchange, const struct target *target);
void exchange_fini(struct exchange *exchange);
void exchange_reset(struct exchange *exchange);

enum exchange_progress exchange_take(struct exchange *exchange, struct slice input);
/* The connection was closed. */
enum exchange_progress exchange_close(struct exchange *exchange);

/* One request by itself, number `variant`.  The header stays in `exchange`, initialised here and to
 * be given back in any case; the body goes to `body`.  -1 with err: no whole answer. */
int exchange_ask(struct exchange *exchange, const struct target *target, size_t variant, uint64_t timeout_ms,
	struct bytes *body, struct err *err);

#endif
