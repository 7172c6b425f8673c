#include "process/worker.h"

#include "base/clock.h"
#include "base/log.h"
#include "process/look.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	STDERR_PIECE_BYTES = 16 * 1024,
	BACKLOG = 8,
	PROBE_FIRST_MS = 1,
	PROBE_LAST_MS = 50,
};

static void on_stderr_line(void *ctx, struct slice text)
{
	const struct worker *worker = ctx;
	struct log_line line;

	log_begin(&line, LOG_LEVEL_WARNING, "stderr");
	log_str(&line, "id", worker->request_id);
	log_str(&line, "handler", worker->handler->name);
	log_i64(&line, "pid", worker->process.pid);
	log_slice(&line, "msg", text);
	log_end(&line);
}

static void drain_stderr(struct worker *worker)
{
	char piece[STDERR_PIECE_BYTES];
	ssize_t n = read(worker->stderr_fd, piece, sizeof(piece));

	if (n > 0)
		lines_put(&worker->stderr_lines, piece, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		watch_free(&worker->stderr_watch);
}

static void on_stderr(void *ctx, int events)
{
	(void)events;
	drain_stderr(ctx);
}

static void on_kill_time(void *ctx)
{
	struct worker *worker = ctx;

	log_message(LOG_LEVEL_WARNING, "worker_killed", "handler %s: pid %d did not end within timeout.kill, killed",
		worker->handler->name, (int)worker->process.pid);
	process_signal(&worker->process, SIGKILL);
}

/* Readiness: we connect, and look whether the worker has accepted that.  Nothing
 * is sent, so every FastCGI program goes back to its accept. */

static void close_probe(struct worker *worker)
{
	if (worker->probe_fd >= 0)
		close(worker->probe_fd);
	worker->probe_fd = -1;
	if (worker->probe_timer != NULL)
		timer_clear(worker->probe_timer);
}

static int open_probe(struct worker *worker, struct err *err)
{
	worker->probe_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (worker->probe_fd < 0 ||
	    connect(worker->probe_fd, (struct sockaddr *)&worker->address, sizeof(worker->address)) < 0)
		return err_set_errno(err, errno, "%s", worker->address.sun_path);
	return 0;
}

static void tell_ready(struct worker *worker)
{
	if (worker->is_ready && worker->process.state == PROCESS_RUNNING)
		worker->on_change(worker);
}

static void on_start_time(struct worker *worker)
{
	log_message(LOG_LEVEL_ERROR, "worker_start", "handler %s: pid %d did not accept within timeout.start (%llu ms), killed",
		worker->handler->name, (int)worker->process.pid, (unsigned long long)worker->handler->timeout.start_ms);
	close_probe(worker);
	process_signal(&worker->process, SIGKILL);
}

static void on_probe_time(void *ctx)
{
	struct worker *worker = ctx;
	uint64_t limit_ms = worker->handler->timeout.start_ms;

	if (worker_has_accepted(worker)) {
		close_probe(worker);
		worker->is_ready = true;
		tell_ready(worker);
		return;
	}
	if (limit_ms > 0 && (clock_monotonic_ns() - worker->process.asked_ns) / 1000000 >= limit_ms) {
		on_start_time(worker);
		return;
	}
	if (worker->probe_ms < PROBE_LAST_MS)
		worker->probe_ms *= 2;
	timer_set(worker->probe_timer, worker->probe_ms);
}

static void on_started(void *ctx)
{
	struct worker *worker = ctx;

	if (worker->stderr_watch != NULL)
		watch_set(worker->stderr_watch, WATCH_READ);    /* its lines bear the pid */
	tell_ready(worker);
}

static void log_gone(const struct worker *worker)
{
	const struct process *process = &worker->process;
	bool is_expected = worker->state == WORKER_STOPPING;
	struct log_line line;

	log_begin(&line, is_expected ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING, "worker_exit");
	log_str(&line, "handler", worker->handler->name);
	log_i64(&line, "pid", process->pid);
	log_u64(&line, "requests", worker->requests);
	if (WIFSIGNALED(process->wait_status))
		log_i64(&line, "signal", WTERMSIG(process->wait_status));
	else
		log_i64(&line, "exit", WEXITSTATUS(process->wait_status));
	log_u64(&line, "rss_kib", process->usage.max_rss_kib);
	log_end(&line);
}

/* What the process wrote before it ended is still in the pipe. */
static void read_last_words(struct worker *worker)
{
	for (int i = 0; i < 64 && worker->stderr_watch != NULL; i++) {
		struct pollfd pfd = { .fd = worker->stderr_fd, .events = POLLIN };

		if (poll(&pfd, 1, 0) != 1 || (pfd.revents & POLLIN) == 0)
			break;
		drain_stderr(worker);
	}
}

static void on_process_gone(void *ctx)
{
	struct worker *worker = ctx;

	read_last_words(worker);
	if (worker->process.failed_step == SPAWN_STEP_NONE)
		log_gone(worker);
	timer_clear(worker->kill_timer);
	close_probe(worker);
	worker->on_change(worker);
}

/* The folder is the relay's own and closed to everyone else. */
static int open_socket(struct worker *worker, const char *folder, struct err *err)
{
	static unsigned serial;
	int len;

	worker->address.sun_family = AF_UNIX;
	len = snprintf(worker->address.sun_path, sizeof(worker->address.sun_path), "%s/%u", folder, ++serial);
	if (len >= (int)sizeof(worker->address.sun_path))
		return err_set(err, "%s: too long for the path of a socket", folder);
	worker->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (worker->listen_fd < 0)
		return err_set_errno(err, errno, "socket for a worker");
	if (bind(worker->listen_fd, (struct sockaddr *)&worker->address, sizeof(worker->address)) < 0 ||
	    listen(worker->listen_fd, BACKLOG) < 0)
		return err_set_errno(err, errno, "%s", worker->address.sun_path);
	return 0;
}

static int start_process(struct worker *worker, uint32_t generation, struct loop *loop, struct spawner *spawner, struct err *err)
{
	struct spawn_request request = { .handler = worker->handler->number, .generation = generation, .is_prompt = true };
	int fds[2];
	int status;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set_errno(err, errno, "pipe for a worker");
	worker->stderr_fd = fds[0];
	worker->stderr_watch = watch_new(loop, fds[0], on_stderr, worker, err);
	if (worker->stderr_watch == NULL) {
		close(fds[1]);
		return -1;
	}
	request.fds[0] = worker->listen_fd;
	request.fds[1] = request.fds[2] = fds[1];
	status = process_start(spawner, &worker->process, &request, err);
	close(fds[1]);
	return status;
}

struct worker *worker_start(const struct handler_config *handler, uint32_t generation, const char *folder, struct loop *loop,
	struct spawner *spawner, void (*on_change)(struct worker *worker), void *pool, struct err *err)
{
	struct worker *worker = calloc(1, sizeof(*worker));

	if (worker == NULL) {
		err_set(err, "no memory for a worker");
		return NULL;
	}
	worker->handler = handler;
	worker->listen_fd = worker->stderr_fd = worker->probe_fd = -1;
	worker->on_change = on_change;
	worker->pool = pool;
	worker->process.on_started = on_started;
	worker->process.on_gone = on_process_gone;
	worker->process.ctx = worker;
	lines_init(&worker->stderr_lines, on_stderr_line, worker);
	worker->kill_timer = timer_new(loop, on_kill_time, worker);
	worker->probe_timer = timer_new(loop, on_probe_time, worker);
	worker->probe_ms = PROBE_FIRST_MS;
	if (worker->kill_timer == NULL || worker->probe_timer == NULL || open_socket(worker, folder, err) < 0 ||
	    open_probe(worker, err) < 0 ||
	    start_process(worker, generation, loop, spawner, err) < 0) {
		worker_free(&worker);
		return NULL;
	}
	timer_set(worker->probe_timer, worker->probe_ms);
	return worker;
}

uint64_t worker_rss_kib(const struct worker *worker)
{
	struct look look;

	return look_at(worker->process.pid, &look) < 0 ? 0 : look.rss_kib;
}

static void close_link(struct worker *worker)
{
	if (worker->link != NULL)
		worker->close_link(worker->link);
	worker->link = NULL;
}

void worker_stop(struct worker *worker)
{
	close_link(worker);
	close_probe(worker);
	process_signal(&worker->process, SIGTERM);
	timer_set(worker->kill_timer, worker->handler->timeout.kill_ms);
}

bool worker_has_accepted(const struct worker *worker)
{
	struct pollfd pfd = { .fd = worker->listen_fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 0;
}

void worker_free(struct worker **worker)
{
	struct worker *w = *worker;

	if (w == NULL)
		return;
	close_link(w);
	process_forget(&w->process);
	close_probe(w);
	timer_free(&w->probe_timer);
	timer_free(&w->kill_timer);
	watch_free(&w->stderr_watch);
	lines_fini(&w->stderr_lines);
	if (w->stderr_fd >= 0)
		close(w->stderr_fd);
	if (w->listen_fd >= 0) {
		close(w->listen_fd);
		unlink(w->address.sun_path);
	}
	free(w);
	*worker = NULL;
}
