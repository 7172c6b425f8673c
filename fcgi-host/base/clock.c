#include "base/clock.h"

#include <stdio.h>
#include <time.h>

uint64_t clock_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void clock_stamp(char *out, size_t out_size)
{
	struct timespec now;
	struct tm utc;
	char date[32];

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(out, out_size, "%s.%03dZ", date, (int)(now.tv_nsec / 1000000));
}
