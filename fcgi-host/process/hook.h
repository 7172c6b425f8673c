/*
 * hook.h - what makes a process wait for its request: the variables that bring
 * one of the shims into it.  They are gone before the program sees any.
 *
 * All of it is the spawner's own, but for the names of modules that earlier
 * requests came to load.  See handlers/shims/README.md.
 */
#ifndef FCGI_HOST_PROCESS_HOOK_H
#define FCGI_HOST_PROCESS_HOOK_H

#include "base/err.h"
#include "process/program.h"
#include "process/spawn.h"

#include <stdbool.h>
#include <stddef.h>

enum { HOOK_NAMES_MAX = 256, HOOK_NAME_MAX_BYTES = 200 };

/* Such a name can be a module, and no file of somebody's choice. */
bool hook_name_is_module(const char *name, size_t len);

/* Fills `envp`: the hooks, then the handler's own variables.  `learnt` is
 * "NAME\0"….  What it makes lives until the next call.  0, or -1 with `why` where
 * this program cannot wait. */
int hook_environ(const struct program *program, enum spawn_ahead ahead, const char *learnt, size_t learnt_len,
	char **envp, size_t envp_max, struct err *why);

/* The number of its control descriptor: above what an interpreter opens before its
 * shim runs, and below what the handler may open. */
int hook_control_number(const struct program *program);

/* Why a handler's program cannot wait, once a start has failed with
 * SPAWN_STEP_WAIT. */
void hook_reason(const struct handler_config *handler, struct err *out);

/* The folder of the shims: FCGI_HOST_SHIMS of the host's own variables, or where
 * they were built or installed together with this program. */
const char *hook_folder(void);

#endif
