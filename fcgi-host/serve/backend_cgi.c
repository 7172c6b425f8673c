/*
 * One process for one request: its stdin, stdout and stderr are pipes.  How the
 * request gets it is in cgi_start.c.  A CGI program's answer is over with its
 * output; whether a stdio function has given one is known when it has ended.
 */
#include "serve/backend.h"

#include "base/clock.h"
#include "process/exiting.h"
#include "serve/cgi_start.h"
#include "serve/request.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	STDERR_PIECE_BYTES = 16 * 1024,
	EXIT_WAIT_MS = 20,      /* between the end of stdout and the news of the exit */
};

static void close_end(int *fd, struct watch **watch)
{
	watch_close(watch, fd);
}

static void check_over(struct cgi *cgi)
{
	struct request *request = cgi->request;

	if (!cgi->is_gone || cgi->out_fd >= 0)
		return;
	close_end(&cgi->in_fd, &cgi->in_watch);
	close_end(&cgi->err_fd, &cgi->err_watch);
	pool_release(request->pool, NULL, true);
	request_on_over(request);
}

/* stdout. */

static void end_output(struct cgi *cgi, bool is_lost)
{
	if (cgi->has_ended_output)
		return;
	cgi->has_ended_output = true;
	timer_free(&cgi->exit_timer);
	request_on_output_end(cgi->request, is_lost);
}

static bool is_function(const struct cgi *cgi)
{
	return cgi->request->handler->protocol == PROTOCOL_STDIO;
}

static bool has_failed(const struct cgi *cgi)
{
	int wait_status = cgi->process->wait_status;

	return WIFSIGNALED(wait_status) || (is_function(cgi) && WEXITSTATUS(wait_status) != 0);
}

/* It closed stdout and goes on: whatever becomes of it, that was the answer. */
static bool goes_on(const struct cgi *cgi)
{
	return cgi->process->pid > 0 && !process_is_exiting(cgi->process->pid);
}

static void on_exit_time(void *ctx)
{
	struct cgi *cgi = ctx;

	if (goes_on(cgi))
		end_output(cgi, false);
	else
		timer_set(cgi->exit_timer, EXIT_WAIT_MS);
}

static void on_output_eof(struct cgi *cgi)
{
	close_end(&cgi->out_fd, &cgi->out_watch);
	cgi->request->output_end_ns = clock_monotonic_ns();
	if (cgi->is_gone) {
		end_output(cgi, has_failed(cgi));
		return;
	}
	if (is_function(cgi))
		return;
	/* One that has waited may close it before a runtime's long end.  That most others
	 * do not is not worth a look at each of them. */
	if (cgi->spare != NULL && goes_on(cgi)) {
		end_output(cgi, false);
		return;
	}
	cgi->exit_timer = timer_new(cgi->request->host->loop, on_exit_time, cgi);
	if (cgi->exit_timer != NULL)
		timer_set(cgi->exit_timer, EXIT_WAIT_MS);
}

/* A fast program's output is here before the news of its start, which a header
 * with the times needs. */
static void watch_output(struct cgi *cgi)
{
	const struct request *request = cgi->request;
	bool is_awaited = request->handler->server_timing && request->started_ns == 0;

	watch_set(cgi->out_watch, !is_awaited && answer_room(request) > 0 ? WATCH_READ : 0);
}

/* One read.  Once the process is gone what it left in the pipe is all that
 * counts, whoever else still holds the pipe. */
static bool read_output(struct cgi *cgi)
{
	size_t size;
	uint8_t *buffer;
	ssize_t n;

	if (cgi->is_gone && cgi->left_bytes == 0) {
		on_output_eof(cgi);
		return false;
	}
	if (answer_room(cgi->request) == 0) {
		watch_set(cgi->out_watch, 0);
		return false;
	}
	buffer = answer_buffer(cgi->request, &size);
	if (cgi->is_gone && size > cgi->left_bytes)
		size = cgi->left_bytes;
	n = read(cgi->out_fd, buffer, size);
	if (n > 0) {
		cgi->left_bytes -= cgi->is_gone ? (size_t)n : 0;
		answer_commit(cgi->request, buffer, (size_t)n);
		return true;
	}
	if (n == 0 || (errno != EINTR && (errno != EAGAIN || cgi->is_gone)))
		on_output_eof(cgi);
	return false;
}

static void on_stdout(void *ctx, int events)
{
	struct cgi *cgi = ctx;

	(void)events;
	read_output(cgi);
	check_over(cgi);
}

static void on_drain(void *ctx)
{
	struct cgi *cgi = ctx;

	while (cgi->out_fd >= 0 && read_output(cgi))
		;
	check_over(cgi);
}

static void on_room(struct request *request)
{
	struct cgi *cgi = request->backend_data;

	if (cgi->out_watch == NULL)
		return;
	if (cgi->is_gone && answer_room(request) > 0)
		defer_call(request->host->loop, &cgi->drain, on_drain, cgi);
	watch_output(cgi);
}

/* stderr. */

static bool read_stderr(struct cgi *cgi)
{
	char piece[STDERR_PIECE_BYTES];
	ssize_t n = read(cgi->err_fd, piece, sizeof(piece));

	if (n > 0)
		request_stderr(cgi->request, piece, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		close_end(&cgi->err_fd, &cgi->err_watch);
	return n > 0;
}

static void on_stderr(void *ctx, int events)
{
	(void)events;
	read_stderr(ctx);
}

/* stdin. */

static void on_stdin(void *ctx, int events);

static void close_stdin(struct cgi *cgi)
{
	close_end(&cgi->in_fd, &cgi->in_watch);
}

static void wait_for_stdin(struct cgi *cgi)
{
	struct err err;

	if (cgi->in_watch == NULL)
		cgi->in_watch = watch_new(cgi->request->host->loop, cgi->in_fd, on_stdin, cgi, &err);
	if (cgi->in_watch == NULL)
		request_fail(cgi->request, 503, "Retry-After: 1\r\n", "%s", err.text);
	else
		watch_set(cgi->in_watch, WATCH_WRITE);
}

static void on_stdin_refused(struct cgi *cgi)
{
	close_stdin(cgi);
	request_on_body_refused(cgi->request);
}

static void write_stdin(struct cgi *cgi)
{
	struct request *request = cgi->request;
	struct slice piece;
	struct err err;
	ssize_t n;

	while (cgi->in_fd >= 0 && body_waiting(&request->body) > 0) {
		if (body_peek(&request->body, &piece, &err) < 0) {
			request_fail(request, 502, NULL, "%s", err.text);
			return;
		}
		n = write(cgi->in_fd, piece.ptr, piece.len);
		if (n < 0 && errno == EAGAIN) {
			wait_for_stdin(cgi);
			return;
		}
		if (n < 0 && errno != EINTR) {
			on_stdin_refused(cgi);
			return;
		}
		if (n > 0) {
			cgi->taken_bytes += (size_t)n;
			body_consume(&request->body, (size_t)n);
			request_on_body_taken(request);
		}
	}
	if (cgi->in_watch != NULL)
		watch_set(cgi->in_watch, 0);
	if (body_is_spent(&request->body))
		close_stdin(cgi);
}

static void on_stdin(void *ctx, int events)
{
	(void)events;
	write_stdin(ctx);
}

static void on_body(struct request *request)
{
	write_stdin(request->backend_data);
}

/* The process. */

static void on_started(void *ctx)
{
	struct cgi *cgi = ctx;

	request_on_started(cgi->request, cgi->process->pid, cgi->process->started_ns);
	if (cgi->err_watch != NULL)
		watch_set(cgi->err_watch, WATCH_READ);
	if (cgi->out_watch != NULL && cgi->request->handler->server_timing)
		watch_output(cgi);
}

static void begin(struct request *request, struct cgi *cgi, struct spare *spare);

/* A process that ended before it had the request has done nothing of it: another
 * is started. */
static bool begin_again(struct cgi *cgi)
{
	struct request *request = cgi->request;

	if (cgi->spare == NULL || cgi->taken_bytes > 0 || cgi->has_ended_output || request->state == REQUEST_ENDING)
		return false;
	if (!spare_has_left_request(cgi->spare))
		return false;
	timer_free(&cgi->exit_timer);
	close_end(&cgi->in_fd, &cgi->in_watch);
	close_end(&cgi->out_fd, &cgi->out_watch);
	close_end(&cgi->err_fd, &cgi->err_watch);
	figures_add_ended(request->figures, cgi->process);
	spare_free(&cgi->spare);
	pool_on_answered(request->pool);
	request->pid = 0;
	begin(request, cgi, NULL);
	return true;
}

static void on_gone(void *ctx)
{
	struct cgi *cgi = ctx;
	struct request *request = cgi->request;
	int left = 0;

	if (begin_again(cgi))
		return;
	cgi->is_gone = true;
	if (cgi->process->failed_step != SPAWN_STEP_NONE) {
		cgi->has_ended_output = true;
		close_end(&cgi->out_fd, &cgi->out_watch);
		request_on_start_failed(request, cgi->process->failed_step, cgi->process->failed_errno);
	} else {
		if (request->pid == 0)
			on_started(cgi);
		request_on_exit(request, cgi->process);
		figures_add_ended(request->figures, cgi->process);
		for (int i = 0; i < 64 && cgi->err_fd >= 0 && read_stderr(cgi); i++)
			;
		if (cgi->out_fd >= 0 && ioctl(cgi->out_fd, FIONREAD, &left) == 0 && left > 0)
			cgi->left_bytes = (size_t)left;
		while (cgi->out_fd >= 0 && read_output(cgi))
			;
		if (cgi->out_fd < 0)
			end_output(cgi, has_failed(cgi));
	}
	check_over(cgi);
}

static void end(struct request *request)
{
	struct cgi *cgi = request->backend_data;

	if (cgi->in_watch != NULL)
		watch_set(cgi->in_watch, 0);
	process_signal(cgi->process, SIGTERM);
	on_room(request);
}

static void kill_group(struct request *request, int signal)
{
	struct cgi *cgi = request->backend_data;

	process_signal(cgi->process, signal);
}

/* Start. */

static int watch_pipes(struct cgi *cgi, struct err *err)
{
	struct loop *loop = cgi->request->host->loop;

	cgi->out_watch = watch_new(loop, cgi->out_fd, on_stdout, cgi, err);
	cgi->err_watch = cgi->out_watch == NULL ? NULL : watch_new(loop, cgi->err_fd, on_stderr, cgi, err);
	if (cgi->err_watch == NULL)
		return -1;
	watch_output(cgi);
	return 0;       /* stderr waits for the pid that its lines bear */
}

static int begin_with(struct cgi *cgi, const struct bytes *environment, struct err *err)
{
	int child_fds[3] = { -1, -1, -1 }, status;

	cgi_choose_process(cgi, environment);
	cgi->process->on_started = on_started;
	cgi->process->on_gone = on_gone;
	cgi->process->ctx = cgi;
	status = cgi_open_pipes(cgi, child_fds, err);
	if (status == 0)
		status = watch_pipes(cgi, err);
	if (status == 0)
		status = cgi_start(cgi, environment, child_fds, err);
	for (int i = 0; i < 3; i++)
		if (child_fds[i] >= 0)
			close(child_fds[i]);
	if (status < 0 && cgi->spare != NULL)
		spare_end(cgi->spare);
	return status;
}

static void begin(struct request *request, struct cgi *cgi, struct spare *spare)
{
	struct bytes environment;
	struct err err;
	int status = cgi_make_environ(request, &environment, &err);

	cgi->request = request;
	cgi->spare = spare;
	cgi->in_fd = cgi->out_fd = cgi->err_fd = -1;
	cgi->process = &cgi->started;
	if (status == 0)
		status = begin_with(cgi, &environment, &err);
	bytes_fini(&environment);
	if (status < 0) {
		pool_release(request->pool, NULL, true);
		request_fail_to_start(request, &err);
		return;
	}
	if (cgi->in_fd >= 0)
		write_stdin(cgi);
}

static void start(struct request *request, const struct pool_result *grant)
{
	struct cgi *cgi = calloc(1, sizeof(*cgi));
	struct spare *spare = grant->spare;
	struct err err;

	request->backend_data = cgi;
	if (cgi != NULL) {
		begin(request, cgi, spare);
		return;
	}
	spare_free(&spare);
	pool_release(request->pool, NULL, true);
	err_set(&err, "no memory for a process");
	request_fail_to_start(request, &err);
}

static void free_cgi(struct request *request)
{
	struct cgi *cgi = request->backend_data;

	if (cgi == NULL)
		return;
	close_end(&cgi->in_fd, &cgi->in_watch);
	close_end(&cgi->out_fd, &cgi->out_watch);
	close_end(&cgi->err_fd, &cgi->err_watch);
	timer_free(&cgi->exit_timer);
	defer_cancel(&cgi->drain);
	process_forget(cgi->process);
	spare_free(&cgi->spare);
	free(cgi);
	request->backend_data = NULL;
}

const struct backend backend_cgi = {
	.start = start,
	.on_body = on_body,
	.on_room = on_room,
	.end = end,
	.kill = kill_group,
	.free = free_cgi,
};
