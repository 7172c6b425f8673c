#include "process/shim_link.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD_BYTES = 5, FDS_MAX = 4, PIECE_BYTES = 4096 };

static void end(struct shim_link *link)
{
	watch_free(&link->watch);
	link->on_end(link->ctx);
}

/* Length of the first message with its head; 0: not whole yet; -1: nonsense. */
static long message_len(const struct bytes *in)
{
	const uint8_t *head = bytes_data(in);
	uint32_t len;

	if (in->len < HEAD_BYTES)
		return 0;
	len = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
	if (len < 1 || len > SHIM_MESSAGE_MAX_BYTES)
		return -1;
	return in->len < len + 4 ? 0 : (long)len + 4;
}

/* false when the link has ended. */
static bool take_messages(struct shim_link *link)
{
	long len;

	while ((len = message_len(&link->in)) > 0) {
		const char *data = (const char *)bytes_data(&link->in);

		link->on_message(link->ctx, data[4], (struct slice){ data + HEAD_BYTES, (size_t)len - HEAD_BYTES });
		if (link->fd < 0)
			return false;
		bytes_consume(&link->in, (size_t)len);
	}
	if (len < 0)
		end(link);
	return len == 0;
}

/* true while there may be more. */
static bool read_some(struct shim_link *link)
{
	char piece[PIECE_BYTES];
	ssize_t n = recv(link->fd, piece, sizeof(piece), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n < 0 && errno == ECONNRESET)
		link->was_reset = true;
	if (n <= 0 || bytes_append(&link->in, piece, (size_t)n) < 0) {
		end(link);
		return false;
	}
	return take_messages(link);
}

static void on_socket(void *ctx, int events)
{
	(void)events;
	read_some(ctx);
}

int shim_link_open(struct shim_link *link, struct loop *loop, int *theirs_out, struct err *err)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return err_set_errno(err, errno, "socket for a process that waits");
	link->fd = fds[0];
	*theirs_out = fds[1];
	bytes_init(&link->in, SHIM_MESSAGE_MAX_BYTES + PIECE_BYTES + HEAD_BYTES);
	link->watch = watch_new(loop, link->fd, on_socket, link, err);
	if (link->watch == NULL)
		return -1;
	watch_set(link->watch, WATCH_READ);
	return 0;
}

void shim_link_close(struct shim_link *link)
{
	if (link->fd < 0)
		return;
	watch_free(&link->watch);       /* first: the spawner holds this end too */
	close(link->fd);
	link->fd = -1;
	bytes_fini(&link->in);
}

void shim_link_pause(struct shim_link *link)
{
	if (link->watch != NULL)
		watch_set(link->watch, 0);
}

void shim_link_read_last(struct shim_link *link)
{
	for (int i = 0; i < 64 && link->fd >= 0 && link->watch != NULL && read_some(link); i++)
		;
}

int shim_link_send_fds(struct shim_link *link, char type, const int *fds, unsigned fds_count)
{
	union { struct cmsghdr align; char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))]; } control = { 0 };
	char message[HEAD_BYTES] = { 0, 0, 0, 1, type };
	struct iovec iov = { message, sizeof(message) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = CMSG_SPACE(fds_count * sizeof(int)) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(fds_count * sizeof(int));
	memcpy(CMSG_DATA(cmsg), fds, fds_count * sizeof(int));
	return sendmsg(link->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(message) ? 0 : -1;
}
