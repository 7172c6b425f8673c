#include "config/runtime.h"

#include "config/elf.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { HEAD_BYTES = 256, INTERPRETERS_MAX = 4 };        /* as the kernel has it */

static const char threads[] = "it runs threads of its own, and only the one that forks would live on in a child";

/* A base name is one of these followed by nothing but a version. */
static const struct runtime runtimes[] = {
	{ "python", HOOK_PYTHON, NULL, "EIS", NULL },
	{ "perl", HOOK_PERL, NULL, "Tt", NULL },
	{ "ruby", HOOK_RUBY, NULL, NULL, "--disable" },
	{ "node", HOOK_NODE, threads, NULL, NULL },
	{ "nodejs", HOOK_NODE, threads, NULL, NULL },
	{ "php-cgi", HOOK_PHP, NULL, NULL, NULL },
	{ "java", HOOK_PROGRAM, threads, NULL, NULL },
	{ "dotnet", HOOK_PROGRAM, threads, NULL, NULL },
	{ "mono", HOOK_PROGRAM, threads, NULL, NULL },
	{ "deno", HOOK_PROGRAM, threads, NULL, NULL },
	{ "bun", HOOK_PROGRAM, threads, NULL, NULL },
	{ "erl", HOOK_PROGRAM, threads, NULL, NULL },
	{ "escript", HOOK_PROGRAM, threads, NULL, NULL },
	{ "julia", HOOK_PROGRAM, threads, NULL, NULL },
};
static const struct runtime any_program = { "program", HOOK_PROGRAM, NULL, NULL, NULL };

static bool is_version(const char *text)
{
	return text[strspn(text, "0123456789.-")] == '\0';
}

static const struct runtime *runtime_named(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash == NULL ? path : slash + 1;

	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
		size_t len = strlen(runtimes[i].name);

		if (strncmp(name, runtimes[i].name, len) == 0 && is_version(name + len))
			return &runtimes[i];
	}
	return NULL;
}

/* By the name it is called by; a name of the operator's own may be a link to it.
 * What is called sh behaves as sh, whatever it is. */
static const struct runtime *runtime_of(const char *path)
{
	const struct runtime *runtime = runtime_named(path);
	const char *slash = strrchr(path, '/');
	char *real = runtime != NULL || strcmp(slash == NULL ? path : slash + 1, "sh") == 0 ? NULL : realpath(path, NULL);

	if (runtime == NULL && real != NULL)
		runtime = runtime_named(real);
	free(real);
	return runtime == NULL ? &any_program : runtime;
}

/* The loader gives such a program more rights than we have, and takes no
 * library from us. */
static bool has_more_rights(int fd, const struct stat *st)
{
	return (st->st_mode & S_ISUID) != 0 || ((st->st_mode & S_ISGID) != 0 && (st->st_mode & S_IXGRP) != 0) ||
		fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

static const char *own_loader(void)
{
	static struct elf own;
	static bool is_read;
	int fd;

	if (!is_read && (fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)) >= 0) {
		elf_read(fd, &own);
		close(fd);
	}
	is_read = true;
	return own.kind == ELF_DYNAMIC ? own.loader : NULL;
}

static int check_executable(const char *path, int fd, const struct stat *st, struct err *why)
{
	struct elf elf;

	elf_read(fd, &elf);
	if (elf.kind == ELF_NOT)
		return err_set(why, "%s is no executable for Linux", path);
	if (elf.kind == ELF_OTHER)
		return err_set(why, "%s is for another machine than fcgi-host", path);
	if (elf.kind == ELF_STATIC)
		return err_set(why, "%s is linked statically, so that nothing can make it wait before its main function: link it dynamically (Go: import \"C\", and -ldflags=-linkmode=external)", path);
	if (own_loader() != NULL && strcmp(own_loader(), elf.loader) != 0)
		return err_set(why, "%s uses the loader %s, fcgi-host uses %s", path, elf.loader, own_loader());
	if (!elf.has_libc_start)
		return err_set(why, "%s does not start by way of the C library, so that nothing can make it wait (Go: import \"C\", and -ldflags=-linkmode=external)", path);
	if (has_more_rights(fd, st))
		return err_set(why, "%s is setuid, setgid or has capabilities: the loader takes no library for it", path);
	return 0;
}

/* `name` in PATH; 0, or -1 when it is not there. */
static int search(const char *name, const char *path, char out[PATH_MAX])
{
	if (strchr(name, '/') != NULL)
		return snprintf(out, PATH_MAX, "%s", name) < PATH_MAX ? 0 : -1;
	for (const char *end; path != NULL; path = *end == '\0' ? NULL : end + 1) {
		end = path + strcspn(path, ":");
		if (snprintf(out, PATH_MAX, "%.*s/%s", (int)(end - path), path, name) < PATH_MAX && access(out, X_OK) == 0)
			return 0;
	}
	return -1;
}

/* `env NAME`, `env -S NAME …`, `env A=B NAME`. */
static char *name_for_env(char *rest)
{
	char *save = NULL, *word;

	for (word = strtok_r(rest, " \t", &save); word != NULL; word = strtok_r(NULL, " \t", &save)) {
		if (strcmp(word, "-S") == 0 || strchr(word, '=') != NULL)
			continue;
		if (strncmp(word, "-S", 2) == 0)
			return word + 2;
		if (word[0] != '-')
			return word;
	}
	return NULL;
}

/* The interpreter that the first line names, and its options.  0, or -1 where
 * there is none. */
static int read_interpreter(char *head, const char *path, char out[PATH_MAX], char options_out[HEAD_BYTES])
{
	char *line = head + 2, *rest;
	const char *base;

	line[strcspn(line, "\n")] = '\0';
	line += strspn(line, " \t");
	rest = line + strcspn(line, " \t");
	if (*rest != '\0')
		*rest++ = '\0';
	snprintf(options_out, HEAD_BYTES, "%s", rest);
	base = strrchr(line, '/');
	if (base != NULL && strcmp(base, "/env") == 0) {
		char *name = name_for_env(rest);

		return name == NULL ? -1 : search(name, path, out);
	}
	return line[0] != '\0' && snprintf(out, PATH_MAX, "%s", line) < PATH_MAX ? 0 : -1;
}

/* 1: `program` was a script, and is its interpreter now.  0: it is what runs.
 * -1: nothing is known, or nothing can run it; that is said as for every other
 * handler.  -2: with `why`. */
static int follow(char program[PATH_MAX], const char *path, char options_out[HEAD_BYTES], struct err *why)
{
	char head[HEAD_BYTES + 1] = "";
	int fd = open(program, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t len;
	int status = -1;

	if (fd < 0)
		return -1;
	len = read(fd, head, HEAD_BYTES);
	if (len > 2 && head[0] == '#' && head[1] == '!')
		status = read_interpreter(head, path, program, options_out) == 0 ? 1 : -1;
	else if (len > 4 && memcmp(head, "\177ELF", 4) == 0 && fstat(fd, &st) == 0)
		status = check_executable(program, fd, &st, why) == 0 ? 0 : -2;
	close(fd);
	return status;
}

static bool forbids_hook(const struct runtime *runtime, const char *option)
{
	if (option[0] != '-')
		return false;
	if (runtime->word != NULL && strncmp(option, runtime->word, strlen(runtime->word)) == 0)
		return true;
	return runtime->letters != NULL && option[1] != '-' && strpbrk(option + 1, runtime->letters) != NULL;
}

static bool forbid_hook(const struct runtime *runtime, char *options)
{
	char *save = NULL;

	for (char *word = strtok_r(options, " \t", &save); word != NULL; word = strtok_r(NULL, " \t", &save))
		if (forbids_hook(runtime, word))
			return true;
	return false;
}

int runtime_find(char *const *command, const char *path, struct runtime_found *out, struct err *why)
{
	static const char usual_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	char options[HEAD_BYTES] = "";
	bool is_script;
	int status = 1;

	*out = (struct runtime_found){ .runtime = &any_program, .hook = HOOK_PROGRAM };
	snprintf(out->executable, sizeof(out->executable), "%s", command[0]);
	for (int i = 0; i <= INTERPRETERS_MAX && status == 1; i++)
		status = follow(out->executable, path != NULL ? path : usual_path, options, why);
	if (status == -2)
		return -1;
	out->is_known = status == 0;
	if (!out->is_known)
		return 0;
	out->runtime = runtime_of(out->executable);
	is_script = strcmp(out->executable, command[0]) != 0;
	if (!forbid_hook(out->runtime, options))
		out->hook = out->runtime->hook;
	for (int i = 1; !is_script && command[i] != NULL && command[i][0] == '-'; i++)
		if (forbids_hook(out->runtime, command[i]))
			out->hook = HOOK_PROGRAM;
	return 0;
}

static const char *path_of(const struct handler_config *handler)
{
	for (size_t i = 0; i < handler->env_count; i++)
		if (strcmp(handler->env[i].name, "PATH") == 0)
			return handler->env[i].value;
	return NULL;
}

int runtime_of_handler(const struct handler_config *handler, enum process_mode mode, struct runtime_found *out, struct err *why)
{
	if (runtime_find(handler->command, path_of(handler), out, why) != 0)
		return -1;
	if (mode == PROCESS_ZYGOTE && out->runtime->no_fork != NULL)
		return err_set(why, "%s cannot be forked ahead: %s; 'parked' is its fast way", out->executable, out->runtime->no_fork);
	return 0;
}
