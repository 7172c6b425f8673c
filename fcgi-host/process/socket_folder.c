#include "process/socket_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARENT_MAX_BYTES = 64 };

static int make_in(char path_out[SOCKET_FOLDER_BYTES], const char *parent)
{
	if (parent == NULL || parent[0] != '/' || strlen(parent) > PARENT_MAX_BYTES)
		return -1;
	snprintf(path_out, SOCKET_FOLDER_BYTES, "%s/fcgi-host.XXXXXX", parent);
	if (mkdtemp(path_out) != NULL)
		return 0;
	path_out[0] = '\0';
	return -1;
}

int socket_folder_make(char path_out[SOCKET_FOLDER_BYTES], const struct identity *user, struct err *err)
{
	const char *const parents[] = { getenv("RUNTIME_DIRECTORY"), getenv("XDG_RUNTIME_DIR"), "/dev/shm", "/tmp" };
	size_t i = 0;

	path_out[0] = '\0';
	while (i < sizeof(parents) / sizeof(parents[0]) && make_in(path_out, parents[i]) < 0)
		i++;
	if (path_out[0] == '\0')
		return err_set_errno(err, errno, "folder for workers' sockets in /tmp");
	if (user->is_set && geteuid() == 0 && chown(path_out, user->uid, user->gid) < 0) {
		err_set_errno(err, errno, "%s", path_out);
		rmdir(path_out);
		path_out[0] = '\0';
		return -1;
	}
	return 0;
}

/* Its owner may have put anything in its place: nothing is followed. */
void socket_folder_remove(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (folder == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(folder)) != NULL)
		unlinkat(fd, entry->d_name, 0);
	closedir(folder);
	rmdir(path);
}
