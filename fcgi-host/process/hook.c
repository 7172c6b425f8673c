#include "process/hook.h"

#include "config/runtime.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	LINES_MAX = 12,
	CONTROL_HIGHEST = 15,   /* up to here, Node makes what it is started with close-on-exec */
	CONTROL_LOWEST = 3,
	ROOM_BYTES = 4096,      /* for a usual request's variables */
};

/* One row per runtime.  {} is the folder of the shims. */
struct hook {
	enum runtime_hook runtime;
	const char *name, *separator;   /* put before the handler's own value; separator NULL: in its place */
	const char *value;
	bool is_zygote_only;
	bool is_last;                   /* put behind the handler's own value instead */
};

static const struct hook hooks[] = {
	{ HOOK_PROGRAM, "LD_PRELOAD", ":", "{}/fcgi-host-park.so", false, false },
	{ HOOK_PHP, "LD_PRELOAD", ":", "{}/fcgi-host-park.so", false, false },
	/* It waits where php-cgi asks for the page: its own start is over then. */
	{ HOOK_PHP, "FCGI_HOST_AT", NULL, "getenv:SCRIPT_FILENAME", false, false },
	{ HOOK_PHP, "GATEWAY_INTERFACE", NULL, "CGI/1.1", false, false },
	{ HOOK_PHP, "REDIRECT_STATUS", NULL, "200", false, false },
	/* Children share what opcache has compiled.  An empty name is PHP's usual folder. */
	{ HOOK_PHP, "PHP_INI_SCAN_DIR", ":", "{}/php", true, true },
	{ HOOK_PYTHON, "PYTHONPATH", ":", "{}/python", false, false },
	{ HOOK_PERL, "PERL5OPT", " ", "-I{}/perl -MFCGIHost::Wait", false, false },
	{ HOOK_RUBY, "RUBYOPT", " ", "-r{}/ruby/fcgi_host_wait.rb", false, false },
	{ HOOK_NODE, "NODE_OPTIONS", " ", "--require {}/node/fcgi-host-wait.js", false, false },
	{ HOOK_PYTHON, "LD_PRELOAD", ":", "{}/fcgi-host-park.so", true, false },
	{ HOOK_PYTHON, "FCGI_HOST_AT", NULL, "fork", true, false },
	{ HOOK_PERL, "LD_PRELOAD", ":", "{}/fcgi-host-park.so", true, false },
	{ HOOK_PERL, "FCGI_HOST_AT", NULL, "fork", true, false },
	{ HOOK_RUBY, "LD_PRELOAD", ":", "{}/fcgi-host-park.so", true, false },
	{ HOOK_RUBY, "FCGI_HOST_AT", NULL, "fork", true, false },
};

struct lines {
	char *text[LINES_MAX];
	size_t count;
	bool is_short;                  /* of memory */
};

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

static char *put_together(const struct hook *hook, const char *own, const char *ours)
{
	char *text = NULL;
	int len;

	if (hook->is_last)
		len = asprintf(&text, "%s=%s%s%s", hook->name, own == NULL ? "" : own, hook->separator, ours);
	else if (own != NULL)
		len = asprintf(&text, "%s=%s%s%s", hook->name, ours, hook->separator, own);
	else
		len = asprintf(&text, "%s=%s", hook->name, ours);
	return len < 0 ? NULL : text;
}

static void add_hook(struct lines *lines, const struct program *program, const struct hook *hook)
{
	const char *own = hook->separator == NULL ? NULL : own_value(program, hook->name);
	char *value = with_folder(hook->value);

	add(lines, value == NULL ? NULL : put_together(hook, own, value));
	free(value);
}

static void add_number(struct lines *lines, const char *name, uint64_t number)
{
	char *text = NULL;

	add(lines, asprintf(&text, "%s=%" PRIu64, name, number) < 0 ? NULL : text);
}

/* The library puts the request's variables in the place of these, so that what /proc
 * shows of the process is that of a process that was started with them. */
static void add_room(struct lines *lines)
{
	char *text = malloc(ROOM_BYTES);

	if (text != NULL) {
		memset(text, '.', ROOM_BYTES - 1);
		memcpy(text, "FCGI_HOST_ROOM=", strlen("FCGI_HOST_ROOM="));
		text[ROOM_BYTES - 1] = '\0';
	}
	add(lines, text);
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

int hook_control_number(const struct program *program)
{
	struct rlimit own;
	uint64_t files = getrlimit(RLIMIT_NOFILE, &own) == 0 ? own.rlim_cur : 0;

	if (program->limits.files > 0 && program->limits.files < files)
		files = program->limits.files;
	if (files > CONTROL_HIGHEST)
		return CONTROL_HIGHEST;
	return files > CONTROL_LOWEST ? (int)files - 1 : CONTROL_LOWEST;
}

/* A library that the loader does not find is left out, and the program runs. */
static int check_folder(struct err *why)
{
	char path[PATH_MAX];

	/* All of these variables are lists. */
	if (strpbrk(hook_folder(), " \t\n:") != NULL)
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
	if (runtime_find(program->argv, own_value(program, "PATH"), &found, why) != 0 || check_folder(why) != 0)
		return -1;
	if (ahead == SPAWN_ZYGOTE && found.runtime->no_fork != NULL)
		return err_set(why, "%s cannot be forked ahead: %s", found.executable, found.runtime->no_fork);
	add_number(&lines, ahead == SPAWN_ZYGOTE ? "FCGI_HOST_ZYGOTE" : "FCGI_HOST_PARK", (uint64_t)hook_control_number(program));
	if (ahead == SPAWN_ZYGOTE && program->limits.cpu_s > 0)
		add_number(&lines, "FCGI_HOST_CPU", program->limits.cpu_s);
	if (found.hook == HOOK_PROGRAM || found.hook == HOOK_PHP)
		add_room(&lines);
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

	if (runtime_of_handler(handler, handler->process, &found, out) == 0 && check_folder(out) == 0)
		err_set(out, "the spawner found no way to make it wait");
}
