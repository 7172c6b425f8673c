/*
 * route.h - the compiled table of routes: which handler takes a request.
 *
 * The most specific route wins: exact before pattern before longer prefix
 * before shorter; at the same place a route with a host before one without.
 */
#ifndef FCGI_HOST_ROUTE_ROUTE_H
#define FCGI_HOST_ROUTE_ROUTE_H

#include "base/err.h"
#include "base/text.h"
#include "config/config.h"

#include <stdbool.h>

struct route_table;     /* opaque, see route.c */

enum { ROUTE_PARAMS_MAX = 16 };

enum route_result { ROUTE_FOUND, ROUTE_NONE, ROUTE_WRONG_METHOD };

struct route_match {
	const struct route_config *route;       /* borrowed from the configuration */
	size_t script_name_len;                 /* SCRIPT_NAME is this much of the path; the rest is PATH_INFO */
	size_t params_count;
	struct { struct slice name, value; } params[ROUTE_PARAMS_MAX];  /* name as in {name}; value points into the path */
	char allow[256];                        /* with ROUTE_WRONG_METHOD: "GET, HEAD, POST" */
};

/* The table borrows `config` and must be freed first.  NULL with err when two
 * routes can never be told apart, which config_load() reports too. */
struct route_table *route_table_new(const struct config *config, struct err *err);
void route_table_free(struct route_table **table);

/* `path` is decoded and begins with '/'.  `host` may be "".  A HEAD is taken
 * where GET is listed. */
enum route_result route_find(const struct route_table *table, const char *method, const char *host,
	const char *path, struct route_match *match_out);

/* Does the path lead to this route, whatever the method?  Fills in all of
 * *match_out but `allow`. */
bool route_matches(const struct route_config *route, const char *host, const char *path, struct route_match *match_out);

#endif
