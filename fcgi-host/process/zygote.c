#include "process/zygote.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	START_LONGEST_MS = 60000,       /* where there is no timeout.start */
	FORKS_MAX = 1000,               /* where there is no workers.max_requests */
	AGE_MAX_MS = 600000,            /* where there is no workers.max_age */
	STDERR_PIECE_BYTES = 4096,
};

#define CHANGED_SOON_NS 1000000000u

static void log_line(void *ctx, struct slice text)
{
	const struct zygote *zygote = ctx;
	struct log_line line;

	log_begin(&line, LOG_LEVEL_WARNING, "stderr");
	log_none(&line, "id");
	log_str(&line, "handler", zygote->handler->name);
	log_i64(&line, "pid", zygote->process.pid);
	log_slice(&line, "msg", text);
	log_end(&line);
}

static void drain_stderr(struct zygote *zygote)
{
	char piece[STDERR_PIECE_BYTES];
	ssize_t n = read(zygote->err_fd, piece, sizeof(piece));

	if (n > 0)
		lines_put(&zygote->err_lines, piece, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		watch_free(&zygote->err_watch);
}

static void on_stderr(void *ctx, int events)
{
	(void)events;
	drain_stderr(ctx);
}

static void on_started(void *ctx)
{
	struct zygote *zygote = ctx;

	if (zygote->err_watch != NULL)
		watch_set(zygote->err_watch, WATCH_READ);       /* its lines bear the pid */
}

static void on_process_gone(void *ctx)
{
	struct zygote *zygote = ctx;
	struct pollfd pfd = { .fd = zygote->err_fd, .events = POLLIN };

	for (int i = 0; i < 16 && zygote->err_watch != NULL && poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLIN) != 0; i++)
		drain_stderr(zygote);
	zygote->state = ZYGOTE_GONE;
	zygote->on_change(zygote);
}

static uint64_t age_ms(const struct zygote *zygote)
{
	return zygote->handler->workers.max_age_ms > 0 ? zygote->handler->workers.max_age_ms : AGE_MAX_MS;
}

static void set_due(struct zygote *zygote)
{
	zygote->is_due = true;
	zygote->on_change(zygote);
}

static void on_message(void *ctx, char type, struct slice payload)
{
	static const char changed[] = "changed: ";
	struct zygote *zygote = ctx;

	bool has_changed = type == 'F' && payload.len >= strlen(changed) && memcmp(payload.ptr, changed, strlen(changed)) == 0;

	if (type == 'R' && zygote->state == ZYGOTE_STARTING) {
		zygote->state = ZYGOTE_READY;
		process_set_ready(&zygote->process);
		timer_set(zygote->timer, age_ms(zygote));
		zygote->on_change(zygote);
	} else if (has_changed && zygote->state != ZYGOTE_ENDING) {
		/* Nobody's fault, unless it is so again and again: a file from the future. */
		zygote->is_dropped = clock_monotonic_ns() - zygote->asked_ns > CHANGED_SOON_NS;
		zygote->has_changed = true;
		zygote_end(zygote);
	} else if (type == 'F' && zygote->state != ZYGOTE_ENDING) {
		zygote->was_refused = true;
		err_set(&zygote->refusal, "%.*s", (int)(payload.len < 500 ? payload.len : 500), payload.ptr);
		zygote_end(zygote);
	}
}

static void on_link_end(void *ctx)
{
	zygote_end(ctx);
}

static void on_time(void *ctx)
{
	struct zygote *zygote = ctx;

	if (zygote->state == ZYGOTE_READY) {
		set_due(zygote);
		return;
	}
	log_message(LOG_LEVEL_ERROR, "zygote", "handler %s: pid %d was not ready within timeout.start, killed",
		zygote->handler->name, (int)zygote->process.pid);
	zygote_end(zygote);
}

static int start(struct zygote *zygote, uint32_t generation, struct loop *loop, struct spawner *spawner, const struct bytes *preload,
	struct err *err)
{
	struct spawn_request request = {
		.handler = zygote->handler->number, .generation = generation, .ahead = SPAWN_ZYGOTE, .preload = preload, .is_prompt = true };
	int fds[2], control_fd = -1, status = -1;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set_errno(err, errno, "pipe for a zygote");
	zygote->err_fd = fds[0];
	zygote->err_watch = watch_new(loop, fds[0], on_stderr, zygote, err);
	if (zygote->err_watch != NULL && shim_link_open(&zygote->link, loop, &control_fd, err) == 0) {
		request.fds[0] = -1;
		request.fds[1] = request.fds[2] = fds[1];
		request.control_fd = control_fd;
		status = process_start(spawner, &zygote->process, &request, err);
	}
	close(fds[1]);
	if (control_fd >= 0)
		close(control_fd);
	return status;
}

struct zygote *zygote_new(const struct handler_config *handler, uint32_t generation, struct loop *loop, struct spawner *spawner,
	const struct bytes *preload, struct err *err)
{
	struct zygote *zygote = calloc(1, sizeof(*zygote));

	if (zygote == NULL || (zygote->timer = timer_new(loop, on_time, zygote)) == NULL) {
		free(zygote);
		err_set(err, "no memory for a zygote");
		return NULL;
	}
	zygote->handler = handler;
	zygote->err_fd = -1;
	zygote->asked_ns = clock_monotonic_ns();
	zygote->link = (struct shim_link){ .fd = -1, .on_message = on_message, .on_end = on_link_end, .ctx = zygote };
	zygote->process.on_started = on_started;
	zygote->process.on_gone = on_process_gone;
	zygote->process.ctx = zygote;
	lines_init(&zygote->err_lines, log_line, zygote);
	if (start(zygote, generation, loop, spawner, preload, err) < 0) {
		zygote_free(&zygote);
		return NULL;
	}
	timer_set(zygote->timer, handler->timeout.start_ms > 0 ? handler->timeout.start_ms : START_LONGEST_MS);
	return zygote;
}

int zygote_fork(struct zygote *zygote, const int fds[4], struct err *err)
{
	unsigned max = zygote->handler->workers.max_requests > 0 ? zygote->handler->workers.max_requests : FORKS_MAX;

	if (zygote->state != ZYGOTE_READY || shim_link_send_fds(&zygote->link, 'K', fds, 4) < 0)
		return err_set(err, "the zygote takes nothing now");
	if (++zygote->forks >= max && !zygote->is_due)
		zygote->is_due = true;  /* whoever asked looks at it */
	return 0;
}

void zygote_end(struct zygote *zygote)
{
	if (zygote->state == ZYGOTE_GONE || zygote->state == ZYGOTE_ENDING)
		return;
	zygote->state = ZYGOTE_ENDING;
	timer_clear(zygote->timer);
	shim_link_close(&zygote->link);
	process_signal(&zygote->process, SIGKILL);
}

void zygote_free(struct zygote **zygote_ptr)
{
	struct zygote *zygote = *zygote_ptr;

	*zygote_ptr = NULL;
	if (zygote == NULL)
		return;
	process_forget(&zygote->process);
	shim_link_close(&zygote->link);
	watch_free(&zygote->err_watch);
	lines_fini(&zygote->err_lines);
	if (zygote->err_fd >= 0)
		close(zygote->err_fd);
	timer_free(&zygote->timer);
	free(zygote);
}
