#include "serve/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FREED_AT_ONCE_BYTES = 1024 * 1024 };

void spool_init(struct spool *spool)
{
	*spool = (struct spool){ .fd = -1 };
	bytes_init(&spool->memory, SPOOL_MEMORY_BYTES);
}

void spool_fini(struct spool *spool)
{
	bytes_fini(&spool->memory);
	if (spool->fd >= 0)
		close(spool->fd);
	spool->fd = -1;
	spool->read = spool->written = spool->freed = 0;
}

static uint64_t in_file(const struct spool *spool)
{
	return spool->written - spool->read;
}

uint64_t spool_waiting(const struct spool *spool)
{
	return spool->memory.len + in_file(spool);
}

static int open_file(struct spool *spool, struct err *err)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];

	if (folder == NULL || folder[0] != '/')
		folder = "/tmp";
	spool->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (spool->fd >= 0)
		return 0;
	snprintf(path, sizeof(path), "%s/fcgi-host.XXXXXX", folder);
	spool->fd = mkostemp(path, O_CLOEXEC);
	if (spool->fd < 0)
		return err_set_errno(err, errno, "temporary file in %s", folder);
	unlink(path);
	return 0;
}

static int write_file(struct spool *spool, const char *data, size_t len, struct err *err)
{
	if (spool->fd < 0 && open_file(spool, err) < 0)
		return -1;
	while (len > 0) {
		ssize_t n = pwrite(spool->fd, data, len, (off_t)spool->written);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set_errno(err, n == 0 ? ENOSPC : errno, "temporary file");
		data += n;
		len -= (size_t)n;
		spool->written += (uint64_t)n;
	}
	return 0;
}

int spool_put(struct spool *spool, const void *data, size_t len, struct err *err)
{
	size_t in_memory = 0;

	if (in_file(spool) == 0)
		in_memory = len < bytes_room(&spool->memory) ? len : bytes_room(&spool->memory);
	if (bytes_append(&spool->memory, data, in_memory) < 0)
		return err_set(err, "no memory for a body");
	if (in_memory == len)
		return 0;
	return write_file(spool, (const char *)data + in_memory, len - in_memory, err);
}

/* The file is no larger than what waits in it.  Where a file system cannot make
 * holes, only an empty one gives back its space. */
static void free_file(struct spool *spool)
{
	if (spool->read == spool->written) {
		if (ftruncate(spool->fd, 0) == 0)
			spool->read = spool->written = spool->freed = 0;
	} else if (spool->read - spool->freed >= FREED_AT_ONCE_BYTES) {
		fallocate(spool->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)spool->freed,
			(off_t)(spool->read - spool->freed));
		spool->freed = spool->read;
	}
}

static int read_file(struct spool *spool, struct err *err)
{
	uint64_t want = in_file(spool) < SPOOL_MEMORY_BYTES ? in_file(spool) : SPOOL_MEMORY_BYTES;
	uint8_t *room = bytes_reserve(&spool->memory, (size_t)want);
	ssize_t n;

	if (room == NULL)
		return err_set(err, "no memory for a body");
	n = pread(spool->fd, room, (size_t)want, (off_t)spool->read);
	if (n <= 0)
		return err_set_errno(err, n == 0 ? EIO : errno, "temporary file");
	bytes_commit(&spool->memory, (size_t)n);
	spool->read += (uint64_t)n;
	free_file(spool);
	return 0;
}

int spool_peek(struct spool *spool, struct slice *out, struct err *err)
{
	if (spool->memory.len == 0 && in_file(spool) > 0 && read_file(spool, err) < 0)
		return -1;
	*out = (struct slice){ (const char *)bytes_data(&spool->memory), spool->memory.len };
	return 0;
}

void spool_consume(struct spool *spool, size_t len)
{
	bytes_consume(&spool->memory, len);
	bytes_release(&spool->memory);
}
