/*
 * spawn_child.h - from a spawner to a running program, in one call.
 */
#ifndef FCGI_HOST_PROCESS_SPAWN_CHILD_H
#define FCGI_HOST_PROCESS_SPAWN_CHILD_H

#include "process/spawn.h"

#include <stdbool.h>
#include <sys/types.h>

/* Everything that the child needs is prepared here: until it execs, it runs in
 * the caller's memory and must not allocate. */
struct spawn_child {
	const char *path;
	char *const *argv, *const *envp;
	const char *directory;
	bool is_directory_optional;             /* a failing chdir is left to execve to explain */
	const struct identity *identity;        /* NULL: the caller's own */
	const struct program_limits *limits;
	int fds[3];                             /* become 0, 1, 2; none of them is below 3 */
	int control_fd, control_number;         /* the one becomes the other; 0: none */
	int nice;                               /* added to its priority */
	volatile enum spawn_step failed_step;   /* out: NONE when the program runs */
	volatile int failed_errno;              /* out */
};

/* Returns when the program runs, with its pid, or has failed, with -1: the
 * child is reaped then.  The caller has one thread and blocks all signals. */
pid_t spawn_child_run(struct spawn_child *child);

#endif
