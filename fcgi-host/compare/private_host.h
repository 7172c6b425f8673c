/*
 * private_host.h - a host of our own program, with one handler, for one way.
 */
#ifndef FCGI_HOST_COMPARE_PRIVATE_HOST_H
#define FCGI_HOST_COMPARE_PRIVATE_HOST_H

#include "compare/child.h"
#include "compare/plan.h"

struct private_host {
	struct child child;
	char *config, *address, *log;   /* a file; "unix:…"; a file */
};

/* What its status says of its handler, summed over its life. */
struct host_reading {
	uint64_t requests;              /* that are over, log line and all */
	uint64_t ended_cpu_ns, ended_faults, ended_switches;    /* of processes that have ended */
	uint64_t spawn_count, spawn_ns[4];      /* enum spawn_part of serve/figures.h */
	uint64_t starts_cold, starts_ahead;     /* processes started for their request; that waited for it */
	uint64_t idle;                          /* processes now */
};

/* Writes the configuration into `folder`, starts the host and waits until it listens.  `number` tells it from
 * others there.  -1 with err, in the host's own words where it has any.  Stop it in any case. */
int private_host_start(struct private_host *host, const struct way *way, const char *folder, unsigned number,
	const struct way_place *also, struct err *err);
void private_host_stop(struct private_host *host);

/* Waits, a second at most, until so many requests are over. */
int private_host_settle(const struct private_host *host, uint64_t requests, struct host_reading *out, struct err *err);

/* A process that cannot wait for its request is started for it after all: true, and why. */
bool private_host_has_given_up_waiting(const struct private_host *host, char *why, size_t why_size);

/* Returns once a process waits for a request, or none will, or after a few seconds. */
void private_host_wait_ahead(const struct private_host *host);

/* The log is only of use after a failure: keeps it from filling the disk. */
void private_host_trim_log(const struct private_host *host);

/* Waits until something listens there.  -1 with err when the child ends before, or too late. */
int wait_for_listener(const char *address_or_url, struct child *child, uint64_t patience_ms, const char *what, struct err *err);

#endif
