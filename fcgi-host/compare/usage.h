/*
 * usage.h - what processes have used so far and hold now, from /proc and their
 * CPU clocks.  Two readings tell what lay between them.
 */
#ifndef FCGI_HOST_COMPARE_USAGE_H
#define FCGI_HOST_COMPARE_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum usage_part {
	USAGE_HANDLERS,                 /* or a server that was not started by a host */
	USAGE_RELAY, USAGE_SPAWNER, USAGE_WEB,
	USAGE_PARTS
};
const char *usage_part_name(enum usage_part part);      /* "handler", "relay", … */

struct usage {
	uint64_t cpu_ns[USAGE_PARTS];
	uint64_t faults[USAGE_PARTS];   /* page faults */
	uint64_t switches[USAGE_PARTS]; /* context switches */
};

struct holding {
	uint64_t kib[USAGE_PARTS];
	unsigned processes[USAGE_PARTS];
	bool is_resident;               /* RSS, which counts what is shared in each: PSS could not be read */
};

/* Adds what `root` and all below it have used, living or waited for: a private host (its relay,
 * spawners below that, handlers below those; ended handlers are not in it, a host's
 * status has them), or a web server or program (all in one part).  -1 when root is not there. */
int usage_add_host(pid_t root, struct usage *usage);
int usage_add_program(pid_t root, enum usage_part part, struct usage *usage);

/* The memory that they hold now: PSS, in which a page shared by n processes counts 1/n. */
int holding_add_host(pid_t root, struct holding *holding);
int holding_add_program(pid_t root, enum usage_part part, struct holding *holding);

/* Adds `to` less `from`; what seems to have shrunk counts as nothing. */
void usage_add_between(struct usage *sum, const struct usage *from, const struct usage *to);

/* Who listens on a loopback TCP port or a unix socket: 0 when it cannot be found. */
struct sockaddr_storage;
pid_t usage_listener(const struct sockaddr_storage *address);

#endif
