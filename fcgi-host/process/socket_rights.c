#include "process/socket_rights.h"

#include "process/socket_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_same_place(const struct address *a, const struct address *b)
{
	return a->sockaddr.ss_family == AF_UNIX && a->sockaddr_len == b->sockaddr_len &&
		memcmp(&a->sockaddr, &b->sockaddr, a->sockaddr_len) == 0;
}

/* The same socket in another configuration, or NULL. */
static const struct listen_config *find(const struct config *config, const struct listen_config *wanted)
{
	for (size_t i = 0; i < config->listen_count; i++)
		if (is_same_place(&config->listen[i].address, &wanted->address))
			return &config->listen[i];
	return NULL;
}

static bool has_new_owner(const struct listen_config *from, const struct listen_config *to)
{
	return from->owner != to->owner || from->group != to->group;
}

static bool differs(const struct listen_config *from, const struct listen_config *to)
{
	return from->mode != to->mode || has_new_owner(from, to);
}

bool socket_rights_differ(const struct config *from, const struct config *to)
{
	for (size_t i = 0; i < to->listen_count; i++) {
		const struct listen_config *old = find(from, &to->listen[i]);

		if (old != NULL && differs(old, &to->listen[i]))
			return true;
	}
	return false;
}

static int set_mode(int fd, mode_t mode)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);   /* no fchmod() for what is only named */
	return chmod(path, mode);
}

/* An owner that is not named any more is again who would have it without. */
static int set_owner(int fd, const struct listen_config *from, const struct listen_config *to)
{
	uid_t owner = to->owner == (uid_t)-1 && from->owner != (uid_t)-1 ? geteuid() : to->owner;
	gid_t group = to->group == (gid_t)-1 && from->group != (gid_t)-1 ? getegid() : to->group;

	return has_new_owner(from, to) ? fchownat(fd, "", owner, group, AT_EMPTY_PATH) : 0;
}

/* Taking rights away comes first.  0, or -1 with errno. */
static int set_rights(int fd, const struct listen_config *from, const struct listen_config *to)
{
	int errnum;

	if (set_mode(fd, (mode_t)(from->mode & to->mode)) < 0)
		return -1;
	if (set_owner(fd, from, to) == 0 && set_mode(fd, (mode_t)to->mode) == 0)
		return 0;
	errnum = errno;
	set_mode(fd, (mode_t)from->mode);
	errno = errnum;
	return -1;
}

/* 0 or errno. */
static int change(const struct listen_config *from, const struct listen_config *to)
{
	int fd = open(socket_path(to), O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int errnum = 0;
	struct stat st;

	if (fd < 0)
		return errno;
	if (fstat(fd, &st) == 0 && !S_ISSOCK(st.st_mode))
		errnum = ENOTSOCK;
	else if (set_rights(fd, from, to) < 0)
		errnum = errno;
	close(fd);
	return errnum;
}

/* The first `count` of `to`. */
static void change_back(const struct config *from, const struct config *to, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct listen_config *old = find(from, &to->listen[i]);

		if (old != NULL && differs(old, &to->listen[i]))
			change(&to->listen[i], old);
	}
}

int socket_rights_change(const struct config *from, const struct config *to, size_t *failed_out)
{
	for (size_t i = 0; i < to->listen_count; i++) {
		const struct listen_config *old = find(from, &to->listen[i]);
		int errnum = old == NULL || !differs(old, &to->listen[i]) ? 0 : change(old, &to->listen[i]);

		if (errnum != 0) {
			change_back(from, to, i);
			*failed_out = i;
			return errnum;
		}
	}
	return 0;
}
