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
#include "base/rate.h"
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

/* What failed, where something did: each request is one of these at most. */
enum failure {
	FAILURE_TIMEOUTS,               /* our own 504 */
	FAILURE_REFUSED,                /* our own 503 */
	FAILURE_BAD_GATEWAY,            /* our own 502 */
	FAILURE_HANDLER_ERRORS,         /* a whole answer of the handler's with 5xx */
	FAILURE_BROKEN,
	FAILURE_CLIENT_GONE,
	FAILURES,
	FAILURE_NONE = FAILURES,
};
const char *failure_name(enum failure failure);         /* "bad_gateway"; NULL for NONE */

/* Every request is counted once in `requests`, once in a class when it has a
 * status, and once in a failure when it is one. */
struct totals {
	uint64_t requests;
	uint64_t classes[4];            /* by status, 2xx to 5xx */
	uint64_t failures[FAILURES];
	uint64_t retried;               /* given to a second worker */
	uint64_t bytes_in, bytes_out;   /* of bodies */
};

struct spans {
	struct histogram queue;         /* in line for a process, whatever came of it */
	struct histogram start;         /* from then until the process was there */
	struct histogram first_byte;    /* from the beginning to the answer's first byte */
	struct histogram total;         /* to its end; of those that a handler was given */
	struct rate rate;               /* of all that have ended */
};

/* Processes for one request each that have ended.  What those that waited for it
 * used before is apart, and so is where they came from. */
struct ended {
	uint64_t count, cpu_us, max_rss_kib, faults, context_switches;
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

/* The life of a per-request process, in its order. */
enum spawn_part {
	SPAWN_PART_START,               /* from asking for it until the program runs: fork to exec */
	SPAWN_PART_FIRST_BYTE,          /* to the first byte of its answer */
	SPAWN_PART_END,                 /* until its output is closed */
	SPAWN_PART_EXIT,                /* to its exit; nothing where that came first */
	SPAWN_PARTS_COUNT
};
/* Sums over the requests of which all parts are known. */
struct spawn_sums { uint64_t count, us[SPAWN_PARTS_COUNT]; };

/* Does the program serve another request on a connection where it left the end of
 * an empty body unread?  php-cgi leaves it, and does. */
enum leftover_habit { LEFTOVER_UNKNOWN, LEFTOVER_SKIPPED, LEFTOVER_FATAL };

struct figures {
	unsigned refs;
	enum leftover_habit leftover;   /* learnt from a request that can be repeated */
	struct totals totals;
	struct ended ended;
	struct spawn_sums spawn;
	uint64_t cpu_told_us, started_told;     /* for reading.c only: the most that was ever told */
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
	uint64_t queue_us, start_us, first_byte_us, total_us;
	uint64_t bytes_in, bytes_out;
	uint64_t at_s;                  /* when, by the monotonic clock */
	uint64_t spawn_us[SPAWN_PARTS_COUNT];   /* with the first NO_SPAN, none of them did */
};
enum failure outcome_failure(const struct outcome *outcome);

struct figures *figures_new(void);      /* NULL without memory */
struct figures *figures_ref(struct figures *figures);
void figures_unref(struct figures **figures);           /* NULL inside is fine */

void figures_add(struct figures *figures, const struct outcome *outcome);
void figures_add_ended(struct figures *figures, const struct process *process);

#endif
