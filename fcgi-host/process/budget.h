/*
 * budget.h - how many processes all handlers together may have (max_processes),
 * with a share that each of them is sure of (workers.reserved).
 *
 * A pool takes before it starts a process and gives back when that has gone.
 * One that was refused is told when there is something to take again.
 */
#ifndef FCGI_HOST_PROCESS_BUDGET_H
#define FCGI_HOST_PROCESS_BUDGET_H

#include <stdbool.h>

/* One for the host; max 0 is no limit.  Zero it first. */
struct budget {
	unsigned max;
	unsigned used;
	struct budget_share *shares;
};

struct budget_share {
	struct budget *budget;
	unsigned reserved, used;
	bool is_refused;                /* since the last on_free */
	void (*on_free)(void *ctx);     /* what was refused may be had now; from any call here, so defer */
	void (*on_need)(void *ctx);     /* others need what this one has but does not use; likewise */
	void *ctx;
	struct budget_share *next, *prev;
};

void budget_join(struct budget *budget, struct budget_share *share);
void budget_leave(struct budget_share *share);  /* gives back all that it has */

bool budget_take(struct budget_share *share);
void budget_give(struct budget_share *share);

#endif
