/*
 * Recycling: a worker that is near its end gets a replacement first, a few at a
 * time, so that there are never fewer than before.
 */
#include "process/pool_private.h"

#include "base/clock.h"

#include <stdlib.h>

/* From `spread` below to `spread` above. */
static uint64_t vary(uint64_t value, uint64_t spread)
{
	return spread == 0 ? value : value - spread + (uint64_t)random() % (2 * spread + 1);
}

/* Within workers.jitter of workers.max_requests: the upper half is for waiting
 * until another is ready. */
void pool_set_lifetime(struct worker *worker)
{
	const struct handler_config *handler = worker->handler;
	uint64_t requests = handler->workers.max_requests;
	uint64_t spread = requests * handler->workers.jitter_percent / 100;
	uint64_t age_ns = handler->workers.max_age_ms * 1000000;

	worker->enough_requests = (unsigned)vary(requests - spread / 2, spread / 2);
	if (worker->enough_requests == 0 && requests > 0)
		worker->enough_requests = 1;
	worker->most_requests = (unsigned)(requests + spread);
	worker->max_age_ns = vary(age_ns, age_ns * handler->workers.jitter_percent / 100);
}

static bool has_had_enough(const struct pool *pool, const struct worker *worker)
{
	uint64_t memory_bytes = pool->handler->limits.memory_bytes;

	return (worker->enough_requests > 0 && worker->requests >= worker->enough_requests) ||
		(worker->max_age_ns > 0 && clock_monotonic_ns() - worker->process.asked_ns >= worker->max_age_ns) ||
		(memory_bytes > 0 && worker_rss_kib(worker) > memory_bytes / 1024);
}

/* Will it have had enough before another can be ready, at the pace at which its
 * requests have come?  Two starts' time, since others may be starting too. */
static bool is_short_of_time(const struct pool *pool, const struct worker *worker, unsigned left)
{
	uint64_t worked_ns = clock_monotonic_ns() - worker->ready_ns;

	return (double)left * (double)worked_ns < 2.0 * (double)pool->start_ns * worker->requests;
}

/* The last third of its requests is time for another to start, and more of them
 * where that takes longer. */
static bool is_near_its_end(const struct pool *pool, const struct worker *worker)
{
	unsigned enough = worker->enough_requests;
	unsigned left = enough > worker->requests ? enough - worker->requests : 0;

	return enough > 0 && (left <= enough / 3 + 1 || is_short_of_time(pool, worker, left));
}

static void set_due(struct pool *pool, struct worker *worker)
{
	pool->due += !worker->is_due;
	worker->is_due = true;
}

/* It goes: if it was due, a replacement that is ready has its place. */
void pool_forget_due(struct pool *pool, struct worker *worker)
{
	if (worker->is_due) {
		pool->due--;
		pool->relief -= pool->relief > 0;
	}
	worker->is_due = false;
	pool->replacing -= worker->is_replacement && worker->state == WORKER_STARTING;
}

/* One at a time as far as that goes: where processes are slow to end, those that
 * still work are better than many that are ending. */
static bool may_go(const struct pool *pool)
{
	return pool->relief > 0 && pool->stopping.count == 0;
}

static bool is_not_needed(const struct pool *pool)
{
	return pool->waiting == 0 && pool_living(pool) > pool_floor(pool) && pool->stopping.count == 0;
}

static void drop_idle(struct pool *pool)
{
	struct worker *worker, *next;

	for (worker = pool->idle.first; worker != NULL; worker = next) {
		next = worker->next;
		if (!has_had_enough(pool, worker))
			continue;
		set_due(pool, worker);
		if (may_go(pool) || is_not_needed(pool))
			pool_stop_worker(pool, worker);
	}
}

struct worker *pool_first_to_go(struct pool *pool)
{
	struct worker *worker = pool->relief > 0 ? pool->idle.first : NULL;

	while (worker != NULL && !worker->is_due)
		worker = worker->next;
	return worker == NULL ? pool->idle.last : worker;
}

void pool_note_ready(struct pool *pool, struct worker *worker)
{
	uint64_t took_ns;

	worker->ready_ns = clock_monotonic_ns();
	took_ns = worker->ready_ns - worker->process.asked_ns;
	pool->start_ns -= pool->start_ns / 8;
	if (took_ns > pool->start_ns)
		pool->start_ns = took_ns;
	if (!worker->is_replacement)
		return;
	pool->replacing--;
	pool->relief += pool->relief < pool->due;
	drop_idle(pool);
}

void pool_drop_due(struct pool *pool)
{
	if (pool->due > 0)
		drop_idle(pool);
}

void pool_start_replacements(struct pool *pool)
{
	unsigned max = pool->handler->workers.max;
	unsigned at_once = max / 4 + 1;         /* few: what they take of the processors is taken from requests */
	unsigned most = max + max / 2 + 1;
	struct err err;

	while (pool->due > pool->replacing + pool->relief && pool->replacing < at_once && !pool->is_retired && pool_may_start(pool) &&
	       pool_total(pool) < most && budget_take(&pool->share, BUDGET_AHEAD)) {
		struct worker *worker = pool_start_worker(pool, &err);

		if (worker == NULL) {
			pool_put_off_starts(pool);
			return;
		}
		worker->is_replacement = true;
		pool->replacing++;
	}
}

void pool_set_age_timer(struct pool *pool)
{
	uint64_t now = clock_monotonic_ns(), next_ns = UINT64_MAX;

	if (pool->handler->workers.max_age_ms == 0)
		return;
	for (const struct worker *worker = pool->idle.first; worker != NULL; worker = worker->next)
		if (!worker->is_due && worker->process.asked_ns + worker->max_age_ns < next_ns)
			next_ns = worker->process.asked_ns + worker->max_age_ns;
	if (next_ns == UINT64_MAX)
		timer_clear(pool->age_timer);
	else
		timer_set(pool->age_timer, next_ns <= now ? 0 : (next_ns - now) / 1000000 + 1);
}

void pool_on_age_time(void *ctx)
{
	struct pool *pool = ctx;

	for (struct worker *worker = pool->idle.first; worker != NULL; worker = worker->next)
		if (has_had_enough(pool, worker))
			set_due(pool, worker);
	pool_wake(pool);
}

void pool_take_back(struct pool *pool, struct worker *worker, bool is_good)
{
	bool is_enough;

	worker->on_gone = NULL;
	worker->request_id = NULL;
	if (worker->state == WORKER_GONE) {
		worker_free(&worker);
		return;
	}
	if (worker->state == WORKER_STOPPING)
		return;
	if (is_good) {
		worker->requests++;
		pool->early_deaths = 0;
	}
	is_enough = has_had_enough(pool, worker);
	if (is_enough || is_near_its_end(pool, worker))
		set_due(pool, worker);
	if (!is_good || pool->is_closed || (worker->most_requests > 0 && worker->requests >= worker->most_requests) ||
	    (is_enough && may_go(pool)))
		pool_stop_worker(pool, worker);
	else
		pool_set_idle(pool, worker);
}
