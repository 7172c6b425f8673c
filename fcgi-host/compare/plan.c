#include "compare/plan.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const via_names[] = { "none", "nginx", "apache" };

const char *via_name(enum via via)
{
	return via_names[via];
}

int via_from(const char *text, enum via *out)
{
	for (int i = VIA_NONE; i <= VIA_APACHE; i++)
		if (strcmp(via_names[i], text) == 0) {
			*out = (enum via)i;
			return 0;
		}
	return -1;
}

struct comparison *plan_add_comparison(struct plan *plan)
{
	struct comparison *more = realloc(plan->comparisons, (plan->comparisons_count + 1) * sizeof(*more));

	if (more == NULL)
		return NULL;
	plan->comparisons = more;
	more[plan->comparisons_count] = (struct comparison){ 0 };
	return &more[plan->comparisons_count++];
}

struct way *comparison_add_way(struct comparison *comparison)
{
	struct way *more = realloc(comparison->ways, (comparison->ways_count + 1) * sizeof(*more));

	if (more == NULL)
		return NULL;
	comparison->ways = more;
	more[comparison->ways_count] = (struct way){ .via = VIA_AS_LOAD };
	return &more[comparison->ways_count++];
}

void texts_free(char **texts)
{
	for (size_t i = 0; texts != NULL && texts[i] != NULL; i++)
		free(texts[i]);
	free(texts);
}

static void way_fini(struct way *way)
{
	free(way->name);
	free(way->title);
	free(way->url);
	free(way->connect);
	texts_free(way->server);
	free(way->server_directory);
	for (size_t i = 0; i < way->server_env_count; i++) {
		free(way->server_env[i].name);
		free(way->server_env[i].value);
	}
	free(way->server_env);
	free(way->refusal);
	free(way->published.note);
	for (size_t i = 0; i < way->needs_count; i++) {
		free(way->needs[i].program);
		free(way->needs[i].package);
	}
	free(way->needs);
}

static void comparison_fini(struct comparison *comparison)
{
	for (size_t i = 0; i < comparison->ways_count; i++)
		way_fini(&comparison->ways[i]);
	free(comparison->ways);
	free(comparison->name);
	free(comparison->baseline);
}

void plan_fini(struct plan *plan)
{
	for (size_t i = 0; i < plan->comparisons_count; i++)
		comparison_fini(&plan->comparisons[i]);
	free(plan->comparisons);
	free(plan->suite);
	free(plan->title);
	free(plan->question);
	free(plan->published_note);
	texts_free(plan->setup);
	free(plan->load.method);
	free(plan->load.path);
	free(plan->load.route);
	texts_free(plan->load.headers);
	free(plan->load.body);
	free(plan->load.contains);
	*plan = (struct plan){ 0 };
}

static bool is_program(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* The folders of an administrator's programs may be missing in a user's PATH. */
const char *plan_temporary_folder(void)
{
	const char *folder = getenv("TMPDIR");

	return folder != NULL && folder[0] == '/' ? folder : "/tmp";
}

char *plan_find_program(const char *name)
{
	const char *path = getenv("PATH");
	char *folders = NULL, *rest = NULL, *found = NULL;

	if (strchr(name, '/') != NULL)
		return access(name, F_OK) == 0 ? strdup(name) : NULL;
	if (asprintf(&folders, "%s:/usr/local/sbin:/usr/sbin:/sbin", path == NULL ? "/usr/local/bin:/usr/bin:/bin" : path) < 0)
		return NULL;
	for (char *folder = strtok_r(folders, ":", &rest); folder != NULL && found == NULL; folder = strtok_r(NULL, ":", &rest)) {
		if (asprintf(&found, "%s/%s", folder, name) < 0)
			found = NULL;
		else if (!is_program(found)) {
			free(found);
			found = NULL;
		}
	}
	free(folders);
	return found;
}

void plan_put_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else if (*c < 0x20 || *c == 0x7f)
			fprintf(out, "\\x%02x", *c);
		else
			fputc(*c, out);
	}
	fputc('"', out);
}
