/*
 * spares_private.h - what the parts of a set of waiting processes share:
 * spares.c and spares_zygote.c.  For them only.
 */
#ifndef FCGI_HOST_PROCESS_SPARES_PRIVATE_H
#define FCGI_HOST_PROCESS_SPARES_PRIVATE_H

#include "process/modules.h"
#include "process/spares.h"
#include "process/stamp.h"
#include "process/zygote.h"

struct spares {
	const struct handler_config *handler;
	uint32_t generation;
	struct budget_share *share;
	struct loop *loop;
	struct spawner *spawner;
	void (*on_change)(void *ctx);
	void *ctx;
	struct spare *first, *last;     /* not taken; oldest first */
	struct zygote *zygotes;         /* newest first; one forks, others start or end */
	unsigned owed;                  /* taken, and their answers have not ended: not to be replaced yet */
	struct timer *refill_timer;     /* but no longer than this */
	struct modules modules;
	struct program program;         /* only what is the handler's own of its variables */
	struct stamp stamp;             /* of what all of them were started from */
	uint64_t stamped_ns;            /* what older ones have loaded is not learnt */
	uint64_t typical_ns;            /* from asking to ready; 0: none was */
	struct timer *late_timer;       /* a start that a request waits for gets stuck */
	struct timer *age_timer;
	bool is_closed;
	bool is_off;                    /* they cannot be had, and that has been said */
	unsigned failures;              /* in a row */
	uint64_t pause_from_ns, pause_until_ns;
	struct timer *pause_timer;
	uint64_t ended_count, died_count, cpu_us, max_rss_kib;
};

/* spares.c */
void spares_turn_off(struct spares *spares, const struct err *why);
void spares_failed(struct spares *spares, uint64_t asked_ns, pid_t pid, const char *what);
void spares_failed_step(struct spares *spares, const struct process *process);
void spares_count_ended(struct spares *spares, const struct process *process);

/* spares_zygote.c */
struct zygote *spares_ready_zygote(const struct spares *spares);        /* or NULL */
void spares_tend_zygote(struct spares *spares);         /* starts one that is missing */
void spares_sweep_zygotes(struct spares *spares);
bool spares_end_zygotes(struct spares *spares);     /* false: there is none */
void spares_free_zygotes(struct spares *spares);

#endif
