#include "serve/script.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* After links are resolved, the file must still be below the folder. */
static bool is_below(const char *folder, const char *file)
{
	char *real_folder = realpath(folder, NULL);
	char *real_file = realpath(file, NULL);
	bool is = false;

	if (real_folder != NULL && real_file != NULL) {
		size_t len = strlen(real_folder);

		is = strncmp(real_folder, real_file, len) == 0 && (real_file[len] == '/' || len == 1);
	}
	free(real_folder);
	free(real_file);
	return is;
}

/* Whether its own user may run it, exec will tell. */
static enum script_result check_file(const char *folder, const char *file, const struct stat *st)
{
	return is_below(folder, file) && (st->st_mode & 0111) != 0 ? SCRIPT_FOUND : SCRIPT_FORBIDDEN;
}

static bool is_dots(const char *segment, size_t len)
{
	return (len == 1 && segment[0] == '.') || (len == 2 && segment[0] == '.' && segment[1] == '.');
}

enum script_result script_find(const char *folder, const char *path_info, struct script *out)
{
	char file[PATH_MAX];
	size_t folder_len = strlen(folder);
	size_t end = 0;

	while (path_info[end] == '/') {
		size_t begin = end + 1;
		struct stat st;

		end = begin + strcspn(path_info + begin, "/");
		if (end == begin || is_dots(path_info + begin, end - begin))
			return SCRIPT_MISSING;
		if (folder_len + end >= sizeof(file))
			return SCRIPT_MISSING;
		snprintf(file, sizeof(file), "%s%.*s", folder, (int)end, path_info);
		if (stat(file, &st) < 0)
			return errno == EACCES ? SCRIPT_FORBIDDEN : SCRIPT_MISSING;
		if (S_ISDIR(st.st_mode))
			continue;
		if (!S_ISREG(st.st_mode))
			return SCRIPT_FORBIDDEN;
		snprintf(out->path, sizeof(out->path), "%.*s", (int)end - 1, path_info + 1);
		out->taken = end;
		return check_file(folder, file, &st);
	}
	return SCRIPT_MISSING;
}
