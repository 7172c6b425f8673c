#include "serve/listener.h"

#include "base/log.h"
#include "base/tcp.h"
#include "config/address.h"
#include "process/socket_path.h"
#include "serve/client.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	ACCEPTS_PER_TURN = 64,
	RESERVE_DESCRIPTORS = 32,       /* for the pipes of requests that are running */
	RETRY_MS = 1000,                /* when the shortage is somebody else's */
};

struct listener {
	struct host *host;
	const struct listen_config *config;     /* NULL when the socket was handed over */
	int fd;
	bool is_unix;
	bool is_paused;
	bool has_said_refused;
	struct watch *watch;
	struct timer *retry_timer;
	dev_t device;                           /* of the socket file that is ours; 0: none */
	ino_t inode;
};

static void on_connection(void *ctx, int events);

/* Descriptors. */

static int descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > 1 << 30)
		return 1 << 30;
	return (int)limit.rlim_cur;
}

const char *listener_name(const struct listener *listener)
{
	return listener->config == NULL ? "inherited socket" : listener->config->address.text;
}

static void pause_accepting(struct listener *listener, const char *why)
{
	if (!listener->is_paused)
		log_message(LOG_LEVEL_WARNING, "listener_paused", "%s: no new connections until descriptors are freed: %s (limit %d)",
			listener_name(listener), why, descriptor_limit());
	listener->is_paused = true;
	watch_set(listener->watch, 0);
	timer_set(listener->retry_timer, RETRY_MS);
}

static void resume_accepting(struct listener *listener)
{
	watch_set(listener->watch, WATCH_READ);
	timer_clear(listener->retry_timer);
}

static void on_retry(void *ctx)
{
	resume_accepting(ctx);
}

void listener_descriptor_freed(struct listener *listener)
{
	if (listener->is_paused)
		resume_accepting(listener);
}

/* A backlog above somaxconn is cut without a word by the kernel. */
static void check_backlog(const struct listen_config *config)
{
	FILE *file = fopen("/proc/sys/net/core/somaxconn", "re");
	unsigned somaxconn = 0;

	if (file == NULL)
		return;
	if (fscanf(file, "%u", &somaxconn) == 1 && config->backlog > somaxconn)
		log_message(LOG_LEVEL_WARNING, "backlog", "%s: backlog %u is above net.core.somaxconn %u, which is what counts",
			config->address.text, config->backlog, somaxconn);
	fclose(file);
}

/* Accepting. */

static bool is_allowed(const struct listener *listener, const struct sockaddr *peer)
{
	const struct listen_config *config = listener->config;

	if (listener->is_unix || config == NULL || config->allow.count == 0)
		return true;
	return prefixes_contain(&config->allow, peer);
}

static void refuse(struct listener *listener, int fd, const struct sockaddr *peer, socklen_t peer_len)
{
	char host[64];

	if (getnameinfo(peer, peer_len, host, sizeof(host), NULL, 0, NI_NUMERICHOST) != 0)
		host[0] = '\0';
	if (!listener->has_said_refused)
		log_message(LOG_LEVEL_WARNING, "refused", "%s: a connection from %s, which `allow` does not contain (said once)",
			listener->config->address.text, host);
	listener->has_said_refused = true;
	close(fd);
}

/* False when there is nothing more to accept now. */
static bool accept_one(struct listener *listener)
{
	struct sockaddr_storage peer;
	socklen_t peer_len = sizeof(peer);
	struct err err;
	int fd = accept4(listener->fd, (struct sockaddr *)&peer, &peer_len, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			pause_accepting(listener, strerror(errno));
		return errno == EINTR || errno == ECONNABORTED;
	}
	if (!is_allowed(listener, (struct sockaddr *)&peer)) {
		refuse(listener, fd, (struct sockaddr *)&peer, peer_len);
		return true;
	}
	if (!listener->is_unix)
		tcp_tune(fd);
	if (client_open(listener->host, fd, listener->is_unix, &err) < 0)
		log_message(LOG_LEVEL_ERROR, "accept", "%s", err.text);
	/* The kernel gives the lowest free number, so it tells how many are in use. */
	if (fd >= descriptor_limit() - RESERVE_DESCRIPTORS) {
		pause_accepting(listener, "the rest is kept for handlers");
		return false;
	}
	if (listener->is_paused) {
		listener->is_paused = false;
		log_message(LOG_LEVEL_INFO, "listener_resumed", "%s: accepting again",
			listener_name(listener));
	}
	return true;
}

static void on_connection(void *ctx, int events)
{
	struct listener *listener = ctx;

	(void)events;
	for (int i = 0; i < ACCEPTS_PER_TURN; i++)
		if (!accept_one(listener))
			break;
}

void listener_start(struct listener *listener)
{
	watch_set(listener->watch, WATCH_READ);
}

/* Unix sockets. */

/* Held from the look at the path until the socket listens, so that two hosts
 * that start at once do not remove each other's.  -1 where that is not possible. */
static int lock_folder(const char *path)
{
	char folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char *slash;
	int fd;

	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (slash == NULL)
		return -1;
	slash[slash == folder ? 1 : 0] = '\0';
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		flock(fd, LOCK_EX);
	return fd;
}

/* Closed to everybody until its owner and mode are what they will be. */
static int bind_closed(struct listener *listener, struct err *err)
{
	const struct listen_config *config = listener->config;
	const char *path = socket_path(config);
	struct stat st;
	mode_t old_mask;
	int status;

	if (socket_path_check(config, err) < 0)
		return -1;
	unlink(path);
	old_mask = umask(0777);
	status = bind(listener->fd, (const struct sockaddr *)&config->address.sockaddr, config->address.sockaddr_len);
	umask(old_mask);
	if (status < 0 && errno == ENOENT)
		return err_set(err, "%s: its folder is not there: create it, owned by the user that serves", config->address.text);
	if (status < 0 || lstat(path, &st) < 0)
		return err_set_errno(err, errno, "%s", config->address.text);
	listener->device = st.st_dev;
	listener->inode = st.st_ino;
	if (((config->owner != (uid_t)-1 || config->group != (gid_t)-1) && chown(path, config->owner, config->group) < 0) ||
	    listen(listener->fd, (int)config->backlog) < 0 || chmod(path, (mode_t)config->mode) < 0)
		return err_set_errno(err, errno, "%s", config->address.text);
	return 0;
}

static int bind_unix(struct listener *listener, struct err *err)
{
	int lock_fd = lock_folder(socket_path(listener->config));
	int status = bind_closed(listener, err);

	if (lock_fd >= 0)
		close(lock_fd);
	return status;
}

static in_port_t port_of(const struct listen_config *config)
{
	const struct sockaddr_storage *address = &config->address.sockaddr;

	return address->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)address)->sin6_port :
		((const struct sockaddr_in *)address)->sin_port;
}

/* Lets others of this user bind to a port, or no more. */
static void share_port(int fd, int is_shared)
{
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &is_shared, sizeof(is_shared));
}

static int bind_and_listen(const struct listener *listener)
{
	const struct listen_config *config = listener->config;

	if (bind(listener->fd, (const struct sockaddr *)&config->address.sockaddr, config->address.sockaddr_len) < 0)
		return -1;
	return listen(listener->fd, (int)config->backlog);
}

/* A reload may widen an address, or narrow it, on the port where we listen: the
 * old socket and the new one then share it until the old one is closed. */
static int bind_beside_ours(const struct listener *listener)
{
	const struct host *host = listener->host;
	bool has_ours = false;
	int status, errnum;

	for (size_t i = 0; i < host->listeners_count; i++) {
		const struct listener *other = host->listeners[i];

		if (!other->is_unix && other->config != NULL && port_of(other->config) == port_of(listener->config)) {
			share_port(other->fd, 1);
			has_ours = true;
		}
	}
	share_port(listener->fd, 1);
	errno = EADDRINUSE;
	status = has_ours ? bind_and_listen(listener) : -1;
	errnum = errno;
	share_port(listener->fd, 0);
	for (size_t i = 0; i < host->listeners_count; i++)
		if (!host->listeners[i]->is_unix)
			share_port(host->listeners[i]->fd, 0);
	errno = errnum;
	return status;
}

static int bind_tcp(struct listener *listener, struct err *err)
{
	int on = 1;

	setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind_and_listen(listener) < 0 && (errno != EADDRINUSE || bind_beside_ours(listener) < 0))
		return err_set_errno(err, errno, "%s", listener->config->address.text);
	return 0;
}

/* Open and close. */

static struct listener *listener_new(struct host *host, int fd, bool is_unix, struct err *err)
{
	struct listener *listener = calloc(1, sizeof(*listener));

	if (listener == NULL) {
		err_set(err, "no memory for a socket");
		close(fd);
		return NULL;
	}
	listener->host = host;
	listener->fd = fd;
	listener->is_unix = is_unix;
	listener->watch = watch_new(host->loop, fd, on_connection, listener, err);
	listener->retry_timer = timer_new(host->loop, on_retry, listener);
	if (listener->watch == NULL || listener->retry_timer == NULL)
		listener_close(&listener);
	return listener;
}

struct listener *listener_open(struct host *host, const struct listen_config *config, struct err *err)
{
	int family = config->address.sockaddr.ss_family;
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct listener *listener;

	if (fd < 0) {
		err_set_errno(err, errno, "%s", config->address.text);
		return NULL;
	}
	listener = listener_new(host, fd, family == AF_UNIX, err);
	if (listener == NULL)
		return NULL;
	listener->config = config;
	check_backlog(config);
	if ((listener->is_unix ? bind_unix(listener, err) : bind_tcp(listener, err)) < 0)
		listener_close(&listener);
	return listener;
}

bool listener_is_at(const struct listener *listener, const struct listen_config *config)
{
	return listener->config != NULL && listener->config->address.sockaddr_len == config->address.sockaddr_len &&
		memcmp(&listener->config->address.sockaddr, &config->address.sockaddr, config->address.sockaddr_len) == 0;
}

bool listener_has_file(const struct listener *listener)
{
	struct stat st;

	return !listener->is_unix || (lstat(socket_path(listener->config), &st) == 0 &&
		st.st_dev == listener->device && st.st_ino == listener->inode);
}

void listener_update(struct listener *listener, const struct listen_config *config)
{
	bool has_new_backlog = listener->config->backlog != config->backlog;

	if (listener->config == config)
		return;
	listener->config = config;
	listener->has_said_refused = false;
	if (has_new_backlog)
		listen(listener->fd, (int)config->backlog);
}

int listener_check_inherited(int fd, struct err *err)
{
	int value = 0;
	socklen_t len = sizeof(value);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &len) < 0 || value != SOCK_STREAM)
		return err_set(err, "descriptor %d is no stream socket", fd);
	len = sizeof(value);
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &len) < 0 || value == 0)
		return err_set(err, "descriptor %d does not listen", fd);
	return 0;
}

struct listener *listener_adopt(struct host *host, int fd, struct err *err)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);

	if (listener_check_inherited(fd, err) < 0 || getsockname(fd, (struct sockaddr *)&address, &len) < 0) {
		close(fd);
		return NULL;
	}
	return listener_new(host, fd, address.ss_family == AF_UNIX, err);
}

unsigned listener_backlog(const struct listener *listener)
{
	return listener->config == NULL ? 0 : listener->config->backlog;
}

bool listener_is_paused(const struct listener *listener)
{
	return listener->is_paused;
}

static void remove_file(struct listener *listener)
{
	if (listener->inode != 0 && listener_has_file(listener))
		unlink(socket_path(listener->config));
	listener->inode = 0;
}

void listener_drain(struct listener *listener)
{
	unsigned most = listener->config == NULL ? 0 : listener->config->backlog + 1;

	remove_file(listener);
	/* A port goes on taking connections while we do. */
	while (most-- > 0 && accept_one(listener))
		;
}

void listener_close(struct listener **listener_ptr)
{
	struct listener *listener = *listener_ptr;

	if (listener == NULL)
		return;
	watch_free(&listener->watch);
	timer_free(&listener->retry_timer);
	close(listener->fd);
	remove_file(listener);
	free(listener);
	*listener_ptr = NULL;
}
