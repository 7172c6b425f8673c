/*
 * pool_private.h - what the parts of a pool share: pool.c, pool_workers.c and
 * pool_recycle.c.  For them only.
 */
#ifndef FCGI_HOST_PROCESS_POOL_PRIVATE_H
#define FCGI_HOST_PROCESS_POOL_PRIVATE_H

#include "process/pool.h"
#include "process/spares.h"

struct ring {
	struct worker *first, *last;
	unsigned count;
};

struct pool {
	const struct handler_config *handler;
	uint32_t generation;
	struct loop *loop;
	struct spawner *spawner;
	const char *folder;
	void *owner;
	bool has_workers;               /* else places */
	struct spares *spares;          /* those that wait for a request; NULL: none do */
	bool is_closed;
	bool is_retired;                /* keeps no worker but for those who wait */
	void (*on_empty)(void *ctx);    /* once it is closed or retired */
	void *ctx;
	unsigned holders;               /* requests that may come in line yet */
	unsigned borrowed;              /* places or workers given out and not handed back */
	struct budget_share share;

	struct pool_waiter *first, *last;
	unsigned waiting;
	struct defer line_call;
	struct timer *line_timer;       /* the first in line has waited too long */

	struct ring starting, idle, busy, stopping;     /* idle: the one used last comes first */
	struct timer *idle_timer;       /* the last idle worker has been idle too long */
	struct pool_ended ended;

	unsigned due;                   /* living workers that are to be replaced */
	unsigned replacing;             /* replacements that are starting */
	unsigned relief;                /* replacements that are ready, for whichever of the due has to go first */
	uint64_t start_ns;              /* what a worker takes to be ready: the longest of late */
	struct timer *age_timer;        /* the next worker reaches its max_age */

	bool can_start;                 /* false: the last start failed in exec, so nothing is started ahead */
	unsigned early_deaths;          /* in a row */
	struct timer *pause_timer;
	uint64_t pause_from_ns, pause_until_ns;
	uint64_t retry_ns;              /* a start failed: while other workers live, no start before */

	void (*on_tried)(void *ctx, const struct err *why);     /* while a trial runs */
	void *tried_ctx;
	struct err trouble;             /* why a worker could not start */
	bool has_trouble;               /* since the last look */
};

/* pool.c */

/* Looks soon, from the loop, at what has changed: who can be served, what is to
 * be started or ended. */
void pool_wake(struct pool *pool);
/* Answers all who wait. */
void pool_refuse_start(struct pool *pool, enum spawn_step step, int errnum, const struct err *why);

/* pool_workers.c */

unsigned pool_living(const struct pool *pool);  /* workers that have not been told to end */
unsigned pool_total(const struct pool *pool);   /* with those that have, and are not gone yet */
bool pool_is_awaited(const struct pool *pool);  /* somebody waits for one that is not there yet, or is to see one start */
/* How many stay however long they are idle. */
unsigned pool_floor(const struct pool *pool);

/* The budget has been asked; it gets its part back when this fails.  NULL with err. */
struct worker *pool_start_worker(struct pool *pool, struct err *err);
void pool_start_workers(struct pool *pool);     /* as many as are wanted and may be */
bool pool_may_start(const struct pool *pool);
bool pool_is_paused(const struct pool *pool);
void pool_put_off_starts(struct pool *pool);

void pool_set_state(struct pool *pool, struct worker *worker, enum worker_state state);
void pool_set_idle(struct pool *pool, struct worker *worker);
void pool_stop_worker(struct pool *pool, struct worker *worker);
void pool_end_idle(struct pool *pool);          /* and those that are starting */
void pool_free_workers(struct pool *pool);

void pool_set_idle_timer(struct pool *pool);
void pool_on_idle_time(void *ctx);

/* pool_recycle.c */

void pool_set_lifetime(struct worker *worker);
void pool_take_back(struct pool *pool, struct worker *worker, bool is_good);
void pool_forget_due(struct pool *pool, struct worker *worker);
void pool_note_ready(struct pool *pool, struct worker *worker); /* it was starting, and is idle */
void pool_drop_due(struct pool *pool);          /* who is due and not needed */
struct worker *pool_first_to_go(struct pool *pool);     /* of the idle ones: one that is due, if another is ready for it */
void pool_start_replacements(struct pool *pool);
void pool_set_age_timer(struct pool *pool);
void pool_on_age_time(void *ctx);

#endif
