/*
 * suite_handler.c - a handler of a suite: its keys are those of a configuration, and the
 * configuration of its private host is made from them.
 */
#include "compare/suite_private.h"

#include "compare/ways.h"
#include "config/fit.h"
#include "config/rules.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The handler's own variables win over those of the setup. */
static bool has_variable(const struct handler_config *handler, const char *name)
{
	for (size_t i = 0; i < handler->env_count; i++)
		if (strcmp(handler->env[i].name, name) == 0)
			return true;
	return false;
}

/* Both lists in an array of ours; the texts stay whose they are.  NULL without memory. */
static struct pair *merge_env(const struct handler_config *handler, const struct way_place *place, size_t *count_out)
{
	struct pair *env = calloc(handler->env_count + place->env_count + 1, sizeof(*env));

	*count_out = 0;
	for (size_t i = 0; env != NULL && i < handler->env_count; i++)
		env[(*count_out)++] = handler->env[i];
	for (size_t i = 0; env != NULL && i < place->env_count; i++)
		if (!has_variable(handler, place->env[i].name))
			env[(*count_out)++] = place->env[i];
	return env;
}

static int write_config(const struct way *way, const struct way_place *place, FILE *out)
{
	const struct suite_handler *from = way->config_data;
	struct handler_config handler = from->config;
	struct route_config route = { .path = from->load->route };
	struct config config = *from->top;

	handler.env = merge_env(&from->config, place, &handler.env_count);
	if (handler.env == NULL)
		return -1;
	config.handlers = &handler;
	config.handlers_count = 1;
	config.routes = &route;
	config.routes_count = 1;
	ways_write_config(&config, place, out);
	free(handler.env);
	return 0;
}

/* Reading. */

/* What this build does not have yet makes a way that is not run, and no mistake. */
static const char *find_unsupported(const struct scope_source *source)
{
	for (size_t i = 0; i < keys_count; i++) {
		bool is_own;
		const struct node *node = keys[i].scope == SCOPE_HANDLER ? scope_get(source, &keys[i], &is_own) : NULL;
		const struct word *word = node == NULL || node->kind != NODE_SCALAR || keys[i].words == NULL ? NULL :
			word_find(keys[i].words, node->text);

		if (node != NULL && keys[i].is_not_yet)
			return keys[i].name;
		if (word != NULL && word->value == NOT_YET)
			return word->name;
	}
	return NULL;
}

/* Nor is a program that cannot wait: which one it is may differ from machine to machine. */
static bool find_misfit(const struct handler_config *handler, struct err *why)
{
	return config_is_waiting(handler) && handler->command != NULL && handler->command[0] != NULL &&
		fit_process(handler, handler->process, why) != 0;
}

static int refuse(const struct site *site, struct way *way, const char *why)
{
	way->refusal = site_copy(site, why);
	return way->refusal == NULL ? -1 : 0;
}

static bool is_missing(const struct handler_config *handler)
{
	return handler->command != NULL && handler->command[0] != NULL && access(handler->command[0], F_OK) != 0;
}

/* That a program is not there is said by its way, which is not run: a warning would say it twice. */
static int check_rules(const struct site *site, const struct scope_source *source, struct handler_config *handler)
{
	int rc;

	site->reader->is_quiet = true;
	rc = rules_handler(site, source, handler);
	site->reader->is_quiet = false;
	return rc == 0 && is_missing(handler) ? 0 : rules_handler(site, source, handler);
}

static int read_keys(const struct site *site, struct way *way, struct suite_handler *handler)
{
	struct scope_source source = { site->node, site->reader->defaults };
	struct err why;
	int rc = scope_read(site->reader, SCOPE_HANDLER, &source, site->place, &handler->config);

	if (site->node->kind != NODE_MAP)
		return -1;
	if (rc == 0 && find_misfit(&handler->config, &why))
		return refuse(site, way, why.text);
	if (check_rules(site, &source, &handler->config) != 0)
		rc = -1;
	way->process = handler->config.process;
	return rc;
}

static int handler_read(const struct site *site, void *field)
{
	struct suite_reader *reader = (struct suite_reader *)site->reader;
	struct scope_source source = { site->node, site->reader->defaults };
	const char *unsupported = find_unsupported(&source);
	struct suite_handler *handler;
	struct way *way = field;
	struct err why;

	if (unsupported != NULL) {
		err_set(&why, "'%s' is not yet supported", unsupported);
		return refuse(site, way, why.text);
	}
	handler = calloc(1, sizeof(*handler));
	if (handler == NULL)
		return site_no_memory(site);
	*handler = (struct suite_handler){ .top = reader->suite->top, .load = &reader->plan->load, .next = reader->suite->handlers };
	reader->suite->handlers = handler;
	way->write_config = write_config;
	way->config_data = handler;
	handler->config.name = site_copy(site, way->name);
	return handler->config.name == NULL || read_keys(site, way, handler) != 0 ? -1 : 0;
}
const struct key_kind kind_suite_handler = { .name = "map", .read = handler_read };
