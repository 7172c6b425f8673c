/*
 * failures.h - the last requests that failed, in fixed memory: the newest takes
 * the place of the oldest.
 */
#ifndef FCGI_HOST_SERVE_FAILURES_H
#define FCGI_HOST_SERVE_FAILURES_H

#include "serve/figures.h"

#include <stddef.h>
#include <stdint.h>

enum { FAILURES_KEPT = 50 };

struct request;

/* Texts that are longer are cut. */
struct failed_request {
	char time[25];                  /* when it was over */
	enum failure failure;
	unsigned status;                /* as the client sees it */
	uint64_t total_us;
	char id[40];
	char handler[65];               /* "" without one */
	char method[16];
	char path[160];                 /* as the web server sent it, decoded */
	char reason[200];               /* "" where there is none */
};

/* Zero it first. */
struct failures {
	uint64_t count;                 /* since the start, those that are gone too */
	struct failed_request kept[FAILURES_KEPT];
};

void failures_add(struct failures *failures, const struct request *request, const struct outcome *outcome);

/* The n-th newest, from 0; NULL when there are no more. */
const struct failed_request *failures_at(const struct failures *failures, size_t n);

#endif
