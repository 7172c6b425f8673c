#include "process/program.h"

#include "base/env_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char default_path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static bool has_name(const char *assignment, const char *name, size_t name_len)
{
	return strncmp(assignment, name, name_len) == 0 && assignment[name_len] == '=';
}

static bool is_own(const struct program *program, const char *name, size_t name_len)
{
	for (size_t i = 0; i < program->env_count; i++)
		if (has_name(program->env[i], name, name_len))
			return true;
	return false;
}

static int add_env(struct program *program, char *assignment)
{
	if (assignment == NULL)
		return -1;
	program->env[program->env_count++] = assignment;
	return 0;
}

static int build_env(struct program *program, const struct handler_config *handler)
{
	program->env = calloc(handler->env_count + 1, sizeof(*program->env));
	if (program->env == NULL)
		return -1;
	for (size_t i = 0; i < handler->env_count; i++) {
		char *assignment = NULL;

		if (asprintf(&assignment, "%s=%s", handler->env[i].name, handler->env[i].value) < 0)
			return -1;
		add_env(program, assignment);
	}
	if (is_own(program, "PATH", strlen("PATH")))
		return 0;
	return add_env(program, strdup(default_path));
}

void program_folder(const char *path, char *folder_out)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash == NULL || slash == path ? 1 : (size_t)(slash - path);

	memcpy(folder_out, slash == NULL ? "." : path, len);
	folder_out[len] = '\0';
}

static int build_directory(struct program *program, const struct handler_config *handler)
{
	program->is_own_directory = handler->directory == NULL;
	if (handler->directory == NULL && handler->command == NULL)
		return 0;
	program->directory = strdup(handler->directory != NULL ? handler->directory : handler->command[0]);
	if (program->directory == NULL)
		return -1;
	if (handler->directory == NULL)
		program_folder(handler->command[0], program->directory);
	return 0;
}

static int build_program(struct program *program, const struct handler_config *handler, const struct config *config)
{
	program->argv = handler->command;
	program->scripts = handler->scripts;
	/* Never with more rights than the relay, unless the handler says so. */
	if (handler->identity.is_set)
		program->identity = &handler->identity;
	else if (config->user.is_set)
		program->identity = &config->user;
	/* A worker above its limit is replaced; one that grows twice as large within a
	 * single request is stopped by the kernel. */
	program->limits = (struct program_limits){
		.data_bytes = handler->limits.memory_bytes * (handler->process == PROCESS_PERSISTENT ? 2 : 1), .cpu_s = (handler->limits.cpu_ms + 999) / 1000,
		.files = handler->limits.files, .processes = handler->limits.processes };
	program->is_learning = config_learns_preload(handler);
	if (!program->is_learning && handler->preload != NULL && strcmp(handler->preload[0], "none") != 0)
		program->preload = handler->preload;
	if (build_directory(program, handler) != 0)
		return -1;
	return build_env(program, handler);
}

int program_init_env(struct program *program, const struct handler_config *handler)
{
	*program = (struct program){ 0 };
	return build_env(program, handler);
}

void program_fini_env(struct program *program)
{
	for (size_t i = 0; i < program->env_count; i++)
		free(program->env[i]);
	free(program->env);
	program->env = NULL;
	program->env_count = 0;
}

struct program *programs_new(const struct config *config)
{
	struct program *programs = calloc(config->handlers_count + 1, sizeof(*programs));

	for (size_t i = 0; programs != NULL && i < config->handlers_count; i++)
		if (build_program(&programs[i], &config->handlers[i], config) != 0)
			programs_free(&programs, config->handlers_count);
	return programs;
}

void programs_free(struct program **programs, size_t count)
{
	for (size_t i = 0; *programs != NULL && i < count; i++) {
		program_fini_env(&(*programs)[i]);
		free((*programs)[i].directory);
	}
	free(*programs);
	*programs = NULL;
}

static bool is_below(const char *path, const char *root)
{
	size_t len = strlen(root);

	if (len > 0 && root[len - 1] == '/')
		len--;
	return strncmp(path, root, len) == 0 && path[len] == '/' && path[len + 1] != '\0';
}

/* The folder is resolved each time: it may be a link that a deployment moves. */
int program_resolve(const struct program *program, const char *script, char path_out[PATH_MAX])
{
	char root[PATH_MAX], joined[PATH_MAX];
	struct stat st;

	if (snprintf(joined, sizeof(joined), "%s/%s", program->scripts, script) >= (int)sizeof(joined))
		return ENOENT;
	if (realpath(program->scripts, root) == NULL || realpath(joined, path_out) == NULL)
		return errno == ENOTDIR || errno == ENAMETOOLONG ? ENOENT : errno;
	if (!is_below(path_out, root))
		return EACCES;
	if (stat(path_out, &st) != 0)
		return errno;
	return S_ISREG(st.st_mode) ? 0 : EACCES;
}

static bool passes(const struct program *program, const char *entry)
{
	size_t name_len = strcspn(entry, "=");

	return entry[name_len] != '\0' && env_name_is_safe(entry, name_len) && !is_own(program, entry, name_len);
}

int program_append_environ(const struct program *program, const struct bytes *block, struct bytes *out)
{
	const char *entry = (const char *)bytes_data(block), *end = block->len == 0 ? entry : entry + block->len;

	for (size_t i = 0; i < program->env_count; i++)
		if (bytes_append(out, program->env[i], strlen(program->env[i]) + 1) < 0)
			return -1;
	for (; entry < end; entry += strlen(entry) + 1)
		if (passes(program, entry) && bytes_append(out, entry, strlen(entry) + 1) < 0)
			return -1;
	return 0;
}

int program_environ(const struct program *program, char *block, size_t block_len, char **envp, size_t envp_max)
{
	char *end = block + block_len;
	size_t count = 0;

	if (program->env_count >= envp_max)
		return E2BIG;
	for (; count < program->env_count; count++)
		envp[count] = program->env[count];
	for (char *entry = block; entry < end; entry += strlen(entry) + 1) {
		if (!passes(program, entry))
			continue;
		if (count + 1 >= envp_max)
			return E2BIG;
		envp[count++] = entry;
	}
	envp[count] = NULL;
	return 0;
}
