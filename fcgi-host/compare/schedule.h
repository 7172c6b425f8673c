/*
 * schedule.h - when requests go out, and what their latency counts from.
 *
 * Knows no clock and no socket: every call is told the time, so that a simulated
 * one does as well.
 *
 * Closed loop: so many at a time; the next goes out when one is answered, and its
 * latency counts from when it went out.  Says what a request costs.
 *
 * Open loop: requests are intended at random moments (Poisson) at a rate, whatever
 * the answers take.  One that finds no free place goes out late, and its latency
 * counts from the moment intended: a stall is seen by all who would have come
 * meanwhile.  Says what users experience.
 */
#ifndef FCGI_HOST_COMPARE_SCHEDULE_H
#define FCGI_HOST_COMPARE_SCHEDULE_H

#include "compare/random.h"

#include <stdbool.h>
#include <stdint.h>

#define SCHEDULE_NEVER UINT64_MAX

enum schedule_kind { SCHEDULE_CLOSED, SCHEDULE_OPEN };

struct schedule {
	enum schedule_kind kind;
	uint64_t requests;              /* in all */
	uint64_t concurrency;           /* at a time, at most */
	double rate_per_s;              /* open */
	struct random *random;          /* open; borrowed */
	uint64_t given, over;           /* of `requests`: handed out; ended, in whatever way */
	double next_ns;                 /* open: when the next one is intended */
};

/* After the first six are set. */
void schedule_begin(struct schedule *schedule, uint64_t now_ns);

/* Is there a request to send at this time?  Then it counts as on its way, and
 * `from_ns_out` is what its latency counts from. */
bool schedule_take(struct schedule *schedule, uint64_t now_ns, uint64_t *from_ns_out);
/* One that was taken has ended. */
void schedule_end_one(struct schedule *schedule);
/* Nothing more is handed out; those on their way still end. */
void schedule_stop(struct schedule *schedule);

/* When schedule_take() may next succeed without schedule_end_one() before. */
uint64_t schedule_next_ns(const struct schedule *schedule);
bool schedule_is_over(const struct schedule *schedule);

#endif
