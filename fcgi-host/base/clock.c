#include "base/clock.h"

#include <string.h>
#include <time.h>

uint64_t clock_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void clock_stamp(char *out, size_t out_size)
{
	static char text[] = "1970-01-01T00:00:00.000Z";
	static time_t second = -1;
	struct timespec now;
	struct tm utc;
	long ms;

	clock_gettime(CLOCK_REALTIME, &now);
	if (now.tv_sec != second) {
		gmtime_r(&now.tv_sec, &utc);
		strftime(text, 20, "%Y-%m-%dT%H:%M:%S", &utc);
		text[19] = '.';
		second = now.tv_sec;
	}
	ms = now.tv_nsec / 1000000;
	text[20] = (char)('0' + ms / 100);
	text[21] = (char)('0' + ms / 10 % 10);
	text[22] = (char)('0' + ms % 10);
	memcpy(out, text, out_size < sizeof(text) ? out_size : sizeof(text));
}
