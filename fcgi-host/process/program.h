/*
 * program.h - what a handler's number means to a spawner: which file to run,
 * with which arguments, where, as whom, and with which variables.
 *
 * All of it comes from the spawner's own copy of the configuration.
 */
#ifndef FCGI_HOST_PROCESS_PROGRAM_H
#define FCGI_HOST_PROCESS_PROGRAM_H

#include "base/bytes.h"
#include "config/config.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a process may use, as setrlimit(2) takes it; 0 leaves the host's own. */
struct program_limits { uint64_t data_bytes, cpu_s, files, processes; };

struct program {
	char **argv;                    /* NULL with scripts, and where nothing is started (connect) */
	const char *scripts;            /* the folder of scripts, or NULL */
	char *directory;                /* to run in; NULL: where the script is */
	bool is_own_directory;          /* `directory` is only where the program is */
	char **env;                     /* "NAME=value": the handler's own, and PATH */
	size_t env_count;
	const struct identity *identity;        /* NULL: as the spawner itself */
	struct program_limits limits;
	char **preload;                 /* modules loaded ahead, or NULL */
	bool is_learning;               /* those that requests came to load, instead */
};

/* One per handler, borrowing from `config`.  NULL without memory.  They live as
 * long as the spawner. */
struct program *programs_new(const struct config *config);
void programs_free(struct program **programs, size_t count);

/* The real path of `script` below program->scripts.  0 or an errno: ENOENT when
 * there is no such file, EACCES when it is outside of the folder or no file. */
int program_resolve(const struct program *program, const char *script, char path_out[PATH_MAX]);

/* The folder that `path` names a file in; folder_out has room for path and
 * for 2 bytes. */
void program_folder(const char *path, char *folder_out);

/* Only the variables of one, for program_append_environ(). */
int program_init_env(struct program *program, const struct handler_config *handler);
void program_fini_env(struct program *program);
/* Appends them and those of `block` as program_environ() does, "NAME=value\0"….
 * 0, or -1 where `out` cannot take them. */
int program_append_environ(const struct program *program, const struct bytes *block, struct bytes *out);

/* Fills `envp` (room for envp_max pointers with the NULL): the handler's own
 * variables, then those of `block` ("NAME=value\0"…, ends with NUL) that are
 * safe and not the handler's own.  0, or E2BIG. */
int program_environ(const struct program *program, char *block, size_t block_len, char **envp, size_t envp_max);

#endif
