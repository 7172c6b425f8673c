/*
 * loop.h - the event loop: watched descriptors, timers and deferred calls.
 *
 * libuv keeps the timers and the signals; descriptors have an epoll of their own,
 * see loop.c.  After watch_free(), watch_close() or timer_free() no callback of it
 * runs any more and the owner may free everything at once.
 */
#ifndef FCGI_HOST_BASE_LOOP_H
#define FCGI_HOST_BASE_LOOP_H

#include "base/err.h"

#include <stdint.h>

struct uv_loop_s;
struct loop;
struct watch;
struct timer;

/* HANGUP: the peer has shut down its writing, perhaps all.  GONE is for waiting
 * alone: both ends are shut down, which like an error is told as all of them. */
enum watch_events { WATCH_READ = 1, WATCH_WRITE = 2, WATCH_HANGUP = 4, WATCH_GONE = 8 };

struct loop *loop_new(struct err *err);
void loop_free(struct loop **loop);
int loop_run(struct loop *loop);        /* until loop_stop() */
void loop_stop(struct loop *loop);
struct uv_loop_s *loop_uv(struct loop *loop);   /* for signal handles */

/* Does not own fd: close it after watch_free(), or by watch_close().  Sets it non-blocking.
 * `events` is a set of enum watch_events; all of them come for an error on the
 * descriptor, again and again until it is read, or the watch set or freed.  NULL with err. */
typedef void watch_fn(void *ctx, int events);
struct watch *watch_new(struct loop *loop, int fd, watch_fn *on_event, void *ctx, struct err *err);
void watch_set(struct watch *watch, int events);        /* 0 stops it */
void watch_free(struct watch **watch);                  /* NULL inside is fine */
/* The same, and closes *fd, which no other descriptor may stand for: that spares
 * taking it out of the watch first. */
void watch_close(struct watch **watch, int *fd);

/* One shot.  timer_set() on a running timer moves it. */
typedef void timer_fn(void *ctx);
struct timer *timer_new(struct loop *loop, timer_fn *on_timer, void *ctx);
void timer_set(struct timer *timer, uint64_t after_ms);
void timer_clear(struct timer *timer);
void timer_free(struct timer **timer);

/* Runs on_call once, from the loop, before it waits again.  The caller owns
 * `defer` until it has run or defer_cancel() has returned; a second defer_call()
 * of a waiting one changes nothing.  Zero it before its first use. */
struct defer {
	void (*on_call)(void *ctx);
	void *ctx;
	struct defer *next, *prev;      /* for loop.c only */
};
void defer_call(struct loop *loop, struct defer *defer, void (*on_call)(void *ctx), void *ctx);
void defer_cancel(struct defer *defer);

#endif
