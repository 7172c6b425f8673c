#include "serve/control.h"

#include "serve/host.h"
#include "serve/reload.h"
#include "serve/site.h"
#include "serve/status.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	LINE_MAX_BYTES = 64,
	ANSWER_MAX_BYTES = 64 * 1024 * 1024,
	BACKLOG = 16,
	RETRY_MS = 1000,                /* when there is no descriptor */
};

struct control {
	struct host *host;
	int fd;
	struct watch *watch;
	struct timer *retry_timer;
	struct asker *askers;
};

/* A connection: it asks once. */
struct asker {
	struct control *control;
	int fd;
	struct watch *watch;
	struct bytes line;
	struct bytes answer;
	bool is_answered;
	bool is_waiting;                /* for a reload */
	struct asker *next, *prev;
};

static void asker_free(struct asker *asker)
{
	if (asker->prev != NULL)
		asker->prev->next = asker->next;
	else
		asker->control->askers = asker->next;
	if (asker->next != NULL)
		asker->next->prev = asker->prev;
	if (asker->is_waiting)
		reload_forget(asker->control->host, asker);
	watch_free(&asker->watch);
	close(asker->fd);
	bytes_fini(&asker->line);
	bytes_fini(&asker->answer);
	free(asker);
}

static void send_answer(struct asker *asker)
{
	ssize_t n;

	while (asker->answer.len > 0) {
		n = send(asker->fd, bytes_data(&asker->answer), asker->answer.len, MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			watch_set(asker->watch, WATCH_WRITE);
			return;
		}
		if (n < 0)
			break;
		bytes_consume(&asker->answer, (size_t)n);
	}
	asker_free(asker);
}

static void on_reloaded(void *ctx, bool is_fine, const char *text)
{
	struct asker *asker = ctx;

	asker->is_waiting = false;
	asker->is_answered = true;
	bytes_append_text(&asker->answer, is_fine ? "ok\n" : "failed\n");
	bytes_append_text(&asker->answer, text);
	send_answer(asker);
}

static void on_line(struct asker *asker)
{
	struct slice line = { (const char *)bytes_data(&asker->line), asker->line.len };

	if (slice_is(line, "reload\n")) {
		asker->is_waiting = true;
		watch_set(asker->watch, WATCH_HANGUP);
		reload_request(asker->control->host, on_reloaded, asker);
		return;
	}
	asker->is_answered = true;
	if (slice_is(line, "status\n")) {
		if (status_json(asker->control->host, &asker->answer) < 0) {
			bytes_clear(&asker->answer);
			bytes_append_text(&asker->answer, "failed\nno memory for the answer\n");
		}
	} else {
		bytes_append_text(&asker->answer, "failed\nno such question\n");
	}
	send_answer(asker);
}

static void on_asker(void *ctx, int events)
{
	struct asker *asker = ctx;
	char piece[LINE_MAX_BYTES];
	ssize_t n;

	if (asker->is_answered || (events & WATCH_WRITE)) {
		send_answer(asker);
		return;
	}
	if (asker->is_waiting) {
		asker_free(asker);
		return;
	}
	n = read(asker->fd, piece, sizeof(piece));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || bytes_append(&asker->line, piece, (size_t)n) < 0)
		asker_free(asker);
	else if (bytes_data(&asker->line)[asker->line.len - 1] == '\n')
		on_line(asker);
}

static bool is_owner(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && (cred.uid == 0 || cred.uid == geteuid());
}

static void asker_open(struct control *control, int fd)
{
	struct asker *asker = calloc(1, sizeof(*asker));

	if (asker == NULL || !is_owner(fd)) {
		free(asker);
		close(fd);
		return;
	}
	asker->control = control;
	asker->fd = fd;
	bytes_init(&asker->line, LINE_MAX_BYTES);
	bytes_init(&asker->answer, ANSWER_MAX_BYTES);
	asker->next = control->askers;
	if (asker->next != NULL)
		asker->next->prev = asker;
	control->askers = asker;
	asker->watch = watch_new(control->host->loop, fd, on_asker, asker, NULL);
	if (asker->watch == NULL)
		asker_free(asker);
	else
		watch_set(asker->watch, WATCH_READ);
}

static void on_connection(void *ctx, int events)
{
	struct control *control = ctx;
	int fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd >= 0) {
		asker_open(control, fd);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
		watch_set(control->watch, 0);
		timer_set(control->retry_timer, RETRY_MS);
	}
}

static void on_retry(void *ctx)
{
	struct control *control = ctx;

	watch_set(control->watch, WATCH_READ);
}

/* FNV-1a of the path: names it, hides nothing. */
socklen_t control_address(const char *config_file, struct sockaddr_un *out)
{
	char *real = realpath(config_file, NULL);
	uint64_t digest = 0xcbf29ce484222325u;
	int len;

	for (const char *c = real != NULL ? real : config_file; *c != '\0'; c++)
		digest = (digest ^ (unsigned char)*c) * 0x100000001b3u;
	free(real);
	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	len = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "fcgi-host/%016llx", (unsigned long long)digest);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

struct control *control_open(struct host *host, struct err *err)
{
	struct control *control = calloc(1, sizeof(*control));
	struct sockaddr_un address;
	socklen_t len = control_address(host->site->config->file, &address);

	if (control == NULL) {
		err_set(err, "no memory for the control socket");
		return NULL;
	}
	control->host = host;
	control->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (control->fd < 0 || bind(control->fd, (struct sockaddr *)&address, len) < 0 || listen(control->fd, BACKLOG) < 0) {
		err_set_errno(err, errno, "control socket @%s", address.sun_path + 1);
		control_free(&control);
		return NULL;
	}
	control->watch = watch_new(host->loop, control->fd, on_connection, control, err);
	control->retry_timer = timer_new(host->loop, on_retry, control);
	if (control->watch == NULL || control->retry_timer == NULL)
		control_free(&control);
	else
		watch_set(control->watch, WATCH_READ);
	return control;
}

void control_free(struct control **control_ptr)
{
	struct control *control = *control_ptr;

	*control_ptr = NULL;
	if (control == NULL)
		return;
	while (control->askers != NULL)
		asker_free(control->askers);
	watch_free(&control->watch);
	timer_free(&control->retry_timer);
	if (control->fd >= 0)
		close(control->fd);
	free(control);
}
