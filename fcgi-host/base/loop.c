#include "base/loop.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

struct loop {
	uv_loop_t uv;
	uv_idle_t idle;         /* runs only while deferred calls wait, so that the loop does not block */
	struct defer deferred;  /* head of a ring */
};

struct watch {
	uv_poll_t uv;
	watch_fn *on_event;
	void *ctx;
	int events;
};

struct timer {
	uv_timer_t uv;
	timer_fn *on_timer;
	void *ctx;
};

/* Calls that are deferred while the batch runs wait for the next round; one
 * that is cancelled meanwhile leaves the batch. */
static void run_deferred(uv_idle_t *idle)
{
	struct loop *loop = idle->data;
	struct defer batch;

	uv_idle_stop(idle);
	if (loop->deferred.next == &loop->deferred)
		return;
	batch = loop->deferred;
	batch.next->prev = batch.prev->next = &batch;
	loop->deferred.next = loop->deferred.prev = &loop->deferred;
	while (batch.next != &batch) {
		struct defer *defer = batch.next;

		defer_cancel(defer);
		defer->on_call(defer->ctx);
	}
}

struct loop *loop_new(struct err *err)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	int status;

	if (loop == NULL) {
		err_set(err, "no memory for the event loop");
		return NULL;
	}
	status = uv_loop_init(&loop->uv);
	if (status < 0) {
		err_set(err, "event loop: %s", uv_strerror(status));
		free(loop);
		return NULL;
	}
	loop->deferred.next = loop->deferred.prev = &loop->deferred;
	uv_idle_init(&loop->uv, &loop->idle);
	loop->idle.data = loop;
	return loop;
}

void loop_free(struct loop **loop)
{
	struct loop *l = *loop;

	if (l == NULL)
		return;
	uv_close((uv_handle_t *)&l->idle, NULL);
	uv_run(&l->uv, UV_RUN_NOWAIT);          /* closing handles are freed here */
	uv_run(&l->uv, UV_RUN_NOWAIT);
	uv_loop_close(&l->uv);
	free(l);
	*loop = NULL;
}

int loop_run(struct loop *loop)
{
	return uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *loop)
{
	uv_stop(&loop->uv);
}

struct uv_loop_s *loop_uv(struct loop *loop)
{
	return &loop->uv;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void start_poll(struct watch *watch);

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct watch *watch = poll->data;
	int seen = 0;

	if (watch->on_event == NULL)
		return;
	if (status < 0) {
		/* A read or write tells the error, but what came before it is read
		 * first, and libuv has stopped watching. */
		start_poll(watch);
		seen |= WATCH_READ | WATCH_WRITE | WATCH_HANGUP;
	}
	if (events & UV_READABLE)
		seen |= WATCH_READ;
	if (events & UV_WRITABLE)
		seen |= WATCH_WRITE;
	if (events & UV_DISCONNECT)
		seen |= WATCH_HANGUP;
	watch->on_event(watch->ctx, seen);
}

struct watch *watch_new(struct loop *loop, int fd, watch_fn *on_event, void *ctx, struct err *err)
{
	struct watch *watch = calloc(1, sizeof(*watch));
	int status;

	if (watch == NULL) {
		err_set(err, "no memory to watch a descriptor");
		return NULL;
	}
	watch->on_event = on_event;
	watch->ctx = ctx;
	status = uv_poll_init(&loop->uv, &watch->uv, fd);
	if (status < 0) {
		err_set(err, "cannot watch a descriptor: %s", uv_strerror(status));
		free(watch);
		return NULL;
	}
	watch->uv.data = watch;
	return watch;
}

static void start_poll(struct watch *watch)
{
	int uv_events = 0;

	if (watch->events & WATCH_READ)
		uv_events |= UV_READABLE;
	if (watch->events & WATCH_WRITE)
		uv_events |= UV_WRITABLE;
	if (watch->events & WATCH_HANGUP)
		uv_events |= UV_DISCONNECT;
	if (uv_events == 0)
		uv_poll_stop(&watch->uv);
	else
		uv_poll_start(&watch->uv, uv_events, on_poll);
}

void watch_set(struct watch *watch, int events)
{
	if (watch->events == events)
		return;
	watch->events = events;
	start_poll(watch);
}

void watch_free(struct watch **watch)
{
	struct watch *w = *watch;

	if (w == NULL)
		return;
	w->on_event = NULL;
	uv_poll_stop(&w->uv);
	uv_close((uv_handle_t *)&w->uv, on_closed);
	*watch = NULL;
}

static void on_uv_timer(uv_timer_t *uv)
{
	struct timer *timer = uv->data;

	if (timer->on_timer != NULL)
		timer->on_timer(timer->ctx);
}

struct timer *timer_new(struct loop *loop, timer_fn *on_timer, void *ctx)
{
	struct timer *timer = calloc(1, sizeof(*timer));

	if (timer == NULL)
		return NULL;
	timer->on_timer = on_timer;
	timer->ctx = ctx;
	uv_timer_init(&loop->uv, &timer->uv);
	timer->uv.data = timer;
	return timer;
}

void timer_set(struct timer *timer, uint64_t after_ms)
{
	/* libuv counts from the time at which this round of the loop began. */
	uv_update_time(timer->uv.loop);
	uv_timer_start(&timer->uv, on_uv_timer, after_ms, 0);
}

void timer_clear(struct timer *timer)
{
	uv_timer_stop(&timer->uv);
}

void timer_free(struct timer **timer)
{
	struct timer *t = *timer;

	if (t == NULL)
		return;
	t->on_timer = NULL;
	uv_timer_stop(&t->uv);
	uv_close((uv_handle_t *)&t->uv, on_closed);
	*timer = NULL;
}

void defer_call(struct loop *loop, struct defer *defer, void (*on_call)(void *ctx), void *ctx)
{
	if (defer->next != NULL)
		return;
	defer->on_call = on_call;
	defer->ctx = ctx;
	defer->next = &loop->deferred;
	defer->prev = loop->deferred.prev;
	defer->prev->next = defer;
	loop->deferred.prev = defer;
	uv_idle_start(&loop->idle, run_deferred);
}

void defer_cancel(struct defer *defer)
{
	if (defer->next == NULL)
		return;
	defer->next->prev = defer->prev;
	defer->prev->next = defer->next;
	defer->next = defer->prev = NULL;
}
