/*
 * spawn_fixture.h - a spawner with handlers of one's choice, and processes
 * that are run to their end with their output kept.
 */
#ifndef TESTS_UNIT_SPAWN_FIXTURE_H
#define TESTS_UNIT_SPAWN_FIXTURE_H

#include "base/loop.h"
#include "process/spawn.h"

#include <stdbool.h>

struct fixture {
	char folder[64];                /* a fresh one; removed at the end */
	struct config config;
	struct handler_config handler;
	struct loop *loop;
	struct spawner *spawner;
	struct timer *deadline;         /* fails the test */
	unsigned lost;                  /* times on_lost ran */
};

/* To be changed before fixture_begin(): the handler and the configuration. */
void fixture_init(struct fixture *fixture);
void fixture_begin(struct fixture *fixture);
void fixture_end(struct fixture *fixture);

/* A file in the folder; returns its path, in a static buffer. */
const char *fixture_file(struct fixture *fixture, const char *name, const char *text, int mode);

struct run {
	struct fixture *fixture;
	struct process process;
	struct watch *watch;
	int out_fd;
	struct bytes output;            /* stdout and stderr */
	bool is_started, is_gone, is_read;
};

/* request->fds and ->handler are set here: stdin from /dev/null, 1 and 2 on one pipe. */
void run_start(struct run *run, struct fixture *fixture, struct spawn_request *request);
void run_until(struct run *run, const bool *fact);      /* runs the loop */
void run_fini(struct run *run);

/* Start, wait until gone and read, NUL-terminated output. */
const char *run_whole(struct run *run, struct fixture *fixture, struct spawn_request *request);

/* /bin/sh -c `text` as the handler's command. */
void fixture_shell(struct fixture *fixture, const char *text);

/* Does this process run (a zombie does not)?  Waits for it not to: true then. */
bool is_running(pid_t pid);
bool ends_soon(pid_t pid);

/* Where vfork is a plain fork, a failing step is not seen by the parent. */
bool is_under_valgrind(void);

#endif
