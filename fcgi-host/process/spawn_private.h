/*
 * spawn_private.h - what the parts of the relay's end share: spawn.c and
 * spawn_ahead.c.  For them only.
 */
#ifndef FCGI_HOST_PROCESS_SPAWN_PRIVATE_H
#define FCGI_HOST_PROCESS_SPAWN_PRIVATE_H

#include "process/spawn.h"
#include "process/spawn_link.h"

/* A LOAD that is under way. */
struct spawner_load {
	uint32_t generation;
	size_t answers;
	uint64_t digest;
	bool is_fine;
	void (*on_loaded)(void *ctx, bool is_fine, uint64_t digest);    /* NULL: cancelled */
	void *ctx;
};

/* A RIGHTS that is under way. */
struct spawner_rights {
	uint32_t generation;
	void (*on_changed)(void *ctx, int errnum, size_t failed);       /* NULL: cancelled */
	void *ctx;
};

struct spawner {
	const struct config *config;
	struct spawn_link *links;
	size_t links_count;
	struct spawn_link_owner owner;
	struct loop *loop;              /* NULL until attached */
	void (*on_lost)(void *ctx);
	void *ctx;
	uint64_t asked_count;
	struct process **buckets;       /* STARTING and RUNNING, by id, chained by next */
	size_t buckets_count, processes_count;
	struct process *gone;           /* their on_gone is due, chained by next */
	struct defer defer;
	struct spawner_load load;
	struct spawner_rights rights;
	bool is_lost, is_lost_told;
	bool is_calling;                /* a callback runs */
	bool is_free;                   /* spawner_free() was called in it */
};

/* The link of this process; ids are not used twice, and tell the link. */
struct spawn_link *spawner_link_of(struct spawner *spawner, uint64_t id);

/* STARTING or RUNNING, and not forgotten. */
bool spawner_has(struct spawner *spawner, const struct process *process);

/* Gives it an id that belongs to link number `link`, and sends the message, which
 * gets that id.  0, or -1 with err. */
int spawner_begin(struct spawner *spawner, struct process *process, size_t link, struct spawn_message *message, struct err *err);

#endif
