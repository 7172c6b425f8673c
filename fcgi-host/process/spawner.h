/*
 * spawner.h - a spawner process: starts, signals and reaps what the relay asks
 * for, over one socket.
 *
 * It keeps the privileges that the host was started with, and so trusts nothing
 * that it is asked: a START names a handler by number and brings variables and
 * descriptors, and that is all that it can choose.
 *
 * Every process runs in its own group.  A group that was sent TERM, KILL, INT,
 * HUP or QUIT is an ended one: its EXITED is held back until all of the group
 * are gone or were sent KILL.  A group whose process ended by itself is left
 * alone, and one whose process died by a signal gets KILL.
 *
 * When the relay is gone, in whatever way, all groups get KILL and the spawner
 * ends; when the spawner is killed, the kernel ends its processes.
 */
#ifndef FCGI_HOST_PROCESS_SPAWNER_H
#define FCGI_HOST_PROCESS_SPAWNER_H

#include "config/config.h"
#include "process/spawn.h"

/* What a freshly forked process runs.  All of its descriptors but `socket_fd`
 * and stderr are closed.  The first one is told what to clear away at the end,
 * others NULL. */
_Noreturn void spawner_main(int socket_fd, const struct config *config, const struct spawn_cleanup *cleanup);

#endif
