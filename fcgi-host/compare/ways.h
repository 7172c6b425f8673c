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

/* A path that one of the handler's routes takes; on the heap. */
char *ways_path(const struct config *config, unsigned number);

#endif
