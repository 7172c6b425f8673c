/*
 * The zygote of a set, and the one that takes its place.
 */
#include "process/spares_private.h"

#include <sys/wait.h>

struct zygote *spares_ready_zygote(const struct spares *spares)
{
	struct zygote *zygote = spares->zygotes;

	while (zygote != NULL && zygote->state != ZYGOTE_READY)
		zygote = zygote->next;
	return zygote;
}

static void end_zygote(struct zygote *zygote)
{
	zygote->is_dropped = true;
	zygote_end(zygote);
}

static void on_change(struct zygote *zygote)
{
	struct spares *spares = zygote->set;

	if (zygote->state == ZYGOTE_READY && !zygote->is_due)
		for (struct zygote *older = zygote->next; older != NULL; older = older->next)
			end_zygote(older);
	spares->on_change(spares->ctx);
}

static void start(struct spares *spares)
{
	struct zygote *zygote;
	struct err err;

	if (!budget_take(spares->share, BUDGET_AHEAD))
		return;
	zygote = zygote_new(spares->handler, spares->generation, spares->loop, spares->spawner, &spares->modules.names, &err);
	if (zygote == NULL) {
		budget_give(spares->share);
		spares_failed(spares, UINT64_MAX, 0, err.text);
		return;
	}
	zygote->on_change = on_change;
	zygote->set = spares;
	zygote->next = spares->zygotes;
	spares->zygotes = zygote;
}

/* One that forks or will, and is not due. */
static bool is_missing(const struct spares *spares)
{
	for (const struct zygote *zygote = spares->zygotes; zygote != NULL; zygote = zygote->next)
		if ((zygote->state == ZYGOTE_READY && !zygote->is_due) || zygote->state == ZYGOTE_STARTING)
			return false;
	return true;
}

void spares_tend_zygote(struct spares *spares)
{
	if (spares->handler->process == PROCESS_ZYGOTE && is_missing(spares))
		start(spares);
}

static void judge(struct spares *spares, struct zygote *zygote)
{
	const struct process *process = &zygote->process;

	if (zygote->was_refused) {
		spares_turn_off(spares, &zygote->refusal);
	} else if (process->failed_step != SPAWN_STEP_NONE) {
		spares_failed_step(spares, process);
	} else {
		spares->died_count++;
		spares_failed(spares, zygote->asked_ns, process->pid,
			zygote->has_changed ? "was the zygote, and its files changed as it started" : "was the zygote and ended");
	}
}

/* Its children may say that they are ready when it has gone. */
static void forget_zygote(const struct spares *spares, const struct zygote *zygote)
{
	for (struct spare *spare = spares->first; spare != NULL; spare = spare->next)
		if (spare->zygote == &zygote->process)
			spare->zygote = NULL;
}

void spares_sweep_zygotes(struct spares *spares)
{
	struct zygote **link = &spares->zygotes;

	while (*link != NULL) {
		struct zygote *zygote = *link;

		if (zygote->state != ZYGOTE_GONE) {
			link = &zygote->next;
			continue;
		}
		*link = zygote->next;
		if (!zygote->is_dropped)
			judge(spares, zygote);
		spares_count_ended(spares, &zygote->process);
		budget_give(spares->share);
		forget_zygote(spares, zygote);
		zygote_free(&zygote);
	}
}

bool spares_end_zygotes(struct spares *spares)
{
	for (struct zygote *zygote = spares->zygotes; zygote != NULL; zygote = zygote->next)
		end_zygote(zygote);
	return spares->zygotes != NULL;
}

void spares_free_zygotes(struct spares *spares)
{
	while (spares->zygotes != NULL) {
		struct zygote *zygote = spares->zygotes;

		spares->zygotes = zygote->next;
		zygote_free(&zygote);
	}
}
