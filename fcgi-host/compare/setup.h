/*
 * setup.h - what a suite's ways need to be there, such as a database: a program that makes
 * it, tells how to reach it, and takes it down when its standard input ends.
 */
#ifndef FCGI_HOST_COMPARE_SETUP_H
#define FCGI_HOST_COMPARE_SETUP_H

#include "compare/child.h"

#include <signal.h>

struct setup {
	struct child child;
	int stdin_fd;                   /* -1: closed */
	struct pair *env;               /* what it printed; ours */
	size_t env_count;
};

/* Waits for its line "ready".  -1 with err.  Stop it in any case. */
int setup_start(struct setup *setup, char *const *argv, const char *folder, const volatile sig_atomic_t *is_interrupted,
	struct err *err);
void setup_stop(struct setup *setup);

#endif
