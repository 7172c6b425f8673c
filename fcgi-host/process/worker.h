/*
 * worker.h - one persistent handler process and the socket on which it accepts.
 *
 * The relay keeps the listening end open too, so that it can tell whether a
 * connection was ever accepted.  Workers are made, handed out and freed by
 * their pool alone.
 */
#ifndef FCGI_HOST_PROCESS_WORKER_H
#define FCGI_HOST_PROCESS_WORKER_H

#include "base/err.h"
#include "base/lines.h"
#include "base/loop.h"
#include "config/config.h"
#include "process/spawn.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

enum worker_state {
	WORKER_STARTING,        /* the spawner has been asked */
	WORKER_IDLE,            /* may be handed out */
	WORKER_BUSY,            /* borrowed */
	WORKER_STOPPING,        /* told to end; never handed out again */
	WORKER_GONE,            /* the process has ended; only a borrower still knows it */
};

struct worker {
	enum worker_state state;        /* set by the pool */
	const struct handler_config *handler;
	struct process process;
	int listen_fd;
	bool is_ready;                  /* it has accepted a connection, see worker.c */
	/* The pool's, for recycling. */
	bool is_due;                    /* wants a replacement */
	bool is_replacement;            /* started as one */
	struct sockaddr_un address;     /* where to connect */
	unsigned enough_requests;       /* after so many it goes when another is ready, 0: never */
	unsigned most_requests;         /* and after so many in any case */
	uint64_t max_age_ns;            /* the same of workers.max_age */
	unsigned handed_out;            /* times */
	unsigned requests;              /* requests answered whole */
	uint64_t ready_ns, idle_since_ns;

	/* The borrower's, while it is busy; cleared when it is handed back. */
	void (*on_gone)(void *ctx);     /* the process has ended: hand it back */
	void *ctx;
	const char *request_id;         /* for the lines of its stderr; NULL when idle */

	/* A connection kept to it.  close_link runs before the worker stops. */
	void *link;
	void (*close_link)(void *link);

	int stderr_fd;
	struct watch *stderr_watch;
	struct lines stderr_lines;
	struct timer *kill_timer;
	int probe_fd;                   /* a connection that waits to be accepted, or -1 */
	struct timer *probe_timer;
	uint64_t probe_ms;              /* until the next look */
	void (*on_change)(struct worker *worker);       /* ready (is_ready), or gone (process.state) */
	void *pool;
	struct worker *next, *prev;     /* the pool's */
};

/* Starts a process for `handler` with a socket of its own in `folder`.
 * on_change runs when it is ready, that is when it accepts on its socket, and
 * when it is gone, never from inside a call.  One that is not ready within
 * timeout.start is killed. */
struct worker *worker_start(const struct handler_config *handler, uint32_t generation, const char *folder, struct loop *loop,
	struct spawner *spawner, void (*on_change)(struct worker *worker), void *pool, struct err *err);

/* Kilobytes of memory that it holds now, 0 when that cannot be told. */
uint64_t worker_rss_kib(const struct worker *worker);

/* Closes the link, tells the process group to end, and kills it after
 * timeout.kill.  on_change runs when it is gone.  The caller sets the state. */
void worker_stop(struct worker *worker);

/* Has every connection made to it been accepted? */
bool worker_has_accepted(const struct worker *worker);

/* Only when the process is gone, or the host ends. */
void worker_free(struct worker **worker);

#endif
