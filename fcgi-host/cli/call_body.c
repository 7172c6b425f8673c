#include "cli/call_body.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_BYTES = 32768 };

/* The descriptor of a temporary file, at its beginning; `file` is closed. */
static int end_spool(FILE *file, bool is_whole, struct err *err)
{
	int fd = -1;

	if (file != NULL && is_whole && fflush(file) == 0)
		fd = dup(fileno(file));
	if (fd < 0 || lseek(fd, 0, SEEK_SET) != 0)
		err_set_errno(err, errno, "the body cannot be stored");
	if (file != NULL)
		fclose(file);
	return fd;
}

static int spool_text(const char *text, struct err *err)
{
	FILE *file = tmpfile();

	return end_spool(file, file != NULL && fputs(text, file) >= 0, err);
}

static int spool_stream(int from, struct err *err)
{
	FILE *file = tmpfile();
	char piece[PIECE_BYTES];
	ssize_t got = -1;

	while (file != NULL && (got = read(from, piece, sizeof(piece))) > 0)
		if (fwrite(piece, 1, (size_t)got, file) != (size_t)got)
			break;
	return end_spool(file, got == 0, err);
}

static int open_file(const char *file, struct err *err)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC), spooled;
	struct stat st;

	if (fd < 0)
		return err_set_errno(err, errno, "%s", file);
	if (fstat(fd, &st) != 0 || S_ISREG(st.st_mode))
		return fd;
	spooled = spool_stream(fd, err);
	close(fd);
	return spooled;
}

int call_body_open(const char *data, uint64_t *size_bytes_out, struct err *err)
{
	struct stat st;
	int fd;

	if (data[0] != '@')
		fd = spool_text(data, err);
	else if (strcmp(data, "@-") == 0)
		fd = spool_stream(STDIN_FILENO, err);
	else
		fd = open_file(data + 1, err);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) != 0) {
		err_set_errno(err, errno, "the body cannot be read");
		close(fd);
		return -1;
	}
	*size_bytes_out = (uint64_t)st.st_size;
	return fd;
}
