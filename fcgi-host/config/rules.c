/*
 * rules.c - what must hold between keys.
 */
#include "config/rules.h"

#include "config/address.h"
#include "config/fit.h"
#include "config/pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_unix(const struct address *address)
{
	return address->sockaddr.ss_family == AF_UNIX;
}

static int refuse_keys(const struct site *site, const struct node *map, const char *const *names, const char *why)
{
	int rc = 0;

	for (; *names != NULL; names++) {
		const struct node *name = node_get_key(map, slice_of(*names));
		if (name != NULL)
			rc = site_error_at(site, name, "'%s' %s", *names, why);
	}
	return rc;
}

int rules_listen(const struct site *site, struct listen_config *listen)
{
	static const char *const unix_only[] = { "mode", "owner", "group", NULL };
	static const char *const tcp_only[] = { "allow", NULL };

	if (listen->address.text == NULL)
		return -1;
	if (is_unix(&listen->address))
		return refuse_keys(site, site->node, tcp_only,
			"is for TCP addresses: 'mode', 'owner' and 'group' say who may use a unix socket");
	listen->mode = 0;
	if (refuse_keys(site, site->node, unix_only, "is for unix sockets: 'allow' says who may use a TCP address") != 0)
		return -1;
	if (!address_is_loopback(&listen->address) && listen->allow.count == 0 && node_get(site->node, slice_of("allow")) == NULL)
		return site_error(site, "'%s' is open to other machines: it needs 'allow' with the addresses that may connect",
			listen->address.text);
	return 0;
}

/* Where a key's value stands: in the handler itself or, inherited, the handler. */
static const struct node *place_of(const struct site *site, const struct scope_source *source, const char *name,
	bool *is_own_out)
{
	const struct node *node = scope_get(source, key_find(SCOPE_HANDLER, name), is_own_out);

	return *is_own_out ? node : site->node;
}

static bool is_written(const struct scope_source *source, const char *name)
{
	bool is_own;

	return scope_get(source, key_find(SCOPE_HANDLER, name), &is_own) != NULL;
}

static int rule_one_program(const struct site *site, const struct scope_source *source)
{
	int count = is_written(source, "command") + is_written(source, "scripts") + is_written(source, "connect");

	if (count == 1)
		return 0;
	if (count == 0)
		return site_error(site, "needs one of 'command', 'scripts' and 'connect'");
	return site_error(site, "has more than one of 'command', 'scripts' and 'connect'");
}

static int error_at_key(const struct site *site, const struct scope_source *source, const char *name, const char *what)
{
	bool is_own;
	const struct node *node = place_of(site, source, name, &is_own);

	return site_error_at(site, node, "%s", what);
}

static void warn_at_key(const struct site *site, const struct scope_source *source, const char *name, const char *what)
{
	struct site place = *site;
	bool is_own;

	place.node = place_of(site, source, name, &is_own);
	site_warn(&place, "%s", what);
}

static int rule_connect(const struct site *site, const struct scope_source *source, const struct handler_config *handler)
{
	static const char *const own_only[] = { "user", "group", "directory", NULL };
	struct err why;
	int rc = 0;

	if (handler->protocol != PROTOCOL_FASTCGI)
		rc = error_at_key(site, source, "connect", "'connect' needs protocol: fastcgi");
	else if (handler->connect.text != NULL && fit_process(handler, handler->process, &why) != 0)
		rc = error_at_key(site, source, "process", why.text);
	if (refuse_keys(site, source->own, own_only, "has no meaning with 'connect': the workers are started by someone else") != 0)
		rc = -1;
	return rc;
}

static int rule_process(const struct site *site, const struct scope_source *source, struct handler_config *handler)
{
	bool is_written_out = is_written(source, "process");
	struct err why;

	if ((int)handler->protocol < 0)
		return -1;
	if (!is_written_out)
		handler->process = handler->protocol == PROTOCOL_FASTCGI ? PROCESS_PERSISTENT : PROCESS_PER_REQUEST;
	if (is_written(source, "connect"))
		return rule_connect(site, source, handler);
	if ((int)handler->process < 0 || fit_process(handler, handler->process, &why) == 0)
		return 0;
	return error_at_key(site, source, is_written_out ? "process" : "protocol", why.text);
}

/* What only a stdio function has. */
static void rule_stdio(const struct site *site, const struct scope_source *source, const struct handler_config *handler)
{
	static const char *const names[] = { "content_type", "hold", NULL };

	if (handler->protocol == PROTOCOL_STDIO || (int)handler->protocol < 0)
		return;
	for (const char *const *name = names; *name != NULL; name++) {
		const struct node *node = node_get_key(source->own, slice_of(*name));
		struct site place = *site;

		place.node = node;
		if (node != NULL)
			site_warn(&place, "%s has no effect: it is for protocol: stdio", *name);
	}
}

/* A colon alone is what separates names; two are Perl's. */
static bool is_module_name(const char *name)
{
	for (const char *at = strchr(name, ':'); at != NULL; at = strchr(at + 2, ':'))
		if (at == name || at[1] != ':' || at[2] == ':' || at[2] == '\0')
			return false;
	return name[0] != '\0';
}

/* Of a list, one word stands for itself alone. */
static int rule_preload(const struct site *site, const struct scope_source *source, const struct handler_config *handler)
{
	char *const *names = handler->preload;

	for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
		bool is_word = strcmp(names[i], "auto") == 0 || strcmp(names[i], "none") == 0;

		if (is_word && (i > 0 || names[1] != NULL))
			return error_at_key(site, source, "preload", "'auto' and 'none' stand alone, not in a list of modules");
		if (!is_module_name(names[i]))
			return error_at_key(site, source, "preload", "a module's name is not empty and has no ':', only Perl's '::'");
	}
	return 0;
}

static int rule_identity(const struct site *site, const struct scope_source *source, const struct handler_config *handler)
{
	if (handler->connect.text != NULL)
		return 0;
	if (is_written(source, "group") && !is_written(source, "user"))
		return error_at_key(site, source, "group", "'group' needs 'user'");
	if (handler->identity.is_set && !site->reader->is_for_root)
		warn_at_key(site, source, "user", "'user' needs root: only root can serve this");
	return 0;
}

static void warn_about_file(const struct site *site, const struct node *at, const char *path, bool is_folder)
{
	struct site place = *site;
	struct stat status;

	place.node = at;
	if (stat(path, &status) != 0)
		site_warn(&place, "'%s': %s", path, errno == ENOENT ? "is not there yet" : strerror(errno));
	else if (is_folder != S_ISDIR(status.st_mode))
		site_warn(&place, "'%s' is %s", path, is_folder ? "no folder" : "a folder, not a program");
	else if (!is_folder && (status.st_mode & 0111) == 0)
		site_warn(&place, "'%s' is not executable: chmod +x", path);
}

static void warn_about_files(const struct site *site, const struct scope_source *source, const struct handler_config *handler)
{
	bool is_own;

	if (handler->command != NULL && handler->command[0] != NULL)
		warn_about_file(site, place_of(site, source, "command", &is_own), handler->command[0], false);
	if (handler->scripts != NULL)
		warn_about_file(site, place_of(site, source, "scripts", &is_own), handler->scripts, true);
	if (handler->directory != NULL && handler->connect.text == NULL)
		warn_about_file(site, place_of(site, source, "directory", &is_own), handler->directory, true);
}

static int rule_workers(const struct site *site, const struct scope_source *source, const struct handler_config *handler)
{
	bool is_own;
	const struct node *min = place_of(site, source, "workers.min", &is_own);

	if (handler->workers.max != 0 && handler->workers.min > handler->workers.max)
		return site_error_at(site, min, "workers.min (%u) is above workers.max (%u)", handler->workers.min,
			handler->workers.max);
	if (handler->workers.reserved > handler->workers.max)
		return error_at_key(site, source, "workers.reserved", "workers.reserved is above workers.max");
	if (handler->limits.cpu_ms > 0 && handler->process == PROCESS_PERSISTENT)
		return error_at_key(site, source, "limits.cpu",
			"limits.cpu counts a process's whole life, so it is not for persistent workers; timeout.total limits a request");
	if (is_own && handler->workers.min > 0 && (handler->process != PROCESS_PERSISTENT || handler->connect.text != NULL)) {
		struct site place = *site;
		place.node = min;
		site_warn(&place, "%s", config_is_waiting(handler) ?
			"workers.min has no effect: workers.spare says how many processes wait" : "workers.min has no effect: there are no workers to keep");
	}
	return 0;
}

int rules_handler(const struct site *site, const struct scope_source *source, struct handler_config *handler)
{
	int rc = rule_one_program(site, source);

	if (rule_process(site, source, handler) != 0)
		rc = -1;
	if (rule_identity(site, source, handler) != 0)
		rc = -1;
	if (rule_workers(site, source, handler) != 0)
		rc = -1;
	rule_stdio(site, source, handler);
	if (rule_preload(site, source, handler) != 0)
		rc = -1;
	warn_about_files(site, source, handler);
	return rc;
}

int rules_route(const struct site *site, const struct route_config *route)
{
	static const char *const builtin_only[] = { "allow", NULL };
	bool has_handler = node_get(site->node, slice_of("handler")) != NULL;

	if (has_handler && route->builtin != BUILTIN_NONE)
		return site_error(site, "has both 'handler' and 'builtin'");
	if (!has_handler && node_get(site->node, slice_of("builtin")) == NULL)
		return site_error(site, "'handler' is missing");
	if (has_handler)
		return refuse_keys(site, site->node, builtin_only,
			"is for 'builtin': who may ask a handler is for the web server to say");
	return 0;
}

static int rule_listeners_differ(struct reader *reader, const struct node *root)
{
	const struct node *list = node_get(root, slice_of("listen"));
	const struct config *config = reader->config;
	int rc = 0;

	for (size_t i = 1; i < config->listen_count; i++)
		for (size_t j = 0; j < i; j++) {
			struct place top = { NULL, "listen", 0 }, place = { &top, NULL, (unsigned)i + 1 };
			struct site site = { reader, NULL, &place, &list->items[i] };
			if (config->listen[i].address.text != NULL
				&& address_is_same(&config->listen[i].address, &config->listen[j].address))
				rc = site_error(&site, "'%s' is here twice: first in line %u", config->listen[i].address.text,
					list->items[j].mark.line);
		}
	return rc;
}

/* Routes that share pattern and host hang in one chain of a hash table, so
 * that ten thousand cost no more than ten thousand steps. */
struct same_routes {
	unsigned *slots;        /* index + 1 of the first route, 0 is free */
	unsigned *next;         /* index + 1 of the next of the same pattern and host */
	size_t mask;
};

static unsigned *find_slot(const struct same_routes *same, const struct config *config, const struct route_config *route)
{
	size_t at = pattern_hash(route->path, route->host) & same->mask;

	while (same->slots[at] != 0 && !route_is_same_place(&config->routes[same->slots[at] - 1], route))
		at = (at + 1) & same->mask;
	return &same->slots[at];
}

static int complain_about_twins(struct reader *reader, const struct route_config *route, const struct route_config *other,
	unsigned index)
{
	struct node at = { .mark = { route->line, route->column } };
	struct place top = { NULL, "routes", 0 }, place = { &top, NULL, index + 1 };
	struct site site = { reader, NULL, &place, &at };

	return site_error(&site, "no request can tell '%s' from '%s' in line %u, column %u: same path, same host, a method in common",
		route->path, other->path, other->line, other->column);
}

static int check_route(struct reader *reader, struct same_routes *same, unsigned index)
{
	const struct config *config = reader->config;
	const struct route_config *route = &config->routes[index];

	if (route->path == NULL)
		return -1;
	unsigned *slot = find_slot(same, config, route);
	for (unsigned other = *slot; other != 0; other = same->next[other - 1])
		if (methods_overlap(config->routes[other - 1].methods, route->methods))
			return complain_about_twins(reader, route, &config->routes[other - 1], index);
	same->next[index] = *slot;
	*slot = index + 1;
	return 0;
}

static int rule_routes_differ(struct reader *reader)
{
	size_t count = reader->config->routes_count, size = 16;

	while (size < count * 2)
		size *= 2;
	struct same_routes same = { calloc(size, sizeof(unsigned)), calloc(count + 1, sizeof(unsigned)), size - 1 };
	int rc = 0;
	if (same.slots == NULL || same.next == NULL) {
		reader->complaints->is_out_of_memory = true;
		rc = -1;
	}
	for (unsigned i = 0; i < count && same.slots != NULL && same.next != NULL; i++)
		if (check_route(reader, &same, i) != 0)
			rc = -1;
	free(same.slots);
	free(same.next);
	return rc;
}

/* Only for a configuration without errors, where every handler's number is right. */
static void warn_about_unused(struct reader *reader)
{
	const struct config *config = reader->config;
	bool *is_used = calloc(config->handlers_count + 1, sizeof(bool));

	for (size_t i = 0; is_used != NULL && i < config->routes_count; i++)
		if (config->routes[i].builtin == BUILTIN_NONE)
			is_used[config->routes[i].handler] = true;
	for (size_t i = 0; is_used != NULL && i < config->handlers_count; i++) {
		const struct handler_config *handler = &config->handlers[i];
		struct node at = { .mark = { handler->line, handler->column } };
		struct place top = { NULL, "handlers", 0 }, place = { &top, handler->name, 0 };
		struct site site = { reader, NULL, &place, &at };
		if (!is_used[i])
			site_warn(&site, "no route leads here");
	}
	free(is_used);
}

/* Only root can become another user: for others the top-level user is a name. */
static int rule_user(struct reader *reader, const struct node *root)
{
	const struct node *user = node_get_key(root, slice_of("user")), *group = node_get_key(root, slice_of("group"));
	struct node top = { .mark = { 1, 1 } };
	struct site site = { reader, NULL, NULL, user != NULL ? user : &top };
	bool is_root = reader->is_for_root;

	if (user == NULL && is_root)
		site_warn(&site, "'user' is missing: started as root, the relay and the handlers stay root");
	if (user != NULL && !is_root)
		site_warn(&site, "'user' has no effect: only root can become another user");
	reader->config->user.is_set &= is_root;
	if (group != NULL && user == NULL)
		return site_error_at(&site, group, "'group' needs 'user'");
	return 0;
}

/* What is promised must be there. */
static int rule_reserved(struct reader *reader, const struct node *root)
{
	const struct config *config = reader->config;
	const struct node *at = node_get_key(root, slice_of("max_processes"));
	struct site site = { reader, NULL, NULL, at };
	uint64_t reserved = 0;

	for (size_t i = 0; i < config->handlers_count; i++)
		reserved += config->handlers[i].workers.reserved;
	if (at == NULL || config->max_processes == 0 || reserved <= config->max_processes)
		return 0;
	return site_error_at(&site, at, "max_processes (%u) is below the sum of workers.reserved (%llu)",
		config->max_processes, (unsigned long long)reserved);
}

int rules_whole(struct reader *reader, const struct node *root)
{
	const struct node *routes_key = node_get_key(root, slice_of("routes"));
	struct node top = { .mark = { 1, 1 } };
	struct site site = { reader, NULL, NULL, routes_key != NULL ? routes_key : &top };
	int rc = rule_listeners_differ(reader, root);

	if (rule_routes_differ(reader) != 0)
		rc = -1;
	if (rule_reserved(reader, root) != 0)
		rc = -1;
	if (rule_user(reader, root) != 0)
		rc = -1;
	if (reader->config->routes_count == 0)
		site_warn(&site, "there are no routes: every request is answered with 404");
	if (!complaints_has_errors(reader->complaints))
		warn_about_unused(reader);
	return rc;
}
