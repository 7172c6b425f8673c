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

/* The last third of its requests is the time in which another can start. */
static bool is_near_its_end(const struct pool *pool, const struct worker *worker)
{
	unsigned margin = worker->enough_requests / 3 + 1;

	return (worker->enough_requests > 0 && worker->requests + margin >= worker->enough_requests) ||
		has_had_enough(pool, worker);
}

static void set_due(struct pool *pool, struct worker *worker)
{
	pool->due += !worker->is_due;
	worker->is_due = true;
}

void pool_forget_due(struct pool *pool, struct worker *worker)
{
	pool->due -= worker->is_due && !worker->is_relieved;
	worker->is_due = false;
	pool->replacing -= worker->is_replacement && worker->state == WORKER_STARTING;
}

static struct worker *first_due(const struct ring *ring)
{
	struct worker *worker = ring->last;

	while (worker != NULL && (!worker->is_due || worker->is_relieved))
		worker = worker->prev;
	return worker;
}

void pool_relieve_one(struct pool *pool)
{
	struct worker *worker = first_due(&pool->idle);

	if (worker == NULL)
		worker = first_due(&pool->busy);
	if (worker == NULL)
		return;
	worker->is_relieved = true;
	pool->due--;
	if (worker->state == WORKER_IDLE && has_had_enough(pool, worker))
		pool_stop_worker(pool, worker);
}

void pool_drop_due(struct pool *pool)
{
	struct worker *worker, *next;

	for (worker = pool->idle.first; worker != NULL && pool->waiting == 0; worker = next) {
		next = worker->next;
		if (has_had_enough(pool, worker) && (worker->is_relieved || pool_living(pool) > pool_floor(pool)))
			pool_stop_worker(pool, worker);
	}
}

void pool_start_replacements(struct pool *pool)
{
	unsigned at_once = pool->handler->workers.max / 2 + 1;
	struct err err;

	while (pool->due > pool->replacing && pool->replacing < at_once && !pool->is_retired && pool_may_start(pool) &&
	       pool_living(pool) < pool->handler->workers.max + pool->due && pool_total(pool) < pool->handler->workers.max + at_once &&
	       budget_take(&pool->share, BUDGET_AHEAD)) {
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
		if (is_near_its_end(pool, worker))
			set_due(pool, worker);
	pool_wake(pool);
}

void pool_take_back(struct pool *pool, struct worker *worker, bool is_good)
{
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
	if (!is_good || pool->is_closed || (worker->most_requests > 0 && worker->requests >= worker->most_requests) ||
	    (worker->is_relieved && has_had_enough(pool, worker))) {
		pool_stop_worker(pool, worker);
		return;
	}
	if (is_near_its_end(pool, worker))
		set_due(pool, worker);
	pool_set_idle(pool, worker);
}
