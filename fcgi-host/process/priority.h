/*
 * priority.h - the priority of processes that have no request yet, behind those
 * that work.
 */
#ifndef FCGI_HOST_PROCESS_PRIORITY_H
#define FCGI_HOST_PROCESS_PRIORITY_H

#include <sys/types.h>

/* What to add to the nice value of one that is started now: 0 where it could not
 * be raised again, as by root without CAP_SYS_NICE, in a container or a unit. */
int priority_ahead(void);

/* Raises its whole group, so that it counts for every thread. */
void priority_raise(pid_t group);

#endif
