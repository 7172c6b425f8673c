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

/* What is kept for those who have not taken all of theirs. */
static unsigned kept_for_others(const struct budget *budget, const struct budget_share *own)
{
	unsigned kept = 0;

	for (const struct budget_share *share = budget->shares; share != NULL; share = share->next)
		if (share != own && share->used < share->reserved)
			kept += share->reserved - share->used;
	return kept;
}

static bool may_take(const struct budget_share *share)
{
	const struct budget *budget = share->budget;

	if (budget->max == 0)
		return true;
	if (share->used < share->reserved)
		return true;
	return budget->used + kept_for_others(budget, share) < budget->max;
}

bool budget_take(struct budget_share *share)
{
	struct budget *budget = share->budget;

	if (!may_take(share)) {
		share->is_refused = true;
		for (struct budget_share *other = budget->shares; other != NULL; other = other->next)
			if (other != share && other->used > other->reserved)
				other->on_need(other->ctx);
		return false;
	}
	share->used++;
	budget->used++;
	return true;
}

void budget_give(struct budget_share *share)
{
	share->used--;
	share->budget->used--;
	tell_free(share->budget);
}
