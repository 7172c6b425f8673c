/*
 * clock.h - time.  Durations and limits use the monotonic clock only; the
 * system's clock is for the time stamp of a log line.
 */
#ifndef FCGI_HOST_BASE_CLOCK_H
#define FCGI_HOST_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

uint64_t clock_monotonic_ns(void);

/* "2026-11-30T21:16:38.123Z", for now.  out_size >= 25. */
void clock_stamp(char *out, size_t out_size);

#endif
