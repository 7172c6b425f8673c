#include "base/loop.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <uv.h>

enum {
	EVENTS_PER_TURN = 128,
	BATCHES_PER_TURN = 16,  /* of deferred calls, before descriptors have their turn */
};

/* Descriptors are watched by an epoll of ours, because libuv's costs twice the
 * system calls for those that live for one request; libuv, with its timers and
 * signals, is one descriptor in it. */
struct loop {
	uv_loop_t uv;           /* first, so that a timer finds the loop */
	uv_async_t anchor;      /* keeps libuv willing to wait */
	int epoll_fd;
	bool is_stopped;
	struct defer deferred;  /* head of a ring */
	struct watch *dead;     /* freed in this turn: events of theirs may still be at hand */
	struct timer *spare;    /* timers that are free: closing one takes libuv a turn */
};

struct watch {
	struct loop *loop;
	watch_fn *on_event;     /* NULL once it is dead */
	void *ctx;
	int fd;
	int events;             /* what is watched, 0: it is not in the epoll */
	struct watch *next;     /* among the dead */
};

struct timer {
	uv_timer_t uv;
	timer_fn *on_timer;
	void *ctx;
	struct timer *next;     /* among the spare ones */
};

/* Calls that are deferred while the batch runs wait for the next one; one that
 * is cancelled meanwhile leaves the batch. */
static void run_deferred(struct loop *loop)
{
	struct defer batch = loop->deferred;

	batch.next->prev = batch.prev->next = &batch;
	loop->deferred.next = loop->deferred.prev = &loop->deferred;
	while (batch.next != &batch) {
		struct defer *defer = batch.next;

		defer_cancel(defer);
		defer->on_call(defer->ctx);
	}
}

static bool has_deferred(const struct loop *loop)
{
	return loop->deferred.next != &loop->deferred;
}

static void on_anchor(uv_async_t *async)
{
	(void)async;
}

static int open_epoll(struct loop *loop, struct err *err)
{
	struct epoll_event event = { .events = EPOLLIN };       /* no watch: it is libuv */

	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0 || epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, uv_backend_fd(&loop->uv), &event) < 0)
		return err_set_errno(err, errno, "event loop");
	return 0;
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
	uv_async_init(&loop->uv, &loop->anchor, on_anchor);
	if (open_epoll(loop, err) < 0)
		loop_free(&loop);
	return loop;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void bury(struct loop *loop)
{
	while (loop->dead != NULL) {
		struct watch *watch = loop->dead;

		loop->dead = watch->next;
		free(watch);
	}
}

void loop_free(struct loop **loop)
{
	struct loop *l = *loop;

	if (l == NULL)
		return;
	bury(l);
	for (struct timer *timer = l->spare; timer != NULL; timer = timer->next)
		uv_close((uv_handle_t *)&timer->uv, on_closed);
	uv_close((uv_handle_t *)&l->anchor, NULL);
	uv_run(&l->uv, UV_RUN_NOWAIT);          /* closing handles are freed here */
	uv_run(&l->uv, UV_RUN_NOWAIT);
	uv_loop_close(&l->uv);
	if (l->epoll_fd >= 0)
		close(l->epoll_fd);
	free(l);
	*loop = NULL;
}

/* An error is told as everything: a read or write then says which. */
static void tell(struct watch *watch, uint32_t events)
{
	bool is_error = (events & (EPOLLERR | EPOLLHUP)) != 0;
	int seen = is_error ? WATCH_READ | WATCH_WRITE | WATCH_HANGUP : 0;

	if (watch->on_event == NULL)
		return;
	if (events & EPOLLIN)
		seen |= WATCH_READ;
	if (events & EPOLLOUT)
		seen |= WATCH_WRITE;
	if (events & EPOLLRDHUP)
		seen |= WATCH_HANGUP;
	watch->on_event(watch->ctx, seen);
}

static void wait_for_events(struct loop *loop)
{
	struct epoll_event events[EVENTS_PER_TURN];
	bool is_uv_due = false;
	int timeout, count;

	uv_update_time(&loop->uv);
	timeout = has_deferred(loop) ? 0 : uv_backend_timeout(&loop->uv);
	count = epoll_wait(loop->epoll_fd, events, EVENTS_PER_TURN, timeout);
	for (int i = 0; i < count; i++) {
		if (events[i].data.ptr == NULL)
			is_uv_due = true;
		else
			tell(events[i].data.ptr, events[i].events);
	}
	uv_update_time(&loop->uv);
	if (is_uv_due || uv_backend_timeout(&loop->uv) == 0)
		uv_run(&loop->uv, UV_RUN_NOWAIT);
}

int loop_run(struct loop *loop)
{
	loop->is_stopped = false;
	uv_run(&loop->uv, UV_RUN_NOWAIT);       /* registers the signals */
	while (!loop->is_stopped) {
		for (int i = 0; i < BATCHES_PER_TURN && has_deferred(loop); i++)
			run_deferred(loop);
		bury(loop);
		if (!loop->is_stopped)
			wait_for_events(loop);
	}
	return 0;
}

void loop_stop(struct loop *loop)
{
	loop->is_stopped = true;
}

struct uv_loop_s *loop_uv(struct loop *loop)
{
	return &loop->uv;
}

struct watch *watch_new(struct loop *loop, int fd, watch_fn *on_event, void *ctx, struct err *err)
{
	struct watch *watch = calloc(1, sizeof(*watch));
	int on = 1;

	if (watch == NULL) {
		err_set(err, "no memory to watch a descriptor");
		return NULL;
	}
	if (ioctl(fd, FIONBIO, &on) < 0) {
		err_set_errno(err, errno, "cannot watch a descriptor");
		free(watch);
		return NULL;
	}
	watch->loop = loop;
	watch->on_event = on_event;
	watch->ctx = ctx;
	watch->fd = fd;
	return watch;
}

void watch_set(struct watch *watch, int events)
{
	struct epoll_event event = { .data.ptr = watch };
	int what = watch->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;

	if (watch->events == events)
		return;
	if (events & WATCH_READ)
		event.events |= EPOLLIN;
	if (events & WATCH_WRITE)
		event.events |= EPOLLOUT;
	if (events & WATCH_HANGUP)
		event.events |= EPOLLRDHUP;
	if (epoll_ctl(watch->loop->epoll_fd, what, watch->fd, &event) == 0)
		watch->events = events;
}

static void kill_watch(struct watch **watch)
{
	struct watch *w = *watch;

	w->on_event = NULL;
	w->next = w->loop->dead;
	w->loop->dead = w;
	*watch = NULL;
}

void watch_free(struct watch **watch)
{
	if (*watch == NULL)
		return;
	watch_set(*watch, 0);
	kill_watch(watch);
}

void watch_close(struct watch **watch, int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	if (*watch != NULL)
		kill_watch(watch);
}

static void on_uv_timer(uv_timer_t *uv)
{
	struct timer *timer = uv->data;

	if (timer->on_timer != NULL)
		timer->on_timer(timer->ctx);
}

struct timer *timer_new(struct loop *loop, timer_fn *on_timer, void *ctx)
{
	struct timer *timer = loop->spare;

	if (timer != NULL) {
		loop->spare = timer->next;
	} else {
		timer = calloc(1, sizeof(*timer));
		if (timer == NULL)
			return NULL;
		uv_timer_init(&loop->uv, &timer->uv);
		timer->uv.data = timer;
	}
	timer->on_timer = on_timer;
	timer->ctx = ctx;
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
	struct loop *loop;

	if (t == NULL)
		return;
	loop = (struct loop *)t->uv.loop;
	t->on_timer = NULL;
	uv_timer_stop(&t->uv);
	t->next = loop->spare;
	loop->spare = t;
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
}

void defer_cancel(struct defer *defer)
{
	if (defer->next == NULL)
		return;
	defer->next->prev = defer->prev;
	defer->prev->next = defer->next;
	defer->next = defer->prev = NULL;
}
