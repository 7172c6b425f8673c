#include "serve/failures.h"

#include "base/clock.h"
#include "serve/request.h"

#include <string.h>

static void copy(char *out, size_t size, const char *text)
{
	size_t len = text == NULL ? 0 : strnlen(text, size - 1);

	if (len > 0)
		memcpy(out, text, len);
	out[len] = '\0';
}

void failures_add(struct failures *failures, const struct request *request, const struct outcome *outcome)
{
	struct failed_request *failed = &failures->kept[failures->count++ % FAILURES_KEPT];

	clock_stamp(failed->time, sizeof(failed->time));
	failed->failure = outcome_failure(outcome);
	failed->status = outcome->status;
	failed->total_us = request->begun_ns == 0 ? 0 : (request->answered_ns - request->begun_ns) / 1000;
	copy(failed->id, sizeof(failed->id), request->id);
	copy(failed->handler, sizeof(failed->handler), request->handler == NULL ? NULL : request->handler->name);
	copy(failed->method, sizeof(failed->method), request->cgi.method);
	copy(failed->path, sizeof(failed->path), request->cgi.path);
	copy(failed->reason, sizeof(failed->reason), request->reason);
}

const struct failed_request *failures_at(const struct failures *failures, size_t n)
{
	if (n >= FAILURES_KEPT || n >= failures->count)
		return NULL;
	return &failures->kept[(failures->count - 1 - n) % FAILURES_KEPT];
}
