/*
 * figures.h - what became of the requests of one handler.
 *
 * Counted: a pool has one, and so has every request that goes to that pool,
 * since a request may be logged after its pool is gone.  They begin at nothing
 * with the pool, and live as long: over every reload that leaves it alone.
 */
#ifndef FCGI_HOST_SERVE_FIGURES_H
#define FCGI_HOST_SERVE_FIGURES_H

#include "base/histogram.h"
#include "process/spawn.h"

#include <stdbool.h>
#include <stdint.h>

/* How the client was left. */
enum request_end {
	REQUEST_END_NONE,               /* not yet, or the host ended before */
	REQUEST_END_WHOLE,              /* with the handler's whole answer */
	REQUEST_END_FAILED,             /* with an answer of our own */
	REQUEST_END_BROKEN,             /* with the beginning of an answer, and a broken transfer */
	REQUEST_END_CLIENT_GONE,        /* it left by itself before the end */
};

/* Every request is counted once in `requests`, and once in a class when it has a
 * status; what follows the classes are parts of them. */
struct totals {
	uint64_t requests;
	uint64_t classes[4];            /* by status, 2xx to 5xx */
	uint64_t timeouts, refused, bad_gateway;        /* 504, 503 and 502 of our own */
	uint64_t client_gone, broken;
	uint64_t retried;               /* given to a second worker */
};

struct spans {
	struct histogram queue;         /* in line for a process, whatever came of it */
	struct histogram first_byte;    /* from the beginning to the answer's first byte */
	struct histogram total;         /* to its end; of those that a handler was given */
};

/* Processes for one request each that have ended.  What those that waited for it
 * used before is apart, and so is where they came from. */
struct ended {
	uint64_t count, cpu_us, max_rss_kib, faults;
	uint64_t ahead_count, start_cpu_us, start_faults;
};

/* Where the process of a request came from. */
enum request_start {
	START_NONE,                     /* it has none, or a worker */
	START_COLD,                     /* started for it */
	START_PARKED,                   /* started ahead */
	START_FORKED,                   /* forked ahead */
	STARTS_COUNT,
};

struct figures {
	unsigned refs;
	struct totals totals;
	struct ended ended;
	uint64_t starts[STARTS_COUNT];
	struct spans *spans;            /* NULL until the first request, or without memory */
};

/* A span that did not happen is NO_SPAN. */
#define FIGURES_NO_SPAN UINT64_MAX
struct outcome {
	enum request_end end;
	unsigned status;                /* as the client sees it, 0: none */
	bool was_retried;
	enum request_start start;
	uint64_t queue_us, first_byte_us, total_us;
};

struct figures *figures_new(void);      /* NULL without memory */
struct figures *figures_ref(struct figures *figures);
void figures_unref(struct figures **figures);           /* NULL inside is fine */

void figures_add(struct figures *figures, const struct outcome *outcome);
void figures_add_ended(struct figures *figures, const struct process *process);

#endif
