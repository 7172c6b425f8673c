/*
 * Where the shims are: beside this very program, in the folder that it was built
 * or installed into, wherever that has been copied to.
 */
#include "process/hook.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* `path` without `end`; false where it ends in another way. */
static bool strip(char *path, const char *end)
{
	size_t len = strlen(path), end_len = strlen(end);

	if (len < end_len || strcmp(path + len - end_len, end) != 0)
		return false;
	path[len - end_len] = '\0';
	return true;
}

static bool find(char out[PATH_MAX])
{
	static const char in_build[] = "/handlers/shims/lib";
	char path[PATH_MAX] = "", *build;

	if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		return false;
	if (strip(path, PROGRAM_PATH))
		return snprintf(out, PATH_MAX, "%s%s", path, SHIM_DIR) < PATH_MAX;
	build = strip(path, "/fcgi-host/fcgi-host") ? path : NULL;
	return build != NULL && snprintf(out, PATH_MAX, "%s%s", build, in_build) < PATH_MAX && access(out, X_OK) == 0;
}

const char *hook_folder(void)
{
	static char found[PATH_MAX];
	const char *folder = getenv("FCGI_HOST_SHIMS");

	if (folder != NULL && folder[0] == '/')
		return folder;
	if (found[0] == '\0' && !find(found))
		snprintf(found, sizeof(found), "%s", SHIM_DIR);
	return found;
}
