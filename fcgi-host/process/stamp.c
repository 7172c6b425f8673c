#include "process/stamp.h"

#include <string.h>

/* One that cannot be looked at is all zero, then and now. */
static void look(const char *path, struct stat *out)
{
	if (stat(path, out) != 0)
		memset(out, 0, sizeof(*out));
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mode == b->st_mode &&
		a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
		a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

void stamp_take(struct stamp *stamp, const struct handler_config *handler)
{
	struct err ignored;

	stamp->is_taken = true;
	look(handler->command[0], &stamp->program);
	if (runtime_of_handler(handler, handler->process, &stamp->found, &ignored) != 0)
		stamp->found.is_known = false;
	look(stamp->found.executable, &stamp->executable);
}

bool stamp_is_stale(const struct stamp *stamp, const struct handler_config *handler)
{
	struct stat now;

	if (!stamp->is_taken)
		return true;
	look(handler->command[0], &now);
	if (!is_same(&now, &stamp->program))
		return true;
	if (strcmp(stamp->found.executable, handler->command[0]) == 0)
		return false;
	look(stamp->found.executable, &now);
	return !is_same(&now, &stamp->executable);
}
