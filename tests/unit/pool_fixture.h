/*
 * pool_fixture.h - a pool with a real spawner; its workers are the test program
 * itself, run again with a word that says what to do.
 */
#ifndef TESTS_UNIT_POOL_FIXTURE_H
#define TESTS_UNIT_POOL_FIXTURE_H

#include "spawn_fixture.h"
#include "process/pool.h"

struct pool_fixture {
	struct fixture base;
	char program[80];               /* a link to this program, in the folder */
	char log[80];
	char *command[3];
	struct budget budget;           /* without a limit */
	struct pool *pool;
	struct timer *look;
	unsigned answers;               /* to customers, so far */
};

/* First in main(): returns unless this is a worker.  Words: serve, die (with
 * status 3, unless there is a file `repaired` in the folder), stubborn (ignores
 * TERM), say (hello on stderr), slow (accepts after a moment), deaf (never accepts). */
void pool_fixture_worker(int argc, char **argv);

/* fixture->base.handler may be changed between the two. */
void pool_fixture_init(struct pool_fixture *fixture, const char *mode);
void pool_fixture_begin(struct pool_fixture *fixture);
void pool_fixture_end(struct pool_fixture *fixture);

/* Makes or removes the program. */
void pool_fixture_program(struct pool_fixture *fixture, bool is_there);

/* Runs the loop for a moment, to look again for a fact. */
void pool_fixture_turn(struct pool_fixture *fixture);
void pool_fixture_until_gone(struct pool_fixture *fixture, pid_t pid);

unsigned pool_fixture_starts(const struct pool_fixture *fixture);       /* of workers that came to run */
unsigned pool_fixture_logged(const struct pool_fixture *fixture, const char *what);     /* how often */

/* Somebody who wants a worker or a place. */
struct customer {
	struct pool_fixture *fixture;
	struct pool_waiter waiter;
	struct pool_result result;
	bool is_answered, is_worker_gone;
	unsigned order;                 /* 1: was answered first */
	pid_t pid;
	struct customer *to_cancel;     /* when this one is answered */
};

void customer_come(struct customer *customer, struct pool_fixture *fixture);
enum pool_answer customer_wait(struct customer *customer);
void customer_listen(struct customer *customer);        /* sets worker->on_gone */
void customer_leave(struct customer *customer, bool is_good);

#endif
