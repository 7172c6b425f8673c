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

#include <stdbool.h>
#include <stdint.h>

struct client;
struct listener;
struct request;
struct signals;

enum { SCRATCH_BYTES = 64 * 1024 };

enum host_state { HOST_RUNNING, HOST_DRAINING, HOST_KILLING };

/* What is said once per route, so that a client cannot fill the log. */
enum route_notice { NOTICE_REPEATED = 1, NOTICE_REMOTE_USER = 2, NOTICE_BIG_HEADER = 4 };

struct host {
	const struct config *config;
	struct loop *loop;
	struct spawner *spawner;
	struct route_table *routes;
	struct pool **pools;            /* one per handler, by its number */
	uint8_t *notices;               /* per route: set of enum route_notice */
	struct listener **listeners;
	size_t listeners_count;
	struct client *clients;         /* all of them */
	struct request *requests;       /* those that have a route, until they are logged */
	unsigned clients_count;
	enum host_state state;
	bool is_failed;                 /* a spawner was lost: exit status 1 */
	char folder[96];                /* workers' sockets; "" when there is none */
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

/* Runs until TERM.  `config` is borrowed; takes ownership of `spawner`.  Returns
 * the exit status. */
int host_run(const struct config *config, struct spawner *spawner, const struct inherited *inherited);

/* A client or a request has gone: is there anything left to wait for? */
void host_check_stop(struct host *host);

/* A descriptor was closed: paused listeners may go on. */
void host_descriptor_freed(struct host *host);

/* True the first time for this route. */
bool host_notice(struct host *host, const struct route_config *route, enum route_notice notice);

#endif
