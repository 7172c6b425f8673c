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
	bool holds_up;                  /* others were refused because of its need */
	void (*on_free)(void *ctx);     /* what was refused may be had now; from any call here, so defer */
	bool (*has_need)(void *ctx);    /* does somebody wait for a process of this one? */
	bool (*on_need)(void *ctx);     /* somebody waits for one of others: true when it gives up one that it does not use */
	void *ctx;
	struct budget_share *next, *prev;
};

void budget_join(struct budget *budget, struct budget_share *share);
void budget_leave(struct budget_share *share);  /* gives back all that it has */

/* Where several have somebody waiting, the one that has fewest comes first.
 * For somebody who waits others give up what they do not use; what is to be there
 * ahead is taken from nobody, or two who want more than there is would take it
 * from each other for ever. */
enum budget_use { BUDGET_AHEAD, BUDGET_NEEDED };
bool budget_take(struct budget_share *share, enum budget_use use);
void budget_give(struct budget_share *share);
/* Its need may be over without its having taken anything: who was refused because
 * of that is told. */
void budget_settle(struct budget_share *share);

#endif
