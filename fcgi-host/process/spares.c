/*
 * The set of those that wait.  It is changed in spares_tend(), from the loop, and
 * by spares_take(); everything else only asks for that.
 */
#include "process/spares_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "process/hook.h"

#include <stdlib.h>
#include <sys/wait.h>

enum {
	PAUSE_FIRST_MS = 500,   /* after one that failed at its start */
	PAUSE_LAST_MS = 30000,
	REFILL_LATEST_MS = 100, /* a long answer does not put off the next ones for ever */
	LATE_MS = 20,           /* beyond twice the usual time, a start is stuck */
	YIELD_MS = 1000,        /* what others needed is not taken back at once */
};

/* The list, oldest first. */

static void push(struct spares *spares, struct spare *spare)
{
	spare->prev = spares->last;
	if (spares->last != NULL)
		spares->last->next = spare;
	else
		spares->first = spare;
	spares->last = spare;
}

static void drop(struct spares *spares, struct spare *spare)
{
	if (spare->prev != NULL)
		spare->prev->next = spare->next;
	else
		spares->first = spare->next;
	if (spare->next != NULL)
		spare->next->prev = spare->prev;
	else
		spares->last = spare->prev;
	spare->next = spare->prev = NULL;
}

static unsigned count(const struct spares *spares, enum spare_state state)
{
	unsigned n = 0;

	for (const struct spare *spare = spares->first; spare != NULL; spare = spare->next)
		n += spare->state == state;
	return n;
}

static unsigned count_fresh(const struct spares *spares, enum spare_state state)
{
	unsigned n = 0;

	for (const struct spare *spare = spares->first; spare != NULL; spare = spare->next)
		n += spare->state == state && !spare->is_due;
	return n;
}

static void end_spare(struct spare *spare)
{
	spare->is_dropped = true;
	spare_end(spare);
}

static void end_all(struct spares *spares)
{
	for (struct spare *spare = spares->first; spare != NULL; spare = spare->next)
		end_spare(spare);
	spares_end_zygotes(spares);
	spares->on_change(spares->ctx);
}

/* When they cannot be had. */

static void pause_for(struct spares *spares, uint64_t ms)
{
	uint64_t until_ns = clock_monotonic_ns() + ms * 1000000;

	if (until_ns > spares->pause_until_ns)
		spares->pause_until_ns = until_ns;
	timer_set(spares->pause_timer, ms + 1);
}

void spares_turn_off(struct spares *spares, const struct err *why)
{
	if (spares->is_off)
		return;
	spares->is_off = true;
	log_message(LOG_LEVEL_ERROR, "spare", "handler %s: cannot be process: %s: %s; every request gets a process started for it",
		spares->handler->name, config_process_name(spares->handler->process), why->text);
	end_all(spares);
}

/* Those that were started together fail together: that is one failure. */
void spares_failed(struct spares *spares, uint64_t asked_ns, pid_t pid, const char *what)
{
	uint64_t pause_ms = PAUSE_LAST_MS;

	if (asked_ns < spares->pause_from_ns)
		return;
	if (spares->failures < 6)
		pause_ms = (uint64_t)PAUSE_FIRST_MS << spares->failures;
	pause_ms += pause_ms * ((unsigned)random() % 11) / 100;
	spares->failures++;
	spares->pause_from_ns = clock_monotonic_ns();
	pause_for(spares, pause_ms);
	log_message(LOG_LEVEL_WARNING, "spare_pause", "handler %s: pid %d %s; until the next try, in %llu ms, requests get processes started for them",
		spares->handler->name, (int)pid, what, (unsigned long long)pause_ms);
}

static void say_failed_start(struct spares *spares, const struct process *process)
{
	struct err why;

	spawn_failure_text(process->failed_step, process->failed_errno, spares->handler->command[0], &why);
	spares_failed(spares, process->asked_ns, 0, why.text);
}

void spares_failed_step(struct spares *spares, const struct process *process)
{
	struct err why;

	if (process->failed_step != SPAWN_STEP_WAIT) {
		say_failed_start(spares, process);
		return;
	}
	hook_reason(spares->handler, &why);
	spares_turn_off(spares, &why);
}

/* One that has gone without a request, and not because it was told to. */
static void judge(struct spares *spares, struct spare *spare)
{
	const struct process *process = &spare->process;
	struct err why;

	spare_log_stderr(spare);
	if (spare->was_refused) {
		spares_turn_off(spares, &spare->refusal);
	} else if (process->failed_step != SPAWN_STEP_NONE) {
		spares_failed_step(spares, process);
	} else if (spare->ready_ns == 0 && process->state == PROCESS_GONE && spare_has_written(spare)) {
		err_set(&why, "it does not wait but answers before it has a request");
		spares_turn_off(spares, &why);
	} else if (process->state == PROCESS_GONE || spares_ready_zygote(spares) != NULL) {
		spares->died_count++;
		spares_failed(spares, spare->asked_ns, process->pid, spare->ready_ns == 0 ? "ended before it was ready" : "ended while it waited");
	}
}

void spares_count_ended(struct spares *spares, const struct process *process)
{
	if (process->state != PROCESS_GONE || process->failed_step != SPAWN_STEP_NONE)
		return;
	spares->ended_count++;
	spares->cpu_us += process->usage.cpu_us + process->start_usage.cpu_us;
	if (process->usage.max_rss_kib > spares->max_rss_kib)
		spares->max_rss_kib = process->usage.max_rss_kib;
}

static void sweep(struct spares *spares)
{
	struct spare *spare, *next;

	for (spare = spares->first; spare != NULL; spare = next) {
		next = spare->next;
		if (spare->state != SPARE_GONE)
			continue;
		if (!spare->is_dropped)
			judge(spares, spare);
		spares_count_ended(spares, &spare->process);
		drop(spares, spare);
		budget_give(spares->share);
		spare_free(&spare);
	}
}

/* Starting. */

static void on_age_time(struct spares *spares, uint64_t now)
{
	uint64_t age_ns = spares->handler->workers.max_age_ms * 1000000, next_ns = UINT64_MAX;

	if (age_ns == 0)
		return;
	for (struct spare *spare = spares->first; spare != NULL; spare = spare->next) {
		if (spare->state != SPARE_READY || spare->is_due)
			continue;
		if (now - spare->asked_ns >= age_ns)
			spare->is_due = true;
		else if (spare->asked_ns + age_ns < next_ns)
			next_ns = spare->asked_ns + age_ns;
	}
	if (next_ns != UINT64_MAX)
		timer_set(spares->age_timer, (next_ns - now) / 1000000 + 1);
}

/* Who is due goes when there are enough others. */
static void end_due(struct spares *spares)
{
	unsigned fresh = count_fresh(spares, SPARE_READY);

	for (struct spare *spare = spares->first; spare != NULL; spare = spare->next)
		if (spare->state == SPARE_READY && spare->is_due && fresh >= spares->handler->workers.spare)
			end_spare(spare);
}

/* Forked for requests that then got another process. */
static void end_surplus(struct spares *spares)
{
	unsigned fresh = count_fresh(spares, SPARE_READY);

	for (struct spare *spare = spares->first; spare != NULL && fresh > spares->handler->workers.spare; spare = spare->next) {
		if (spare->state != SPARE_READY || spare->is_due)
			continue;
		end_spare(spare);
		fresh--;
	}
}

static void on_change(struct spare *spare)
{
	struct spares *spares = spare->set;

	if (spare->state == SPARE_READY) {
		uint64_t took_ns = spare->ready_ns - spare->asked_ns;

		spares->failures = 0;
		spares->typical_ns = spares->typical_ns == 0 ? took_ns : (spares->typical_ns * 3 + took_ns) / 4;
	}
	spares->on_change(spares->ctx);
}

static void on_modules(struct spare *from, struct slice names)
{
	struct spares *spares = from->set;

	if (!config_learns_preload(spares->handler) || from->asked_ns < spares->stamped_ns || !modules_learn(&spares->modules, names))
		return;
	for (struct spare *spare = spares->first; spare != NULL; spare = spare->next)
		spare->is_due |= spare->state == SPARE_READY || spare->state == SPARE_STARTING;
	for (struct zygote *zygote = spares->zygotes; zygote != NULL; zygote = zygote->next)
		zygote->is_due = true;
	spares->on_change(spares->ctx);
}

/* false: not now. */
static bool start_one(struct spares *spares)
{
	struct spare_how how = {
		.handler = spares->handler, .generation = spares->generation, .loop = spares->loop, .spawner = spares->spawner,
		.preload = &spares->modules.names, .program = &spares->program };
	struct spare *spare;
	struct err err;

	if (spares->handler->process == PROCESS_ZYGOTE && (how.zygote = spares_ready_zygote(spares)) == NULL)
		return false;
	if (!budget_take(spares->share, BUDGET_AHEAD))
		return false;
	spare = spare_new(&how, &err);
	if (spare == NULL) {
		budget_give(spares->share);
		spares_failed(spares, UINT64_MAX, 0, err.text);
		return false;
	}
	spare->on_change = on_change;
	spare->on_modules = on_modules;
	spare->set = spares;
	push(spares, spare);
	return true;
}

static bool may_start(const struct spares *spares)
{
	return !spares->is_closed && !spares->is_off && clock_monotonic_ns() >= spares->pause_until_ns;
}

static void refresh_stamp(struct spares *spares)
{
	if (!stamp_is_stale(&spares->stamp, spares->handler))
		return;
	end_all(spares);
	/* Another script may want other modules, or others of the same names. */
	if (spares->stamp.is_taken)
		modules_forget(&spares->modules);
	stamp_take(&spares->stamp, spares->handler);
	spares->stamped_ns = clock_monotonic_ns();
}

void spares_tend(struct spares *spares, unsigned waiting)
{
	unsigned want = spares->handler->workers.spare;
	unsigned have;

	sweep(spares);
	spares_sweep_zygotes(spares);
	on_age_time(spares, clock_monotonic_ns());
	end_due(spares);
	if (waiting == 0)
		end_surplus(spares);
	if (!may_start(spares))
		return;
	have = count_fresh(spares, SPARE_READY) + count_fresh(spares, SPARE_STARTING) + spares->owed;
	if (have >= want && spares->handler->process != PROCESS_ZYGOTE)
		return;
	refresh_stamp(spares);
	spares_tend_zygote(spares);
	for (; have < want && start_one(spares); have++)
		;
}

/* Handing out. */

static bool tells_modules(const struct spares *spares)
{
	enum runtime_hook hook = spares->stamp.found.hook;

	return config_learns_preload(spares->handler) && hook != HOOK_PROGRAM && hook != HOOK_PHP;
}

struct spare *spares_take(struct spares *spares)
{
	struct spare *spare = spares->first;

	while (spare != NULL && spare->state != SPARE_READY)
		spare = spare->next;
	if (spare == NULL)
		return NULL;
	if (stamp_is_stale(&spares->stamp, spares->handler)) {
		end_all(spares);
		return NULL;
	}
	drop(spares, spare);
	spare->state = SPARE_TAKEN;
	/* That it takes its request is nothing to wake up for. */
	if (!tells_modules(spares))
		shim_link_pause(&spare->link);
	if (spares->owed++ == 0)
		timer_set(spares->refill_timer, REFILL_LATEST_MS);
	return spare;
}

void spares_on_answered(struct spares *spares)
{
	if (spares->owed > 0 && --spares->owed == 0)
		timer_clear(spares->refill_timer);
	spares->on_change(spares->ctx);
}

static void on_refill_time(void *ctx)
{
	struct spares *spares = ctx;

	spares->owed = 0;
	spares->on_change(spares->ctx);
}

/* A fork is sooner than a start from nothing, however many there are. */
static void fork_for(struct spares *spares, unsigned waiting)
{
	unsigned coming = count(spares, SPARE_STARTING);

	while (spares->handler->process == PROCESS_ZYGOTE && may_start(spares) && coming < waiting && start_one(spares))
		coming++;
}

unsigned spares_soon(struct spares *spares, unsigned waiting)
{
	uint64_t now = clock_monotonic_ns(), late_ns = spares->typical_ns * 2 + (uint64_t)LATE_MS * 1000000, next_ns = UINT64_MAX;
	unsigned soon = 0;

	if (spares->is_closed || spares->is_off)
		return 0;
	fork_for(spares, waiting);
	for (struct spare *spare = spares->first; spare != NULL && soon < waiting; spare = spare->next) {
		if (spare->state != SPARE_STARTING || now - spare->asked_ns >= late_ns || (spares->typical_ns == 0 && !spare->is_forked))
			continue;
		spare_hurry(spare);
		soon++;
		if (spare->asked_ns + late_ns < next_ns)
			next_ns = spare->asked_ns + late_ns;
	}
	if (next_ns != UINT64_MAX)
		timer_set(spares->late_timer, (next_ns - now) / 1000000 + 1);
	return soon;
}

bool spares_yield(struct spares *spares)
{
	struct spare *spare = spares->last;

	while (spare != NULL && spare->state != SPARE_READY && spare->state != SPARE_STARTING)
		spare = spare->prev;
	pause_for(spares, YIELD_MS);
	if (spare == NULL)
		return spares_end_zygotes(spares);
	end_spare(spare);
	return true;
}

/* The end. */

void spares_close(struct spares *spares)
{
	spares->is_closed = true;
	end_all(spares);
}

bool spares_is_closed(const struct spares *spares)
{
	return spares->is_closed;
}

bool spares_is_empty(const struct spares *spares)
{
	return spares->first == NULL && spares->zygotes == NULL;
}

/* A pause is over, one is old, or a start is late. */
static void on_time(void *ctx)
{
	struct spares *spares = ctx;

	spares->on_change(spares->ctx);
}

struct spares *spares_new(const struct handler_config *handler, uint32_t generation, struct budget_share *share, struct loop *loop,
	struct spawner *spawner, void (*on_change_of_set)(void *ctx), void *ctx, struct err *err)
{
	struct spares *spares = calloc(1, sizeof(*spares));

	if (spares == NULL) {
		err_set(err, "no memory for the processes that wait of handler %s", handler->name);
		return NULL;
	}
	spares->handler = handler;
	spares->generation = generation;
	spares->share = share;
	spares->loop = loop;
	spares->spawner = spawner;
	spares->on_change = on_change_of_set;
	spares->ctx = ctx;
	modules_init(&spares->modules);
	if (program_init_env(&spares->program, handler) < 0) {
		err_set(err, "no memory for the processes that wait of handler %s", handler->name);
		spares_free(&spares);
		return NULL;
	}
	spares->pause_timer = timer_new(loop, on_time, spares);
	spares->late_timer = timer_new(loop, on_time, spares);
	spares->age_timer = timer_new(loop, on_time, spares);
	spares->refill_timer = timer_new(loop, on_refill_time, spares);
	if (spares->pause_timer == NULL || spares->late_timer == NULL || spares->age_timer == NULL || spares->refill_timer == NULL) {
		err_set(err, "no memory for the processes that wait of handler %s", handler->name);
		spares_free(&spares);
	}
	return spares;
}

void spares_free(struct spares **spares_ptr)
{
	struct spares *spares = *spares_ptr;

	*spares_ptr = NULL;
	if (spares == NULL)
		return;
	while (spares->first != NULL) {
		struct spare *spare = spares->first;

		drop(spares, spare);
		spare_free(&spare);
	}
	spares_free_zygotes(spares);
	modules_fini(&spares->modules);
	program_fini_env(&spares->program);
	timer_free(&spares->pause_timer);
	timer_free(&spares->late_timer);
	timer_free(&spares->age_timer);
	timer_free(&spares->refill_timer);
	free(spares);
}

/* What they are doing. */

static unsigned count_zygotes(const struct spares *spares)
{
	unsigned n = 0;

	for (const struct zygote *zygote = spares->zygotes; zygote != NULL; zygote = zygote->next)
		n += zygote->state != ZYGOTE_GONE;
	return n;
}

static void tell_of(spares_fn *on_spare, void *ctx, const struct process *process, enum spare_state state, bool is_zygote, uint64_t asked_ns)
{
	struct spare_reading reading = { .process = process, .state = state, .is_zygote = is_zygote, .asked_ns = asked_ns };

	on_spare(ctx, &reading);
}

void spares_read(const struct spares *spares, struct spares_reading *out)
{
	uint64_t now = clock_monotonic_ns();

	*out = (struct spares_reading){
		.ready = count(spares, SPARE_READY), .starting = count(spares, SPARE_STARTING), .ending = count(spares, SPARE_ENDING),
		.zygotes = count_zygotes(spares), .failures = spares->failures, .next_try_ns = spares->pause_until_ns > now ? spares->pause_until_ns - now : 0,
		.ended_count = spares->ended_count, .died_count = spares->died_count,
		.cpu_us = spares->cpu_us, .max_rss_kib = spares->max_rss_kib };
}

void spares_each(const struct spares *spares, spares_fn *on_spare, void *ctx)
{
	for (const struct zygote *zygote = spares->zygotes; zygote != NULL; zygote = zygote->next)
		if (zygote->state != ZYGOTE_GONE)
			tell_of(on_spare, ctx, &zygote->process, SPARE_READY, true, zygote->asked_ns);
	for (const struct spare *spare = spares->first; spare != NULL; spare = spare->next)
		if (spare->state != SPARE_GONE)
			tell_of(on_spare, ctx, &spare->process, spare->state, false, spare->asked_ns);
}
