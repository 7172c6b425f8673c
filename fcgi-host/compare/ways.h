/*
 * ways.h - the ways in which a configured handler can live.
 */
#ifndef FCGI_HOST_COMPARE_WAYS_H
#define FCGI_HOST_COMPARE_WAYS_H

#include "base/err.h"
#include "compare/plan.h"

/* Adds to the comparison a way for every `process` that handler `number` supports; `only` is a list of
 * names separated by commas, or NULL for all.  `config` must outlive the plan.
 * -1 with err: one of `only` is none, or there is no memory. */
int ways_add(struct comparison *comparison, const struct config *config, unsigned number, const char *only, struct err *err);

/* Writes this configuration, but for where it listens and logs: as `place` says. */
void ways_write_config(const struct config *config, const struct way_place *place, FILE *out);

/* The first route of the handler, NULL when it has none; and a path that it takes, on the heap ("/" for NULL). */
const struct route_config *ways_route(const struct config *config, unsigned number);
char *ways_path(const struct route_config *route);

#endif
