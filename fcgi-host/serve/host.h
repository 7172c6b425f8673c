/*
 * host.h - the running host: what every part of serve/ shares.
 */
#ifndef FCGI_HOST_SERVE_HOST_H
#define FCGI_HOST_SERVE_HOST_H

#include "base/err.h"
#include "base/loop.h"
#include "config/config.h"
#include "process/pool.h"
#include "process/spawn.h"
#include "route/route.h"
#include "serve/failures.h"
#include "serve/figures.h"

#include <stdbool.h>
#include <stdint.h>

struct client;
struct control;
struct listener;
struct notify;
struct reload;
struct request;
struct signals;
struct site;

/* A pool and the configuration that it was made for. */
struct pool_entry {
	struct host *host;
	struct pool *pool;
	struct site *site;
	struct figures *figures;        /* counted */
	size_t place;                   /* for reading.c only */
	struct pool_entry *next, *prev;
};

enum { SCRATCH_BYTES = 64 * 1024 };

enum host_state { HOST_RUNNING, HOST_DRAINING, HOST_KILLING };

struct host {
	struct site *site;              /* the newest configuration */
	struct loop *loop;
	struct spawner *spawner;
	struct budget budget;           /* of processes */
	struct pool_entry *pools;       /* of all configurations that still have some */
	struct listener **listeners;
	size_t listeners_count;
	struct client *clients;         /* all of them */
	struct request *requests;       /* those that have a route, until they are logged */
	unsigned clients_count;
	enum host_state state;
	bool has_root;                  /* the spawners have it: we may have given it up */
	bool is_inherited;              /* listeners were handed over: a reload leaves them */
	bool is_failed;                 /* a spawner was lost: exit status 1 */
	const char *folder;             /* of workers' sockets; borrowed */
	uint32_t generation;            /* the number last given to a configuration */
	unsigned reloads;               /* that succeeded */
	uint64_t begun_ns;
	struct figures *unrouted;       /* of requests that no handler is for */
	struct figures *builtin;        /* of those that we answered ourselves, by a route */
	unsigned builtin_answers;       /* that are on their way */
	struct failures failures;       /* the last ones */
	struct reload *reload;          /* the one that is under way, or NULL */
	struct control *control;        /* NULL when another host has this configuration */
	struct notify *notify;          /* systemd; NULL when nobody asks to be told */
	struct signals *signals;
	struct timer *stop_timer;
	struct timer *log_timer;        /* the log's reader is slow */
	struct defer log_call;
	struct defer stop_check;
	unsigned long long serial;      /* of requests */
	char boot[17];                  /* random, begins every request id */
	uint8_t scratch[SCRATCH_BYTES]; /* for one read at a time, inside one callback */
};

/* Sockets that somebody opened for us. */
struct inherited { int *fds; size_t count; };

/* Runs until TERM.  Takes ownership of `config` and `spawner`.  Returns the exit
 * status. */
int host_run(struct config *config, struct spawner *spawner, const char *folder, const struct inherited *inherited);

/* A client or a request has gone: is there anything left to wait for? */
void host_check_stop(struct host *host);

/* A descriptor was closed: paused listeners may go on. */
void host_descriptor_freed(struct host *host);

/* Takes ownership of both: they go when the pool is empty after it was closed or
 * retired.  -1 without memory: both are gone. */
int host_add_pool(struct host *host, struct pool *pool, struct site *site);
void host_retire_pool(struct pool *pool);

#endif
