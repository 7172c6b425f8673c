/*
 * The line of those who wait, and the handing out.  How workers come and go is
 * in pool_workers.c, how one that has served long is replaced in pool_recycle.c.
 */
#include "process/pool_private.h"

#include "base/clock.h"

#include <stdlib.h>

/* The line. */

static void leave_line(struct pool_waiter *waiter)
{
	struct pool *pool = waiter->pool;

	if (waiter->prev != NULL)
		waiter->prev->next = waiter->next;
	else
		pool->first = waiter->next;
	if (waiter->next != NULL)
		waiter->next->prev = waiter->prev;
	else
		pool->last = waiter->prev;
	pool->waiting--;
	waiter->pool = NULL;
}

static void answer(struct pool_waiter *waiter, const struct pool_result *result)
{
	leave_line(waiter);
	waiter->on_ready(waiter->ctx, result);
}

static void refuse_all(struct pool *pool, const struct pool_result *result)
{
	while (pool->first != NULL)
		answer(pool->first, result);
}

static unsigned seconds_until(uint64_t ns)
{
	uint64_t now = clock_monotonic_ns();

	return now >= ns ? 1 : (unsigned)((ns - now) / 1000000000u) + 1;
}

static void refuse_paused(struct pool *pool)
{
	struct pool_result result = {
		.answer = POOL_PAUSED,
		.retry_after_s = seconds_until(pool->pause_until_ns),
	};

	err_set(&result.err, "its workers keep dying at their start; next try in %u s", result.retry_after_s);
	refuse_all(pool, &result);
}

void pool_refuse_start(struct pool *pool, enum spawn_step step, int errnum, const struct err *why)
{
	struct pool_result result = { .answer = POOL_START_FAILED, .failed_step = step, .failed_errno = errnum, .err = *why };

	refuse_all(pool, &result);
}

static void set_line_timer(struct pool *pool)
{
	uint64_t waited_ms;
	uint64_t limit_ms = pool->handler->queue.timeout_ms;

	if (pool->first == NULL || limit_ms == 0) {
		timer_clear(pool->line_timer);
		return;
	}
	waited_ms = (clock_monotonic_ns() - pool->first->since_ns) / 1000000;
	timer_set(pool->line_timer, waited_ms >= limit_ms ? 0 : limit_ms - waited_ms);
}

static void on_line_time(void *ctx)
{
	struct pool *pool = ctx;
	uint64_t limit_ns = pool->handler->queue.timeout_ms * 1000000;
	uint64_t now = clock_monotonic_ns();
	struct pool_result result = { .answer = POOL_LINE_TIMEOUT, .retry_after_s = 1 };

	err_set(&result.err, "waited queue.timeout (%llu ms) for a process",
		(unsigned long long)pool->handler->queue.timeout_ms);
	while (pool->first != NULL && now - pool->first->since_ns >= limit_ns)
		answer(pool->first, &result);
	pool_wake(pool);
}

/* Who came when the line was full waits at its end for the refusal, so that it
 * too comes from the loop. */

static unsigned free_places(const struct pool *pool)
{
	unsigned max = pool->handler->workers.max;

	return pool->borrowed < max ? max - pool->borrowed : 0;
}

static void refuse_overflow(struct pool *pool)
{
	struct pool_result result = { .answer = POOL_LINE_FULL, .retry_after_s = 1 };

	err_set(&result.err, "queue.max (%u) requests wait already", pool->handler->queue.max);
	while (pool->waiting > pool->handler->queue.max + free_places(pool))
		answer(pool->last, &result);
}

static void refuse_stopped(struct pool *pool)
{
	struct pool_result result = { .answer = POOL_STOPPED, .retry_after_s = 1 };

	err_set(&result.err, "the host is stopping");
	refuse_all(pool, &result);
}

/* A trial. */

static void end_trial(struct pool *pool, const struct err *why)
{
	void (*on_tried)(void *ctx, const struct err *why) = pool->on_tried;

	pool->on_tried = NULL;
	if (on_tried != NULL)
		on_tried(pool->tried_ctx, why);
}

static void check_trial(struct pool *pool)
{
	unsigned ready = pool->idle.count + pool->busy.count;

	if (pool->has_trouble) {
		pool->has_trouble = false;
		end_trial(pool, &pool->trouble);
	}
	if (pool->on_tried != NULL && (!pool->has_workers || ready >= pool->handler->workers.min || (ready > 0 && pool->share.is_refused)))
		end_trial(pool, NULL);
}

bool pool_has_no_room(const struct pool *pool)
{
	return pool->on_tried != NULL && pool_living(pool) == 0 && pool->share.is_refused;
}

/* The one place where processes are given away. */

/* A connection to somebody else's server is no process. */
static bool take_place(struct pool *pool)
{
	return pool->handler->connect.text != NULL || budget_take(&pool->share, BUDGET_NEEDED);
}

static void give_place(struct pool *pool, struct spare *spare)
{
	struct pool_result result = { .answer = POOL_READY, .spare = spare };

	pool->borrowed++;
	answer(pool->first, &result);
}

static void give_worker(struct pool *pool)
{
	struct worker *worker = pool->idle.first;
	struct pool_result result = { .answer = POOL_READY, .worker = worker };

	pool_set_state(pool, worker, WORKER_BUSY);
	worker->handed_out++;
	pool->borrowed++;
	answer(pool->first, &result);
}

static void give_workers(struct pool *pool)
{
	while (pool->first != NULL && pool->idle.first != NULL)
		give_worker(pool);
	pool_drop_due(pool);
	pool_start_workers(pool);
	pool_start_replacements(pool);
	pool_set_age_timer(pool);
	if (pool->first != NULL && pool_living(pool) == 0 && pool_is_paused(pool))
		refuse_paused(pool);
	pool_set_idle_timer(pool);
}

static void end_idle(struct pool *pool)
{
	pool_end_idle(pool);
	if (pool->spares != NULL && !spares_is_closed(pool->spares))
		spares_close(pool->spares);
}

/* true when the first in line was given a place, or should not wait for it. */
static bool give_next_place(struct pool *pool)
{
	struct spare *spare = pool->spares == NULL ? NULL : spares_take(pool->spares);
	unsigned to_serve = pool->waiting < free_places(pool) ? pool->waiting : free_places(pool);

	if (spare == NULL && pool->spares != NULL && spares_soon(pool->spares, to_serve) >= to_serve)
		return false;
	if (spare == NULL && !take_place(pool)) {
		/* What we have ahead may be all that there is to have. */
		if (pool->spares != NULL && pool->borrowed == 0)
			spares_yield(pool->spares);
		return false;
	}
	give_place(pool, spare);
	return true;
}

static void give_places(struct pool *pool)
{
	while (pool->first != NULL && free_places(pool) > 0 && give_next_place(pool))
		;
	if (pool->spares != NULL)
		spares_tend(pool->spares, pool->waiting);
}

static void serve_line(void *ctx)
{
	struct pool *pool = ctx;

	if (pool->is_closed)
		refuse_stopped(pool);
	refuse_overflow(pool);
	if (pool->has_workers)
		give_workers(pool);
	else
		give_places(pool);
	budget_settle(&pool->share);
	set_line_timer(pool);
	check_trial(pool);
	if (pool->is_retired && pool->first == NULL)
		end_idle(pool);
	if ((pool->is_closed || pool->is_retired) && pool->first == NULL && pool->holders == 0 && pool_is_empty(pool))
		pool->on_empty(pool->ctx);      /* which may free the pool */
}

void pool_wake(struct pool *pool)
{
	defer_call(pool->loop, &pool->line_call, serve_line, pool);
}

/* Borrowing. */

void pool_acquire(struct pool *pool, struct pool_waiter *waiter)
{
	waiter->pool = pool;
	waiter->since_ns = clock_monotonic_ns();
	waiter->next = NULL;
	waiter->prev = pool->last;
	if (pool->last != NULL)
		pool->last->next = waiter;
	else
		pool->first = waiter;
	pool->last = waiter;
	pool->waiting++;
	pool_wake(pool);
}

void pool_cancel(struct pool_waiter *waiter)
{
	struct pool *pool = waiter->pool;

	if (pool == NULL)
		return;
	leave_line(waiter);
	pool_wake(pool);
}

void pool_hold(struct pool *pool)
{
	pool->holders++;
}

void pool_let_go(struct pool *pool)
{
	if (--pool->holders == 0 && (pool->is_closed || pool->is_retired))
		pool_wake(pool);
}

void pool_stop_borrowed(struct pool *pool, struct worker *worker)
{
	if (worker->state == WORKER_BUSY)
		pool_stop_worker(pool, worker);
}

void pool_release(struct pool *pool, struct worker *worker, bool is_good)
{
	pool->borrowed--;
	if (worker != NULL)
		pool_take_back(pool, worker, is_good);
	else if (pool->handler->connect.text == NULL)
		budget_give(&pool->share);
	pool_wake(pool);
}

void pool_on_answered(struct pool *pool)
{
	spares_on_answered(pool->spares);
}

/* Open and close. */

/* Something that was refused may be had now, or a pause is over. */
static void on_wake(void *ctx)
{
	pool_wake(ctx);
}

static bool has_need(void *ctx)
{
	const struct pool *pool = ctx;

	if (pool->has_workers)
		return pool_is_awaited(pool) && pool_may_start(pool) && pool_total(pool) < pool->handler->workers.max;
	return pool->waiting > 0 && !pool->is_closed && pool->handler->connect.text == NULL && free_places(pool) > 0;
}

/* An idle worker above the share goes when another handler has requests for it. */
static bool on_need(void *ctx)
{
	struct pool *pool = ctx;

	if (pool->waiting > 0)
		return false;
	if (pool->spares != NULL)
		return spares_yield(pool->spares);
	if (pool->idle.last == NULL)
		return false;
	pool_stop_worker(pool, pool->idle.last);
	return true;
}

struct pool *pool_new(const struct handler_config *handler, uint32_t generation, struct budget *budget, struct loop *loop, struct spawner *spawner,
	const char *folder, struct err *err)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	if (pool == NULL) {
		err_set(err, "no memory for the pool of handler %s", handler->name);
		return NULL;
	}
	pool->handler = handler;
	pool->generation = generation;
	pool->loop = loop;
	pool->spawner = spawner;
	pool->folder = folder;
	pool->can_start = true;
	pool->has_workers = handler->process == PROCESS_PERSISTENT && handler->connect.text == NULL;
	pool->line_timer = timer_new(loop, on_line_time, pool);
	pool->idle_timer = timer_new(loop, pool_on_idle_time, pool);
	pool->pause_timer = timer_new(loop, on_wake, pool);
	pool->age_timer = timer_new(loop, pool_on_age_time, pool);
	pool->share = (struct budget_share){
		.reserved = handler->workers.reserved, .on_free = on_wake, .has_need = has_need, .on_need = on_need, .ctx = pool };
	budget_join(budget, &pool->share);
	if (config_is_waiting(handler) && (pool->spares = spares_new(handler, generation, &pool->share, loop, spawner, on_wake, pool, err)) == NULL) {
		pool_free(&pool);
		return NULL;
	}
	if (pool->age_timer == NULL || pool->line_timer == NULL || pool->idle_timer == NULL || pool->pause_timer == NULL) {
		err_set(err, "no memory for the pool of handler %s", handler->name);
		pool_free(&pool);
		return NULL;
	}
	return pool;
}

void pool_open(struct pool *pool)
{
	pool_wake(pool);
}

void pool_close(struct pool *pool, void (*on_empty)(void *ctx), void *ctx)
{
	pool->on_empty = on_empty;
	pool->ctx = ctx;
	pool->is_closed = true;
	end_idle(pool);
	pool_wake(pool);
}

void pool_retire(struct pool *pool, void (*on_empty)(void *ctx), void *ctx)
{
	pool->is_retired = true;
	pool->on_empty = on_empty;
	pool->ctx = ctx;
	pool_wake(pool);
}

void pool_try(struct pool *pool, void (*on_done)(void *ctx, const struct err *why), void *ctx)
{
	pool->on_tried = on_done;
	pool->tried_ctx = ctx;
	pool_open(pool);
}

void pool_forget_trial(struct pool *pool)
{
	pool->on_tried = NULL;
}

void pool_set_owner(struct pool *pool, void *owner)
{
	pool->owner = owner;
}

void *pool_owner(const struct pool *pool)
{
	return pool->owner;
}

const struct handler_config *pool_handler(const struct pool *pool)
{
	return pool->handler;
}

uint32_t pool_generation(const struct pool *pool)
{
	return pool->generation;
}

bool pool_is_empty(const struct pool *pool)
{
	return pool_total(pool) == 0 && pool->borrowed == 0 && (pool->spares == NULL || spares_is_empty(pool->spares));
}

void pool_free(struct pool **pool)
{
	struct pool *p = *pool;

	if (p == NULL)
		return;
	defer_cancel(&p->line_call);
	timer_free(&p->line_timer);
	timer_free(&p->idle_timer);
	timer_free(&p->pause_timer);
	timer_free(&p->age_timer);
	spares_free(&p->spares);
	budget_leave(&p->share);
	pool_free_workers(p);
	free(p);
	*pool = NULL;
}

/* What it is doing. */

static void read_spares(const struct pool *pool, struct pool_reading *out)
{
	struct spares_reading reading;

	spares_read(pool->spares, &reading);
	out->idle = reading.ready;
	out->starting = reading.starting;
	out->stopping = reading.ending;
	out->zygotes = reading.zygotes;
	out->early_deaths = reading.failures;
	out->next_try_ns = reading.next_try_ns;
	out->ended = (struct pool_ended){ reading.ended_count, reading.died_count, reading.cpu_us, reading.max_rss_kib };
}

void pool_read(const struct pool *pool, struct pool_reading *out)
{
	uint64_t now = clock_monotonic_ns();

	*out = (struct pool_reading){
		.has_workers = pool->has_workers,
		.is_retired = pool->is_retired || pool->is_closed,
		.idle = pool->idle.count,
		.busy = pool->busy.count,
		.starting = pool->starting.count,
		.stopping = pool->stopping.count,
		.waiting = pool->waiting,
		.longest_wait_ns = pool->first == NULL ? 0 : now - pool->first->since_ns,
		.early_deaths = pool->early_deaths,
		.next_try_ns = pool->pause_until_ns > now ? pool->pause_until_ns - now : 0,
		.ended = pool->ended,
	};
	if (pool->spares != NULL)
		read_spares(pool, out);
}

void pool_each_spare(const struct pool *pool, pool_spare_fn *on_spare, void *ctx)
{
	if (pool->spares != NULL)
		spares_each(pool->spares, on_spare, ctx);
}
