#include "compare/ways.h"

#include "config/fit.h"

#include <grp.h>
#include <stdlib.h>
#include <string.h>

static int copy_routes(const struct config *from, unsigned number, struct config *to)
{
	static const char everything[] = "/*";

	to->routes = calloc(from->routes_count + 1, sizeof(*to->routes));
	to->routes_count = 0;
	if (to->routes == NULL)
		return -1;
	for (size_t i = 0; i < from->routes_count; i++)
		if (from->routes[i].handler == number && from->routes[i].builtin == BUILTIN_NONE) {
			to->routes[to->routes_count] = from->routes[i];
			to->routes[to->routes_count++].handler = 0;
		}
	if (to->routes_count == 0)
		to->routes[to->routes_count++] = (struct route_config){ .path = (char *)everything };
	return 0;
}

void ways_write_config(const struct config *from, const struct way_place *place, FILE *out)
{
	struct listen_config listen = { .mode = 0660, .owner = (uid_t)-1, .group = (gid_t)-1, .backlog = 4096 };
	struct config config = *from;

	config.log.file = (char *)place->log;
	config.log.format = LOG_FORMAT_TEXT;   /* for run.c, which looks for the reason of a failure */
	config.log.level = LOG_LEVEL_INFO;
	listen.address.text = (char *)place->socket;
	if (place->group != NULL && getgrnam(place->group) != NULL)
		listen.group = getgrnam(place->group)->gr_gid;
	config.listen = &listen;
	config.listen_count = 1;
	config_print(&config, out);
}

/* The operator's configuration with this handler alone, living in this way.  Everything else of
 * it, limits and users too, stays as it is. */
static int write_config(const struct way *way, const struct way_place *place, FILE *out)
{
	const struct config *from = way->config_data;
	struct handler_config handler = from->handlers[way->config_number];
	struct config config = *from;
	int status;

	(void)place->env;               /* setups belong to suites */
	handler.number = 0;
	handler.process = way->process;
	config.handlers = &handler;
	config.handlers_count = 1;
	status = copy_routes(from, way->config_number, &config);
	if (status == 0)
		ways_write_config(&config, place, out);
	free(config.routes);
	return status;
}

static bool is_in_list(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = list; at != NULL; at = strchr(at, ',') == NULL ? NULL : strchr(at, ',') + 1)
		if (strncmp(at, name, len) == 0 && (at[len] == ',' || at[len] == '\0'))
			return true;
	return false;
}

static int check_list(const char *list, struct err *err)
{
	char *copy = strdup(list), *rest = NULL;
	int status = copy == NULL ? err_set(err, "no memory") : 0;

	for (char *word = status < 0 ? NULL : strtok_r(copy, ",", &rest); word != NULL && status == 0; word = strtok_r(NULL, ",", &rest)) {
		int mode = 0;

		while (config_process_name(mode) != NULL && strcmp(config_process_name(mode), word) != 0)
			mode++;
		if (config_process_name(mode) == NULL)
			status = err_set(err, "there is no process '%s'", word);
	}
	free(copy);
	return status;
}

int ways_add(struct comparison *comparison, const struct config *config, unsigned number, const char *only, struct err *err)
{
	const struct handler_config *handler = &config->handlers[number];

	if (only != NULL && check_list(only, err) < 0)
		return -1;
	for (int mode = 0; config_process_name((enum process_mode)mode) != NULL; mode++) {
		const char *name = config_process_name((enum process_mode)mode);
		struct err refusal;
		bool is_fit = fit_process(handler, (enum process_mode)mode, &refusal) == 0;
		struct way *way;

		if (only != NULL && !is_in_list(only, name))
			continue;
		if (only != NULL && !is_fit)
			return err_set(err, "handler %s cannot be %s: %s", handler->name, name, refusal.text);
		if (!is_fit)
			continue;
		way = comparison_add_way(comparison);
		if (way == NULL || (way->name = strdup(name)) == NULL)
			return err_set(err, "no memory");
		way->write_config = write_config;
		way->config_data = config;
		way->config_number = number;
		way->process = (enum process_mode)mode;
		way->behind = handler->connect.text == NULL ? NULL : &handler->connect;
	}
	return 0;
}

/* "/git/" for a prefix, "/users/1" for a segment. */
static char *path_for(const char *pattern)
{
	char *path = calloc(1, strlen(pattern) + 1), *out = path;

	for (const char *c = pattern; path != NULL && *c != '\0'; c++) {
		if (*c == '*')
			break;
		*out++ = *c == '{' ? '1' : *c;
		if (*c == '{' && strchr(c, '}') != NULL)
			c = strchr(c, '}');
	}
	return path;
}

const struct route_config *ways_route(const struct config *config, unsigned number)
{
	for (size_t i = 0; i < config->routes_count; i++)
		if (config->routes[i].handler == number && config->routes[i].builtin == BUILTIN_NONE)
			return &config->routes[i];
	return NULL;
}

char *ways_path(const struct route_config *route)
{
	return route == NULL ? strdup("/") : path_for(route->path);
}
