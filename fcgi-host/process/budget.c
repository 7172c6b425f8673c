#include "process/budget.h"

#include <stddef.h>

void budget_join(struct budget *budget, struct budget_share *share)
{
	share->budget = budget;
	share->prev = NULL;
	share->next = budget->shares;
	if (share->next != NULL)
		share->next->prev = share;
	budget->shares = share;
}

static void tell_free(struct budget *budget)
{
	for (struct budget_share *share = budget->shares; share != NULL; share = share->next) {
		if (!share->is_refused)
			continue;
		share->is_refused = false;
		share->on_free(share->ctx);
	}
}

void budget_leave(struct budget_share *share)
{
	struct budget *budget = share->budget;

	if (budget == NULL)
		return;
	if (share->prev != NULL)
		share->prev->next = share->next;
	else
		budget->shares = share->next;
	if (share->next != NULL)
		share->next->prev = share->prev;
	budget->used -= share->used;
	share->budget = NULL;
	tell_free(budget);
}

/* Somebody waits for one of theirs: that goes before what is to be there ahead,
 * and whoever has fewer goes first, or a handler that always has requests waiting
 * would be given each one that becomes free. */
static bool goes_first(const struct budget_share *share, const struct budget_share *own, enum budget_use use)
{
	return (use == BUDGET_AHEAD || share->used < own->used) && share->has_need(share->ctx);
}

/* Of what others have reserved and not taken, and of what they need before us. */
static unsigned kept_for_others(const struct budget *budget, const struct budget_share *own, enum budget_use use)
{
	unsigned kept = 0;

	for (struct budget_share *share = budget->shares; share != NULL; share = share->next) {
		if (share != own && share->used < share->reserved) {
			kept += share->reserved - share->used;
		} else if (share != own && goes_first(share, own, use)) {
			share->holds_up = true;
			kept++;
		}
	}
	return kept;
}

static bool may_take(const struct budget_share *share, enum budget_use use)
{
	const struct budget *budget = share->budget;

	if (budget->max == 0)
		return true;
	if (share->used < share->reserved)
		return true;
	return budget->used + kept_for_others(budget, share, use) < budget->max;
}

static void ask_others(const struct budget_share *own)
{
	struct budget_share *share = own->budget->shares;

	while (share != NULL && (share == own || share->used <= share->reserved || !share->on_need(share->ctx)))
		share = share->next;
}

bool budget_take(struct budget_share *share, enum budget_use use)
{
	if (!may_take(share, use)) {
		share->is_refused = true;
		if (use == BUDGET_NEEDED)
			ask_others(share);
		return false;
	}
	share->used++;
	share->budget->used++;
	return true;
}

void budget_give(struct budget_share *share)
{
	share->used--;
	share->budget->used--;
	tell_free(share->budget);
}

void budget_settle(struct budget_share *share)
{
	if (!share->holds_up || share->has_need(share->ctx))
		return;
	share->holds_up = false;
	tell_free(share->budget);
}
