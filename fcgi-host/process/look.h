/*
 * look.h - what a process that runs has used so far, from /proc.
 */
#ifndef FCGI_HOST_PROCESS_LOOK_H
#define FCGI_HOST_PROCESS_LOOK_H

#include <stdint.h>
#include <sys/types.h>

struct look {
	uint64_t cpu_us;                /* user + system */
	uint64_t rss_kib;               /* held in memory now */
	uint64_t minor_faults, major_faults;
};

/* 0, or -1 when there is no such process or it cannot be told. */
int look_at(pid_t pid, struct look *out);

#endif
