/*
 * modules.h - the modules that requests of one handler came to load, so that
 * those who wait for later ones have them already.  Bounded, whoever says so.
 */
#ifndef FCGI_HOST_PROCESS_MODULES_H
#define FCGI_HOST_PROCESS_MODULES_H

#include "base/bytes.h"
#include "base/text.h"

#include <stdbool.h>

struct modules {
	struct bytes names;             /* "NAME\0"…, in the order in which they were learnt */
	unsigned count;
};

void modules_init(struct modules *modules);
void modules_fini(struct modules *modules);

void modules_forget(struct modules *modules);

/* "NAME\0"…, from a process.  True when one of them is new. */
bool modules_learn(struct modules *modules, struct slice names);

#endif
