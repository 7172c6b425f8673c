/* Asks the running host over its control socket. */
#include "cli/cli.h"

#include "serve/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int exchange(int fd, const char *question, struct bytes *answer, struct err *err)
{
	char piece[4096];
	ssize_t n;

	if (send(fd, question, strlen(question), MSG_NOSIGNAL) < 0 && errno != EPIPE)
		return err_set_errno(err, errno, "control socket");
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		if (bytes_append(answer, piece, (size_t)n) < 0)
			return err_set(err, "no memory for the answer");
	if (n < 0 && errno != ECONNRESET)
		return err_set_errno(err, errno, "control socket");
	if (answer->len == 0)
		return err_set(err, "the host does not answer: it has ended, or you are neither root nor the user that serves");
	return 0;
}

/* Anybody may take the name of a host that does not run.  Root, we ourselves and
 * the configuration's owner are believed; of others it is said who they are, since
 * a host may well run as somebody who owns nothing. */
static void say_who(int fd, const char *file)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct stat st;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.uid == 0 || cred.uid == geteuid() ||
	    (stat(file, &st) == 0 && cred.uid == st.st_uid))
		return;
	fprintf(stderr, "fcgi-host: process %d of user %u answers as the host with %s\n", (int)cred.pid, (unsigned)cred.uid, file);
}

int cli_ask(const char *file, const char *question, struct bytes *answer, struct err *err)
{
	struct sockaddr_un address;
	socklen_t len = control_address(file, &address);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int status;

	if (fd < 0)
		return err_set_errno(err, errno, "socket");
	if (connect(fd, (struct sockaddr *)&address, len) < 0) {
		status = err_set(err, "no host runs with %s", file);
	} else {
		say_who(fd, file);
		status = exchange(fd, question, answer, err);
	}
	close(fd);
	return status;
}
