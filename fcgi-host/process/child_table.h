/*
 * child_table.h - the processes that a spawner has started and still answers
 * for, found by the relay's id or by pid.
 */
#ifndef FCGI_HOST_PROCESS_CHILD_TABLE_H
#define FCGI_HOST_PROCESS_CHILD_TABLE_H

#include "process/spawn_proto.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct child {
	uint64_t id;
	pid_t pid;                      /* also the number of its process group */
	bool is_ended;                  /* its group was sent a signal that ends it */
	bool is_left;                   /* reaped, and others of its ended group remain */
	bool is_ahead;                  /* started before its request */
	struct process_usage start_usage;       /* until it was ready */
	struct spawn_report exit;       /* with is_left: what will be reported */
	struct child *next_by_id, *next_by_pid, *next_left;     /* for child_table.c only */
};

/* All zero is an empty table.  Entries live until child_table_remove(). */
struct child_table {
	struct child **by_id, **by_pid;         /* chains; the size is a power of two */
	size_t buckets_count, count;
	struct child *left;                     /* those with is_left, by next_left */
	struct child *unused;                   /* by next_by_id */
};

void child_table_fini(struct child_table *table);

/* An entry that is not in the table yet, or NULL without memory.  It goes
 * in by child_table_add() or back by child_table_put_back(). */
struct child *child_table_take(struct child_table *table);
void child_table_put_back(struct child_table *table, struct child *child);

void child_table_add(struct child_table *table, struct child *child);   /* id and pid are set */
void child_table_set_left(struct child_table *table, struct child *child);
void child_table_remove(struct child_table *table, struct child *child);

struct child *child_table_by_id(const struct child_table *table, uint64_t id);  /* or NULL */
struct child *child_table_by_pid(const struct child_table *table, pid_t pid);   /* or NULL */

#endif
