/*
 * bridge.c - `fcgi-host bridge`: what mod_fcgid starts.  Passes every connection
 * on to the one running host, which it starts if none runs, so that any number
 * of copies share one set of workers.
 */
#include "cli/cli.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/tcp.h"
#include "config/config.h"
#include "serve/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

enum {
	WINDOW_BYTES = 64 * 1024,       /* in each direction of a connection */
	RETRY_MS = 20,                  /* while the host starts */
	ACCEPT_RETRY_MS = 1000,         /* when there is no descriptor, and the shortage is somebody else's */
	START_WAIT_MS = 10000,          /* for a host that we started to listen */
};

enum side { SIDE_FRONT, SIDE_HOST, SIDES };

struct bridge {
	const char *file;               /* the configuration's */
	const struct config *config;
	struct loop *loop;
	struct watch *listen_watch;     /* NULL once it is told to stop */
	struct timer *accept_timer;
	struct tunnel *tunnels;
	pid_t started;                  /* the host that we started; 0: none */
};

/* One connection of the web server and its counterpart to the host. */
struct tunnel {
	struct bridge *bridge;
	int fds[SIDES];                 /* fds[SIDE_HOST] is -1 until the host is there */
	struct watch *watches[SIDES];
	struct bytes from[SIDES];       /* read from that side, for the other */
	bool is_connecting;             /* to the host */
	bool has_ended[SIDES];          /* nothing more comes from that side */
	bool is_shut[SIDES];            /* nothing more goes to that side */
	struct timer *retry_timer;
	uint64_t begun_ns;
	struct tunnel *next, *prev;
};

static void on_front(void *ctx, int events);
static void on_host(void *ctx, int events);
static void on_connected(struct tunnel *tunnel);

static void tunnel_close(struct tunnel *tunnel)
{
	struct bridge *bridge = tunnel->bridge;

	if (tunnel->prev != NULL)
		tunnel->prev->next = tunnel->next;
	else
		bridge->tunnels = tunnel->next;
	if (tunnel->next != NULL)
		tunnel->next->prev = tunnel->prev;
	timer_free(&tunnel->retry_timer);
	for (int side = 0; side < SIDES; side++) {
		watch_free(&tunnel->watches[side]);
		bytes_fini(&tunnel->from[side]);
		if (tunnel->fds[side] >= 0)
			close(tunnel->fds[side]);
	}
	free(tunnel);
	if (bridge->listen_watch != NULL)
		watch_set(bridge->listen_watch, WATCH_READ);
	if (bridge->tunnels == NULL && bridge->listen_watch == NULL)
		loop_stop(bridge->loop);
}

/* Moving bytes. */

static void set_events(struct tunnel *tunnel, enum side side)
{
	const struct bytes *out = &tunnel->from[side == SIDE_FRONT ? SIDE_HOST : SIDE_FRONT];
	int events = 0;

	if (tunnel->watches[side] == NULL)
		return;
	if (!tunnel->has_ended[side] && bytes_room(&tunnel->from[side]) > 0)
		events |= WATCH_READ;
	if (out->len > 0)
		events |= WATCH_WRITE;
	if (side == SIDE_HOST && tunnel->is_connecting)
		events = WATCH_WRITE;
	watch_set(tunnel->watches[side], events);
}

static bool is_hung_up(int fd)
{
	struct pollfd pfd = { .fd = fd };

	return poll(&pfd, 1, 0) < 0 || (pfd.revents & (POLLHUP | POLLERR)) != 0;
}

/* -1: the connection is of no use any more. */
static int pull(struct tunnel *tunnel, enum side side)
{
	struct bytes *from = &tunnel->from[side];
	size_t room = bytes_room(from);
	uint8_t *at = room > 0 ? bytes_reserve(from, room) : NULL;
	ssize_t n;

	if (at == NULL)
		return room > 0 ? -1 : 0;
	n = read(tunnel->fds[side], at, room);
	if (n > 0) {
		bytes_commit(from, (size_t)n);
		return 0;
	}
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	tunnel->has_ended[side] = true;
	/* A web server that has gone, not just said all, aborts its request. */
	return side == SIDE_FRONT && is_hung_up(tunnel->fds[side]) ? -1 : 0;
}

static int push(struct tunnel *tunnel, enum side side)
{
	enum side other = side == SIDE_FRONT ? SIDE_HOST : SIDE_FRONT;
	struct bytes *out = &tunnel->from[other];
	ssize_t n;

	if (tunnel->fds[side] < 0 || (side == SIDE_HOST && tunnel->is_connecting))
		return 0;
	if (out->len > 0) {
		n = send(tunnel->fds[side], bytes_data(out), out->len, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -1;
		if (n > 0)
			bytes_consume(out, (size_t)n);
	}
	if (out->len == 0)
		bytes_release(out);
	if (out->len == 0 && tunnel->has_ended[other] && !tunnel->is_shut[side]) {
		tunnel->is_shut[side] = true;
		shutdown(tunnel->fds[side], SHUT_WR);
	}
	return 0;
}

static void move_bytes(struct tunnel *tunnel, enum side side, int events)
{
	enum side other = side == SIDE_FRONT ? SIDE_HOST : SIDE_FRONT;

	if (((events & WATCH_READ) && pull(tunnel, side) < 0) || push(tunnel, other) < 0 || push(tunnel, side) < 0 ||
	    (tunnel->is_shut[SIDE_FRONT] && tunnel->is_shut[SIDE_HOST])) {
		tunnel_close(tunnel);
		return;
	}
	set_events(tunnel, SIDE_FRONT);
	set_events(tunnel, SIDE_HOST);
}

static void on_front(void *ctx, int events)
{
	move_bytes(ctx, SIDE_FRONT, events);
}

static void on_host(void *ctx, int events)
{
	struct tunnel *tunnel = ctx;

	if (tunnel->is_connecting)
		on_connected(tunnel);
	else
		move_bytes(tunnel, SIDE_HOST, events);
}

/* The host. */

static void on_host_gone(uv_signal_t *handle, int signal)
{
	struct bridge *bridge = handle->data;

	(void)signal;
	if (bridge->started > 0 && waitpid(bridge->started, NULL, WNOHANG) != 0)
		bridge->started = 0;
}

/* In a session of its own, so that Apache's signals to its group do not reach
 * it.  When several bridges start one at once, all but the first find the
 * address in use and go. */
static void start_host(struct bridge *bridge)
{
	char *argv[] = { (char *)"fcgi-host", (char *)"serve", (char *)"-c", (char *)bridge->file, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int status;

	if (bridge->started > 0)
		return;
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	status = posix_spawn(&bridge->started, "/proc/self/exe", &actions, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	if (status != 0) {
		bridge->started = 0;
		log_message(LOG_LEVEL_ERROR, "bridge", "cannot start the host: %s", strerror(status));
	}
}

/* Never waits: a full backlog of a unix socket is EAGAIN, one of a port shows as
 * a connection that is not made yet. */
static int connect_host(const struct bridge *bridge, bool *is_connecting_out)
{
	const struct address *address = &bridge->config->listen[0].address;
	int fd = socket(address->sockaddr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int errnum;

	if (fd < 0)
		return -1;
	tcp_tune(fd);
	*is_connecting_out = false;
	if (connect(fd, (const struct sockaddr *)&address->sockaddr, address->sockaddr_len) == 0)
		return fd;
	errnum = errno;
	*is_connecting_out = errnum == EINPROGRESS;
	if (*is_connecting_out)
		return fd;
	close(fd);
	errno = errnum;
	return -1;
}

static uint64_t waited_ms(const struct tunnel *tunnel)
{
	return (clock_monotonic_ns() - tunnel->begun_ns) / 1000000;
}

static void connect_again(struct tunnel *tunnel, int errnum)
{
	if (waited_ms(tunnel) >= START_WAIT_MS) {
		log_message(LOG_LEVEL_ERROR, "bridge", "no host at %s: %s", tunnel->bridge->config->listen[0].address.text, strerror(errnum));
		tunnel_close(tunnel);
		return;
	}
	if (errnum == ENOENT || errnum == ECONNREFUSED)
		start_host(tunnel->bridge);
	timer_set(tunnel->retry_timer, RETRY_MS);
}

static void on_connected(struct tunnel *tunnel)
{
	int errnum = 0;
	socklen_t len = sizeof(errnum);

	getsockopt(tunnel->fds[SIDE_HOST], SOL_SOCKET, SO_ERROR, &errnum, &len);
	tunnel->is_connecting = false;
	timer_clear(tunnel->retry_timer);
	if (errnum == 0) {
		move_bytes(tunnel, SIDE_FRONT, 0);
		return;
	}
	watch_close(&tunnel->watches[SIDE_HOST], &tunnel->fds[SIDE_HOST]);
	connect_again(tunnel, errnum);
}

static void try_connect(void *ctx)
{
	struct tunnel *tunnel = ctx;
	uint64_t waited = waited_ms(tunnel);
	int fd;

	if (tunnel->is_connecting) {
		connect_again(tunnel, ETIMEDOUT);
		return;
	}
	fd = connect_host(tunnel->bridge, &tunnel->is_connecting);
	if (fd < 0) {
		connect_again(tunnel, errno);
		return;
	}
	tunnel->fds[SIDE_HOST] = fd;
	tunnel->watches[SIDE_HOST] = watch_new(tunnel->bridge->loop, fd, on_host, tunnel, NULL);
	if (tunnel->watches[SIDE_HOST] == NULL) {
		tunnel_close(tunnel);
		return;
	}
	if (tunnel->is_connecting)
		timer_set(tunnel->retry_timer, waited < START_WAIT_MS ? START_WAIT_MS - waited : 0);
	move_bytes(tunnel, SIDE_FRONT, 0);
}

/* The web server. */

static void tunnel_open(struct bridge *bridge, int fd)
{
	struct tunnel *tunnel = calloc(1, sizeof(*tunnel));

	if (tunnel == NULL) {
		close(fd);
		return;
	}
	tunnel->bridge = bridge;
	tunnel->fds[SIDE_FRONT] = fd;
	tunnel->fds[SIDE_HOST] = -1;
	tunnel->begun_ns = clock_monotonic_ns();
	bytes_init(&tunnel->from[SIDE_FRONT], WINDOW_BYTES);
	bytes_init(&tunnel->from[SIDE_HOST], WINDOW_BYTES);
	tunnel->next = bridge->tunnels;
	if (tunnel->next != NULL)
		tunnel->next->prev = tunnel;
	bridge->tunnels = tunnel;
	tunnel->retry_timer = timer_new(bridge->loop, try_connect, tunnel);
	tunnel->watches[SIDE_FRONT] = watch_new(bridge->loop, fd, on_front, tunnel, NULL);
	if (tunnel->retry_timer == NULL || tunnel->watches[SIDE_FRONT] == NULL) {
		tunnel_close(tunnel);
		return;
	}
	set_events(tunnel, SIDE_FRONT);
	try_connect(tunnel);
}

static void on_connection(void *ctx, int events)
{
	struct bridge *bridge = ctx;
	int fd;

	(void)events;
	while ((fd = accept4(STDIN_FILENO, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		tunnel_open(bridge, fd);
	/* Out of descriptors: a connection that closes gives some back. */
	if ((errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) && bridge->listen_watch != NULL) {
		watch_set(bridge->listen_watch, 0);
		timer_set(bridge->accept_timer, ACCEPT_RETRY_MS);
	}
}

static void on_accept_time(void *ctx)
{
	struct bridge *bridge = ctx;

	if (bridge->listen_watch != NULL)
		watch_set(bridge->listen_watch, WATCH_READ);
}

/* Apache stops us in every restart: what has been taken is brought to its end. */
static void on_signal(uv_signal_t *handle, int signal)
{
	struct bridge *bridge = handle->data;

	(void)signal;
	if (bridge->listen_watch == NULL)
		return;
	on_connection(bridge, WATCH_READ);
	watch_free(&bridge->listen_watch);
	if (bridge->tunnels == NULL)
		loop_stop(bridge->loop);
}

static int run(struct bridge *bridge, struct err *err)
{
	static const struct { int number; uv_signal_cb on_signal; } signals[] = {
		{ SIGTERM, on_signal }, { SIGUSR1, on_signal }, { SIGCHLD, on_host_gone } };
	enum { SIGNALS = sizeof(signals) / sizeof(signals[0]) };
	uv_signal_t handles[SIGNALS];

	bridge->loop = loop_new(err);
	if (bridge->loop == NULL)
		return -1;
	bridge->accept_timer = timer_new(bridge->loop, on_accept_time, bridge);
	bridge->listen_watch = watch_new(bridge->loop, STDIN_FILENO, on_connection, bridge, err);
	if (bridge->listen_watch == NULL || bridge->accept_timer == NULL)
		return -1;
	watch_set(bridge->listen_watch, WATCH_READ);
	for (size_t i = 0; i < SIGNALS; i++) {
		uv_signal_init(loop_uv(bridge->loop), &handles[i]);
		handles[i].data = bridge;
		uv_signal_start(&handles[i], signals[i].on_signal, signals[i].number);
	}
	loop_run(bridge->loop);
	for (size_t i = 0; i < SIGNALS; i++)
		uv_close((uv_handle_t *)&handles[i], NULL);
	watch_free(&bridge->listen_watch);
	timer_free(&bridge->accept_timer);
	loop_free(&bridge->loop);
	return 0;
}

int cli_bridge(int argc, char **argv)
{
	struct bridge bridge = { .file = config_default_file() };
	struct config *config;
	struct err err;
	int option, status;

	while ((option = getopt(argc, argv, "c:")) != -1) {
		if (option != 'c')
			return cli_usage("bridge", CLI_BRIDGE_USAGE);
		bridge.file = optarg;
	}
	if (optind != argc)
		return cli_usage("bridge", CLI_BRIDGE_USAGE);
	config = cli_load(bridge.file);
	if (config == NULL)
		return EXIT_MISTAKE;
	if (listener_check_inherited(STDIN_FILENO, &err) < 0) {
		fprintf(stderr, "fcgi-host bridge: descriptor 0 is no listening socket: mod_fcgid or spawn-fcgi must start this command\n");
		config_free(&config);
		return EXIT_MISTAKE;
	}
	bridge.config = config;
	signal(SIGPIPE, SIG_IGN);
	status = run(&bridge, &err);
	if (status < 0)
		fprintf(stderr, "fcgi-host bridge: %s\n", err.text);
	config_free(&config);
	return status < 0 ? EXIT_MISTAKE : EXIT_FINE;
}
