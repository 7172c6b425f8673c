#include "serve/fastcgi_link.h"

#include "base/tcp.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static void on_event(void *ctx, int events)
{
	struct fastcgi_link *link = ctx;

	if (link->owner != NULL) {
		link->on_event(link->owner, events);
		return;
	}
	/* A kept one has nothing to say but its end. */
	link->worker->link = NULL;
	fastcgi_link_close(&link);
}

/* 0, or errno. */
static int connect_to(struct fastcgi_link *link, const void *address, socklen_t address_len)
{
	if (connect(link->fd, address, address_len) == 0)
		return 0;
	link->is_connecting = errno == EINPROGRESS;
	return link->is_connecting ? 0 : errno;
}

struct fastcgi_link *fastcgi_link_open(struct loop *loop, struct worker *worker, const struct address *address,
	bool *is_full_out, struct err *err)
{
	const void *sockaddr = worker != NULL ? (const void *)&worker->address : &address->sockaddr;
	socklen_t sockaddr_len = worker != NULL ? sizeof(worker->address) : address->sockaddr_len;
	struct fastcgi_link *link = calloc(1, sizeof(*link));
	int errnum;

	if (link == NULL) {
		err_set(err, "no memory for a connection");
		return NULL;
	}
	link->worker = worker;
	link->fd = socket(((const struct sockaddr *)sockaddr)->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (link->fd < 0) {
		err_set_errno(err, errno, "socket for a worker");
		free(link);
		return NULL;
	}
	if (worker == NULL)
		tcp_tune(link->fd);
	errnum = connect_to(link, sockaddr, sockaddr_len);
	if (errnum != 0) {
		*is_full_out = errnum == EAGAIN;
		err_set_errno(err, errnum, "connect to %s", worker != NULL ? worker->address.sun_path : address->text);
		fastcgi_link_close(&link);
		return NULL;
	}
	link->watch = watch_new(loop, link->fd, on_event, link, err);
	if (link->watch == NULL)
		fastcgi_link_close(&link);
	return link;
}

void fastcgi_link_close(struct fastcgi_link **link)
{
	if (*link == NULL)
		return;
	watch_close(&(*link)->watch, &(*link)->fd);
	free(*link);
	*link = NULL;
}

int fastcgi_link_connected(struct fastcgi_link *link)
{
	int errnum = 0;
	socklen_t len = sizeof(errnum);

	getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &errnum, &len);
	link->is_connecting = errnum != 0;
	return errnum;
}

static bool is_alive(const struct fastcgi_link *link)
{
	char byte;

	return recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

struct fastcgi_link *fastcgi_link_take(struct worker *worker)
{
	struct fastcgi_link *link = worker->link;

	worker->link = NULL;
	if (link != NULL && !is_alive(link))
		fastcgi_link_close(&link);
	return link;
}

/* The worker's. */
static void close_kept(void *ctx)
{
	struct fastcgi_link *link = ctx;

	fastcgi_link_close(&link);
}

void fastcgi_link_keep(struct fastcgi_link **link)
{
	struct worker *worker = (*link)->worker;

	(*link)->owner = NULL;
	watch_set((*link)->watch, WATCH_READ);
	worker->link = *link;
	worker->close_link = close_kept;
	*link = NULL;
}

bool fastcgi_link_is_all_taken(const struct fastcgi_link *link)
{
	int unread = 0;

	return ioctl(link->fd, SIOCOUTQ, &unread) == 0 && unread == 0;
}

size_t fastcgi_link_unread_bytes(const struct fastcgi_link *link)
{
	int unread = 0;

	return ioctl(link->fd, FIONREAD, &unread) == 0 && unread > 0 ? (size_t)unread : 0;
}
