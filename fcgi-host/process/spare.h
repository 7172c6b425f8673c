/*
 * spare.h - one process that was started, or forked, before its request, with
 * that request's pipes, and waits.
 *
 * The set it belongs to (spares.c) makes it, looks after it and ends it, until a
 * request takes it: then that owns it.
 */
#ifndef FCGI_HOST_PROCESS_SPARE_H
#define FCGI_HOST_PROCESS_SPARE_H

#include "base/err.h"
#include "base/loop.h"
#include "config/config.h"
#include "process/program.h"
#include "process/shim_link.h"
#include "process/spawn.h"

#include <stdbool.h>
#include <stdint.h>

struct zygote;

enum spare_state {
	SPARE_STARTING,
	SPARE_READY,            /* waits for a request */
	SPARE_TAKEN,            /* a request has it */
	SPARE_ENDING,           /* told to go */
	SPARE_GONE,             /* not its process any more, or it never had one */
};

enum { SPARE_IN, SPARE_OUT, SPARE_ERR };

/* What one is doing, for `status`. */
struct spare_reading {
	const struct process *process;
	enum spare_state state;         /* of a zygote: READY, whatever it does */
	bool is_zygote;
	uint64_t asked_ns;
};

struct spare {
	enum spare_state state;         /* set by spare.c until it is taken, and by spare_end() */
	const struct handler_config *handler;
	uint32_t generation;
	bool is_forked;                 /* by a zygote */
	bool has_said_ready;            /* itself */
	struct process process;
	int fds[3];                     /* our ends of its stdin, stdout and stderr; a taker sets those it takes to -1 */
	struct shim_link link;
	struct timer *timer;            /* starts too slowly; later: its set's */
	uint64_t asked_ns, ready_ns;
	const struct process *zygote;   /* that forks it, until then */
	const struct program *program;  /* the set's: what is the handler's own */
	bool was_handed_over;           /* its request was sent */
	bool was_refused;               /* it said that it cannot wait: `refusal` */
	struct err refusal;

	/* on_change: READY or GONE, from anywhere, so defer.  on_modules: what it loaded for its
	 * request, "NAME\0"…  Both are the set's; on_change of one that is taken never comes. */
	void (*on_change)(struct spare *spare);
	void (*on_modules)(struct spare *spare, struct slice names);
	void *set;
	bool is_dropped;                /* the set's: it was told to go, and is not at fault */
	bool is_due;                    /* the set's: a younger one is to take its place */
	bool is_hurried;                /* a request waits for it: it has its normal priority already */
	struct spare *next, *prev;
};

struct spare_how {
	const struct handler_config *handler;
	uint32_t generation;
	struct loop *loop;
	struct spawner *spawner;
	struct zygote *zygote;          /* forks it; NULL: it is started */
	const struct bytes *preload;    /* learnt names, see spawn.h */
	const struct program *program;  /* its variables; outlives the spare's hand-over */
};

/* NULL with err.  on_change, on_modules and set are for the caller to fill in at once. */
struct spare *spare_new(const struct spare_how *how, struct err *err);

/* To one that is taken: its request's variables, "NAME=value\0"…, those that are
 * safe, behind the handler's own.  -1 with err: nothing was sent.  One that is gone
 * already is no failure: see below. */
int spare_hand_over(struct spare *spare, const struct bytes *environment, struct err *err);

/* It is gone, and has not taken its request.  A socket knows whether all that was
 * sent was read. */
bool spare_has_left_request(struct spare *spare);

/* A request waits for it. */
void spare_hurry(struct spare *spare);

/* KILL: it has nothing to lose.  on_change comes when it is gone. */
void spare_end(struct spare *spare);

/* What it wrote to stderr goes to the log.  For one that ended without a request. */
void spare_log_stderr(struct spare *spare);
bool spare_has_written(const struct spare *spare);      /* something to its stdout */

/* Any time: its process is forgotten. */
void spare_free(struct spare **spare);

#endif
