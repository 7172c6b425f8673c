/* Who listens at an address: the socket's number in /proc/net, and the process that
 * holds a descriptor of that number. */
#include "compare/usage.h"

#include <dirent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static unsigned long tcp_inode(const char *table, unsigned port)
{
	char line[512], local[128];
	FILE *in = fopen(table, "re");
	unsigned long inode = 0, found = 0;
	unsigned state, line_port;

	while (in != NULL && found == 0 && fgets(line, sizeof(line), in) != NULL)
		if (sscanf(line, " %*d: %127[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*u %*u %lu", local, &line_port, &state, &inode) == 4 &&
		    line_port == port && state == 10 /* LISTEN */)
			found = inode;
	if (in != NULL)
		fclose(in);
	return found;
}

static unsigned long unix_inode(const char *path)
{
	char line[512], name[256];
	FILE *in = fopen("/proc/net/unix", "re");
	unsigned long inode = 0, found = 0;

	while (in != NULL && found == 0 && fgets(line, sizeof(line), in) != NULL)
		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %lu %255s", &inode, name) == 2 && strcmp(name, path) == 0)
			found = inode;
	if (in != NULL)
		fclose(in);
	return found;
}

static bool holds(pid_t pid, const char *wanted)
{
	char path[320], link[64];
	bool is_found = false;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	fds = opendir(path);
	for (struct dirent *each; fds != NULL && !is_found && (each = readdir(fds)) != NULL;) {
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, each->d_name);
		len = readlink(path, link, sizeof(link) - 1);
		link[len < 0 ? 0 : len] = '\0';
		is_found = strcmp(link, wanted) == 0;
	}
	if (fds != NULL)
		closedir(fds);
	return is_found;
}

/* The lowest: a master comes before those that it started. */
static pid_t holder_of(unsigned long inode)
{
	char wanted[64];
	DIR *proc = opendir("/proc");
	pid_t found = 0;

	snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
	for (struct dirent *each; proc != NULL && (each = readdir(proc)) != NULL;) {
		pid_t pid = (pid_t)atoi(each->d_name);

		if (pid > 0 && (found == 0 || pid < found) && holds(pid, wanted))
			found = pid;
	}
	if (proc != NULL)
		closedir(proc);
	return found;
}

pid_t usage_listener(const struct sockaddr_storage *address)
{
	const struct sockaddr_un *local = (const struct sockaddr_un *)(const void *)address;
	const struct sockaddr_in *inet = (const struct sockaddr_in *)(const void *)address;
	unsigned long inode = 0;

	if (address->ss_family == AF_UNIX)
		inode = unix_inode(local->sun_path);
	else if (address->ss_family == AF_INET && ntohl(inet->sin_addr.s_addr) >> 24 == 127) {
		inode = tcp_inode("/proc/net/tcp", ntohs(inet->sin_port));
		if (inode == 0)         /* one that takes both families */
			inode = tcp_inode("/proc/net/tcp6", ntohs(inet->sin_port));
	}
	return inode == 0 ? 0 : holder_of(inode);
}
