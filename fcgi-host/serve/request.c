/*
 * The life of a request: how it begins, fails and ends.  Its variables are in
 * request_params.c, its body in request_body.c, its answer in request_answer.c.
 */
#include "serve/request_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "serve/client.h"
#include "serve/dispatch.h"
#include "serve/server_timing.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static void on_stderr_line(void *ctx, struct slice text)
{
	const struct request *request = ctx;
	struct log_line line;

	log_begin(&line, LOG_LEVEL_WARNING, "stderr");
	log_str(&line, "id", request->id);
	log_str(&line, "handler", request->handler->name);
	log_i64(&line, "pid", request->pid);
	log_slice(&line, "msg", text);
	log_end(&line);
}

struct request *request_new(struct client *client, uint16_t fcgi_id, bool keep_connection)
{
	struct host *host = client->host;
	struct request *request = calloc(1, sizeof(*request));

	if (request == NULL)
		return NULL;
	request->host = host;
	request->client = client;
	request->fcgi_id = fcgi_id;
	request->keep_connection = keep_connection;
	request->begun_ns = request->progress_ns = clock_monotonic_ns();
	snprintf(request->id, sizeof(request->id), "%s-%llx", host->boot, ++host->serial);
	bytes_init(&request->params, (size_t)host->site->config->params_max_bytes * 2);
	body_init(&request->body);
	lines_init(&request->stderr_lines, on_stderr_line, request);
	request->next = host->requests;
	if (request->next != NULL)
		request->next->prev = request;
	host->requests = request;
	return request;
}

void request_free(struct request **request_ptr)
{
	struct request *request = *request_ptr;

	if (request == NULL)
		return;
	if (request->prev != NULL)
		request->prev->next = request->next;
	else
		request->host->requests = request->next;
	if (request->next != NULL)
		request->next->prev = request->prev;
	defer_cancel(&request->over);
	pool_cancel(&request->waiter);
	if (request->backend != NULL)
		request->backend->free(request);
	timer_free(&request->timer);
	bytes_fini(&request->params);
	vars_free(&request->front);
	cgi_request_fini(&request->cgi);
	dispatch_fini(request);
	body_fini(&request->body);
	lines_fini(&request->stderr_lines);
	free(request->route_path);
	if (request->pool != NULL)
		pool_let_go(request->pool);
	site_unref(&request->site);
	site_unref(&request->pool_site);
	figures_unref(&request->figures);
	free(request);
	*request_ptr = NULL;
}

void request_reason(struct request *request, const char *format, ...)
{
	va_list args;

	if (request->reason[0] != '\0')
		return;
	va_start(args, format);
	vsnprintf(request->reason, sizeof(request->reason), format, args);
	va_end(args);
}

/* The end of a request: logged and freed from the loop, once it has neither a
 * client nor a process. */

static void on_over(void *ctx)
{
	struct request *request = ctx;
	struct host *host = request->host;

	request_log(request);
	request_free(&request);
	host_check_stop(host);
}

static void check_over(struct request *request)
{
	if (request->client == NULL && request->state == REQUEST_OVER)
		defer_call(request->host->loop, &request->over, on_over, request);
}

/* Once, at the end of its answer, or where there is none: another may be started
 * in the place of the process that had waited for it. */
static void replace_spare(struct request *request)
{
	if (request->has_spare)
		pool_on_answered(request->pool);
	request->has_spare = false;
}

void request_leave_client(struct request *request, enum request_end end)
{
	replace_spare(request);
	request->end = end;
	request->client = NULL;
	if (request->handler != NULL)
		answer_drop_held(&request->answer);
	request->answered_ns = clock_monotonic_ns();
	request->answer.state = ANSWER_SENT;
	request_set_timer(request);
	check_over(request);
}

bool request_is_with_handler(const struct request *request)
{
	return request->backend != NULL && (request->state == REQUEST_STARTING || request->state == REQUEST_RUNNING);
}

static void free_backend(struct request *request)
{
	replace_spare(request);
	if (request->backend != NULL)
		request->backend->free(request);
	request->backend = NULL;
	request->backend_data = NULL;
}

/* Tells the backend to end the process; without one there is nothing left. */
static void end_process(struct request *request)
{
	pool_cancel(&request->waiter);
	if (request->backend == NULL) {
		request->state = REQUEST_OVER;
		check_over(request);
		return;
	}
	if (request->state == REQUEST_ENDING || request->state == REQUEST_OVER)
		return;
	request->state = REQUEST_ENDING;
	request->ending_ns = clock_monotonic_ns();
	request->backend->end(request);
	request_set_timer(request);
}

static void send_failure(struct request *request, unsigned status, const char *extra)
{
	const char *phrase = cgi_status_reason(status);
	char text[256], timing[SERVER_TIMING_BYTES + 32] = "", answer[1024];
	int text_len = snprintf(text, sizeof(text), "%u %s\n", status, phrase);
	bool is_head = request->cgi.method != NULL && strcmp(request->cgi.method, "HEAD") == 0;
	char value[SERVER_TIMING_BYTES];
	int len;

	if (request->handler != NULL && request->handler->server_timing)
		snprintf(timing, sizeof(timing), "Server-Timing: %s\r\n", server_timing(request, value));
	len = snprintf(answer, sizeof(answer),
		"Status: %u %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nCache-Control: no-store\r\n%s%s\r\n%s",
		status, phrase, text_len, extra == NULL ? "" : extra, timing, is_head ? "" : text);
	request->status = status;
	client_stdout(request->client, answer, (size_t)len);
	client_end_request(request->client, 0);
}

void request_fail(struct request *request, unsigned status, const char *extra, const char *reason_format, ...)
{
	char reason[sizeof(request->reason)];
	va_list args;

	va_start(args, reason_format);
	vsnprintf(reason, sizeof(reason), reason_format, args);
	va_end(args);
	request_reason(request, "%s", reason);
	request->is_redirecting = false;
	if (request->client != NULL) {
		if (request->answer.is_out) {
			request->status = request->answer.status;
			client_break(request->client);
			request_leave_client(request, REQUEST_END_BROKEN);
		} else {
			send_failure(request, status, extra);
			request_leave_client(request, REQUEST_END_FAILED);
		}
	}
	end_process(request);
}

void request_fail_to_start(struct request *request, const struct err *why)
{
	free_backend(request);
	request_fail(request, 503, "Retry-After: 1\r\n", "%s", why->text);
}

void request_fail_to_connect(struct request *request, const struct err *why)
{
	free_backend(request);
	request_fail(request, 502, NULL, "%s", why->text);
}

/* The client. */

void request_on_client_room(struct request *request)
{
	request->progress_ns = clock_monotonic_ns();
	if (answer_is_waiting(&request->answer))
		request_on_output(request);
	if (request->client != NULL && request_is_with_handler(request) && client_room(request->client) > 0)
		request->backend->on_room(request);
}

static void lose_client(struct request *request, const char *how)
{
	double seconds = (double)(clock_monotonic_ns() - request->begun_ns) / 1e9;

	request_reason(request, "%s after %.3f s and %" PRIu64 " bytes of the answer", how, seconds, request->answer.body_bytes);
	request->status = request->answer.is_out ? request->answer.status : 499;
	request->is_redirecting = false;
	request_leave_client(request, REQUEST_END_CLIENT_GONE);
	if (request->backend == NULL || !request->body.is_complete || request->handler->on_abort == ABORT_KILL)
		end_process(request);
	else if (request_is_with_handler(request))
		request->backend->on_room(request);
}

void request_on_client_gone(struct request *request)
{
	lose_client(request, "the web server closed the connection");
}

void request_abort(struct request *request)
{
	struct client *client = request->client;

	client_end_request(client, 0);
	lose_client(request, "the web server aborted the request");
}

/* The process. */

void request_on_started(struct request *request, pid_t pid, uint64_t started_ns)
{
	request->pid = pid;
	request->started_ns = started_ns;
	if (request->state == REQUEST_STARTING) {
		request->state = REQUEST_RUNNING;
		request_set_timer(request);
	}
}

void request_on_start_failed(struct request *request, enum spawn_step step, int errnum)
{
	struct err why;
	char largest[160];
	const char *program = request->script_filename != NULL ? request->script_filename : request->handler->command[0];

	spawn_failure_text(step, errnum, program, &why);
	if (step == SPAWN_STEP_EXEC && errnum == E2BIG)
		request_fail(request, 431, NULL, "%s: %s", why.text, request_describe_largest(request->front, largest, sizeof(largest)));
	else if (step == SPAWN_STEP_FORK || step == SPAWN_STEP_LOST || errnum == EAGAIN || errnum == ENOMEM ||
		 errnum == EMFILE || errnum == ENFILE)
		request_fail(request, 503, "Retry-After: 1\r\n", "%s", why.text);
	else if (request->handler->scripts != NULL && (step == SPAWN_STEP_PROGRAM || (step == SPAWN_STEP_EXEC && errnum == EACCES)))
		request_fail(request, errnum == ENOENT ? 404 : 403, NULL, "%s", why.text);
	else
		request_fail(request, 502, NULL, "%s", why.text);
}

void request_on_exit(struct request *request, const struct process *process)
{
	request->has_exit = true;
	request->wait_status = process->wait_status;
	request->usage = process->usage;
	request->exited_ns = process->exited_ns;
	request->start_usage = process->start_usage;
	request->has_usage = true;
	if (request->answered_ns == 0)
		return;
	if (WIFSIGNALED(process->wait_status) && request->ending_ns == 0)
		request_reason(request, "signal %d after a whole answer", WTERMSIG(process->wait_status));
	else if (!WIFSIGNALED(process->wait_status) && WEXITSTATUS(process->wait_status) != 0)
		request_reason(request, "exit status %d after a whole answer", WEXITSTATUS(process->wait_status));
}

/* All of the answer is there, and the web server has yet to take it. */
static bool is_being_taken(const struct request *request)
{
	const struct answer *answer = &request->answer;

	return (answer->state == ANSWER_BODY || answer->state == ANSWER_WHOLE) && answer->is_ended && answer_is_waiting(answer);
}

void request_on_over(struct request *request)
{
	bool is_redirecting = request->is_redirecting;

	lines_fini(&request->stderr_lines);
	request->is_body_unwanted = true;
	body_discard(&request->body);
	if (request->client != NULL && !is_redirecting && request->answer.state != ANSWER_SENT && !is_being_taken(request))
		request_fail(request, 502, NULL, "the handler's process is gone");
	free_backend(request);
	if (is_redirecting && request->client != NULL) {
		dispatch_redirect(request);
		return;
	}
	request->state = REQUEST_OVER;
	request_set_timer(request);
	check_over(request);
}

void request_retry(struct request *request)
{
	free_backend(request);
	request->was_retried = true;
	request->is_body_unwanted = false;      /* by the one that is gone */
	if (request->client == NULL || request->state == REQUEST_ENDING) {
		request->state = REQUEST_OVER;
		check_over(request);
		return;
	}
	dispatch_again(request);
}

void request_stderr(struct request *request, const void *data, size_t len)
{
	lines_put(&request->stderr_lines, data, len);
}

void request_kill(struct request *request, int signal)
{
	if (request->backend != NULL)
		request->backend->kill(request, signal);
	else if (request->client != NULL && request->state != REQUEST_OVER)
		request_fail(request, 503, "Retry-After: 1\r\n", "the host stopped before a handler had the request");
	else if (request->client != NULL && signal == SIGKILL)
		request_fail(request, 503, "Retry-After: 1\r\n", "the host stopped before the web server had taken the answer");
}
