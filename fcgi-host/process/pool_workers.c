/*
 * The workers of a pool: which are in what state, when one is started, when an
 * idle one ends, and what happens to those that die at their start.  Knows no
 * line but how long it is.
 */
#include "process/pool_private.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>

enum {
	PAUSE_FIRST_MS = 500,   /* after the first worker that died at its start */
	PAUSE_LAST_MS = 30000,
	YOUNG_MS = 1000,        /* a worker that ends so soon, without an answer, cannot start */
};

/* Rings of workers: a worker is in exactly one, by its state. */

static void ring_push(struct ring *ring, struct worker *worker)
{
	worker->prev = NULL;
	worker->next = ring->first;
	if (ring->first != NULL)
		ring->first->prev = worker;
	else
		ring->last = worker;
	ring->first = worker;
	ring->count++;
}

static void ring_push_last(struct ring *ring, struct worker *worker)
{
	worker->next = NULL;
	worker->prev = ring->last;
	if (ring->last != NULL)
		ring->last->next = worker;
	else
		ring->first = worker;
	ring->last = worker;
	ring->count++;
}

static void ring_drop(struct ring *ring, struct worker *worker)
{
	if (worker->prev != NULL)
		worker->prev->next = worker->next;
	else
		ring->first = worker->next;
	if (worker->next != NULL)
		worker->next->prev = worker->prev;
	else
		ring->last = worker->prev;
	ring->count--;
}

static struct ring *ring_of(struct pool *pool, enum worker_state state)
{
	switch (state) {
	case WORKER_STARTING: return &pool->starting;
	case WORKER_IDLE: return &pool->idle;
	case WORKER_BUSY: return &pool->busy;
	case WORKER_STOPPING: return &pool->stopping;
	case WORKER_GONE: break;
	}
	return NULL;
}

void pool_set_state(struct pool *pool, struct worker *worker, enum worker_state state)
{
	ring_drop(ring_of(pool, worker->state), worker);
	worker->state = state;
	if (state != WORKER_GONE)
		ring_push(ring_of(pool, state), worker);
}

void pool_set_idle(struct pool *pool, struct worker *worker)
{
	worker->idle_since_ns = clock_monotonic_ns();
	pool_set_state(pool, worker, WORKER_IDLE);
}

/* Behind those that are warm. */
static void set_ready(struct pool *pool, struct worker *worker)
{
	worker->idle_since_ns = clock_monotonic_ns();
	ring_drop(&pool->starting, worker);
	worker->state = WORKER_IDLE;
	ring_push_last(&pool->idle, worker);
}

void pool_stop_worker(struct pool *pool, struct worker *worker)
{
	pool_forget_due(pool, worker);
	pool_set_state(pool, worker, WORKER_STOPPING);
	worker_stop(worker);
}

void pool_end_idle(struct pool *pool)
{
	while (pool->idle.first != NULL)
		pool_stop_worker(pool, pool->idle.first);
	while (pool->starting.first != NULL)
		pool_stop_worker(pool, pool->starting.first);
}

unsigned pool_living(const struct pool *pool)
{
	return pool->starting.count + pool->idle.count + pool->busy.count;
}

unsigned pool_total(const struct pool *pool)
{
	return pool_living(pool) + pool->stopping.count;
}

bool pool_is_awaited(const struct pool *pool)
{
	bool is_tried = pool->on_tried != NULL && pool_living(pool) == 0;

	return is_tried || pool->waiting > pool->starting.count + pool->idle.count;
}

static void signal_ring(const struct ring *ring, int signal)
{
	for (struct worker *worker = ring->first; worker != NULL; worker = worker->next)
		process_signal(&worker->process, signal);
}

void pool_signal(struct pool *pool, int signal)
{
	signal_ring(&pool->busy, signal);
	signal_ring(&pool->stopping, signal);
}

static void each_of_ring(const struct ring *ring, pool_worker_fn *on_worker, void *ctx)
{
	for (const struct worker *worker = ring->first; worker != NULL; worker = worker->next)
		on_worker(ctx, worker);
}

void pool_each_worker(const struct pool *pool, pool_worker_fn *on_worker, void *ctx)
{
	each_of_ring(&pool->busy, on_worker, ctx);
	each_of_ring(&pool->idle, on_worker, ctx);
	each_of_ring(&pool->starting, on_worker, ctx);
	each_of_ring(&pool->stopping, on_worker, ctx);
}

static void free_ring(struct ring *ring)
{
	while (ring->first != NULL) {
		struct worker *worker = ring->first;

		ring_drop(ring, worker);
		worker_free(&worker);
	}
}

void pool_free_workers(struct pool *pool)
{
	free_ring(&pool->starting);
	free_ring(&pool->idle);
	free_ring(&pool->busy);
	free_ring(&pool->stopping);
}

/* Idle ones. */

/* How many stay however long they are idle: `spare` counts while others work. */
unsigned pool_floor(const struct pool *pool)
{
	unsigned in_use = pool->busy.count > 0 ? pool->busy.count + pool->handler->workers.spare : 0;

	return in_use > pool->handler->workers.min ? in_use : pool->handler->workers.min;
}

void pool_set_idle_timer(struct pool *pool)
{
	uint64_t limit_ms = pool->handler->workers.idle_timeout_ms;
	uint64_t idle_ms;

	if (pool->idle.last == NULL || limit_ms == 0 || pool_living(pool) <= pool_floor(pool)) {
		timer_clear(pool->idle_timer);
		return;
	}
	idle_ms = (clock_monotonic_ns() - pool->idle.last->idle_since_ns) / 1000000;
	timer_set(pool->idle_timer, idle_ms >= limit_ms ? 0 : limit_ms - idle_ms);
}

/* Runs from the loop like serve_line() does: a worker is either handed out or
 * stopped, never both. */
void pool_on_idle_time(void *ctx)
{
	struct pool *pool = ctx;
	uint64_t limit_ns = pool->handler->workers.idle_timeout_ms * 1000000;
	uint64_t now = clock_monotonic_ns();

	while (pool->idle.last != NULL && pool_living(pool) > pool_floor(pool) &&
	       now - pool->idle.last->idle_since_ns >= limit_ns)
		pool_stop_worker(pool, pool_first_to_go(pool));
	pool_set_idle_timer(pool);
}

/* When a start fails, or a worker dies at it. */

bool pool_is_paused(const struct pool *pool)
{
	return clock_monotonic_ns() < pool->pause_until_ns;
}

/* A start that failed is not tried again and again while requests can wait for
 * the workers that there are. */
void pool_put_off_starts(struct pool *pool)
{
	pool->retry_ns = clock_monotonic_ns() + (uint64_t)PAUSE_FIRST_MS * 1000000;
	if (!pool_is_paused(pool))
		timer_set(pool->pause_timer, PAUSE_FIRST_MS + 1);
}

bool pool_may_start(const struct pool *pool)
{
	return !pool->is_closed && !pool_is_paused(pool) && (pool_living(pool) == 0 || clock_monotonic_ns() >= pool->retry_ns);
}

/* Spreads, hides nothing. */
static unsigned random_below(unsigned end)
{
	return (unsigned)random() % end;
}

static void begin_pause(struct pool *pool, const struct worker *worker)
{
	uint64_t pause_ms = PAUSE_LAST_MS;

	/* Workers that were started together die together: that is one failure. */
	if (worker->process.asked_ns < pool->pause_from_ns)
		return;
	if (pool->early_deaths < 6)
		pause_ms = (uint64_t)PAUSE_FIRST_MS << pool->early_deaths;
	pause_ms += pause_ms * random_below(11) / 100;  /* handlers that fail together do not try together */
	if (pause_ms > PAUSE_LAST_MS)
		pause_ms = PAUSE_LAST_MS;
	pool->early_deaths++;
	pool->pause_from_ns = clock_monotonic_ns();
	pool->pause_until_ns = pool->pause_from_ns + pause_ms * 1000000;
	timer_set(pool->pause_timer, pause_ms + 1);
	err_set(&pool->trouble, "handler %s: pid %d ended before it answered a request", pool->handler->name, (int)worker->process.pid);
	pool->has_trouble = true;
	log_message(LOG_LEVEL_ERROR, "worker_pause", "handler %s: pid %d ended before it answered a request; next start in %llu ms",
		pool->handler->name, (int)worker->process.pid, (unsigned long long)pause_ms);
}

/* Exec failed: cheap to find out, so each request tries again and a program
 * that is put right is served at once.  Nothing is started ahead meanwhile. */
static void on_start_failed(struct pool *pool, const struct worker *worker)
{
	const struct process *process = &worker->process;
	struct err why;

	spawn_failure_text(process->failed_step, process->failed_errno, pool->handler->command[0], &why);
	if (pool->waiting == 0 || pool_living(pool) > 0)
		log_message(LOG_LEVEL_ERROR, "worker_start", "handler %s: %s", pool->handler->name, why.text);
	pool->can_start = false;
	pool_put_off_starts(pool);
	err_set(&pool->trouble, "handler %s: %.900s", pool->handler->name, why.text);
	pool->has_trouble = true;
	if (pool_living(pool) == 0)
		pool_refuse_start(pool, process->failed_step, process->failed_errno, &why);
}

static bool is_young(const struct worker *worker)
{
	return !worker->is_ready || clock_monotonic_ns() - worker->process.asked_ns < (uint64_t)YOUNG_MS * 1000000;
}

/* Ended by itself without ever taking a request. */
static bool died_at_start(const struct worker *worker)
{
	return worker->state != WORKER_STOPPING && worker->process.failed_step == SPAWN_STEP_NONE &&
		worker->requests == 0 && is_young(worker) && (worker->handed_out == 0 || !worker_has_accepted(worker));
}

/* They come and go. */

static void count_ended(struct pool *pool, const struct worker *worker)
{
	const struct process *process = &worker->process;

	if (process->failed_step != SPAWN_STEP_NONE)
		return;
	pool->ended.count++;
	pool->ended.died += worker->state != WORKER_STOPPING;
	pool->ended.cpu_us += process->usage.cpu_us;
	if (process->usage.max_rss_kib > pool->ended.max_rss_kib)
		pool->ended.max_rss_kib = process->usage.max_rss_kib;
}

static void on_worker_gone(struct pool *pool, struct worker *worker)
{
	bool was_early = died_at_start(worker);
	void (*on_gone)(void *ctx) = worker->on_gone;

	budget_give(&pool->share);
	pool_forget_due(pool, worker);
	count_ended(pool, worker);
	pool_set_state(pool, worker, WORKER_GONE);
	if (was_early)
		begin_pause(pool, worker);
	if (worker->process.failed_step != SPAWN_STEP_NONE)
		on_start_failed(pool, worker);
	if (on_gone == NULL)
		worker_free(&worker);
	else
		on_gone(worker->ctx);
}

static void on_worker_change(struct worker *worker)
{
	struct pool *pool = worker->pool;

	if (worker->process.state == PROCESS_GONE) {
		on_worker_gone(pool, worker);
	} else if (worker->state == WORKER_STARTING) {
		pool->can_start = true;
		set_ready(pool, worker);
		pool_note_ready(pool, worker);
	}
	pool_wake(pool);
}

struct worker *pool_start_worker(struct pool *pool, struct err *err)
{
	struct worker *worker = worker_start(pool->handler, pool->generation, pool->folder, pool->loop, pool->spawner,
		on_worker_change, pool, err);

	if (worker == NULL) {
		budget_give(&pool->share);
		return NULL;
	}
	pool_set_lifetime(worker);
	ring_push(&pool->starting, worker);
	return worker;
}

/* How many are to be there without a request: while they die at their start,
 * one shows whether that is over. */
static unsigned wanted_ahead(const struct pool *pool)
{
	unsigned min = pool->handler->workers.min;

	if (!pool->can_start || pool->is_retired)
		return 0;
	return pool->early_deaths > 0 && min > 1 ? 1 : min;
}

static unsigned less(unsigned from, unsigned what)
{
	return from > what ? from - what : 0;
}

/* As many as the line, workers.spare and workers.min need, at once. */
static unsigned wanted(const struct pool *pool)
{
	bool is_ahead = pool->can_start && !pool->is_retired && pool->early_deaths == 0 && pool->borrowed > 0;
	unsigned spare = is_ahead ? pool->handler->workers.spare : 0;
	unsigned want = less(pool->waiting + spare, pool->starting.count + pool->idle.count);
	unsigned for_min = less(wanted_ahead(pool), pool_living(pool));

	return want > for_min ? want : for_min;
}

void pool_start_workers(struct pool *pool)
{
	unsigned want = wanted(pool);
	struct err err;

	if (!pool_may_start(pool))
		return;
	for (; want > 0 && pool_total(pool) < pool->handler->workers.max &&
	       budget_take(&pool->share, pool_is_awaited(pool) ? BUDGET_NEEDED : BUDGET_AHEAD); want--) {
		if (pool_start_worker(pool, &err) == NULL) {
			log_message(LOG_LEVEL_ERROR, "worker_start", "handler %s: %s", pool->handler->name, err.text);
			pool_put_off_starts(pool);
			if (pool_living(pool) == 0)
				pool_refuse_start(pool, SPAWN_STEP_FORK, EAGAIN, &err);
			return;
		}
	}
}
