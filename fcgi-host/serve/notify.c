#include "serve/notify.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	MESSAGE_MAX_BYTES = 128,
	CLEAN_UP_MS = 5000,             /* after the grace time: what takes no waiting for handlers */
};

struct notify {
	int fd;
	uint64_t watchdog_ms;           /* half of the watchdog's time; 0: there is none */
	struct timer *watchdog_timer;
};

static void send_message(struct notify *notify, const char *message)
{
	ssize_t n;

	do
		n = send(notify->fd, message, strlen(message), MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
}

static void on_watchdog(void *ctx)
{
	struct notify *notify = ctx;

	send_message(notify, "WATCHDOG=1\n");
	timer_set(notify->watchdog_timer, notify->watchdog_ms);
}

/* A path, or a name that begins with @ in the abstract namespace. */
static int connect_to(int fd, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	socklen_t address_len;

	if ((name[0] != '/' && name[0] != '@') || len < 2 || len >= sizeof(address.sun_path)) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	memcpy(address.sun_path, name, len);
	address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (name[0] == '/'));
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	return connect(fd, (const struct sockaddr *)&address, address_len);
}

/* The watchdog may be meant for another process than ours. */
static uint64_t watchdog_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t value;

	if (usec == NULL || text_to_u64(slice_of(usec), &value) < 0 || value == 0)
		return 0;
	if (pid != NULL && strtol(pid, NULL, 10) != (long)getpid())
		return 0;
	value /= 2 * 1000;
	return value == 0 ? 1 : value;
}

static struct notify *open_named(struct loop *loop, const char *name)
{
	struct notify *notify = calloc(1, sizeof(*notify));

	if (notify == NULL)
		return NULL;
	notify->watchdog_ms = watchdog_ms();
	notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (notify->fd < 0 || connect_to(notify->fd, name) < 0) {
		log_message(LOG_LEVEL_WARNING, "notify", "NOTIFY_SOCKET %s: %s", name, strerror(errno));
		notify_free(&notify);
		return NULL;
	}
	if (notify->watchdog_ms > 0)
		notify->watchdog_timer = timer_new(loop, on_watchdog, notify);
	if (notify->watchdog_ms > 0 && notify->watchdog_timer == NULL)
		notify_free(&notify);
	return notify;
}

struct notify *notify_open(struct loop *loop)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct notify *notify = name == NULL || name[0] == '\0' ? NULL : open_named(loop, name);

	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return notify;
}

void notify_ready(struct notify *notify)
{
	if (notify == NULL)
		return;
	send_message(notify, "READY=1\n");
	if (notify->watchdog_timer != NULL)
		on_watchdog(notify);
}

void notify_reloading(struct notify *notify)
{
	char message[MESSAGE_MAX_BYTES];

	if (notify == NULL)
		return;
	snprintf(message, sizeof(message), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\n", clock_monotonic_ns() / 1000);
	send_message(notify, message);
}

void notify_stopping(struct notify *notify, uint64_t grace_ms)
{
	char message[MESSAGE_MAX_BYTES];

	if (notify == NULL)
		return;
	snprintf(message, sizeof(message), "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64 "\n", (grace_ms + CLEAN_UP_MS) * 1000);
	send_message(notify, message);
}

void notify_free(struct notify **notify_ptr)
{
	struct notify *notify = *notify_ptr;

	*notify_ptr = NULL;
	if (notify == NULL)
		return;
	timer_free(&notify->watchdog_timer);
	if (notify->fd >= 0)
		close(notify->fd);
	free(notify);
}
