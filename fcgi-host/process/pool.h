/*
 * pool.h - a bounded set of handler processes that serve one handler, and the
 * line of requests that wait for one.
 *
 * Borrow with pool_acquire(); hand back once, with pool_release().  For a
 * handler with persistent workers of ours the waiter gets a worker; for every
 * other handler it gets a place: the right to one process or one connection, and
 * perhaps a process that waits already.
 * Nothing here blocks, and no callback runs inside pool_acquire(): the answer
 * always comes later, from the event loop.
 */
#ifndef FCGI_HOST_PROCESS_POOL_H
#define FCGI_HOST_PROCESS_POOL_H

#include "base/err.h"
#include "base/loop.h"
#include "config/config.h"
#include "process/budget.h"
#include "process/spare.h"
#include "process/spawn.h"
#include "process/worker.h"

#include <stdbool.h>
#include <stdint.h>

struct pool;            /* opaque, see pool_private.h */

enum pool_answer {
	POOL_READY,             /* `worker` is set, or a place was given */
	POOL_LINE_FULL,         /* queue.max */
	POOL_LINE_TIMEOUT,      /* queue.timeout */
	POOL_PAUSED,            /* workers keep dying at their start */
	POOL_START_FAILED,      /* the program cannot be started: failed_step, failed_errno */
	POOL_STOPPED,           /* the host ends */
};

struct pool_result {
	enum pool_answer answer;
	struct worker *worker;          /* NULL for a place */
	struct spare *spare;            /* with a place: the process that waited for this request, the
	                                 * waiter's from now on; NULL: it is to start one */
	unsigned retry_after_s;         /* for LINE_FULL, LINE_TIMEOUT, PAUSED, STOPPED */
	enum spawn_step failed_step;
	int failed_errno;
	struct err err;                 /* what to say, when not READY */
};

/* Runs once.  `result` is borrowed. */
typedef void pool_ready_fn(void *ctx, const struct pool_result *result);

/* A place in line.  The caller owns it and keeps it until `on_ready` has run
 * or pool_cancel() has returned.  Zero it first. */
struct pool_waiter {
	pool_ready_fn *on_ready;
	void *ctx;
	uint64_t since_ns;
	struct pool_waiter *next, *prev;        /* for pool.c only */
	struct pool *pool;                      /* for pool.c only; NULL: not in line */
};

/* `generation` is the spawners' number for the configuration that `handler` is
 * from, `folder` where workers' sockets are made.  All are borrowed. */
struct pool *pool_new(const struct handler_config *handler, uint32_t generation, struct budget *budget, struct loop *loop, struct spawner *spawner,
	const char *folder, struct err *err);
void pool_free(struct pool **pool);

/* Starts workers.min workers. */
void pool_open(struct pool *pool);
/* Refuses who waits, ends idle and starting workers at once and busy ones when
 * they are handed back.  `on_empty` runs from the loop when nothing is left, perhaps more
 * than once; the pool may be freed in it. */
void pool_close(struct pool *pool, void (*on_empty)(void *ctx), void *ctx);
/* Signals every worker that is left, once it is closed. */
void pool_signal(struct pool *pool, int signal);
bool pool_is_empty(const struct pool *pool);    /* no worker, nothing borrowed */

/* After a reload: who waits, or holds it and comes yet, is still served; nothing
 * is kept or started for others. */
void pool_retire(struct pool *pool, void (*on_empty)(void *ctx), void *ctx);

/* Opens it and finds out whether it can: on_done runs once, from the loop, with
 * NULL when workers.min workers are ready (at once when there are none to be), or
 * as many as max_processes has room for, but one at least; or with why the first
 * one could not start. */
void pool_try(struct pool *pool, void (*on_done)(void *ctx, const struct err *why), void *ctx);
bool pool_has_no_room(const struct pool *pool); /* is tried, and there is no room for a single worker */
void pool_forget_trial(struct pool *pool);      /* on_done does not run any more */

/* What the one who made it wants to find again; NULL at first. */
void pool_set_owner(struct pool *pool, void *owner);
void *pool_owner(const struct pool *pool);

const struct handler_config *pool_handler(const struct pool *pool);
uint32_t pool_generation(const struct pool *pool);

void pool_acquire(struct pool *pool, struct pool_waiter *waiter);
void pool_cancel(struct pool_waiter *waiter);   /* fine when it is not in line */

/* For a request that is to come in line, perhaps again: until pool_let_go() the
 * pool, retired or not, is there and takes it. */
void pool_hold(struct pool *pool);
void pool_let_go(struct pool *pool);

/* `worker` is NULL for a place.  A worker that is not good, is gone or has had
 * its requests is not used again; one that is past its age or its memory goes
 * when another is ready, or when it is not needed. */
void pool_release(struct pool *pool, struct worker *worker, bool is_good);

/* The answer of one that was given a spare has ended, before or at its release:
 * call it once, so that another is started. */
void pool_on_answered(struct pool *pool);

/* Ends a borrowed worker; it stays borrowed, and worker->on_gone (which must be
 * set) tells when to hand it back. */
void pool_stop_borrowed(struct pool *pool, struct worker *worker);

/* What it is doing, for `status`.  A pool without workers knows its waiting
 * processes at most: those with a request are not in the four states nor in
 * `ended`. */
struct pool_ended { uint64_t count, died /* without being told to */, cpu_us, max_rss_kib; };
struct pool_reading {
	bool has_workers;
	bool is_retired;                /* or closed: takes no new requests */
	unsigned idle, busy, starting, stopping;
	unsigned zygotes;               /* not among them */
	unsigned waiting;
	uint64_t longest_wait_ns;
	unsigned early_deaths;          /* in a row */
	uint64_t next_try_ns;           /* until then nothing is started; 0: no pause */
	struct pool_ended ended;        /* workers, since the pool was made */
};
void pool_read(const struct pool *pool, struct pool_reading *out);

/* All that have not ended, busy ones first. */
typedef void pool_worker_fn(void *ctx, const struct worker *worker);
void pool_each_worker(const struct pool *pool, pool_worker_fn *on_worker, void *ctx);
/* Without workers: those that wait, or are about to. */
typedef void pool_spare_fn(void *ctx, const struct spare_reading *spare);
void pool_each_spare(const struct pool *pool, pool_spare_fn *on_spare, void *ctx);

#endif
