/*
 * child.h - a program that runs while something is measured, and is gone after.
 *
 * It is the leader of its own process group, so that an interrupt at the terminal
 * reaches the one who measures and nobody else; and it gets TERM when that one dies.
 */
#ifndef FCGI_HOST_COMPARE_CHILD_H
#define FCGI_HOST_COMPARE_CHILD_H

#include "base/err.h"
#include "config/config.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct child_spec {
	const char *program;            /* a path, or a name for PATH */
	char *const *argv;
	const char *directory;          /* NULL: ours */
	const struct pair *env;         /* beside our own environment */
	size_t env_count;
	const char *output;             /* a file for stdout and stderr */
	int stdin_fd, stdout_fd;        /* instead of /dev/null and of the file; -1: those.  Stay the caller's */
};

struct child {
	pid_t pid;                      /* 0: none runs */
	char *output;                   /* ours */
	int wait_status;                /* once it has ended by itself */
};

/* 0: it runs.  -1 with err: it cannot be started. */
int child_start(struct child *child, const struct child_spec *spec, struct err *err);

/* False once it has ended by itself; then wait_status tells how. */
bool child_runs(struct child *child);

/* Why it ended, with the last line that it wrote.  Returns -1. */
int child_tell(const struct child *child, const char *what, struct err *err);

/* TERM, and KILL to its group after `patience_ms`; whatever is left of the group goes too.
 * Nothing where none runs. */
void child_stop(struct child *child, uint64_t patience_ms);

#endif
