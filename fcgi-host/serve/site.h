/*
 * site.h - a configuration in use: its routes, and a pool for every handler.
 *
 * Counted, since after a reload the requests and pools of the one before go on
 * with theirs: the host holds the newest, a request the one that routed it and
 * the one whose handler it uses, a pool the one that it was made for.  A handler
 * that a reload does not change keeps its pool.
 */
#ifndef FCGI_HOST_SERVE_SITE_H
#define FCGI_HOST_SERVE_SITE_H

#include "base/err.h"
#include "config/config.h"
#include "process/pool.h"
#include "route/route.h"

#include <stdbool.h>
#include <stdint.h>

struct host;

/* What is said once per route, so that a client cannot fill the log. */
enum route_notice { NOTICE_REPEATED = 1, NOTICE_REMOTE_USER = 2, NOTICE_BIG_HEADER = 4 };

struct site {
	unsigned refs;
	struct host *host;
	struct config *config;          /* owned */
	uint32_t generation;            /* the spawners' name for it */
	struct route_table *routes;
	struct pool **pools;            /* one per handler, by its number; owned by the host */
	uint8_t *notices;               /* per route: set of enum route_notice */
};

/* Takes ownership of `config`, also when it fails.  The pools are to be made by
 * site_make_pool() or shared. */
struct site *site_new(struct host *host, struct config *config, uint32_t generation, struct err *err);

/* A pool of its own for handler `number`.  0, or -1 with err. */
int site_make_pool(struct site *site, unsigned number, struct err *err);

struct site *site_ref(struct site *site);
void site_unref(struct site **site);    /* NULL inside is fine */

/* True the first time for this route. */
bool site_notice(struct site *site, const struct route_config *route, enum route_notice notice);

#endif
