#include "serve/request.h"

#include "base/clock.h"
#include "base/log.h"
#include "serve/client.h"
#include "serve/dispatch.h"
#include "wire/fcgi_params.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { PARAMS_OVERHEAD = 8 };   /* a pair's lengths on the wire */

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

static void leave_client(struct request *request, enum request_end end)
{
	request->end = end;
	request->client = NULL;
	request->answered_ns = clock_monotonic_ns();
	request->answer.state = ANSWER_SENT;
	check_over(request);
}

static void free_backend(struct request *request)
{
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
	char text[256], answer[768];
	int text_len = snprintf(text, sizeof(text), "%u %s\n", status, phrase);
	bool is_head = request->cgi.method != NULL && strcmp(request->cgi.method, "HEAD") == 0;
	int len = snprintf(answer, sizeof(answer),
		"Status: %u %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nCache-Control: no-store\r\n%s\r\n%s",
		status, phrase, text_len, extra == NULL ? "" : extra, is_head ? "" : text);

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
			leave_client(request, REQUEST_END_BROKEN);
		} else {
			send_failure(request, status, extra);
			leave_client(request, REQUEST_END_FAILED);
		}
	}
	end_process(request);
}

void request_fail_to_start(struct request *request, const char *reason_format, ...)
{
	char reason[sizeof(request->reason)];
	va_list args;

	va_start(args, reason_format);
	vsnprintf(reason, sizeof(reason), reason_format, args);
	va_end(args);
	free_backend(request);
	request_fail(request, 503, "Retry-After: 1\r\n", "%s", reason);
}

void request_fail_to_connect(struct request *request, const char *reason_format, ...)
{
	char reason[sizeof(request->reason)];
	va_list args;

	va_start(args, reason_format);
	vsnprintf(reason, sizeof(reason), reason_format, args);
	va_end(args);
	free_backend(request);
	request_fail(request, 502, NULL, "%s", reason);
}

/* Variables. */

void request_params(struct request *request, struct slice data)
{
	if (request->state != REQUEST_PARAMS || request->is_params_too_large)
		return;
	if (bytes_append(&request->params, data.ptr, data.len) < 0) {
		request->is_params_too_large = true;
		bytes_fini(&request->params);
	}
}

enum params_result { PARAMS_FINE, PARAMS_TOO_LARGE, PARAMS_BAD, PARAMS_BAD_PATH };

/* Only a NUL makes their value refused. */
static bool names_path(struct slice name)
{
	return slice_is(name, "SCRIPT_NAME") || slice_is(name, "PATH_INFO") || slice_is(name, "DOCUMENT_URI") ||
		slice_is(name, "REQUEST_URI") || slice_is(name, "QUERY_STRING");
}

/* "NAME (123 bytes)": the operator's first question. */
static const char *describe_largest(const struct vars *vars, char *out, size_t out_size)
{
	struct var largest = { "none", "", 4, 0 };

	for (size_t i = 0; vars != NULL && i < vars_count(vars); i++) {
		struct var var = vars_at(vars, i);

		if (var.value_len > largest.value_len)
			largest = var;
	}
	snprintf(out, out_size, "%zu in all, the largest %.64s (%u bytes)", vars == NULL ? 0 : vars_count(vars),
		largest.name, largest.value_len);
	return out;
}

static enum params_result read_params(struct request *request, bool *has_repeated_out)
{
	struct slice block = { (const char *)bytes_data(&request->params), request->params.len };
	struct slice name, value;

	request->front = vars_new((size_t)request->host->site->config->params_max_bytes);
	if (request->front == NULL || request->is_params_too_large)
		return PARAMS_TOO_LARGE;
	for (;;) {
		switch (fcgi_next_pair(&block, &name, &value)) {
		case FCGI_PAIR_NONE: return PARAMS_FINE;
		case FCGI_PAIR_BAD: return PARAMS_BAD;
		case FCGI_PAIR_OK: break;
		}
		switch (vars_set(request->front, name, value)) {
		case VARS_SET: break;
		case VARS_REPLACED: *has_repeated_out = true; break;
		case VARS_REFUSED:
			if (names_path(name))
				return PARAMS_BAD_PATH;
			log_message(LOG_LEVEL_WARNING, "variable_dropped", "id %s: a variable whose name or value no environment can hold", request->id);
			break;
		case VARS_FULL: return PARAMS_TOO_LARGE;
		}
	}
}

static void notice_variables(struct request *request, bool has_repeated)
{
	const struct route_config *route = request->match.route;

	if (route == NULL)
		return;
	if (has_repeated && site_notice(request->site, route, NOTICE_REPEATED))
		log_message(LOG_LEVEL_WARNING, "variable_repeated", "route %s: the web server sent a variable twice; the last one wins", route->path);
	if (vars_get(request->front, "REMOTE_USER") != NULL && vars_get(request->front, "REMOTE_USER")[0] != '\0' &&
	    (vars_get(request->front, "AUTH_TYPE") == NULL || vars_get(request->front, "AUTH_TYPE")[0] == '\0') &&
	    site_notice(request->site, route, NOTICE_REMOTE_USER))
		log_message(LOG_LEVEL_WARNING, "remote_user", "route %s: REMOTE_USER came without AUTH_TYPE: has the web server checked that name?", route->path);
}

void request_params_end(struct request *request)
{
	bool has_repeated = false;
	enum params_result result;
	char largest[160];
	struct err err;

	if (request->state != REQUEST_PARAMS)
		return;
	result = read_params(request, &has_repeated);
	if (result == PARAMS_TOO_LARGE) {
		request_fail(request, 431, NULL, "variables over params.max (%" PRIu64 " bytes): %s",
			request->host->site->config->params_max_bytes, describe_largest(request->front, largest, sizeof(largest)));
		return;
	}
	if (result == PARAMS_BAD) {
		request_fail(request, 400, NULL, "variables are not FastCGI name-value pairs");
		return;
	}
	if (result == PARAMS_BAD_PATH) {
		request_fail(request, 400, NULL, "a NUL in the path");
		return;
	}
	bytes_fini(&request->params);
	if (cgi_request_read(request->front, &request->cgi, &err) < 0) {
		request_fail(request, 400, NULL, "%s", err.text);
		return;
	}
	request->method = request->cgi.method;
	request->query = request->cgi.query;
	request->has_body = !request->cgi.has_length || request->cgi.content_length > 0;
	if (!request->has_body) {
		request->body.is_complete = true;
		request->body_end_ns = clock_monotonic_ns();
	}
	dispatch_first(request);
	notice_variables(request, has_repeated);
}

/* The body. */

/* The backend has it and its process has not been told to end. */
static bool is_with_handler(const struct request *request)
{
	return request->backend != NULL && (request->state == REQUEST_STARTING || request->state == REQUEST_RUNNING);
}

size_t request_stdin_room(const struct request *request)
{
	if (request->state == REQUEST_PARAMS || request->body.is_complete || request->is_body_unwanted)
		return SCRATCH_BYTES;
	return body_room(&request->body);
}

static void on_body_complete(struct request *request)
{
	request->body.is_complete = true;
	request->body_end_ns = request->progress_ns = clock_monotonic_ns();
	if (request->state == REQUEST_SPOOLING)
		dispatch_spooled(request);
	else if (is_with_handler(request) && !request->is_body_unwanted)
		request->backend->on_body(request);
	if (is_with_handler(request))
		request_on_output(request);     /* what was held back may go */
	if (is_with_handler(request))
		request->backend->on_room(request);
	request_set_timer(request);
}

static void say_cut(struct request *request)
{
	if (!request->is_body_cut)
		log_message(LOG_LEVEL_WARNING, "body_cut", "id %s: more body than CONTENT_LENGTH of %" PRIu64 ", cut there",
			request->id, request->cgi.content_length);
	request->is_body_cut = true;
}

/* -1: the request has been answered. */
static int check_body_limits(struct request *request, size_t len)
{
	const struct handler_config *handler = request->handler;

	if (!request->cgi.has_length && handler->body.chunked == CHUNKED_REJECT) {
		request_fail(request, 411, NULL, "a body without CONTENT_LENGTH, and body.chunked is reject");
		return -1;
	}
	if (request->body.received_bytes + len > handler->body.max_bytes) {
		request_fail(request, 413, NULL, "body over body.max (%" PRIu64 " bytes)", handler->body.max_bytes);
		return -1;
	}
	return 0;
}

void request_stdin(struct request *request, struct slice data)
{
	struct err err;

	if (request->state == REQUEST_PARAMS || request->answer.state == ANSWER_SENT || request->hops > 0)
		return;
	if (request->cgi.has_length && request->body.received_bytes + data.len > request->cgi.content_length) {
		say_cut(request);
		data.len = (size_t)(request->cgi.content_length - request->body.received_bytes);
	}
	if (data.len == 0 || check_body_limits(request, data.len) < 0)
		return;
	request->progress_ns = clock_monotonic_ns();
	if (request->is_body_unwanted) {
		request->body.received_bytes += data.len;
	} else if (body_put(&request->body, data.ptr, data.len, &err) < 0) {
		request_fail(request, 503, "Retry-After: 5\r\n", "%s", err.text);
		return;
	}
	if (request->cgi.has_length && request->body.received_bytes == request->cgi.content_length)
		on_body_complete(request);
	else if (is_with_handler(request) && !request->is_body_unwanted)
		request->backend->on_body(request);
}

void request_stdin_end(struct request *request)
{
	if (request->state == REQUEST_PARAMS || request->body.is_complete || request->answer.state == ANSWER_SENT)
		return;
	if (request->cgi.has_length && request->body.received_bytes < request->cgi.content_length) {
		request_fail(request, 400, NULL, "the body ended after %" PRIu64 " of %" PRIu64 " bytes",
			request->body.received_bytes, request->cgi.content_length);
		return;
	}
	on_body_complete(request);
}

void request_on_body_taken(struct request *request)
{
	request->progress_ns = clock_monotonic_ns();
	if (request->client != NULL && !request->body.is_complete)
		client_resume(request->client);
}

void request_on_body_refused(struct request *request)
{
	request->is_body_unwanted = true;
	body_discard(&request->body);
	if (request->client != NULL)
		client_resume(request->client);
}

/* The client. */

void request_on_client_room(struct request *request)
{
	request->progress_ns = clock_monotonic_ns();
	if (is_with_handler(request) && client_room(request->client) > 0)
		request->backend->on_room(request);
}

static void lose_client(struct request *request, const char *how)
{
	double seconds = (double)(clock_monotonic_ns() - request->begun_ns) / 1e9;

	request_reason(request, "%s after %.3f s and %" PRIu64 " bytes of the answer", how, seconds, request->answer.body_bytes);
	request->status = request->answer.is_out ? request->answer.status : 499;
	request->is_redirecting = false;
	leave_client(request, REQUEST_END_CLIENT_GONE);
	if (request->backend == NULL || !request->body.is_complete || request->handler->on_abort == ABORT_KILL)
		end_process(request);
	else if (is_with_handler(request))
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

/* The answer. */

static uint32_t app_status(const struct request *request)
{
	if (!request->has_exit)
		return 0;
	if (WIFSIGNALED(request->wait_status))
		return 128u + (uint32_t)WTERMSIG(request->wait_status);
	return (uint32_t)WEXITSTATUS(request->wait_status);
}

static void complete(struct request *request)
{
	request->status = request->answer.status;
	client_end_request(request->client, app_status(request));
	leave_client(request, REQUEST_END_WHOLE);
	request_set_timer(request);
	if (is_with_handler(request))
		request->backend->on_room(request);     /* the rest is thrown away */
}

/* "exit status 3", "signal 11", or that neither is known. */
static const char *describe_exit(const struct request *request, char *out, size_t out_size)
{
	if (!request->has_exit)
		snprintf(out, out_size, "it closed its output");
	else if (WIFSIGNALED(request->wait_status))
		snprintf(out, out_size, "signal %d", WTERMSIG(request->wait_status));
	else
		snprintf(out, out_size, "exit status %d", WEXITSTATUS(request->wait_status));
	return out;
}

static void fail_bad_header(struct request *request, const char *what)
{
	const struct bytes *first = &request->answer.first;
	char exit_text[64];

	if (first->len == 0)
		request_fail(request, 502, NULL, "no answer: %s", describe_exit(request, exit_text, sizeof(exit_text)));
	else
		request_fail(request, 502, NULL, "%s (%s); it began with: %.*s", what,
			describe_exit(request, exit_text, sizeof(exit_text)), (int)first->len, (const char *)bytes_data(first));
}

void request_fail_header(struct request *request)
{
	fail_bad_header(request, request->answer.header.reason);
}

static void fail_short(struct request *request, bool is_lost)
{
	const struct answer *answer = &request->answer;
	char exit_text[64];

	describe_exit(request, exit_text, sizeof(exit_text));
	if (answer->header.has_length)
		request_fail(request, 502, NULL, "the answer ended after %" PRIu64 " of %" PRIu64 " bytes: %s",
			answer->body_bytes, answer->header.content_length, exit_text);
	else
		request_fail(request, 502, NULL, "%s in the body, after %" PRIu64 " bytes", is_lost ? exit_text : "ended", answer->body_bytes);
}

static void on_ended(struct request *request)
{
	struct answer *answer = &request->answer;

	if (answer->state == ANSWER_REDIRECT && !request->is_lost) {
		if (dispatch_can_redirect(request)) {
			request->is_redirecting = true;
			return;
		}
		answer_is_no_redirect(request);
	}
	if (answer->state == ANSWER_HEADER)
		fail_bad_header(request, answer->header.read_bytes > 0 ? "the header has no end" : "no header");
	else if (answer->state == ANSWER_BAD)
		fail_bad_header(request, answer->header.reason);
	else if (answer->state == ANSWER_BODY && (request->is_lost || answer->header.has_length))
		fail_short(request, request->is_lost);
	else if (answer->state == ANSWER_BODY || answer->state == ANSWER_WHOLE)
		complete(request);
	else
		fail_short(request, request->is_lost);
}

/* Whatever changed: is there something to pass on, is it over? */
void request_on_output(struct request *request)
{
	struct answer *answer = &request->answer;
	bool is_held = !request->body.is_complete && !answer->is_ended;

	if (request->client == NULL || answer->state == ANSWER_SENT || request->is_redirecting)
		return;
	if (answer->state == ANSWER_BAD && !answer->is_ended) {
		request_set_timer(request);     /* most end now, and how is worth saying */
		return;
	}
	if (is_held) {
		/* From here on the body must come in whether the handler reads or not. */
		if (answer->state != ANSWER_HEADER || answer->first.len > 0) {
			body_allow_spool(&request->body);
			client_resume(request->client);
		}
		return;
	}
	answer_release(request);
	if (answer->state == ANSWER_WHOLE)
		complete(request);
	else if (answer->is_ended)
		on_ended(request);
}

void request_on_output_end(struct request *request, bool is_lost)
{
	request->answer.is_ended = true;
	request->is_lost = is_lost;
	request_on_output(request);
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
		request_fail(request, 431, NULL, "%s: %s", why.text, describe_largest(request->front, largest, sizeof(largest)));
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
	request->has_usage = true;
	if (request->answered_ns == 0)
		return;
	if (WIFSIGNALED(process->wait_status) && request->ending_ns == 0)
		request_reason(request, "signal %d after a whole answer", WTERMSIG(process->wait_status));
	else if (!WIFSIGNALED(process->wait_status) && WEXITSTATUS(process->wait_status) != 0)
		request_reason(request, "exit status %d after a whole answer", WEXITSTATUS(process->wait_status));
}

void request_on_over(struct request *request)
{
	bool is_redirecting = request->is_redirecting;

	lines_fini(&request->stderr_lines);
	if (request->client != NULL && !is_redirecting && request->answer.state != ANSWER_SENT)
		request_fail(request, 502, NULL, "the handler's process is gone");
	free_backend(request);
	if (is_redirecting && request->client != NULL) {
		dispatch_redirect(request);
		return;
	}
	request->state = REQUEST_OVER;
	timer_free(&request->timer);
	check_over(request);
}

void request_retry(struct request *request)
{
	free_backend(request);
	request->was_retried = true;
	request->retried_pid = request->pid;
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
	else if (request->client != NULL)
		request_fail(request, 503, "Retry-After: 1\r\n", "the host stopped before a handler had the request");
}
