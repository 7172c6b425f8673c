#include "process/hook.h"

#include "config/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINES_MAX = 12, CONTROL_FD = 3 };

/* One row per runtime.  {} is the folder of the shims. */
struct hook {
	enum runtime_hook runtime;
	const char *name, *separator;   /* put before the handler's own value; separator NULL: in its place */
	const char *value;
	bool is_zygote_only;
};

static const struct hook hooks[] = {
	{ HOOK_PROGRAM, "LD_PRELOAD", ":", "{}/fcgi-host-park.so", false },
	{ HOOK_PHP, "LD_PRELOAD", ":", "{}/fcgi-host-park.so", false },
	/* It waits where php-cgi asks for the page: its own start is over then. */
	{ HOOK_PHP, "FCGI_HOST_AT", NULL, "getenv:SCRIPT_FILENAME", false },
	{ HOOK_PHP, "GATEWAY_INTERFACE", NULL, "CGI/1.1", false },
	{ HOOK_PYTHON, "PYTHONPATH", ":", "{}/python", false },
	{ HOOK_PERL, "PERL5OPT", " ", "-I{}/perl -MFCGIHost::Wait", false },
	{ HOOK_RUBY, "RUBYOPT", " ", "-r{}/ruby/fcgi_host_wait.rb", false },
	{ HOOK_NODE, "NODE_OPTIONS", " ", "--require {}/node/fcgi-host-wait.js", false },
	{ HOOK_PYTHON, "LD_PRELOAD", ":", "{}/fcgi-host-park.so", true },
	{ HOOK_PYTHON, "FCGI_HOST_AT", NULL, "fork", true },
	{ HOOK_PERL, "LD_PRELOAD", ":", "{}/fcgi-host-park.so", true },
	{ HOOK_PERL, "FCGI_HOST_AT", NULL, "fork", true },
	{ HOOK_RUBY, "LD_PRELOAD", ":", "{}/fcgi-host-park.so", true },
	{ HOOK_RUBY, "FCGI_HOST_AT", NULL, "fork", true },
};

struct lines {
	char *text[LINES_MAX];
	size_t count;
	bool is_short;                  /* of memory */
};

const char *hook_folder(void)
{
	const char *folder = getenv("FCGI_HOST_SHIMS");

	return folder != NULL && folder[0] == '/' ? folder : SHIM_DIR;
}

bool hook_name_is_module(const char *name, size_t len)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";

	if (len == 0 || len > HOOK_NAME_MAX_BYTES || name[0] == '/' || name[0] == '-' || memmem(name, len, "..", 2) != NULL)
		return false;
	for (size_t i = 0; i < len; i++)
		if (name[i] == '\0' || strchr(allowed, name[i]) == NULL)
			return false;
	return true;
}

static void add(struct lines *lines, char *text)
{
	if (text == NULL)
		lines->is_short = true;
	else
		lines->text[lines->count++] = text;
}

static const char *own_value(const struct program *program, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < program->env_count; i++)
		if (strncmp(program->env[i], name, len) == 0 && program->env[i][len] == '=')
			return program->env[i] + len + 1;
	return NULL;
}

static char *with_folder(const char *value)
{
	const char *mark = strstr(value, "{}");
	char *text = NULL;

	if (mark == NULL)
		return strdup(value);
	return asprintf(&text, "%.*s%s%s", (int)(mark - value), value, hook_folder(), mark + 2) < 0 ? NULL : text;
}

static void add_hook(struct lines *lines, const struct program *program, const struct hook *hook)
{
	const char *own = hook->separator == NULL ? NULL : own_value(program, hook->name);
	char *value = with_folder(hook->value), *text = NULL;

	if (value != NULL && asprintf(&text, "%s=%s%s%s", hook->name, value, own == NULL ? "" : hook->separator, own == NULL ? "" : own) < 0)
		text = NULL;
	free(value);
	add(lines, text);
}

static void add_number(struct lines *lines, const char *name, int number)
{
	char *text = NULL;

	add(lines, asprintf(&text, "%s=%d", name, number) < 0 ? NULL : text);
}

/* FCGI_HOST_PRELOAD=a:b */
static void add_preload(struct lines *lines, const struct program *program, const char *learnt, size_t learnt_len)
{
	static const char name[] = "FCGI_HOST_PRELOAD";
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	unsigned count = 0;

	if (out == NULL) {
		lines->is_short = true;
		return;
	}
	for (char *const *module = program->preload; module != NULL && *module != NULL && !program->is_learning; module++)
		fprintf(out, "%s%s", count++ == 0 ? "FCGI_HOST_PRELOAD=" : ":", *module);
	for (size_t at = 0; program->is_learning && at < learnt_len && count < HOOK_NAMES_MAX; at += strlen(learnt + at) + 1)
		if (hook_name_is_module(learnt + at, strlen(learnt + at)))
			fprintf(out, "%s%s", count++ == 0 ? "FCGI_HOST_PRELOAD=" : ":", learnt + at);
	if (fclose(out) != 0)
		lines->is_short = true;
	if (count > 0 && size > strlen(name))
		add(lines, text);
	else
		free(text);
}

/* A library that the loader does not find is left out, and the program runs. */
static int check_folder(enum runtime_hook hook, struct err *why)
{
	char path[PATH_MAX];

	if (strpbrk(hook_folder(), " \t\n:") != NULL && hook != HOOK_PHP && hook != HOOK_PROGRAM)
		return err_set(why, "the folder of the shims, %s, has blanks or a colon in its path", hook_folder());
	snprintf(path, sizeof(path), "%s/fcgi-host-park.so", hook_folder());
	return access(path, R_OK) == 0 ? 0 : err_set_errno(why, errno, "%s", path);
}

static bool is_replaced(const struct lines *lines, const char *own)
{
	size_t len = strcspn(own, "=") + 1;

	for (size_t i = 0; i < lines->count; i++)
		if (strncmp(lines->text[i], own, len) == 0)
			return true;
	return false;
}

static int collect(const struct lines *lines, const struct program *program, char **envp, size_t envp_max)
{
	size_t count = 0;

	if (lines->count + program->env_count >= envp_max)
		return -1;
	for (size_t i = 0; i < lines->count; i++)
		envp[count++] = lines->text[i];
	for (size_t i = 0; i < program->env_count; i++)
		if (!is_replaced(lines, program->env[i]))
			envp[count++] = program->env[i];
	envp[count] = NULL;
	return 0;
}

int hook_environ(const struct program *program, enum spawn_ahead ahead, const char *learnt, size_t learnt_len,
	char **envp, size_t envp_max, struct err *why)
{
	static struct lines lines;
	struct runtime_found found;

	while (lines.count > 0)
		free(lines.text[--lines.count]);
	lines.is_short = false;
	if (runtime_find(program->argv, own_value(program, "PATH"), &found, why) != 0 || check_folder(found.hook, why) != 0)
		return -1;
	if (ahead == SPAWN_ZYGOTE && found.runtime->no_fork != NULL)
		return err_set(why, "%s cannot be forked ahead: %s", found.executable, found.runtime->no_fork);
	add_number(&lines, ahead == SPAWN_ZYGOTE ? "FCGI_HOST_ZYGOTE" : "FCGI_HOST_PARK", CONTROL_FD);
	if (program->is_learning)
		add_number(&lines, "FCGI_HOST_LEARN", 1);
	add_preload(&lines, program, learnt, learnt_len);
	for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++)
		if (hooks[i].runtime == found.hook && (ahead == SPAWN_ZYGOTE || !hooks[i].is_zygote_only))
			add_hook(&lines, program, &hooks[i]);
	if (lines.is_short || collect(&lines, program, envp, envp_max) != 0)
		return err_set(why, "no memory for the variables of a process that waits");
	return 0;
}

void hook_reason(const struct handler_config *handler, struct err *out)
{
	struct runtime_found found;

	if (runtime_of_handler(handler, handler->process, &found, out) == 0 && check_folder(found.hook, out) == 0)
		err_set(out, "the spawner found no way to make it wait");
}
