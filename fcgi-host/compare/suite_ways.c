/*
 * suite_ways.c - the groups of a suite, and the ways in each.
 */
#include "compare/suite_private.h"

#include <stdlib.h>
#include <string.h>

enum { REQUESTS_MAX = 1000000000, FIGURE_MAX = 1000000000 };

#define WAY(field) .offset = offsetof(struct way, field)
#define PUBLISHED(field) .offset = offsetof(struct published, field)

/* What was published, and what is needed. */

static const struct key published_rows[] = {
	{ PUBLISHED(requests_per_s), .name = "requests_per_s", .kind = &kind_suite_decimal, .max = FIGURE_MAX },
	{ PUBLISHED(mean_ms), .name = "mean_ms", .kind = &kind_suite_decimal, .max = FIGURE_MAX },
	{ PUBLISHED(p99_ms), .name = "p99_ms", .kind = &kind_suite_decimal, .max = FIGURE_MAX },
	{ PUBLISHED(ratio), .name = "ratio", .kind = &kind_suite_decimal, .max = FIGURE_MAX },
	{ PUBLISHED(note), .name = "note", .kind = &kind_suite_line },
};

static int published_read(const struct site *site, void *published)
{
	static const struct suite_keys known = SUITE_KEYS(published_rows);

	return suite_keys_read(site, &known, published);
}
static const struct key_kind kind_published = { .name = "map", .read = published_read };

static int add_need(const struct site *site, const char *name, void *object)
{
	struct way *way = object;
	struct need need = { .program = NULL }, *more;

	if (kind_suite_line.read(site, &need.package) != 0)
		return -1;
	need.program = strchr(name, '/') == NULL ? site_copy(site, name) : site_path(site, name);
	more = realloc(way->needs, (way->needs_count + 1) * sizeof(*more));
	if (more == NULL || need.program == NULL) {
		way->needs = more == NULL ? way->needs : more;
		free(need.program);
		free(need.package);
		return site_no_memory(site);
	}
	way->needs = more;
	more[way->needs_count++] = need;
	return 0;
}

static int needs_read(const struct site *site, void *way)
{
	return suite_texts_read(site, "programs and packages", add_need, way);
}
static const struct key_kind kind_needs = { .name = "map", .read = needs_read };

/* Servers. */

static int add_variable(const struct site *site, const char *name, void *object)
{
	struct way *way = object;
	const char *value = site_text(site);

	if (value == NULL)
		return -1;
	if (name[0] == '\0' || strpbrk(name, "= \t\r\n") != NULL)
		return site_error(site, "'%s' is no name of a variable", name);
	return suite_pair_add(site, &way->server_env, &way->server_env_count, name, value);
}

static int variables_read(const struct site *site, void *way)
{
	return suite_texts_read(site, "names and values", add_variable, way);
}
static const struct key_kind kind_variables = { .name = "map", .read = variables_read };

static const struct key server_rows[] = {
	{ WAY(server), .name = "command", .kind = &kind_command, .is_needed = true },
	{ WAY(server_directory), .name = "directory", .kind = &kind_path },
	{ .name = "env", .kind = &kind_variables },
};

static int server_read(const struct site *site, void *way)
{
	static const struct suite_keys known = SUITE_KEYS(server_rows);

	return suite_keys_read(site, &known, way);
}
static const struct key_kind kind_server = { .name = "map", .read = server_read };

static int url_read(const struct site *site, void *field)
{
	static const char scheme[] = "http://";
	const char *text = site_text(site);

	if (text == NULL)
		return -1;
	if (strncmp(text, scheme, sizeof(scheme) - 1) != 0 || strcspn(text + sizeof(scheme) - 1, "/?#") == 0)
		return site_error(site, "'%s' is no URL such as http://127.0.0.1:{port}/hello", text);
	for (const char *c = text; *c != '\0'; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f || *c == '#')
			return site_error(site, "'%s' holds a character that no URL has: write it as %%%02x", text, (unsigned char)*c);
	return kind_suite_line.read(site, field);
}
static const struct key_kind kind_url = { .name = "URL", .read = url_read };

/* "unix:{socket}" with a number and a path in the place of the words; on the heap. */
static char *fill_in(const char *text)
{
	static const char *const words[] = { "{port}", "{socket}" }, *const examples[] = { "1", "/s" };
	char *copy = strdup(text);

	for (int i = 0; i < 2 && copy != NULL; i++) {
		char *at = strstr(copy, words[i]), *filled = NULL;

		if (at == NULL)
			continue;
		if (asprintf(&filled, "%.*s%s%s", (int)(at - copy), copy, examples[i], at + strlen(words[i])) < 0)
			filled = NULL;
		free(copy);
		copy = filled;
	}
	return copy;
}

static int connect_read(const struct site *site, void *field)
{
	const char *text = site_text(site);
	char *filled = text == NULL ? NULL : fill_in(text);
	struct address address;
	struct err err;
	int status;

	if (text == NULL)
		return -1;
	if (filled == NULL)
		return site_no_memory(site);
	status = address_parse(filled, &address, &err);
	free(filled);
	if (status != 0)
		return site_error(site, "%s", err.text);
	address_fini(&address);
	return kind_suite_line.read(site, field);
}
static const struct key_kind kind_connect = { .name = "address", .read = connect_read };

/* Ways. */

static const struct key way_rows[] = {
	{ WAY(title), .name = "title", .kind = &kind_suite_line },
	{ .name = "handler", .kind = &kind_suite_handler },
	{ .name = "server", .kind = &kind_server },
	{ WAY(url), .name = "url", .kind = &kind_url },
	{ WAY(connect), .name = "connect", .kind = &kind_connect },
	{ WAY(via), .name = "via", .kind = &kind_word, .words = suite_via_words },
	{ WAY(requests), .name = "requests", .kind = &kind_suite_number, .min = 1, .max = REQUESTS_MAX },
	{ WAY(published), .name = "published", .kind = &kind_published },
	{ .name = "needs", .kind = &kind_needs },
};

static const struct node *key_of(const struct site *site, const char *name)
{
	return node_get_key(site->node, slice_of(name));
}

static bool has_word(const struct site *site, const char *key)
{
	const struct node *value = node_get(site->node, slice_of(key));

	return value != NULL && value->kind == NODE_SCALAR && (strstr(value->text, "{port}") != NULL || strstr(value->text, "{socket}") != NULL);
}

static int check_way(const struct site *site)
{
	const struct node *handler = key_of(site, "handler"), *url = key_of(site, "url"), *connect = key_of(site, "connect");
	const struct node *server = key_of(site, "server"), *via = key_of(site, "via");
	int count = (handler != NULL) + (url != NULL) + (connect != NULL), rc = 0;

	if (count != 1)
		rc = site_error(site, count == 0 ? "needs one of 'handler', 'url' and 'connect'" : "has more than one of 'handler', 'url' and 'connect'");
	if (server != NULL && handler != NULL)
		rc = site_error_at(site, server, "'server' goes with 'url' or 'connect', not with 'handler'");
	if (server == NULL && (has_word(site, "url") || has_word(site, "connect")))
		rc = site_error_at(site, url != NULL ? url : connect, "nobody listens at {port} or {socket} without 'server'");
	if (via != NULL && handler == NULL)
		rc = site_error_at(site, via, "'via' is a web server before a 'handler'");
	return rc;
}

static int add_way(const struct site *site, const char *name, void *object)
{
	static const struct suite_keys known = SUITE_KEYS(way_rows);
	struct way *way = comparison_add_way(object);
	int rc;

	if (way == NULL)
		return site_no_memory(site);
	way->name = site_copy(site, name);
	if (way->name == NULL)
		return -1;
	rc = suite_keys_read(site, &known, way);
	return site->node->kind == NODE_MAP && check_way(site) != 0 ? -1 : rc;
}

static int ways_read(const struct site *site, void *comparison)
{
	return suite_names_read(site, "ways", add_way, comparison);
}
static const struct key_kind kind_ways = { .name = "map", .read = ways_read };

/* Groups. */

static int answers_read(const struct site *site, void *field)
{
	static const struct word words[] = { { "same", 0 }, { "any", 1 }, { NULL, 0 } };
	static const struct key row = { .name = "answers", .words = words };
	struct site as_word = { site->reader, &row, site->place, site->node };
	int value;

	if (kind_word.read(&as_word, &value) != 0)
		return -1;
	*(bool *)field = value == 1;
	return 0;
}
static const struct key_kind kind_answers = { .name = "word", .read = answers_read };

#define COMPARISON(field) .offset = offsetof(struct comparison, field)

static const struct key group_rows[] = {
	{ COMPARISON(baseline), .name = "baseline", .kind = &kind_suite_line, .is_needed = true },
	{ COMPARISON(may_differ), .name = "answers", .kind = &kind_answers },
	{ .name = "ways", .kind = &kind_ways, .is_needed = true },
};

static int check_baseline(const struct site *site, const struct comparison *comparison)
{
	const char **names = calloc(comparison->ways_count + 1, sizeof(*names));
	struct place place = { site->place, "baseline", 0 };
	struct site at = { site->reader, NULL, &place, node_get(site->node, slice_of("baseline")) };
	bool is_there = false;
	int rc = 0;

	if (names == NULL)
		return site_no_memory(site);
	for (size_t i = 0; i < comparison->ways_count; i++) {
		names[i] = comparison->ways[i].name;
		is_there |= names[i] != NULL && strcmp(names[i], comparison->baseline) == 0;
	}
	if (!is_there)
		rc = site_error(&at, "there is no way '%s'%s", comparison->baseline, hint_for(comparison->baseline, names).text);
	free(names);
	return rc;
}

static int add_group(const struct site *site, const char *name, void *object)
{
	static const struct suite_keys known = SUITE_KEYS(group_rows);
	struct comparison *comparison = plan_add_comparison(object);
	int rc;

	if (comparison == NULL)
		return site_no_memory(site);
	comparison->name = site_copy(site, name);
	rc = suite_keys_read(site, &known, comparison);
	if (comparison->baseline != NULL && comparison->ways_count > 0 && check_baseline(site, comparison) != 0)
		rc = -1;
	return rc;
}

static int groups_read(const struct site *site, void *plan)
{
	return suite_names_read(site, "groups", add_group, plan);
}
const struct key_kind kind_suite_groups = { .name = "map", .read = groups_read };
