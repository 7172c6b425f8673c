#include "serve/listener.h"

#include "base/log.h"
#include "serve/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static const char *path_of(const struct listen_config *config)
{
	return ((const struct sockaddr_un *)&config->address.sockaddr)->sun_path;
}

/* Descriptors. */

static int descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > 1 << 30)
		return 1 << 30;
	return (int)limit.rlim_cur;
}

static void pause_accepting(struct listener *listener, const char *why)
{
	if (!listener->is_paused)
		log_message(LOG_LEVEL_WARNING, "listener_paused", "%s: no new connections until descriptors are freed: %s (limit %d)",
			listener->config == NULL ? "inherited socket" : listener->config->address.text, why, descriptor_limit());
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

/* Accepting. */

static bool is_allowed(const struct listener *listener, const struct sockaddr *peer)
{
	const struct listen_config *config = listener->config;

	if (listener->is_unix || config == NULL || config->allow_count == 0)
		return true;
	for (size_t i = 0; i < config->allow_count; i++)
		if (prefix_contains(&config->allow[i], peer))
			return true;
	return false;
}

static void refuse(struct listener *listener, int fd)
{
	if (!listener->has_said_refused)
		log_message(LOG_LEVEL_WARNING, "refused", "%s: a connection from an address that `allow` does not contain (said once)",
			listener->config->address.text);
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
		refuse(listener, fd);
		return true;
	}
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
			listener->config == NULL ? "inherited socket" : listener->config->address.text);
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

static pid_t owner_of(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 ? cred.pid : 0;
}

/* 0: the path is free, or holds a dead socket. */
static int check_path(const struct listen_config *config, struct err *err)
{
	const char *path = path_of(config);
	struct stat st;
	int status, fd;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_set_errno(err, errno, "%s", config->address.text);
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, "%s: there is a file that is no socket: remove it or listen elsewhere", config->address.text);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_set_errno(err, errno, "%s", config->address.text);
	status = connect(fd, (const struct sockaddr *)&config->address.sockaddr, config->address.sockaddr_len);
	if (status == 0)
		err_set(err, "%s: address in use: process %d serves there", config->address.text, (int)owner_of(fd));
	else if (errno == EAGAIN)
		err_set(err, "%s: address in use by a process that is busy", config->address.text);
	else if (errno != ECONNREFUSED)
		err_set_errno(err, errno, "%s", config->address.text);
	else
		status = 1;
	close(fd);
	return status == 1 ? 0 : -1;
}

/* Made beside the path with its final rights and then moved there, so that
 * nobody meets it with wider ones, and a dead socket is replaced at once. */
static int bind_unix(struct listener *listener, struct err *err)
{
	const struct listen_config *config = listener->config;
	struct sockaddr_un beside = { .sun_family = AF_UNIX };
	struct stat st;
	mode_t old_mask;
	int status;

	if (check_path(config, err) < 0)
		return -1;
	if ((size_t)snprintf(beside.sun_path, sizeof(beside.sun_path), "%s.%d", path_of(config), (int)getpid()) >= sizeof(beside.sun_path))
		return err_set(err, "%s: path too long for a socket", config->address.text);
	unlink(beside.sun_path);
	old_mask = umask(0777);
	status = bind(listener->fd, (struct sockaddr *)&beside, sizeof(beside));
	umask(old_mask);
	if (status < 0)
		return err_set_errno(err, errno, "%s", config->address.text);
	if (listen(listener->fd, (int)config->backlog) < 0 ||
	    ((config->owner != (uid_t)-1 || config->group != (gid_t)-1) && chown(beside.sun_path, config->owner, config->group) < 0) ||
	    chmod(beside.sun_path, (mode_t)config->mode) < 0 || stat(beside.sun_path, &st) < 0 ||
	    rename(beside.sun_path, path_of(config)) < 0) {
		err_set_errno(err, errno, "%s", config->address.text);
		unlink(beside.sun_path);
		return -1;
	}
	listener->device = st.st_dev;
	listener->inode = st.st_ino;
	return 0;
}

static int bind_tcp(struct listener *listener, struct err *err)
{
	const struct listen_config *config = listener->config;
	int on = 1;

	setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener->fd, (const struct sockaddr *)&config->address.sockaddr, config->address.sockaddr_len) < 0 ||
	    listen(listener->fd, (int)config->backlog) < 0)
		return err_set_errno(err, errno, "%s", config->address.text);
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
	if ((listener->is_unix ? bind_unix(listener, err) : bind_tcp(listener, err)) < 0)
		listener_close(&listener);
	return listener;
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

void listener_close(struct listener **listener_ptr)
{
	struct listener *listener = *listener_ptr;
	struct stat st;

	if (listener == NULL)
		return;
	watch_free(&listener->watch);
	timer_free(&listener->retry_timer);
	close(listener->fd);
	if (listener->inode != 0 && lstat(path_of(listener->config), &st) == 0 &&
	    st.st_dev == listener->device && st.st_ino == listener->inode)
		unlink(path_of(listener->config));
	free(listener);
	*listener_ptr = NULL;
}
