/*
 * entries.c - the top-level keys that hold entries with keys of their own:
 * listeners, defaults, handlers and routes.
 */
#include "config/keys.h"
#include "config/rules.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_LEN = 64 };

static int read_listener(const struct site *site, struct listen_config *listen)
{
	char address_key[] = "address";
	struct node short_form[2] = { { .kind = NODE_SCALAR, .mark = site->node->mark, .text = address_key }, *site->node };
	struct node map = { .kind = NODE_MAP, .mark = site->node->mark, .items = short_form, .items_count = 2 };
	const struct node *own = site->node->kind == NODE_SCALAR ? &map : site->node;
	struct scope_source source = { own, NULL };
	struct site entry = { site->reader, site->key, site->place, own };

	listen->owner = (uid_t)-1;
	listen->group = (gid_t)-1;
	int rc = scope_read(site->reader, SCOPE_LISTEN, &source, site->place, listen);
	return rules_listen(&entry, listen) != 0 ? -1 : rc;
}

static int listeners_read(const struct site *site, void *field)
{
	struct config *config = site->reader->config;
	const struct node *node = site->node;
	bool is_list = node->kind == NODE_LIST;
	size_t count = is_list ? node->items_count : 1;
	int rc = 0;

	(void)field;
	if (count == 0)
		return site_error(site, "the list is empty: nothing could connect");
	config->listen = calloc(count, sizeof(config->listen[0]));
	if (config->listen == NULL)
		return site_no_memory(site);
	config->listen_count = count;
	for (size_t i = 0; i < count; i++) {
		struct place place = { site->place, NULL, (unsigned)i + 1 };
		struct site entry = { site->reader, site->key, is_list ? &place : site->place, is_list ? &node->items[i] : node };
		if (read_listener(&entry, &config->listen[i]) != 0)
			rc = -1;
	}
	return rc;
}

static void listeners_print(struct printer *printer, const struct key *key, const void *field)
{
	const struct config *config = printer_config(printer);

	(void)field;
	key_print(printer, key);
	printer_list_begin(printer, false);
	for (size_t i = 0; i < config->listen_count; i++) {
		printer_map_begin(printer, true);
		scope_print(printer, SCOPE_LISTEN, &config->listen[i]);
		printer_map_end(printer);
	}
	printer_list_end(printer);
}

static struct config *owner(void *field, size_t offset)
{
	return (struct config *)((char *)field - offset);
}

static void listeners_fini(void *field)
{
	struct config *config = owner(field, offsetof(struct config, listen));

	for (size_t i = 0; i < config->listen_count; i++)
		scope_fini(SCOPE_LISTEN, &config->listen[i]);
	free(config->listen);
	config->listen = NULL;
	config->listen_count = 0;
}

/* Read here once so that each mistake in them is said once, whoever inherits it. */
static int defaults_read(const struct site *site, void *field)
{
	struct handler_config scratch = { 0 };
	struct scope_source source = { site->node, NULL };

	(void)field;
	int rc = scope_read(site->reader, SCOPE_HANDLER, &source, site->place, &scratch);
	scope_fini(SCOPE_HANDLER, &scratch);
	if (site->node->kind == NODE_MAP)
		site->reader->defaults = site->node;
	return rc;
}

static int compare_names(const void *left, const void *right)
{
	const struct handler_name *a = left, *b = right;

	return strcmp(a->name, b->name);
}

/* Before any handler is read, so that routes find also those that are wrong. */
static int collect_names(const struct site *site)
{
	struct reader *reader = site->reader;
	const struct node *map = site->node;

	reader->names = calloc(map->items_count / 2 + 1, sizeof(reader->names[0]));
	if (reader->names == NULL)
		return site_no_memory(site);
	for (size_t i = 0; i < map->items_count; i += 2)
		if (map->items[i].kind == NODE_SCALAR)
			reader->names[reader->names_count++] = (struct handler_name){ map->items[i].text, (unsigned)i / 2 };
	qsort(reader->names, reader->names_count, sizeof(reader->names[0]), compare_names);
	return 0;
}

static int check_name(const struct site *site, const char *name)
{
	size_t len = strlen(name);

	for (const char *c = name; *c != '\0'; c++)
		if (!isalnum((unsigned char)*c) && strchr("-_.", *c) == NULL)
			return site_error(site, "the name of a handler is made of letters, digits, '-', '_' and '.'");
	if (len == 0 || len > NAME_MAX_LEN)
		return site_error(site, "the name of a handler has from 1 to %d characters", NAME_MAX_LEN);
	return 0;
}

static int read_handler(const struct site *site, const struct node *name, const struct node *value,
	struct handler_config *handler)
{
	if (name->kind != NODE_SCALAR)
		return -1;
	struct place place = { site->place, name->text, 0 };
	struct site entry = { site->reader, site->key, &place, name };
	struct scope_source source = { value, site->reader->defaults };

	handler->line = name->mark.line;
	handler->column = name->mark.column;
	handler->name = site_copy(&entry, name->text);
	if (handler->name == NULL)
		return -1;
	int rc = check_name(&entry, name->text);
	if (scope_read(site->reader, SCOPE_HANDLER, &source, &place, handler) != 0)
		rc = -1;
	if (value->kind != NODE_MAP && !node_is_null(value))
		return -1;
	return rules_handler(&entry, &source, handler) != 0 ? -1 : rc;
}

static int handlers_read(const struct site *site, void *field)
{
	struct config *config = site->reader->config;
	const struct node *map = site->node;
	int rc = 0;

	(void)field;
	if (node_is_null(map) || map->kind == NODE_BROKEN)
		return 0;
	if (map->kind != NODE_MAP)
		return site_error(site, "needs a map of names and handlers");
	if (map->items_count == 0)
		return 0;
	config->handlers = calloc(map->items_count / 2, sizeof(config->handlers[0]));
	if (config->handlers == NULL)
		return site_no_memory(site);
	config->handlers_count = map->items_count / 2;
	if (collect_names(site) != 0)
		return -1;
	for (size_t i = 0; i < config->handlers_count; i++) {
		config->handlers[i].number = (unsigned)i;
		if (read_handler(site, &map->items[i * 2], &map->items[i * 2 + 1], &config->handlers[i]) != 0)
			rc = -1;
	}
	return rc;
}

static void handlers_print(struct printer *printer, const struct key *key, const void *field)
{
	const struct config *config = printer_config(printer);

	(void)field;
	key_print(printer, key);
	printer_map_begin(printer, config->handlers_count == 0);
	for (size_t i = 0; i < config->handlers_count; i++) {
		printer_text(printer, config->handlers[i].name);
		printer_map_begin(printer, false);
		scope_print(printer, SCOPE_HANDLER, &config->handlers[i]);
		printer_map_end(printer);
	}
	printer_map_end(printer);
}

static void handlers_fini(void *field)
{
	struct config *config = owner(field, offsetof(struct config, handlers));

	for (size_t i = 0; i < config->handlers_count; i++) {
		scope_fini(SCOPE_HANDLER, &config->handlers[i]);
		free(config->handlers[i].name);
	}
	free(config->handlers);
	config->handlers = NULL;
	config->handlers_count = 0;
}

static int read_route(const struct site *site, struct route_config *route)
{
	struct scope_source source = { site->node, NULL };

	route->line = site->node->mark.line;
	route->column = site->node->mark.column;
	if (node_is_null(site->node))
		return site_error(site, "needs a route, such as {path: /hello, handler: hello}");
	int rc = scope_read(site->reader, SCOPE_ROUTE, &source, site->place, route);
	if (site->node->kind != NODE_MAP)
		return -1;
	return rules_route(site, route) != 0 ? -1 : rc;
}

static int routes_read(const struct site *site, void *field)
{
	struct config *config = site->reader->config;
	const struct node *list = site->node;
	int rc = 0;

	(void)field;
	if (node_is_null(list) || list->kind == NODE_BROKEN)
		return 0;
	if (list->kind != NODE_LIST)
		return site_error(site, "needs a list of routes, each such as - {path: /hello, handler: hello}");
	if (list->items_count == 0)
		return 0;
	config->routes = calloc(list->items_count, sizeof(config->routes[0]));
	if (config->routes == NULL)
		return site_no_memory(site);
	config->routes_count = list->items_count;
	for (size_t i = 0; i < list->items_count; i++) {
		struct place place = { site->place, NULL, (unsigned)i + 1 };
		struct site entry = { site->reader, site->key, &place, &list->items[i] };
		if (read_route(&entry, &config->routes[i]) != 0)
			rc = -1;
	}
	return rc;
}

static void routes_print(struct printer *printer, const struct key *key, const void *field)
{
	const struct config *config = printer_config(printer);

	(void)field;
	key_print(printer, key);
	printer_list_begin(printer, config->routes_count == 0);
	for (size_t i = 0; i < config->routes_count; i++) {
		printer_map_begin(printer, true);
		scope_print(printer, SCOPE_ROUTE, &config->routes[i]);
		printer_map_end(printer);
	}
	printer_list_end(printer);
}

static void routes_fini(void *field)
{
	struct config *config = owner(field, offsetof(struct config, routes));

	for (size_t i = 0; i < config->routes_count; i++)
		scope_fini(SCOPE_ROUTE, &config->routes[i]);
	free(config->routes);
	config->routes = NULL;
	config->routes_count = 0;
}

const struct key_kind kind_listeners = { .name = "listeners", .read = listeners_read, .print = listeners_print,
	.fini = listeners_fini };
const struct key_kind kind_defaults = { .name = "map of a handler's keys", .read = defaults_read };
const struct key_kind kind_handlers = { .name = "map of handlers", .read = handlers_read, .print = handlers_print,
	.fini = handlers_fini };
const struct key_kind kind_routes = { .name = "list of routes", .read = routes_read, .print = routes_print,
	.fini = routes_fini };
