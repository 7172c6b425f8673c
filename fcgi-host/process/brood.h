/*
 * brood.h - the processes of a spawner, from their start to the last report
 * about them: reaping, signals to groups, and when a group is over.
 *
 * Reports go to the relay by `socket_fd`, several at once where they come
 * together.  Where the relay is gone, everything ends: see brood_end().
 */
#ifndef FCGI_HOST_PROCESS_BROOD_H
#define FCGI_HOST_PROCESS_BROOD_H

#include "process/child_table.h"
#include "process/spawn_child.h"
#include "process/spawn_proto.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum {
	BROOD_REPORTS_MAX = 32,
};

struct brood {
	int socket_fd;
	struct child_table children;
	struct spawn_report reports[BROOD_REPORTS_MAX];
	unsigned reports_count;
	bool is_report_due;             /* among them is one that does not wait */
	uint64_t reports_since_ns;
	uint64_t left_checked_ns;
};

bool brood_has(const struct brood *brood, uint64_t id);

/* Each makes a report: STARTED or FAILED. */
void brood_start(struct brood *brood, const struct spawn_ask *ask, struct spawn_child *how);
/* A child that a zygote has forked for us.  It must be one of ours. */
void brood_adopt(struct brood *brood, const struct spawn_ask *ask);

/* NULL when it is gone, or does not wait for a request. */
struct child *brood_waiting(const struct brood *brood, uint64_t id);
/* It waits from now on. */
void brood_set_ready(struct child *child);

/* Reports a LOADED. */
void brood_loaded(struct brood *brood, uint32_t generation, uint64_t digest, bool is_fine);
/* Reports a RIGHTS. */
void brood_changed_rights(struct brood *brood, uint32_t generation, int errnum, size_t failed);

/* Makes a report: FAILED. */
void brood_fail(struct brood *brood, uint64_t id, enum spawn_step step, int errnum);

/* To the whole group; nothing happens when there is no such process any more. */
void brood_signal(struct brood *brood, uint64_t id, int signal);

/* Reaps what has ended and sends the reports that are due. */
void brood_tend(struct brood *brood);

/* When brood_tend() is due though nothing happens: NULL for never, or `out`. */
const struct timespec *brood_patience(const struct brood *brood, struct timespec *out);

/* KILL to all groups, and the end of the calling process. */
_Noreturn void brood_end(struct brood *brood, int status);

#endif
