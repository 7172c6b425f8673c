/*
 * script.h - which file below a `scripts:` folder a path asks for.
 */
#ifndef FCGI_HOST_SERVE_SCRIPT_H
#define FCGI_HOST_SERVE_SCRIPT_H

#include <limits.h>
#include <stddef.h>

enum script_result {
	SCRIPT_FOUND,
	SCRIPT_MISSING,         /* 404 */
	SCRIPT_FORBIDDEN,       /* 403: not executable, not a file, or it leads out of the folder */
};

struct script {
	char path[PATH_MAX];    /* below the folder, without a leading '/' */
	size_t taken;           /* how much of path_info names the script; the rest is PATH_INFO */
};

/* `path_info` is what follows the route's prefix.  Asks the file system. */
enum script_result script_find(const char *folder, const char *path_info, struct script *out);

#endif
