/*
 * park_message.c - the messages between the host and a waiting process:
 * four bytes of length, one of type, the payload.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "park.h"

enum {
	USUAL_SIZE = 64 * 1024,
	LENGTH_MAX = 64 * 1024 * 1024    /* of what the host may send: far over its own params.max */
};

static struct {
	char *bytes;
	size_t size;
} buffer;

static bool buffer_fit(size_t size)
{
	if (size <= buffer.size)
		return true;
	char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (bytes == MAP_FAILED)
		return false;
	if (buffer.bytes)
		munmap(buffer.bytes, buffer.size);
	buffer.bytes = bytes;
	buffer.size = size;
	return true;
}

void park_message_prepare(void)
{
	buffer_fit(USUAL_SIZE);
}

static void take_descriptors(struct msghdr *header, struct park_message *message)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (message->descriptor_count < PARK_DESCRIPTORS_MAX)
				message->descriptors[message->descriptor_count++] = fd;
			else
				close(fd);
		}
	}
}

static bool receive_bytes(int control, void *bytes, size_t length, struct park_message *message)
{
	char *at = bytes;

	while (length > 0) {
		char room[CMSG_SPACE(PARK_DESCRIPTORS_MAX * sizeof(int))];
		struct iovec piece = {.iov_base = at, .iov_len = length};
		struct msghdr header = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
		ssize_t got = recvmsg(control, &header, MSG_CMSG_CLOEXEC);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		take_descriptors(&header, message);
		at += got;
		length -= (size_t)got;
	}
	return true;
}

void park_receive(int control, struct park_message *message_out)
{
	unsigned char head[5];

	*message_out = (struct park_message){0};
	if (!receive_bytes(control, head, sizeof head, message_out))
		return;
	size_t length = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
	/* One more byte than the payload: the end of its last string. */
	if (length < 1 || length > LENGTH_MAX || !buffer_fit(length))
		return;
	if (!receive_bytes(control, buffer.bytes, length - 1, message_out))
		return;
	buffer.bytes[length - 1] = '\0';
	message_out->text = buffer.bytes;
	message_out->length = length - 1;
	message_out->type = (char)head[4];
}

void park_send(int control, char type, const void *payload, size_t length)
{
	uint32_t total = (uint32_t)length + 1;
	unsigned char head[5] = {total >> 24, total >> 16, total >> 8, total, (unsigned char)type};
	struct iovec pieces[2] = {{.iov_base = head, .iov_len = sizeof head}, {.iov_base = (void *)payload, .iov_len = length}};
	struct msghdr header = {.msg_iov = pieces, .msg_iovlen = 2};

	/* All of it goes at once into the empty buffer of a socket; what does not is from a host that
	 * does not read, and blocks. */
	while (header.msg_iovlen > 0) {
		ssize_t sent = sendmsg(control, &header, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return;
		while (header.msg_iovlen > 0 && (size_t)sent >= header.msg_iov->iov_len) {
			sent -= (ssize_t)header.msg_iov->iov_len;
			header.msg_iov++;
			header.msg_iovlen--;
		}
		if (header.msg_iovlen > 0) {
			header.msg_iov->iov_base = (char *)header.msg_iov->iov_base + sent;
			header.msg_iov->iov_len -= (size_t)sent;
		}
	}
}
