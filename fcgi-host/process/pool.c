#include "process/pool.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum {
	PAUSE_FIRST_MS = 500,   /* after the first worker that died at its start */
	PAUSE_LAST_MS = 30000,
	YOUNG_MS = 1000,        /* a worker that ends so soon, without an answer, cannot start */
};

struct ring {
	struct worker *first, *last;
	unsigned count;
};

struct pool {
	const struct handler_config *handler;
	uint32_t generation;
	struct loop *loop;
	struct spawner *spawner;
	const char *folder;
	bool has_workers;               /* else places */
	bool is_closed;
	bool is_retired;                /* keeps no worker but for those who wait */
	unsigned holders;               /* requests that may come in line yet */
	unsigned borrowed;              /* places or workers given out and not handed back */
	struct ring starting, idle, busy, stopping;     /* idle: the one used last comes first */
	struct budget_share share;
	unsigned due;                   /* living workers that are to be replaced */
	unsigned replacing;             /* replacements that are starting */
	struct timer *age_timer;        /* the next worker reaches its max_age */
	struct pool_waiter *first, *last;
	unsigned waiting;
	struct defer line_call;
	struct timer *line_timer;       /* the first in line has waited too long */
	struct timer *idle_timer;       /* the last idle worker has been idle too long */
	struct timer *pause_timer;
	unsigned early_deaths;          /* in a row */
	uint64_t pause_from_ns, pause_until_ns;
	uint64_t retry_ns;              /* a start failed: while other workers live, no start before */
	struct pool_ended ended;
	void *owner;
	void (*on_tried)(void *ctx, const struct err *why);     /* while a trial runs */
	void *tried_ctx;
	struct err trouble;             /* why a worker could not start */
	bool has_trouble;               /* since the last look */
	void (*on_empty)(void *ctx);    /* once it is closed */
	void *ctx;
	bool can_start;                 /* false: the last start failed in exec, so nothing is started ahead */
};

static void serve_line(void *ctx);

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

static void set_state(struct pool *pool, struct worker *worker, enum worker_state state)
{
	ring_drop(ring_of(pool, worker->state), worker);
	worker->state = state;
	if (state != WORKER_GONE)
		ring_push(ring_of(pool, state), worker);
}

static void forget_due(struct pool *pool, struct worker *worker)
{
	pool->due -= worker->is_due && !worker->is_relieved;
	worker->is_due = false;
	pool->replacing -= worker->is_replacement && worker->state == WORKER_STARTING;
}

static void set_idle(struct pool *pool, struct worker *worker)
{
	worker->idle_since_ns = clock_monotonic_ns();
	set_state(pool, worker, WORKER_IDLE);
}

/* Behind those that are warm. */
static void set_ready(struct pool *pool, struct worker *worker)
{
	worker->idle_since_ns = clock_monotonic_ns();
	ring_drop(&pool->starting, worker);
	worker->state = WORKER_IDLE;
	ring_push_last(&pool->idle, worker);
}

static void stop_worker(struct pool *pool, struct worker *worker)
{
	forget_due(pool, worker);
	set_state(pool, worker, WORKER_STOPPING);
	worker_stop(worker);
}

static unsigned living(const struct pool *pool)
{
	return pool->starting.count + pool->idle.count + pool->busy.count;
}

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

static bool is_paused(const struct pool *pool)
{
	return clock_monotonic_ns() < pool->pause_until_ns;
}

/* A start that failed is not tried again and again while requests can wait for
 * the workers that there are. */
static void put_off_starts(struct pool *pool)
{
	pool->retry_ns = clock_monotonic_ns() + (uint64_t)PAUSE_FIRST_MS * 1000000;
	if (!is_paused(pool))
		timer_set(pool->pause_timer, PAUSE_FIRST_MS + 1);
}

static bool may_start(const struct pool *pool)
{
	return !pool->is_closed && !is_paused(pool) && (living(pool) == 0 || clock_monotonic_ns() >= pool->retry_ns);
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

static void refuse_start(struct pool *pool, enum spawn_step step, int errnum, const struct err *why)
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
	set_line_timer(pool);
}

/* Workers come and go. */

/* How many stay however long they are idle: `spare` counts while others work. */
static unsigned floor_of(const struct pool *pool)
{
	unsigned in_use = pool->busy.count > 0 ? pool->busy.count + pool->handler->workers.spare : 0;

	return in_use > pool->handler->workers.min ? in_use : pool->handler->workers.min;
}

static void set_idle_timer(struct pool *pool)
{
	uint64_t limit_ms = pool->handler->workers.idle_timeout_ms;
	uint64_t idle_ms;

	if (pool->idle.last == NULL || limit_ms == 0 || living(pool) <= floor_of(pool)) {
		timer_clear(pool->idle_timer);
		return;
	}
	idle_ms = (clock_monotonic_ns() - pool->idle.last->idle_since_ns) / 1000000;
	timer_set(pool->idle_timer, idle_ms >= limit_ms ? 0 : limit_ms - idle_ms);
}

/* Runs from the loop like serve_line() does: a worker is either handed out or
 * stopped, never both. */
static void on_idle_time(void *ctx)
{
	struct pool *pool = ctx;
	uint64_t limit_ns = pool->handler->workers.idle_timeout_ms * 1000000;
	uint64_t now = clock_monotonic_ns();

	while (pool->idle.last != NULL && living(pool) > floor_of(pool) &&
	       now - pool->idle.last->idle_since_ns >= limit_ns)
		stop_worker(pool, pool->idle.last);
	set_idle_timer(pool);
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
	if (pool->waiting == 0 || living(pool) > 0)
		log_message(LOG_LEVEL_ERROR, "worker_start", "handler %s: %s", pool->handler->name, why.text);
	pool->can_start = false;
	put_off_starts(pool);
	err_set(&pool->trouble, "handler %s: %.900s", pool->handler->name, why.text);
	pool->has_trouble = true;
	if (living(pool) == 0)
		refuse_start(pool, process->failed_step, process->failed_errno, &why);
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
	forget_due(pool, worker);
	count_ended(pool, worker);
	set_state(pool, worker, WORKER_GONE);
	if (was_early)
		begin_pause(pool, worker);
	if (worker->process.failed_step != SPAWN_STEP_NONE)
		on_start_failed(pool, worker);
	if (on_gone == NULL)
		worker_free(&worker);
	else
		on_gone(worker->ctx);
}

/* Recycling: a worker that is near its end gets a replacement first, a few at a
 * time, so that there are never fewer than before. */

static bool has_had_enough(const struct pool *pool, const struct worker *worker)
{
	uint64_t memory_bytes = pool->handler->limits.memory_bytes;

	return (worker->max_age_ns > 0 && clock_monotonic_ns() - worker->process.asked_ns >= worker->max_age_ns) ||
		(memory_bytes > 0 && worker_rss_kib(worker) > memory_bytes / 1024);
}

/* The last fifth of its requests is the time in which another can start. */
static bool is_near_its_end(const struct pool *pool, const struct worker *worker)
{
	unsigned margin = worker->max_requests / 5 + 1;

	return (worker->max_requests > 0 && worker->requests + margin >= worker->max_requests) ||
		has_had_enough(pool, worker);
}

static void set_due(struct pool *pool, struct worker *worker)
{
	pool->due += !worker->is_due;
	worker->is_due = true;
}

static struct worker *first_due(const struct ring *ring)
{
	struct worker *worker = ring->last;

	while (worker != NULL && (!worker->is_due || worker->is_relieved))
		worker = worker->prev;
	return worker;
}

/* A replacement is ready. */
static void relieve_one(struct pool *pool)
{
	struct worker *worker = first_due(&pool->idle);

	if (worker == NULL)
		worker = first_due(&pool->busy);
	if (worker == NULL)
		return;
	worker->is_relieved = true;
	pool->due--;
	if (worker->state == WORKER_IDLE && has_had_enough(pool, worker))
		stop_worker(pool, worker);
}

static uint64_t vary(uint64_t value, unsigned percent)
{
	uint64_t spread = value * percent / 100;

	return spread == 0 ? value : value - spread + (uint64_t)random() % (2 * spread + 1);
}

static void set_lifetime(struct worker *worker)
{
	const struct handler_config *handler = worker->handler;

	worker->max_requests = (unsigned)vary(handler->workers.max_requests, handler->workers.jitter_percent);
	worker->max_age_ns = vary(handler->workers.max_age_ms * 1000000, handler->workers.jitter_percent);
}

static void set_age_timer(struct pool *pool)
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

static void on_age_time(void *ctx)
{
	struct pool *pool = ctx;

	for (struct worker *worker = pool->idle.first; worker != NULL; worker = worker->next)
		if (is_near_its_end(pool, worker))
			set_due(pool, worker);
	defer_call(pool->loop, &pool->line_call, serve_line, pool);
}

static void on_worker_change(struct worker *worker)
{
	struct pool *pool = worker->pool;

	if (worker->process.state == PROCESS_GONE) {
		on_worker_gone(pool, worker);
	} else if (worker->state == WORKER_STARTING) {
		pool->can_start = true;
		pool->replacing -= worker->is_replacement;
		set_ready(pool, worker);
		if (worker->is_replacement)
			relieve_one(pool);
	}
	defer_call(pool->loop, &pool->line_call, serve_line, pool);
}

/* NULL with err. */
static struct worker *start_worker(struct pool *pool, struct err *err)
{
	struct worker *worker = worker_start(pool->handler, pool->generation, pool->folder, pool->loop, pool->spawner,
		on_worker_change, pool, err);

	if (worker == NULL) {
		budget_give(&pool->share);
		return NULL;
	}
	set_lifetime(worker);
	ring_push(&pool->starting, worker);
	return worker;
}

/* Who is due and not needed just goes. */
static void let_go(struct pool *pool)
{
	struct worker *worker, *next;

	for (worker = pool->idle.first; worker != NULL && pool->waiting == 0; worker = next) {
		next = worker->next;
		if (has_had_enough(pool, worker) && (worker->is_relieved || living(pool) > floor_of(pool)))
			stop_worker(pool, worker);
	}
}

static void start_replacements(struct pool *pool)
{
	unsigned at_once = pool->handler->workers.max / 2 + 1;
	struct err err;

	while (pool->due > pool->replacing && pool->replacing < at_once && !pool->is_retired && may_start(pool) &&
	       living(pool) < pool->handler->workers.max + pool->due && budget_take(&pool->share)) {
		struct worker *worker = start_worker(pool, &err);

		if (worker == NULL) {
			put_off_starts(pool);
			return;
		}
		worker->is_replacement = true;
		pool->replacing++;
	}
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
	unsigned for_min = less(wanted_ahead(pool), living(pool));

	return want > for_min ? want : for_min;
}

static void start_workers(struct pool *pool)
{
	unsigned want = wanted(pool);
	struct err err;

	if (!may_start(pool))
		return;
	for (; want > 0 && living(pool) < pool->handler->workers.max && budget_take(&pool->share); want--) {
		if (start_worker(pool, &err) == NULL) {
			log_message(LOG_LEVEL_ERROR, "worker_start", "handler %s: %s", pool->handler->name, err.text);
			put_off_starts(pool);
			if (living(pool) == 0)
				refuse_start(pool, SPAWN_STEP_FORK, EAGAIN, &err);
			return;
		}
	}
}

static void on_pause_end(void *ctx)
{
	struct pool *pool = ctx;

	defer_call(pool->loop, &pool->line_call, serve_line, pool);
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

static void end_trial(struct pool *pool, const struct err *why)
{
	void (*on_tried)(void *ctx, const struct err *why) = pool->on_tried;

	pool->on_tried = NULL;
	if (on_tried != NULL)
		on_tried(pool->tried_ctx, why);
}

static void check_trial(struct pool *pool)
{
	if (pool->has_trouble) {
		pool->has_trouble = false;
		end_trial(pool, &pool->trouble);
	}
	if (pool->on_tried != NULL &&
	    (!pool->has_workers || pool->idle.count + pool->busy.count >= pool->handler->workers.min))
		end_trial(pool, NULL);
}

/* The one place where processes are given away. */

/* A connection to somebody else's server is no process. */
static bool take_place(struct pool *pool)
{
	return pool->handler->connect.text != NULL || budget_take(&pool->share);
}

static void give_place(struct pool *pool)
{
	struct pool_result result = { .answer = POOL_READY };

	pool->borrowed++;
	answer(pool->first, &result);
}

/* The budget's. */
static void on_free(void *ctx)
{
	struct pool *pool = ctx;

	defer_call(pool->loop, &pool->line_call, serve_line, pool);
}

/* An idle worker above the share goes when another handler has requests for it. */
static void on_need(void *ctx)
{
	struct pool *pool = ctx;

	if (pool->idle.last != NULL && pool->waiting == 0)
		stop_worker(pool, pool->idle.last);
}

static void give_worker(struct pool *pool)
{
	struct worker *worker = pool->idle.first;
	struct pool_result result = { .answer = POOL_READY, .worker = worker };

	set_state(pool, worker, WORKER_BUSY);
	worker->handed_out++;
	pool->borrowed++;
	answer(pool->first, &result);
}

static void give_workers(struct pool *pool)
{
	while (pool->first != NULL && pool->idle.first != NULL)
		give_worker(pool);
	let_go(pool);
	start_workers(pool);
	start_replacements(pool);
	set_age_timer(pool);
	if (pool->first != NULL && living(pool) == 0 && is_paused(pool))
		refuse_paused(pool);
	set_idle_timer(pool);
}

static void end_idle(struct pool *pool)
{
	while (pool->idle.first != NULL)
		stop_worker(pool, pool->idle.first);
	while (pool->starting.first != NULL)
		stop_worker(pool, pool->starting.first);
}

static void serve_line(void *ctx)
{
	struct pool *pool = ctx;

	if (pool->is_closed)
		refuse_stopped(pool);
	refuse_overflow(pool);
	if (pool->has_workers)
		give_workers(pool);
	while (!pool->has_workers && pool->first != NULL && free_places(pool) > 0 && take_place(pool))
		give_place(pool);
	set_line_timer(pool);
	check_trial(pool);
	if (pool->is_retired && pool->first == NULL)
		end_idle(pool);
	if ((pool->is_closed || pool->is_retired) && pool->first == NULL && pool->holders == 0 && pool_is_empty(pool))
		pool->on_empty(pool->ctx);      /* which may free the pool */
}

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
	defer_call(pool->loop, &pool->line_call, serve_line, pool);
}

void pool_cancel(struct pool_waiter *waiter)
{
	if (waiter->pool != NULL)
		leave_line(waiter);
}

void pool_hold(struct pool *pool)
{
	pool->holders++;
}

void pool_let_go(struct pool *pool)
{
	if (--pool->holders == 0 && (pool->is_closed || pool->is_retired))
		defer_call(pool->loop, &pool->line_call, serve_line, pool);
}

static void take_back(struct pool *pool, struct worker *worker, bool is_good)
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
	if (!is_good || pool->is_closed || (worker->max_requests > 0 && worker->requests >= worker->max_requests) ||
	    (worker->is_relieved && has_had_enough(pool, worker))) {
		stop_worker(pool, worker);
		return;
	}
	if (is_near_its_end(pool, worker))
		set_due(pool, worker);
	set_idle(pool, worker);
}

void pool_stop_borrowed(struct pool *pool, struct worker *worker)
{
	if (worker->state == WORKER_BUSY)
		stop_worker(pool, worker);
}

void pool_release(struct pool *pool, struct worker *worker, bool is_good)
{
	pool->borrowed--;
	if (worker != NULL)
		take_back(pool, worker, is_good);
	else if (pool->handler->connect.text == NULL)
		budget_give(&pool->share);
	defer_call(pool->loop, &pool->line_call, serve_line, pool);
}

unsigned pool_waiting(const struct pool *pool)
{
	return pool->waiting;
}

/* Open and close. */

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
	pool->idle_timer = timer_new(loop, on_idle_time, pool);
	pool->pause_timer = timer_new(loop, on_pause_end, pool);
	pool->age_timer = timer_new(loop, on_age_time, pool);
	pool->share = (struct budget_share){
		.reserved = handler->workers.reserved, .on_free = on_free, .on_need = on_need, .ctx = pool };
	budget_join(budget, &pool->share);
	if (pool->age_timer == NULL || pool->line_timer == NULL || pool->idle_timer == NULL || pool->pause_timer == NULL) {
		err_set(err, "no memory for the pool of handler %s", handler->name);
		pool_free(&pool);
		return NULL;
	}
	return pool;
}

void pool_open(struct pool *pool)
{
	defer_call(pool->loop, &pool->line_call, serve_line, pool);
}

void pool_close(struct pool *pool, void (*on_empty)(void *ctx), void *ctx)
{
	pool->on_empty = on_empty;
	pool->ctx = ctx;
	pool->is_closed = true;
	end_idle(pool);
	defer_call(pool->loop, &pool->line_call, serve_line, pool);
}

void pool_retire(struct pool *pool, void (*on_empty)(void *ctx), void *ctx)
{
	pool->is_retired = true;
	pool->on_empty = on_empty;
	pool->ctx = ctx;
	defer_call(pool->loop, &pool->line_call, serve_line, pool);
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

bool pool_is_empty(const struct pool *pool)
{
	return living(pool) == 0 && pool->stopping.count == 0 && pool->borrowed == 0;
}

static void free_ring(struct ring *ring)
{
	while (ring->first != NULL) {
		struct worker *worker = ring->first;

		ring_drop(ring, worker);
		worker_free(&worker);
	}
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
	budget_leave(&p->share);
	free_ring(&p->starting);
	free_ring(&p->idle);
	free_ring(&p->busy);
	free_ring(&p->stopping);
	free(p);
	*pool = NULL;
}

/* What it is doing. */

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
