/*
 * file.c - opens, judges and reads the configuration file.
 */
#include "config/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX_BYTES = 64 * 1024 * 1024 };

static const struct mark whole = { 0, 0 };

static int check_status(const struct stat *status, struct complaints *complaints)
{
	if (!S_ISREG(status->st_mode)) {
		complain(complaints, COMPLAINT_ERROR, whole, NULL, "this is no regular file");
		return -1;
	}
	if (status->st_mode & 022) {
		complain(complaints, COMPLAINT_ERROR, whole, NULL,
			"its mode %04o lets others than its owner write it, and so choose what runs: chmod go-w",
			(unsigned)status->st_mode & 07777);
		return -1;
	}
	if (status->st_uid != 0 && status->st_uid != geteuid()) {
		complain(complaints, COMPLAINT_ERROR, whole, NULL,
			"it belongs to user %u, who could choose what runs: its owner must be root or who runs fcgi-host",
			(unsigned)status->st_uid);
		return -1;
	}
	if (status->st_size > FILE_MAX_BYTES) {
		complain(complaints, COMPLAINT_ERROR, whole, NULL, "it has more than %d bytes", FILE_MAX_BYTES);
		return -1;
	}
	return 0;
}

/* Who may write the folder may put another file in this one's place. */
static int check_folder(const char *path, struct complaints *complaints)
{
	char *real = realpath(path, NULL);
	struct stat status;
	int rc = 0;

	if (real == NULL)
		return 0;
	const char *folder = dirname(real);
	if (stat(folder, &status) == 0 && (status.st_mode & 02) && !(status.st_mode & S_ISVTX)) {
		complain(complaints, COMPLAINT_ERROR, whole, NULL,
			"everyone may write its folder '%s', and so put another file in its place: chmod o-w", folder);
		rc = -1;
	}
	free(real);
	return rc;
}

static int read_all(int fd, size_t size, struct complaints *complaints, char **text_out, size_t *len_out)
{
	char *text = malloc(size + 1);
	size_t len = 0;
	ssize_t n = 1;

	if (text == NULL) {
		complaints->is_out_of_memory = true;
		return -1;
	}
	while (n > 0 && len < size) {
		n = read(fd, text + len, size - len);
		len += n > 0 ? (size_t)n : 0;
	}
	if (n < 0) {
		complain(complaints, COMPLAINT_ERROR, whole, NULL, "cannot read it: %s", strerror(errno));
		free(text);
		return -1;
	}
	*text_out = text;
	*len_out = len;
	return 0;
}

int file_read(const char *path, struct complaints *complaints, char **text_out, size_t *len_out)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &status) != 0) {
		complain(complaints, COMPLAINT_ERROR, whole, NULL, "cannot open it: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	int rc = check_status(&status, complaints);
	if (rc == 0)
		rc = check_folder(path, complaints);
	if (rc == 0)
		rc = read_all(fd, (size_t)status.st_size, complaints, text_out, len_out);
	close(fd);
	return rc;
}
