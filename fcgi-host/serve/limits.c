/* Time limits: one timer per request, moved only when it fires early. */
#include "base/clock.h"
#include "base/log.h"
#include "serve/request.h"

#include <signal.h>

enum { BAD_HEADER_WAIT_MS = 100 };     /* for the process to end and say how */

static const char bad_header[] = "header", slow[] = "slow";

struct limit {
	const char *name;       /* NULL: none */
	uint64_t limit_ms;
	uint64_t at_ns;
};

static void consider(struct limit *next, const char *name, uint64_t from_ns, uint64_t limit_ms)
{
	uint64_t at_ns = from_ns + limit_ms * 1000000;

	if (limit_ms == 0 || from_ns == 0)
		return;
	if (next->name == NULL || at_ns < next->at_ns)
		*next = (struct limit){ name, limit_ms, at_ns };
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void consider_running(const struct request *request, struct limit *next)
{
	const struct handler_config *handler = request->handler;

	if (request->answer.state == ANSWER_BAD)
		consider(next, bad_header, request->first_byte_ns, BAD_HEADER_WAIT_MS);
	if (!request->body.is_complete)
		consider(next, "idle", request->progress_ns, handler->timeout.idle_ms);
	else if (request->answer.state == ANSWER_HEADER || request->answer.state == ANSWER_HOLDING)
		consider(next, "response", later(request->body_end_ns, request->started_ns), handler->timeout.response_ms);
	else
		consider(next, "idle", request->progress_ns, handler->timeout.idle_ms);
}

/* Nobody waits for it any more: its answer is sent, or the client has left and
 * it may finish.  It holds a place, or a worker, that others need. */
static void consider_finishing(const struct request *request, struct limit *next)
{
	const struct handler_config *handler = request->handler;

	if (!request->answer.is_out && request->progress_ns <= request->answered_ns)
		consider(next, "response", later(request->body_end_ns, request->started_ns), handler->timeout.response_ms);
	else
		consider(next, "idle", later(request->progress_ns, request->answered_ns), handler->timeout.idle_ms);
}

/* Told once, and only while somebody waits for the answer. */
static void consider_slow(const struct request *request, struct limit *next)
{
	if (request->client != NULL && !request->is_said_slow)
		consider(next, slow, request->begun_ns, request->host->site->config->log.slow_ms);
}

static struct limit next_limit(const struct request *request)
{
	const struct handler_config *handler = request->handler;
	struct limit next = { 0 };

	if (request->state == REQUEST_ENDING) {
		consider(&next, "kill", request->ending_ns, handler->timeout.kill_ms > 0 ? handler->timeout.kill_ms : 1);
		return next;
	}
	consider_slow(request, &next);
	consider(&next, "total", request->begun_ns, handler->timeout.total_ms);
	if (request->state == REQUEST_SPOOLING)
		consider(&next, "idle", request->progress_ns, handler->timeout.idle_ms);
	if (request->state == REQUEST_RUNNING && request->answer.state == ANSWER_SENT)
		consider_finishing(request, &next);
	if (request->state == REQUEST_OVER && request->client != NULL)
		consider(&next, "idle", request->progress_ns, handler->timeout.idle_ms);
	if (request->state == REQUEST_STARTING)
		consider(&next, "start", request->granted_ns, handler->timeout.start_ms);
	if ((request->state == REQUEST_RUNNING || request->answer.state == ANSWER_BAD) && request->answer.state != ANSWER_SENT)
		consider_running(request, &next);
	return next;
}

void request_set_timer(struct request *request)
{
	struct limit next;
	uint64_t now = clock_monotonic_ns();

	if (request->timer == NULL || request->handler == NULL)
		return;
	next = next_limit(request);
	if (next.name == NULL)
		timer_clear(request->timer);
	else
		timer_set(request->timer, next.at_ns <= now ? 0 : (next.at_ns - now) / 1000000 + 1);
}

static void on_kill_time(struct request *request)
{
	log_message(LOG_LEVEL_WARNING, "killed", "id %s, handler %s: pid %d did not end within timeout.kill (%llu ms), killed",
		request->id, request->handler->name, (int)request->pid, (unsigned long long)request->handler->timeout.kill_ms);
	request->ending_ns = 0;
	request_kill(request, SIGKILL);
}

static void on_limit(struct request *request, const struct limit *limit)
{
	unsigned long long limit_ms = limit->limit_ms;

	/* The request's own line may have another reason already. */
	if (request->state == REQUEST_RUNNING && request->client == NULL)
		log_message(LOG_LEVEL_WARNING, "limit", "id %s, handler %s: pid %d went on for timeout.%s (%llu ms) with nobody waiting for it; it and its group ended",
			request->id, request->handler->name, (int)request->pid, limit->name, limit_ms);
	if (request->state == REQUEST_OVER)
		request_fail(request, 504, NULL, "timeout.%s (%llu ms) passed; the web server did not take the answer", limit->name, limit_ms);
	else if (request->pid > 0)
		request_fail(request, 504, NULL, "timeout.%s (%llu ms) passed; pid %d and its group ended", limit->name, limit_ms, (int)request->pid);
	else
		request_fail(request, 504, NULL, "timeout.%s (%llu ms) passed", limit->name, limit_ms);
}

void request_on_timer(void *ctx)
{
	struct request *request = ctx;
	struct limit next = next_limit(request);

	if (next.name == NULL)
		return;
	if (next.at_ns > clock_monotonic_ns()) {
		request_set_timer(request);
	} else if (request->state == REQUEST_ENDING) {
		on_kill_time(request);
	} else if (next.name == slow) {
		request->is_said_slow = true;
		request_log_slow(request);
		request_set_timer(request);
	} else if (next.name == bad_header) {
		request_fail_header(request);
	} else {
		on_limit(request, &next);
	}
}
