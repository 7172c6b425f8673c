#include "process/socket_path.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

const char *socket_path(const struct listen_config *config)
{
	return ((const struct sockaddr_un *)&config->address.sockaddr)->sun_path;
}

static pid_t owner_of(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 ? cred.pid : 0;
}

int socket_path_check(const struct listen_config *config, struct err *err)
{
	const char *path = socket_path(config);
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

void socket_path_remove_dead(const struct config *config)
{
	for (size_t i = 0; i < config->listen_count; i++) {
		const struct listen_config *listen = &config->listen[i];

		if (listen->address.sockaddr.ss_family == AF_UNIX && socket_path_check(listen, NULL) == 0)
			unlink(socket_path(listen));
	}
}
