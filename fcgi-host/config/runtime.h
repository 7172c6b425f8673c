/*
 * runtime.h - what it is that really runs when a command is started, and
 * whether that can wait before its first request.
 *
 * A script is followed through its `#!` line, `/usr/bin/env NAME` too, down to
 * an executable; that is dynamically linked or not, and one of the interpreters
 * with a hook of their own, or just a program.
 */
#ifndef FCGI_HOST_CONFIG_RUNTIME_H
#define FCGI_HOST_CONFIG_RUNTIME_H

#include "base/err.h"
#include "config/config.h"

#include <limits.h>
#include <stdbool.h>

/* See handlers/shims/README.md. */
enum runtime_hook { HOOK_PROGRAM, HOOK_PYTHON, HOOK_PERL, HOOK_RUBY, HOOK_NODE, HOOK_PHP };

struct runtime {
	const char *name;               /* of the program, without a version: "python" */
	enum runtime_hook hook;
	const char *no_fork;            /* why it cannot be a zygote, or NULL */
	const char *letters;            /* options that make it take no hook: it waits as any program does, before its main */
	const char *word;               /* likewise, an option that begins so */
};

struct runtime_found {
	bool is_known;                  /* false: the file is not there, or may not be read: nothing is known */
	const struct runtime *runtime;
	enum runtime_hook hook;         /* the runtime's own, or PROGRAM where its options forbid that */
	char executable[PATH_MAX];      /* the file that the kernel maps */
};

/* `path` is what PATH is for the process, for `env NAME`; NULL: the default.
 * 0, or -1 with `why` where no process of it can wait at all. */
int runtime_find(char *const *command, const char *path, struct runtime_found *out, struct err *why);

/* The same for a handler's command, and for one way of running it. */
int runtime_of_handler(const struct handler_config *handler, enum process_mode mode, struct runtime_found *out, struct err *why);

#endif
