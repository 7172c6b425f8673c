/*
 * zygote.h - an initialised process that forks others of its handler.
 */
#ifndef FCGI_HOST_PROCESS_ZYGOTE_H
#define FCGI_HOST_PROCESS_ZYGOTE_H

#include "base/err.h"
#include "base/lines.h"
#include "base/loop.h"
#include "config/config.h"
#include "process/shim_link.h"
#include "process/spawn.h"

#include <stdbool.h>
#include <stdint.h>

enum zygote_state { ZYGOTE_STARTING, ZYGOTE_READY, ZYGOTE_ENDING, ZYGOTE_GONE };

struct zygote {
	enum zygote_state state;
	const struct handler_config *handler;
	struct process process;
	struct shim_link link;
	int err_fd;
	struct watch *err_watch;
	struct lines err_lines;
	struct timer *timer;            /* starts too slowly; later: is old enough */
	uint64_t asked_ns;
	unsigned forks;
	bool is_due;                    /* old, or what it has loaded has changed: another is to take its place */
	bool was_refused;               /* it cannot fork: `refusal` */
	struct err refusal;
	bool has_changed;               /* what it has loaded, so that it ends */
	bool is_dropped;                /* the set's: it was told to go, and is not at fault */
	void (*on_change)(struct zygote *zygote);       /* READY, is_due or GONE, from anywhere, so defer */
	void *set;
	struct zygote *next;            /* the set's */
};

/* NULL with err.  on_change and set are for the caller to fill in at once. */
struct zygote *zygote_new(const struct handler_config *handler, uint32_t generation, struct loop *loop, struct spawner *spawner,
	const struct bytes *preload, struct err *err);

/* A child with these as stdin, stdout, stderr and control; they stay the caller's.
 * 0: it will say so itself on its control.  -1 with err. */
int zygote_fork(struct zygote *zygote, const int fds[4], struct err *err);

void zygote_end(struct zygote *zygote);
void zygote_free(struct zygote **zygote);

#endif
