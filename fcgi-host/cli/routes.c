/*
 * routes.c - `fcgi-host routes`: the table of routes, or which of them takes a
 * request, and why.
 */
#include "cli/cli.h"

#include "base/text.h"
#include "config/config.h"
#include "config/pattern.h"
#include "route/route.h"
#include "wire/cgi_request.h"

#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 6, CELL_BYTES = 512 };

static const struct option options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ NULL, 0, NULL, 0 },
};

/* What is asked for: "GET http://host/path?query". */
struct question {
	const char *method, *url;
	char host[256];
	char *path;             /* decoded; ours */
};

static const char *join(char *const *texts, const char *between, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (; *texts != NULL && used < size; texts++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", used == 0 ? "" : between, *texts);
	return out;
}

static const char *methods_of(const struct route_config *route, char *out, size_t size)
{
	return route->methods == NULL ? "*" : join(route->methods, ",", out, size);
}

static const char *program_of(const struct handler_config *handler, char *out, size_t size)
{
	if (handler->command != NULL)
		return join(handler->command, " ", out, size);
	return handler->scripts != NULL ? handler->scripts : handler->connect.text;
}

struct row {
	const char *cells[COLUMNS];
	char methods[CELL_BYTES], program[CELL_BYTES];
};

static void fill_row(struct row *row, const struct config *config, const struct route_config *route)
{
	const struct handler_config *handler;

	row->cells[0] = route->host == NULL ? "*" : route->host;
	row->cells[1] = methods_of(route, row->methods, sizeof(row->methods));
	row->cells[2] = route->path;
	if (route->builtin != BUILTIN_NONE) {
		row->cells[3] = config_builtin_name(route->builtin);
		row->cells[4] = "builtin";
		row->cells[5] = "-";
		return;
	}
	handler = &config->handlers[route->handler];
	row->cells[3] = handler->name;
	row->cells[4] = handler->connect.text != NULL ? "connect" : config_process_name(handler->process);
	row->cells[5] = program_of(handler, row->program, sizeof(row->program));
}

static void print_row(const struct row *row, const int *widths)
{
	for (int column = 0; column < COLUMNS - 1; column++)
		printf("%-*s  ", widths[column], row->cells[column]);
	puts(row->cells[COLUMNS - 1]);
}

static void widen(const struct row *row, int *widths)
{
	for (int column = 0; column < COLUMNS; column++) {
		int len = (int)strlen(row->cells[column]);
		if (len > widths[column])
			widths[column] = len;
	}
}

static void print_table(const struct config *config)
{
	struct row head = { .cells = { "HOST", "METHODS", "PATH", "HANDLER", "PROCESS", "PROGRAM" } }, row;
	int widths[COLUMNS] = { 0 };

	widen(&head, widths);
	for (size_t i = 0; i < config->routes_count; i++) {
		fill_row(&row, config, &config->routes[i]);
		widen(&row, widths);
	}
	print_row(&head, widths);
	for (size_t i = 0; i < config->routes_count; i++) {
		fill_row(&row, config, &config->routes[i]);
		print_row(&row, widths);
	}
}

static const char *kind_of(const struct pattern *pattern)
{
	if (pattern->is_prefix)
		return pattern->names == 0 ? "a prefix" : "a prefix with names";
	return pattern->names == 0 ? "an exact path" : "a pattern";
}

/* Why `other`, which matches too, comes after the winner. */
static void print_why_not(const struct route_config *winner, const struct route_config *other, const char *method)
{
	struct pattern a, b;
	char methods[CELL_BYTES];

	if (!methods_take(other->methods, method)) {
		printf("takes %s only", methods_of(other, methods, sizeof(methods)));
		return;
	}
	if (winner == NULL || pattern_parse(winner->path, &a, NULL) != 0 || pattern_parse(other->path, &b, NULL) != 0)
		return;
	if (a.is_prefix != b.is_prefix || (!a.is_prefix && (a.names == 0) != (b.names == 0)))
		printf("%s comes after %s", kind_of(&b), kind_of(&a));
	else if (a.segments != b.segments)
		printf("a shorter prefix");
	else if (a.names != b.names)
		printf("a name where the other has a fixed segment");
	else
		printf("without a host, it comes after one with");
}

static void print_others(const struct config *config, const struct question *question, const struct route_config *winner)
{
	bool is_first = true;

	for (size_t i = 0; i < config->routes_count; i++) {
		const struct route_config *other = &config->routes[i];
		struct route_match match;
		if (other == winner || !route_matches(other, question->host, question->path, &match))
			continue;
		if (is_first)
			puts("others that match:");
		is_first = false;
		printf("  %s%s%s (line %u), %s %s: ", other->path, other->host != NULL ? " on " : "",
			other->host != NULL ? other->host : "", other->line,
			other->builtin != BUILTIN_NONE ? "builtin" : "handler",
			other->builtin != BUILTIN_NONE ? config_builtin_name(other->builtin) : config->handlers[other->handler].name);
		print_why_not(winner, other, question->method);
		putchar('\n');
	}
}

static void print_why(const struct route_match *match)
{
	const struct route_config *route = match->route;
	struct pattern pattern;

	if (pattern_parse(route->path, &pattern, NULL) != 0)
		return;
	printf("  because       %s%s\n", pattern.is_prefix ? "it is the longest prefix that matches"
		: pattern.names == 0 ? "its path is exactly this one" : "each of its names takes one segment",
		route->host != NULL ? ", for this host" : "");
}

static void print_handler(const struct handler_config *handler)
{
	char program[CELL_BYTES];

	printf("  handler       %s (%s, %s)\n", handler->name, config_protocol_name(handler->protocol),
		handler->connect.text != NULL ? "connect" : config_process_name(handler->process));
	printf("  program       %s\n", program_of(handler, program, sizeof(program)));
}

static void print_winner(const struct config *config, const struct question *question, const struct route_match *match)
{
	const struct route_config *route = match->route;

	printf("%s %s: %s%s%s (line %u)\n", question->method, question->url, route->path, route->host != NULL ? " on " : "",
		route->host != NULL ? route->host : "", route->line);
	print_why(match);
	if (route->builtin != BUILTIN_NONE)
		printf("  builtin       %s\n", config_builtin_name(route->builtin));
	else
		print_handler(&config->handlers[route->handler]);
	printf("  SCRIPT_NAME   %.*s\n", (int)match->script_name_len, question->path);
	printf("  PATH_INFO     %s\n", question->path + match->script_name_len);
	for (size_t i = 0; i < match->params_count; i++) {
		const struct slice *name = &match->params[i].name, *value = &match->params[i].value;
		fputs("  PARAM_", stdout);
		for (size_t j = 0; j < name->len; j++)
			putchar(toupper((unsigned char)name->ptr[j]));
		printf("%*s  %.*s\n", name->len < 6 ? 6 - (int)name->len : 0, "", (int)value->len, value->ptr);
	}
}

static int answer(const struct config *config, const struct route_table *table, const struct question *question)
{
	struct route_match match;
	enum route_result result = route_find(table, question->method, question->host, question->path, &match);

	if (result == ROUTE_FOUND)
		print_winner(config, question, &match);
	else if (result == ROUTE_WRONG_METHOD)
		printf("%s %s: 405, the path takes %s\n", question->method, question->url, match.allow);
	else
		printf("%s %s: 404, no route matches\n", question->method, question->url);
	print_others(config, question, match.route);
	return result == ROUTE_FOUND ? EXIT_FINE : EXIT_MISTAKE;
}

/* Host and path of the URL; without an origin the host is unknown. */
static int read_url(struct question *question, struct err *err)
{
	const char *origin = strstr(question->url, "://");
	bool has_origin = origin != NULL && origin < question->url + strcspn(question->url, "/?#");

	if (!has_origin && question->url[0] != '/')
		return err_set(err, "'%s' is neither a path such as /hello nor a URL such as http://www.example.org/hello",
			question->url);
	if (has_origin) {
		const char *host = origin + 3;
		size_t len = host[0] == '[' ? strcspn(host, "]/?#") + 1 : strcspn(host, ":/?#");
		snprintf(question->host, sizeof(question->host), "%.*s", (int)len, host);
	}
	return cgi_path_decode(slice_of(question->url), &question->path, err);
}

static int ask(const struct config *config, struct question *question)
{
	struct err err;
	struct route_table *table = NULL;

	if (read_url(question, &err) != 0 || (table = route_table_new(config, &err)) == NULL) {
		fprintf(stderr, "fcgi-host routes: %s\n", err.text);
		free(question->path);
		return EXIT_MISTAKE;
	}
	int status = answer(config, table, question);
	route_table_free(&table);
	free(question->path);
	return status;
}

static int routes(const char *file, struct question *question)
{
	struct config *config = cli_load(file);
	int status = EXIT_FINE;

	if (config == NULL)
		return EXIT_MISTAKE;
	if (question->method == NULL)
		print_table(config);
	else
		status = ask(config, question);
	config_free(&config);
	return status;
}

int cli_routes(int argc, char **argv)
{
	const char *file = config_default_file();
	struct question question = { 0 };
	int option;

	optind = 1;
	while ((option = getopt_long(argc, argv, "+c:", options, NULL)) != -1) {
		if (option != 'c')
			return cli_usage("routes", CLI_ROUTES_USAGE);
		file = optarg;
	}
	if (argc - optind != 0 && argc - optind != 2)
		return cli_usage("routes", CLI_ROUTES_USAGE);
	if (argc - optind == 2) {
		question.method = argv[optind];
		question.url = argv[optind + 1];
	}
	return routes(file, &question);
}
