#include "serve/body.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void body_init(struct body *body)
{
	*body = (struct body){ .spool_fd = -1 };
	bytes_init(&body->memory, BODY_MEMORY_BYTES);
}

void body_fini(struct body *body)
{
	bytes_fini(&body->memory);
	if (body->spool_fd >= 0)
		close(body->spool_fd);
	body->spool_fd = -1;
	body->spool_read = body->spool_written = 0;
}

static uint64_t spooled(const struct body *body)
{
	return body->spool_written - body->spool_read;
}

size_t body_room(const struct body *body)
{
	return body->may_spool ? SIZE_MAX : bytes_room(&body->memory);
}

void body_allow_spool(struct body *body)
{
	body->may_spool = true;
}

static int open_spool(struct body *body, struct err *err)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];

	if (folder == NULL || folder[0] != '/')
		folder = "/tmp";
	body->spool_fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (body->spool_fd >= 0)
		return 0;
	snprintf(path, sizeof(path), "%s/fcgi-host.XXXXXX", folder);
	body->spool_fd = mkostemp(path, O_CLOEXEC);
	if (body->spool_fd < 0)
		return err_set_errno(err, errno, "temporary file in %s", folder);
	unlink(path);
	return 0;
}

static int spool(struct body *body, const char *data, size_t len, struct err *err)
{
	if (body->spool_fd < 0 && open_spool(body, err) < 0)
		return -1;
	while (len > 0) {
		ssize_t n = pwrite(body->spool_fd, data, len, (off_t)body->spool_written);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set_errno(err, n == 0 ? ENOSPC : errno, "temporary file for a body");
		data += n;
		len -= (size_t)n;
		body->spool_written += (uint64_t)n;
	}
	return 0;
}

int body_put(struct body *body, const void *data, size_t len, struct err *err)
{
	size_t in_memory = 0;

	body->received_bytes += len;
	if (spooled(body) == 0)
		in_memory = len < bytes_room(&body->memory) ? len : bytes_room(&body->memory);
	if (bytes_append(&body->memory, data, in_memory) < 0)
		return err_set(err, "no memory for a body");
	if (in_memory == len)
		return 0;
	return spool(body, (const char *)data + in_memory, len - in_memory, err);
}

static int refill(struct body *body, struct err *err)
{
	uint64_t want = spooled(body) < BODY_MEMORY_BYTES ? spooled(body) : BODY_MEMORY_BYTES;
	uint8_t *room = bytes_reserve(&body->memory, (size_t)want);
	ssize_t n;

	if (room == NULL)
		return err_set(err, "no memory for a body");
	n = pread(body->spool_fd, room, (size_t)want, (off_t)body->spool_read);
	if (n <= 0)
		return err_set_errno(err, n == 0 ? EIO : errno, "temporary file for a body");
	bytes_commit(&body->memory, (size_t)n);
	body->spool_read += (uint64_t)n;
	return 0;
}

int body_peek(struct body *body, struct slice *out, struct err *err)
{
	if (body->memory.len == 0 && spooled(body) > 0 && refill(body, err) < 0)
		return -1;
	*out = (struct slice){ (const char *)bytes_data(&body->memory), body->memory.len };
	return 0;
}

void body_consume(struct body *body, size_t len)
{
	bytes_consume(&body->memory, len);
	bytes_release(&body->memory);
}

uint64_t body_waiting(const struct body *body)
{
	return body->memory.len + spooled(body);
}

bool body_is_spent(const struct body *body)
{
	return body->is_complete && body_waiting(body) == 0;
}

void body_discard(struct body *body)
{
	body_fini(body);
}
