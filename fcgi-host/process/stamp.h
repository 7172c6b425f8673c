/*
 * stamp.h - have the files changed that a process was started from?
 */
#ifndef FCGI_HOST_PROCESS_STAMP_H
#define FCGI_HOST_PROCESS_STAMP_H

#include "config/config.h"
#include "config/runtime.h"

#include <stdbool.h>
#include <sys/stat.h>

/* Of the program and of what runs it, which is the same where that is no script. */
struct stamp {
	struct stat program, executable;
	struct runtime_found found;
	bool is_taken;
};

/* Looks at the files now. */
void stamp_take(struct stamp *stamp, const struct handler_config *handler);

/* True until the first look as well. */
bool stamp_is_stale(const struct stamp *stamp, const struct handler_config *handler);

#endif
