/*
 * park_files.c - the files that were loaded ahead: the program and its
 * shared libraries.  Copying a file is how people deploy; a request that
 * comes afterwards must get the new one.
 */
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "park.h"

struct file {
	char *path;
	struct stat state;
	bool is_unsure;         /* changed while it was being loaded */
};

static struct {
	struct file *list;
	size_t count, room;
	int64_t start_ns;
} files;

static int64_t in_ns(const struct timespec *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

static void note(const char *path)
{
	if (files.count == files.room) {
		size_t room = files.room ? 2 * files.room : 16;
		struct file *list = realloc(files.list, room * sizeof *list);
		if (!list)
			return;
		files.list = list;
		files.room = room;
	}
	struct file *file = &files.list[files.count];
	/* What is no file (the vdso) has nothing to compare. */
	if (stat(path, &file->state) != 0)
		return;
	file->path = strdup(path);
	if (!file->path)
		return;
	file->is_unsure = in_ns(&file->state.st_ctim) >= files.start_ns;
	files.count++;
}

static int on_library(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	(void)ctx;
	if (info->dlpi_name && info->dlpi_name[0] == '/')
		note(info->dlpi_name);
	return 0;
}

void park_files_note(const char *program, int64_t start_ns)
{
	files.start_ns = start_ns;
	note(program);
	dl_iterate_phdr(on_library, NULL);
}

void park_files_note_list(const char *paths)
{
	char *lines = strdup(paths), *rest = lines, *path;

	while ((path = strsep(&rest, "\n")))
		if (*path)
			note(path);
	free(lines);
}

static bool is_same(const struct file *file)
{
	const struct stat *then = &file->state;
	struct stat now;

	return !file->is_unsure && stat(file->path, &now) == 0 && now.st_dev == then->st_dev && now.st_ino == then->st_ino &&
	       now.st_size == then->st_size && in_ns(&now.st_mtim) == in_ns(&then->st_mtim) &&
	       in_ns(&now.st_ctim) == in_ns(&then->st_ctim);
}

const char *park_files_changed(void)
{
	for (size_t i = 0; i < files.count; i++)
		if (!is_same(&files.list[i]))
			return files.list[i].path;
	return NULL;
}
