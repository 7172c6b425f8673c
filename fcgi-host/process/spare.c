#include "process/spare.h"

#include "base/clock.h"
#include "base/log.h"
#include "process/zygote.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	STDERR_MAX_BYTES = 16 * 1024,
	START_LONGEST_MS = 60000,       /* where there is no timeout.start */
	HAND_OVER_MAX_BYTES = 192 * 1024,       /* what a socket takes at once */
};

static void become_gone(struct spare *spare)
{
	if (spare->state == SPARE_GONE)
		return;
	spare->state = SPARE_GONE;
	timer_clear(spare->timer);
	spare->on_change(spare);
}

static void become_ready(struct spare *spare)
{
	if (spare->state != SPARE_STARTING)
		return;
	timer_clear(spare->timer);
	spare->state = SPARE_READY;
	spare->ready_ns = clock_monotonic_ns();
	spare->on_change(spare);
}

/* The process. */

static void on_started(void *ctx)
{
	struct spare *spare = ctx;

	if (spare->is_forked || spare->has_said_ready)
		become_ready(spare);
}

static void on_process_gone(void *ctx)
{
	become_gone(ctx);
}

static void adopt(struct spare *spare, struct slice payload)
{
	const uint8_t *bytes = (const uint8_t *)payload.ptr;
	struct spawn_request request = {
		.handler = spare->handler->number, .generation = spare->generation };
	struct err err;
	pid_t pid = 0;

	err_set(&err, "a forked process is ready, and does not say which one it is");
	if (payload.len == 4)
		pid = (pid_t)((uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3]);
	if (pid > 0 && process_adopt(&spare->process, spare->zygote, pid, &request, &err) == 0)
		return;
	log_message(LOG_LEVEL_ERROR, "spare", "handler %s: %s", spare->handler->name, err.text);
	shim_link_close(&spare->link);
	become_gone(spare);
}

static void on_message(void *ctx, char type, struct slice payload)
{
	struct spare *spare = ctx;

	if (type == 'R' && spare->state == SPARE_STARTING && spare->process.state == PROCESS_NEW) {
		adopt(spare, payload);
	} else if (type == 'R' && spare->state == SPARE_STARTING && !spare->is_forked) {
		process_set_ready(&spare->process);
		spare->has_said_ready = true;
		if (spare->process.state == PROCESS_RUNNING)    /* else the news of its start are on their way */
			become_ready(spare);
	} else if (type == 'F' && spare->state == SPARE_STARTING) {
		spare->was_refused = true;
		err_set(&spare->refusal, "%.*s", (int)(payload.len < 500 ? payload.len : 500), payload.ptr);
		spare_end(spare);
	} else if (type == 'M' && spare->state == SPARE_TAKEN) {
		spare->on_modules(spare, payload);
	}
}

/* A process that is going tells of it in its own time; one that nobody knows yet
 * never will. */
static void on_link_end(void *ctx)
{
	struct spare *spare = ctx;

	if (spare->state == SPARE_TAKEN)
		shim_link_close(&spare->link);  /* or it might wait for ever for its nonsense to be read */
	else if (spare->process.state == PROCESS_NEW)
		become_gone(spare);
	else if (spare->state == SPARE_STARTING || spare->state == SPARE_READY)
		spare_end(spare);
}

static void on_start_time(void *ctx)
{
	struct spare *spare = ctx;

	if (spare->state != SPARE_STARTING)
		return;
	log_message(LOG_LEVEL_ERROR, "spare", "handler %s: pid %d was not ready within timeout.start, killed",
		spare->handler->name, (int)spare->process.pid);
	spare_end(spare);
}

/* Start. */

static int open_pipe(int *read_out, int *write_out, struct err *err)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set_errno(err, errno, "pipe for a process that waits");
	*read_out = fds[0];
	*write_out = fds[1];
	return 0;
}

static int open_pipes(struct spare *spare, int theirs[3], struct err *err)
{
	if (open_pipe(&theirs[SPARE_IN], &spare->fds[SPARE_IN], err) < 0 ||
	    open_pipe(&spare->fds[SPARE_OUT], &theirs[SPARE_OUT], err) < 0 ||
	    open_pipe(&spare->fds[SPARE_ERR], &theirs[SPARE_ERR], err) < 0)
		return -1;
	fcntl(spare->fds[SPARE_IN], F_SETFL, O_NONBLOCK);
	return 0;
}

static int ask(struct spare *spare, const struct spare_how *how, const int theirs[3], int control_fd, struct err *err)
{
	const int to_fork[4] = { theirs[0], theirs[1], theirs[2], control_fd };
	struct spawn_request request = {
		.handler = how->handler->number, .generation = how->generation, .ahead = SPAWN_PARKED, .preload = how->preload,
		.fds = { theirs[0], theirs[1], theirs[2] }, .control_fd = control_fd };

	if (how->zygote == NULL)
		return process_start(how->spawner, &spare->process, &request, err);
	spare->is_forked = true;
	spare->zygote = &how->zygote->process;
	return zygote_fork(how->zygote, to_fork, err);
}

static int start(struct spare *spare, const struct spare_how *how, struct err *err)
{
	int theirs[4] = { -1, -1, -1, -1 };
	int status = open_pipes(spare, theirs, err);

	if (status == 0)
		status = shim_link_open(&spare->link, how->loop, &theirs[3], err);
	if (status == 0)
		status = ask(spare, how, theirs, theirs[3], err);
	for (int i = 0; i < 4; i++)
		if (theirs[i] >= 0)
			close(theirs[i]);
	return status;
}

struct spare *spare_new(const struct spare_how *how, struct err *err)
{
	struct spare *spare = calloc(1, sizeof(*spare));
	uint64_t limit_ms = how->handler->timeout.start_ms;

	if (spare == NULL || (spare->timer = timer_new(how->loop, on_start_time, spare)) == NULL) {
		free(spare);
		err_set(err, "no memory for a process that waits");
		return NULL;
	}
	spare->handler = how->handler;
	spare->generation = how->generation;
	spare->program = how->program;
	spare->fds[0] = spare->fds[1] = spare->fds[2] = -1;
	spare->link = (struct shim_link){ .fd = -1, .on_message = on_message, .on_end = on_link_end, .ctx = spare };
	spare->process.on_started = on_started;
	spare->process.on_gone = on_process_gone;
	spare->process.ctx = spare;
	spare->asked_ns = clock_monotonic_ns();
	if (start(spare, how, err) < 0) {
		spare_free(&spare);
		return NULL;
	}
	timer_set(spare->timer, limit_ms > 0 ? limit_ms : START_LONGEST_MS);
	return spare;
}

/* The message is that of handlers/shims/README.md. */
static int make_message(const struct spare *spare, const struct bytes *environment, struct bytes *out)
{
	static const char head[5] = "\0\0\0\0E";
	uint32_t payload;

	bytes_init(out, HAND_OVER_MAX_BYTES);
	if (bytes_append(out, head, sizeof(head)) < 0 || program_append_environ(spare->program, environment, out) < 0)
		return -1;
	payload = htonl((uint32_t)(out->len - 4));
	memcpy(bytes_data(out), &payload, 4);
	return 0;
}

int spare_hand_over(struct spare *spare, const struct bytes *environment, struct err *err)
{
	struct bytes message;
	int status = make_message(spare, environment, &message);

	if (status < 0)
		err_set(err, "no memory for the variables");
	else if (send(spare->link.fd, bytes_data(&message), message.len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)message.len)
		spare->was_handed_over = true;
	else                            /* it is gone, or goes now: the request gets another */
		process_signal(&spare->process, SIGKILL);
	bytes_fini(&message);
	return status;
}

bool spare_has_left_request(struct spare *spare)
{
	shim_link_read_last(&spare->link);
	return !spare->was_handed_over || spare->link.was_reset;
}

void spare_hurry(struct spare *spare)
{
	if (spare->is_hurried || spare->is_forked || spare->state != SPARE_STARTING)
		return;
	spare->is_hurried = true;
	process_set_ready(&spare->process);
}

void spare_end(struct spare *spare)
{
	if (spare->state == SPARE_GONE || spare->state == SPARE_ENDING)
		return;
	spare->state = SPARE_ENDING;
	timer_clear(spare->timer);
	shim_link_close(&spare->link);  /* who is not adopted yet sees this end */
	if (spare->process.state == PROCESS_NEW)
		become_gone(spare);
	else
		process_signal(&spare->process, SIGKILL);
}

bool spare_has_written(const struct spare *spare)
{
	int len = 0;

	return spare->fds[SPARE_OUT] >= 0 && ioctl(spare->fds[SPARE_OUT], FIONREAD, &len) == 0 && len > 0;
}

static void log_line(void *ctx, struct slice text)
{
	const struct spare *spare = ctx;
	struct log_line line;

	log_begin(&line, LOG_LEVEL_WARNING, "stderr");
	log_none(&line, "id");
	log_str(&line, "handler", spare->handler->name);
	log_i64(&line, "pid", spare->process.pid);
	log_slice(&line, "msg", text);
	log_end(&line);
}

void spare_log_stderr(struct spare *spare)
{
	struct pollfd pfd = { .fd = spare->fds[SPARE_ERR], .events = POLLIN };
	char text[STDERR_MAX_BYTES];
	struct lines lines;
	ssize_t len;

	if (pfd.fd < 0 || poll(&pfd, 1, 0) != 1 || (pfd.revents & POLLIN) == 0)
		return;
	len = read(pfd.fd, text, sizeof(text));
	if (len <= 0)
		return;
	lines_init(&lines, log_line, spare);
	lines_put(&lines, text, (size_t)len);
	lines_fini(&lines);
}

void spare_free(struct spare **spare_ptr)
{
	struct spare *spare = *spare_ptr;

	*spare_ptr = NULL;
	if (spare == NULL)
		return;
	process_forget(&spare->process);
	if (spare->state == SPARE_TAKEN)
		shim_link_read_last(&spare->link);
	shim_link_close(&spare->link);
	for (int i = 0; i < 3; i++)
		if (spare->fds[i] >= 0)
			close(spare->fds[i]);
	timer_free(&spare->timer);
	free(spare);
}
