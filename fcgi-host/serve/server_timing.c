#include "serve/server_timing.h"

#include "base/clock.h"
#include "serve/request.h"

#include <stdio.h>

/* Returns the length so far. */
static size_t put_span(char *out, size_t len, const char *name, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t us = to_ns < from_ns ? 0 : (to_ns - from_ns) / 1000;
	int n = snprintf(out + len, SERVER_TIMING_BYTES - len, "%s%s;dur=%llu.%03u", len == 0 ? "" : ", ", name,
		(unsigned long long)(us / 1000), (unsigned)(us % 1000));

	return n < 0 || (size_t)n >= SERVER_TIMING_BYTES - len ? len : len + (size_t)n;
}

const char *server_timing(const struct request *request, char out[SERVER_TIMING_BYTES])
{
	uint64_t now = clock_monotonic_ns();
	size_t len = 0;

	out[0] = '\0';
	if (request->queued_ns != 0)
		len = put_span(out, len, "queue", request->queued_ns, request->granted_ns != 0 ? request->granted_ns : now);
	if (request->granted_ns != 0)
		len = put_span(out, len, "start", request->granted_ns, request->started_ns != 0 ? request->started_ns : now);
	if (request->started_ns != 0)
		put_span(out, len, "handler", request->started_ns, now);
	return out;
}
