/*
 * spawn.h - the relay's end of the spawner: start, end and hear of processes.
 *
 * The spawner processes are forked by spawner_fork() before the relay grows and
 * before it drops its privileges.  They know the configured commands by number;
 * the relay sends only a number, variables and descriptors.
 *
 * A struct process is owned by whoever started it.  It may be freed from
 * on_gone on, or at any time after process_forget().
 */
#ifndef FCGI_HOST_PROCESS_SPAWN_H
#define FCGI_HOST_PROCESS_SPAWN_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/loop.h"
#include "config/config.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct spawner;         /* opaque, see spawn.c */

/* What went wrong before the program ran. */
enum spawn_step {
	SPAWN_STEP_NONE, SPAWN_STEP_FORK, SPAWN_STEP_GROUP, SPAWN_STEP_USER, SPAWN_STEP_LIMITS, SPAWN_STEP_DIRECTORY,
	SPAWN_STEP_DESCRIPTORS,
	SPAWN_STEP_PROGRAM,     /* no such script (ENOENT), or not one of the folder's files (EACCES) */
	SPAWN_STEP_EXEC,        /* E2BIG: too many or too large variables */
	SPAWN_STEP_WAIT,        /* it cannot wait for a request: see spawn_request.ahead */
	SPAWN_STEP_LOST,        /* the spawner is gone, and the process with it */
};
const char *spawn_step_name(enum spawn_step step);

/* One line for a person: the step, the path, the error and what to look at.
 * Reads the first line of the program where that explains the error. */
void spawn_failure_text(enum spawn_step step, int errnum, const char *program, struct err *out);

struct process_usage {
	uint64_t cpu_us;                /* user + system */
	uint64_t max_rss_kib;           /* not less than the spawner's own, see getrusage(2) */
	uint64_t minor_faults, major_faults;
	uint64_t context_switches;
};

enum process_state { PROCESS_NEW, PROCESS_STARTING, PROCESS_RUNNING, PROCESS_GONE };

struct process {
	enum process_state state;
	uint64_t id;                    /* for spawn.c only */
	pid_t pid;                      /* from STARTED on */
	uint64_t asked_ns, started_ns, exited_ns;       /* monotonic */
	int wait_status;                /* as of wait(2), when GONE by exit; KILL when the spawner was lost */
	enum spawn_step failed_step;    /* when it never ran, or the spawner was lost */
	int failed_errno;
	struct process_usage usage;     /* where it waited: since it was handed its request */
	bool was_ahead;                 /* it waited: start_usage is known */
	struct process_usage start_usage;       /* until it was ready */
	void (*on_started)(void *ctx);  /* may be NULL; unless is_prompt up to 5 ms late, unlike started_ns */
	void (*on_gone)(void *ctx);     /* exited, or never ran (failed_step is set) */
	void *ctx;
	struct spawner *spawner;        /* for spawn.c only */
	struct process *next;           /* for spawn.c only */
};

/* A process that waits for its request: handlers/shims/README.md. */
enum spawn_ahead { SPAWN_FOR_REQUEST, SPAWN_PARKED, SPAWN_ZYGOTE };

struct spawn_request {
	unsigned handler;               /* its number */
	uint32_t generation;            /* of the configuration that gave it; 0 is the first */
	const char *script;             /* with scripts: the path below the folder, else NULL */
	const struct bytes *environ;    /* "NAME=value\0"…; may be NULL */
	int fds[3];                     /* stdin, stdout, stderr; -1 is /dev/null.  Stay the caller's */
	enum spawn_ahead ahead;         /* started at lower priority where that can be raised again */
	const struct bytes *preload;    /* with ahead: learnt modules, "NAME\0"…; may be NULL */
	int control_fd;                 /* with ahead: the process's end of its control socket; stays the caller's */
	bool is_prompt;                 /* on_started comes at once, at the price of a wake-up */
};

/* What the first spawner clears away when the relay has gone, in whatever way. */
struct spawn_cleanup {
	const char *folder;             /* of workers' sockets (socket_folder.h), "" for none */
	bool has_sockets;               /* and the configuration's unix sockets, where a relay that gave up root may
	                                 * not; not to be where somebody else opened them */
};

/* Forks `config->spawners` processes.  To be called before anything else is
 * opened.  The relay's end is not attached to a loop yet.  Descriptors 0, 1
 * and 2 that are closed are opened on /dev/null first, here and there. */
struct spawner *spawner_fork(const struct config *config, const struct spawn_cleanup *cleanup, struct err *err);

/* From here on the relay hears of its processes.  on_lost runs when a spawner
 * died: no process can be started any more.  Its processes went before. */
int spawner_attach(struct spawner *spawner, struct loop *loop, void (*on_lost)(void *ctx), void *ctx, struct err *err);

/* Closes the relay's ends: every spawner then ends what it started and goes;
 * waits for that, a second at most.  No callback runs any more. */
void spawner_free(struct spawner **spawner);

/* Makes the spawners read the configuration's file again and know it under a
 * new number.  on_loaded runs once, from the loop: is_fine when all of them took
 * it, and `digest` is that of the text they all read.  One at a time.
 * -1: nothing was asked. */
int spawner_load(struct spawner *spawner, uint32_t generation,
	void (*on_loaded)(void *ctx, bool is_fine, uint64_t digest), void *ctx, struct err *err);
/* No process of this one will be asked for any more. */
void spawner_forget(struct spawner *spawner, uint32_t generation);
/* Has the first spawner, which may still be root, take the unix sockets from the
 * rights of one known configuration to those of another (socket_rights.h).
 * on_changed runs once, from the loop; it may be NULL.  One at a time. */
int spawner_change_rights(struct spawner *spawner, uint32_t from, uint32_t to,
	void (*on_changed)(void *ctx, int errnum, size_t failed), void *ctx, struct err *err);
/* Neither on_loaded nor on_changed runs any more. */
void spawner_cancel(struct spawner *spawner);

/* Starts asked for and not yet answered. */
unsigned spawner_starting_count(const struct spawner *spawner);

/* Asks for a start.  0: on_gone will run, after on_started where it ran.
 * -1: nothing was asked. */
int process_start(struct spawner *spawner, struct process *process, const struct spawn_request *request, struct err *err);

/* A process that a zygote has forked becomes a child of the zygote's spawner; from
 * here on it is as one that was started (on_started comes at once, then on_gone).
 * `request` gives handler and generation. */
int process_adopt(struct process *process, const struct process *zygote, pid_t pid, const struct spawn_request *request, struct err *err);

/* It is initialised and waits: its normal priority, and what it has used is
 * accounted to its start. */
void process_set_ready(struct process *process);

/* Signals the whole process group: TERM, KILL, INT, HUP, QUIT, USR1, USR2 or
 * CONT.  After one of the first five but KILL, on_gone waits until all of the
 * group have gone or KILL was sent: so send TERM, and KILL when that takes too
 * long.  Nothing happens when the process is gone. */
void process_signal(struct process *process, int signal);

/* No callback runs any more.  The process goes on. */
void process_forget(struct process *process);

#endif
