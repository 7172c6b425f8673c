#include "process/spawn_link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* The kernel takes a message of this size whole or not at all; a larger one
 * may stop in the middle and so is copied first. */
enum { WHOLE_MAX_BYTES = 16 * 1024 };

struct waiting {
	struct waiting *next;
	uint64_t id;
	bool is_start;
	unsigned fds_count;             /* ours, to be sent with the first byte */
	int fds[SPAWN_FDS];
	size_t len, sent;
	char data[];
};

static unsigned fds_in(const struct spawn_message *message)
{
	return (unsigned)__builtin_popcount(message->ask.fds);
}

/* Is it answered by STARTED or FAILED? */
static bool is_start(const struct spawn_ask *ask)
{
	return ask->kind == SPAWN_ASK_START || ask->kind == SPAWN_ASK_ADOPT;
}

/* Bytes sent, or -1 with errno. */
static ssize_t send_some(int fd, struct iovec *iov, size_t iov_count, const int *fds, unsigned fds_count)
{
	union { struct cmsghdr align; char bytes[CMSG_SPACE(SPAWN_FDS * sizeof(int))]; } control;
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = iov_count };
	struct cmsghdr *cmsg;
	ssize_t n;

	if (fds_count > 0) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(fds_count * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(fds_count * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, fds_count * sizeof(int));
	}
	do
		n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n;
}

static void close_fds(struct waiting *waiting)
{
	for (unsigned i = 0; i < waiting->fds_count; i++)
		close(waiting->fds[i]);
	waiting->fds_count = 0;
}

static void waiting_free(struct waiting *waiting)
{
	close_fds(waiting);
	free(waiting);
}

static struct waiting *waiting_new(const struct spawn_message *message)
{
	const struct spawn_ask *ask = &message->ask;
	size_t len = sizeof(*ask) + ask->script_len + ask->environ_len;
	struct waiting *waiting = malloc(sizeof(*waiting) + len);
	char *data;

	if (waiting == NULL)
		return NULL;
	*waiting = (struct waiting){ .id = ask->id, .is_start = is_start(ask), .len = len };
	for (unsigned i = 0; i < fds_in(message); i++) {
		waiting->fds[i] = fcntl(message->fds[i], F_DUPFD_CLOEXEC, 3);
		if (waiting->fds[i] < 0) {
			int errnum = errno;

			waiting_free(waiting);
			errno = errnum;
			return NULL;
		}
		waiting->fds_count++;
	}
	data = waiting->data;
	memcpy(data, ask, sizeof(*ask));
	if (ask->script_len > 0)
		memcpy(data + sizeof(*ask), message->script, ask->script_len);
	if (ask->environ_len > 0)
		memcpy(data + sizeof(*ask) + ask->script_len, message->environ, ask->environ_len);
	return waiting;
}

static void drop_first(struct spawn_link *link)
{
	struct waiting *waiting = link->first;

	link->first = waiting->next;
	if (link->first == NULL)
		link->last = &link->first;
	waiting_free(waiting);
}

/* 1: sent whole.  0: the rest must wait.  -1: it cannot be sent (errno). */
static int send_waiting(struct spawn_link *link, struct waiting *waiting)
{
	while (waiting->sent < waiting->len) {
		struct iovec iov = { waiting->data + waiting->sent, waiting->len - waiting->sent };
		ssize_t n = send_some(link->fd, &iov, 1, waiting->fds, waiting->fds_count);

		if (n < 0)
			return errno == EAGAIN || waiting->sent > 0 ? 0 : -1;
		waiting->sent += (size_t)n;
		close_fds(waiting);
	}
	return 1;
}

static void watch_what_is_needed(struct spawn_link *link)
{
	watch_set(link->watch, link->first != NULL ? WATCH_READ | WATCH_WRITE : WATCH_READ);
}

static void flush(struct spawn_link *link)
{
	while (link->fd >= 0 && link->first != NULL) {
		struct waiting *waiting = link->first;
		uint64_t id = waiting->id;
		bool was_start = waiting->is_start;
		int status = send_waiting(link, waiting), errnum = errno;

		if (status == 0)
			break;
		drop_first(link);
		if (status < 0 && was_start) {
			link->starting--;
			link->owner->on_unsent(link->owner->ctx, id, errnum);
		}
	}
	if (link->fd >= 0)
		watch_what_is_needed(link);
}

static int enqueue(struct spawn_link *link, const struct spawn_message *message)
{
	struct waiting *waiting = waiting_new(message);
	bool is_first = link->first == NULL;
	int status = 0, errnum;

	if (waiting == NULL)
		return errno;
	if (is_first)
		status = send_waiting(link, waiting);
	if (status != 0) {
		errnum = errno;
		waiting_free(waiting);
		return status < 0 ? errnum : 0;
	}
	*link->last = waiting;
	link->last = &waiting->next;
	watch_what_is_needed(link);
	return 0;
}

int spawn_link_send(struct spawn_link *link, const struct spawn_message *message)
{
	struct iovec iov[3] = {
		{ (void *)&message->ask, sizeof(message->ask) },
		{ (void *)message->script, message->ask.script_len },
		{ (void *)message->environ, message->ask.environ_len },
	};
	size_t len = iov[0].iov_len + iov[1].iov_len + iov[2].iov_len;
	int errnum = 0;

	if (link->fd < 0)
		return EPIPE;
	if (link->first != NULL || len > WHOLE_MAX_BYTES)
		errnum = enqueue(link, message);
	else if (send_some(link->fd, iov, 3, message->fds, fds_in(message)) < 0)
		errnum = errno == EAGAIN ? enqueue(link, message) : errno;
	if (errnum == 0 && is_start(&message->ask))
		link->starting++;
	return errnum;
}

static void take_reports(struct spawn_link *link)
{
	struct spawn_report report;
	size_t done = 0;

	for (; link->fd >= 0 && link->in_len - done >= sizeof(report); done += sizeof(report)) {
		memcpy(&report, link->in + done, sizeof(report));
		if (report.kind == SPAWN_REPORT_STARTED || report.kind == SPAWN_REPORT_FAILED)
			link->starting--;
		link->owner->on_report(link->owner->ctx, &report);
	}
	link->in_len -= done;
	memmove(link->in, link->in + done, link->in_len);
}

/* true while there may be more. */
static bool read_some(struct spawn_link *link)
{
	size_t room = sizeof(link->in) - link->in_len;
	ssize_t n = recv(link->fd, link->in + link->in_len, room, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		spawn_link_close(link);
		link->owner->on_lost(link->owner->ctx, link);
		return false;
	}
	link->in_len += (size_t)n;
	take_reports(link);
	return link->fd >= 0 && (size_t)n == room;
}

static void on_socket(void *ctx, int events)
{
	struct spawn_link *link = ctx;

	if ((events & (WATCH_READ | WATCH_HANGUP)) != 0)
		while (read_some(link))
			;
	if ((events & WATCH_WRITE) != 0 && link->fd >= 0)
		flush(link);
	link->owner->on_done(link->owner->ctx);
}

void spawn_link_init(struct spawn_link *link, int fd, pid_t pid)
{
	*link = (struct spawn_link){ .fd = fd, .pid = pid };
	link->last = &link->first;
}

int spawn_link_attach(struct spawn_link *link, struct loop *loop, const struct spawn_link_owner *owner, struct err *err)
{
	link->owner = owner;
	link->watch = watch_new(loop, link->fd, on_socket, link, err);
	if (link->watch == NULL)
		return -1;
	watch_set(link->watch, WATCH_READ);
	return 0;
}

void spawn_link_close(struct spawn_link *link)
{
	watch_free(&link->watch);
	while (link->first != NULL)
		drop_first(link);
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
	link->starting = 0;
}

/* The spawner's end is closed when it ends: reading to that end waits for it. */
void spawn_link_end(struct spawn_link *link, int timeout_ms)
{
	struct pollfd pfd = { .fd = link->fd, .events = POLLIN };
	bool is_gone = link->fd < 0;

	if (!is_gone)
		shutdown(link->fd, SHUT_WR);
	while (!is_gone && poll(&pfd, 1, timeout_ms) > 0)
		is_gone = recv(link->fd, link->in, sizeof(link->in), MSG_DONTWAIT) <= 0;
	if (!is_gone)
		kill(link->pid, SIGKILL);
	spawn_link_close(link);
	waitpid(link->pid, NULL, is_gone ? 0 : WNOHANG);
}
