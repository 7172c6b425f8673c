/*
 * spares.h - the processes of one handler that wait for a request, and with
 * `zygote` the one that forks them.
 *
 * Keeps workers.spare of them, started when an answer has ended, not while
 * it is being made.  Every one of them takes its part of the budget; a request
 * that takes one takes over that part too.  Where they cannot be had, there are
 * none: requests are then served as with per-request.
 */
#ifndef FCGI_HOST_PROCESS_SPARES_H
#define FCGI_HOST_PROCESS_SPARES_H

#include "base/err.h"
#include "process/budget.h"
#include "process/spare.h"

struct spares;          /* opaque, see spares.c */

/* on_change: look again, and call spares_tend(); from anywhere, so defer. */
struct spares *spares_new(const struct handler_config *handler, uint32_t generation, struct budget_share *share, struct loop *loop,
	struct spawner *spawner, void (*on_change)(void *ctx), void *ctx, struct err *err);
void spares_free(struct spares **spares);

/* Starts what is missing, ends what is too much, forgets what is gone.  `waiting`
 * requests have no process yet.  From the loop. */
void spares_tend(struct spares *spares, unsigned waiting);

/* One that waits, the caller's from here on with its part of the budget; or NULL. */
struct spare *spares_take(struct spares *spares);
/* How many more are to be expected sooner than a start from nothing would take. */
unsigned spares_soon(struct spares *spares, unsigned waiting);
/* The answer of one that was taken has ended: call it once for each. */
void spares_on_answered(struct spares *spares);

/* Others need the budget: gives back one part of it.  false: there is none. */
bool spares_yield(struct spares *spares);

/* Ends all; nothing is started any more. */
void spares_close(struct spares *spares);
bool spares_is_closed(const struct spares *spares);
bool spares_is_empty(const struct spares *spares);

struct spares_reading {
	unsigned ready, starting, ending;       /* zygotes are not among them */
	unsigned zygotes;
	unsigned failures;              /* in a row */
	uint64_t next_try_ns;           /* until then nothing is started; 0: no pause */
	/* That never had a request, and zygotes. */
	uint64_t ended_count, died_count /* without being told to */, cpu_us, max_rss_kib;
};
void spares_read(const struct spares *spares, struct spares_reading *out);
/* Those that have not gone; zygotes come first. */
typedef void spares_fn(void *ctx, const struct spare_reading *spare);
void spares_each(const struct spares *spares, spares_fn *on_spare, void *ctx);

#endif
