/*
 * kinds_text.c - paths, commands, lists and variables.
 */
#include "config/keys.h"

#include <stdlib.h>
#include <string.h>

void text_fini(void *field)
{
	char **text = field;

	free(*text);
	*text = NULL;
}

void text_print(struct printer *printer, const struct key *key, const void *field)
{
	const char *text = *(char *const *)field;

	if (text == NULL)
		return;
	key_print(printer, key);
	printer_text(printer, text);
}

static int path_read(const struct site *site, void *field)
{
	const char *text = site_text(site);
	char **out = field;

	if (text == NULL)
		return -1;
	if (text[0] == '\0')
		return site_error(site, "needs a path");
	bool is_word = site->key->words != NULL && word_find(site->key->words, text) != NULL;
	*out = is_word ? site_copy(site, text) : site_path(site, text);
	return *out == NULL ? -1 : 0;
}

/* It goes into a header as it is. */
static int media_type_read(const struct site *site, void *field)
{
	const char *text = site_text(site);
	char **out = field;
	size_t type_len;

	if (text == NULL)
		return -1;
	for (const char *c = text; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c >= 0x7f)
			return site_error(site, "holds a byte that no header field can have");
	type_len = strcspn(text, "/ ;");
	if (type_len == 0 || text[type_len] != '/' || strcspn(text + type_len + 1, "/ ;") == 0)
		return site_error(site, "'%s' is no media type, such as text/plain or application/json", text);
	*out = site_copy(site, text);
	return *out == NULL ? -1 : 0;
}

void texts_fini(void *field)
{
	char ***texts = field;

	for (char **text = *texts; text != NULL && *text != NULL; text++)
		free(*text);
	free(*texts);
	*texts = NULL;
}

void texts_print(struct printer *printer, const struct key *key, const void *field)
{
	char *const *texts = *(char **const *)field;

	if (texts == NULL)
		return;
	key_print(printer, key);
	printer_list_begin(printer, true);
	for (; *texts != NULL; texts++)
		printer_text(printer, *texts);
	printer_list_end(printer);
}

static int read_items(const struct site *site, const struct node *items, size_t count, char **out)
{
	int rc = 0;

	for (size_t i = 0; i < count; i++) {
		struct site item = *site;
		item.node = &items[i];
		const char *text = site_text(&item);
		*out = text == NULL ? NULL : site_copy(&item, text);
		if (*out == NULL)
			rc = -1;
		else
			out++;
	}
	return rc;
}

int texts_read(const struct site *site, char ***out)
{
	const struct node *node = site->node;
	bool is_list = node->kind == NODE_LIST;
	size_t count = is_list ? node->items_count : 1;

	if (count == 0)
		return site_error(site, "the list is empty");
	*out = calloc(count + 1, sizeof(char *));
	if (*out == NULL)
		return site_no_memory(site);
	return read_items(site, is_list ? node->items : node, count, *out);
}

static int list_read(const struct site *site, void *field)
{
	return texts_read(site, field);
}

/* The words of a command that is one text. */
static int split_read(const struct site *site, char ***out)
{
	static const char blanks[] = " \t\r\n";
	const char *text = site_text(site);

	if (text == NULL)
		return -1;
	*out = calloc(strlen(text) / 2 + 2, sizeof(char *));
	if (*out == NULL)
		return site_no_memory(site);
	char **word = *out;
	for (text += strspn(text, blanks); *text != '\0'; text += strspn(text, blanks)) {
		size_t len = strcspn(text, blanks);
		*word = slice_dup((struct slice){ text, len });
		if (*word++ == NULL)
			return site_no_memory(site);
		text += len;
	}
	return 0;
}

static int command_read(const struct site *site, void *field)
{
	char ***out = field;
	int rc = site->node->kind == NODE_LIST ? texts_read(site, out) : split_read(site, out);

	if (rc != 0)
		return -1;
	char **program = *out;
	if (*program == NULL || (*program)[0] == '\0')
		return site_error(site, "names no program");
	char *path = site_path(site, *program);
	if (path == NULL)
		return -1;
	free(*program);
	*program = path;
	return 0;
}

static struct handler_config *env_owner(void *field)
{
	return (struct handler_config *)((char *)field - offsetof(struct handler_config, env));
}

static int env_check(const struct site *site, const struct node *name)
{
	if (name->kind != NODE_SCALAR)
		return -1;
	if (name->text[0] == '\0')
		return site_error_at(site, name, "a variable needs a name");
	for (const char *c = name->text; *c != '\0'; c++)
		if (*c == '=' || (unsigned char)*c <= ' ' || *c == 0x7f)
			return site_error_at(site, name, "'%s' is no name of a variable", name->text);
	return 0;
}

static struct pair *env_find(struct handler_config *handler, const char *name)
{
	for (size_t i = 0; i < handler->env_count; i++)
		if (strcmp(handler->env[i].name, name) == 0)
			return &handler->env[i];
	return NULL;
}

static int env_set(const struct site *site, struct handler_config *handler, const char *name, const char *value)
{
	struct pair *pair = env_find(handler, name);
	char *copy = site_copy(site, value);

	if (copy == NULL)
		return -1;
	if (pair != NULL) {
		free(pair->value);
		pair->value = copy;
		return 0;
	}
	struct pair *env = realloc(handler->env, (handler->env_count + 1) * sizeof(*env));
	if (env != NULL)
		handler->env = env;
	char *name_copy = env == NULL ? NULL : strdup(name);
	if (name_copy == NULL) {
		free(copy);
		return site_no_memory(site);
	}
	env[handler->env_count++] = (struct pair){ .name = name_copy, .value = copy };
	return 0;
}

static int env_read_one(const struct site *site, const struct node *name, const struct node *value, void *field)
{
	if (env_check(site, name) != 0)
		return -1;
	struct place place = { site->place, name->text, 0 };
	struct site item = { site->reader, site->key, &place, value };
	if (node_is_null(value))
		return site_error(&item, "needs a value; \"\" is an empty one");
	const char *text = site_text(&item);
	return text == NULL ? -1 : env_set(&item, env_owner(field), name->text, text);
}

static int env_read(const struct site *site, void *field)
{
	const struct node *map = site->node;
	int rc = 0;

	if (node_is_null(map))
		return 0;
	if (map->kind == NODE_BROKEN)
		return -1;
	if (map->kind != NODE_MAP)
		return site_error(site, "needs a map of names and values");
	for (size_t i = 0; i < map->items_count; i += 2)
		if (env_read_one(site, &map->items[i], &map->items[i + 1], field) != 0)
			rc = -1;
	return rc;
}

static void env_print(struct printer *printer, const struct key *key, const void *field)
{
	const struct handler_config *handler = env_owner((void *)field);

	if (handler->env_count == 0)
		return;
	key_print(printer, key);
	printer_map_begin(printer, false);
	for (size_t i = 0; i < handler->env_count; i++) {
		printer_text(printer, handler->env[i].name);
		printer_text(printer, handler->env[i].value);
	}
	printer_map_end(printer);
}

static void env_fini(void *field)
{
	struct handler_config *handler = env_owner(field);

	for (size_t i = 0; i < handler->env_count; i++) {
		free(handler->env[i].name);
		free(handler->env[i].value);
	}
	free(handler->env);
	handler->env = NULL;
	handler->env_count = 0;
}

const struct key_kind kind_path = { .name = "path", .read = path_read, .print = text_print, .fini = text_fini };
const struct key_kind kind_media_type = { .name = "media type", .read = media_type_read, .print = text_print, .fini = text_fini };
const struct key_kind kind_list = { .name = "list", .read = list_read, .print = texts_print, .fini = texts_fini };
const struct key_kind kind_command = { .name = "command", .read = command_read, .print = texts_print, .fini = texts_fini };
const struct key_kind kind_env = { .name = "map of variables", .read = env_read, .print = env_print, .fini = env_fini,
	.is_merged = true };
