/*
 * spawn_proto.h - what the relay and a spawner say to each other.
 *
 * A stream socket carries these structs one after the other, in memory order:
 * both ends are the same program.  The relay asks, the spawner reports.
 *
 *   relay to spawner:  struct spawn_ask, then script (with its NUL), then environ
 *   spawner to relay:  struct spawn_report
 *
 * The descriptors of a START travel with its first byte.  The spawner does not
 * trust what it is asked; see spawner.c.
 */
#ifndef FCGI_HOST_PROCESS_SPAWN_PROTO_H
#define FCGI_HOST_PROCESS_SPAWN_PROTO_H

#include "process/spawn.h"

#include <limits.h>
#include <stdint.h>

enum {
	SPAWN_SCRIPT_MAX_BYTES = PATH_MAX,
	SPAWN_ENVIRON_MAX_BYTES = 6 * 1024 * 1024,      /* Linux never takes more, whatever the limits */
};

/* Descriptors 0 to 2 of a process, and its end of the control socket. */
enum { SPAWN_FD_CONTROL = 3, SPAWN_FDS = 4 };

enum spawn_ask_kind {
	SPAWN_ASK_START = 1,
	SPAWN_ASK_SIGNAL,
	SPAWN_ASK_LOAD,                 /* read the configuration again, as `generation`: answered by LOADED */
	SPAWN_ASK_FORGET,               /* `generation` is not used any more */
	SPAWN_ASK_RIGHTS,               /* sockets go from the rights of `id`, a generation too, to those of `generation` */
	SPAWN_ASK_ADOPT,                /* `pid`, forked by a zygote: answered as a START */
	SPAWN_ASK_READY,                /* it waits for its request */
};

struct spawn_ask {
	uint64_t id;                    /* chosen by the relay, never used twice */
	uint32_t kind;                  /* enum spawn_ask_kind */
	uint32_t handler;               /* START, ADOPT: its number */
	uint32_t fds;                   /* START: bit i is set when descriptor i travels along, see SPAWN_FDS */
	uint32_t script_len;            /* START: with the NUL; 0 when there is none */
	uint32_t environ_len;           /* START; with `ahead` the names of learnt modules */
	uint32_t ahead;                 /* START: enum spawn_ahead */
	int32_t pid;                    /* ADOPT */
	uint32_t signal;                /* SIGNAL */
	uint32_t generation;            /* START, ADOPT, LOAD, FORGET, RIGHTS: of the configuration */
	uint32_t is_prompt;             /* START: STARTED does not wait for company */
};

enum spawn_report_kind {
	SPAWN_REPORT_STARTED,           /* the program runs */
	SPAWN_REPORT_FAILED,            /* it never ran; nothing else comes for this id */
	SPAWN_REPORT_EXITED,            /* after STARTED; nothing else comes for this id */
	SPAWN_REPORT_LOADED,            /* `id` is the generation */
	SPAWN_REPORT_RIGHTS,            /* the same */
};

struct spawn_report {
	uint64_t id;
	uint64_t at_ns;                 /* monotonic: when it started, failed or exited */
	uint32_t kind;                  /* enum spawn_report_kind */
	int32_t pid;                    /* STARTED */
	int32_t step, errnum;           /* FAILED: enum spawn_step; LOADED: errnum 0, or it is no configuration;
	                                 * RIGHTS: errnum 0, or why not, and which socket as `step` */
	uint64_t digest;                /* LOADED: of the file's text */
	int32_t wait_status;            /* EXITED */
	struct process_usage usage;     /* EXITED: without what was used until it was ready */
	struct process_usage start_usage;       /* EXITED: until it was ready */
};

#endif
