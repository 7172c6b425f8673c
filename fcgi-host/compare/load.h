/*
 * load.h - the load generator: sends the requests of a target as a schedule says,
 * over as many connections as that has places, and notes how long answers took.
 *
 * One thread, one epoll.  Connections stay open from one run to the next where the
 * target keeps them; one that was closed meanwhile is opened anew without counting.
 */
#ifndef FCGI_HOST_COMPARE_LOAD_H
#define FCGI_HOST_COMPARE_LOAD_H

#include "compare/blocks.h"
#include "compare/reply.h"
#include "compare/schedule.h"
#include "compare/target.h"

#include <signal.h>

struct loader;          /* opaque, see load.c */

struct load_rules {
	size_t places;                  /* connections at most */
	unsigned status;                /* that every answer must have */
	const struct bytes *expected;   /* the body that it must have; NULL: any; borrowed */
	uint64_t timeout_ms;            /* for one answer */
	const volatile sig_atomic_t *is_interrupted;    /* ends a run; may be NULL */
	struct random *random;          /* which of several requests; borrowed */
};

/* `target` and what the rules point to stay the caller's, and must outlive it. */
struct loader *loader_new(const struct target *target, const struct load_rules *rules, struct err *err);
void loader_free(struct loader **loader);

/* May be changed between runs. */
struct load_rules *loader_rules(struct loader *loader);

/* Runs the schedule (begun here) to its end.  `block` gets what came of it, `latencies`
 * each answer's; both may be NULL.  Failed: no answer, another status, another body.  Those that are
 * not a server's own failure (5xx) are wrong too.
 * 0; -1 when it was interrupted, or with err for our own want of something. */
int loader_run(struct loader *loader, struct schedule *schedule, struct block *block, struct latencies *latencies, struct err *err);

/* Since it was made. */
uint64_t loader_sent(const struct loader *loader);      /* requests, warm-ups and repeated ones too */
uint64_t loader_wrong(const struct loader *loader);     /* answers with another body, or a status below 500 that is another one */
uint64_t loader_unanswered(const struct loader *loader);        /* requests without an answer in time */
const char *loader_trouble(const struct loader *loader);        /* the first failure, "" for none */

#endif
