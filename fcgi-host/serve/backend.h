/*
 * backend.h - how a handler is spoken to: one row of hooks per protocol.
 */
#ifndef FCGI_HOST_SERVE_BACKEND_H
#define FCGI_HOST_SERVE_BACKEND_H

#include "config/config.h"
#include "process/pool.h"

struct request;

/* In life-cycle order.  start() may fail the request at once; every other hook
 * is called only between start() and request_on_over(). */
struct backend {
	void (*start)(struct request *request, const struct pool_result *grant);
	void (*on_body)(struct request *request);       /* more of the body, or its end */
	void (*on_room)(struct request *request);       /* the answer takes bytes again */
	void (*end)(struct request *request);           /* the process must end; may come twice */
	void (*kill)(struct request *request, int signal);      /* its whole group */
	void (*free)(struct request *request);
};

extern const struct backend backend_cgi;
extern const struct backend backend_fastcgi;

const struct backend *backend_for(const struct handler_config *handler);

#endif
