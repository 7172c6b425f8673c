/*
 * builtin.h - routes that the host answers itself: `builtin: status`.
 *
 * Needs no pool and no process, so it answers whatever those do.
 */
#ifndef FCGI_HOST_SERVE_BUILTIN_H
#define FCGI_HOST_SERVE_BUILTIN_H

#include "config/config.h"

struct request;

/* In the place of a handler: its limits, and the name of it in the log. */
extern const struct handler_config builtin_handler;

/* Answers the request, whose route is a builtin one and whose handler is
 * builtin_handler. */
void builtin_start(struct request *request);

#endif
