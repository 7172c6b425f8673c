/*
 * route.c - finds the route of a request by hashing instead of searching.
 *
 * Every route sits in one hash table under its pattern and host.  A request
 * looks up its own path, then its path under each shape of pattern that the
 * configuration has ("/users/{id}/posts" is the shape literal, name, literal),
 * then its path up to each '/', longest first: the order in which routes win is
 * the order of the lookups.
 */
#include "route/route.h"

#include "config/pattern.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SHAPE_EXACT = 0, SHAPE_PREFIX = 1, SHAPE_FIRST = 2 };

struct entry {
	uint32_t hash;
	uint32_t next;          /* index + 1 of the next route with the same pattern and host */
	uint32_t shape;         /* SHAPE_EXACT and SHAPE_PREFIX without names, else SHAPE_FIRST + index */
};

struct route_table {
	const struct config *config;
	struct entry *entries;          /* one for each route */
	uint32_t *slots;                /* index + 1 of a route, 0 is free */
	uint32_t mask;
	struct pattern *shapes;         /* those with names, each once, most specific first */
	size_t shapes_count;
	unsigned prefix_segments_max;   /* of prefixes without names */
	bool has_hosts;
};

/* A request's path, cut. */
struct cut_path {
	const char *text;
	struct slice host;
	unsigned segments;              /* all of them, also beyond those below */
	unsigned bounds_count;
	struct { size_t len; uint32_t hash; } bounds[PATTERN_SEGMENTS_MAX + 1];  /* up to the i-th segment's end */
	uint32_t hash;                  /* of the whole path */
};

struct search {
	const struct route_table *table;
	const struct cut_path *path;
	const char *method;
	struct route_match *match;
	bool has_path;                  /* some route takes the path */
};

static int compare_shapes(const void *left, const void *right)
{
	const struct pattern *a = left, *b = right;

	if (a->is_prefix != b->is_prefix)
		return a->is_prefix ? 1 : -1;
	if (a->segments != b->segments)
		return a->segments > b->segments ? -1 : 1;
	/* The one whose first difference is a literal comes first. */
	return a->names < b->names ? -1 : a->names > b->names;
}

static uint32_t find_shape(const struct route_table *table, const struct pattern *pattern)
{
	if (pattern->names == 0)
		return pattern->is_prefix ? SHAPE_PREFIX : SHAPE_EXACT;
	const struct pattern *found = bsearch(pattern, table->shapes, table->shapes_count, sizeof(*pattern), compare_shapes);
	return found == NULL ? SHAPE_EXACT : (uint32_t)(found - table->shapes) + SHAPE_FIRST;
}

/* Gathers the shapes of all routes, each once and in order. */
static void collect_shapes(struct route_table *table)
{
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < table->config->routes_count; i++) {
		struct pattern pattern;
		if (pattern_parse(table->config->routes[i].path, &pattern, NULL) == 0 && pattern.names != 0)
			table->shapes[count++] = pattern;
		else if (pattern.is_prefix && pattern.segments > table->prefix_segments_max)
			table->prefix_segments_max = pattern.segments;
	}
	if (count > 0)
		qsort(table->shapes, count, sizeof(table->shapes[0]), compare_shapes);
	for (size_t i = 0; i < count; i++)
		if (kept == 0 || compare_shapes(&table->shapes[i], &table->shapes[kept - 1]) != 0)
			table->shapes[kept++] = table->shapes[i];
	table->shapes_count = kept;
}

/* Appends to the chain of its place, so that earlier routes are tried first. */
static int chain(struct route_table *table, uint32_t first, uint32_t index, struct err *err)
{
	const struct route_config *routes = table->config->routes;

	for (;; first = table->entries[first].next - 1) {
		if (methods_overlap(routes[first].methods, routes[index].methods))
			return err_set(err, "no request can tell the routes in lines %u and %u apart", routes[first].line,
				routes[index].line);
		if (table->entries[first].next == 0)
			break;
	}
	table->entries[first].next = index + 1;
	return 0;
}

static int insert(struct route_table *table, uint32_t index, struct err *err)
{
	const struct route_config *routes = table->config->routes, *route = &routes[index];
	struct entry *entry = &table->entries[index];
	struct pattern pattern;

	if (pattern_parse(route->path, &pattern, err) != 0)
		return -1;
	*entry = (struct entry){ .hash = pattern_hash(route->path, route->host), .shape = find_shape(table, &pattern) };
	table->has_hosts |= route->host != NULL;
	uint32_t at = entry->hash & table->mask;
	for (; table->slots[at] != 0; at = (at + 1) & table->mask) {
		uint32_t other = table->slots[at] - 1;
		if (table->entries[other].hash == entry->hash && route_is_same_place(&routes[other], route))
			return chain(table, other, index, err);
	}
	table->slots[at] = index + 1;
	return 0;
}

static int allocate(struct route_table *table, size_t count)
{
	uint32_t size = 16;

	while (size < count + count / 2)
		size *= 2;
	table->mask = size - 1;
	table->entries = calloc(count + 1, sizeof(table->entries[0]));
	table->slots = calloc(size, sizeof(table->slots[0]));
	table->shapes = calloc(count + 1, sizeof(table->shapes[0]));
	return table->entries == NULL || table->slots == NULL || table->shapes == NULL ? -1 : 0;
}

/* Most configurations have a handful of shapes for any number of routes. */
static void shrink_shapes(struct route_table *table)
{
	struct pattern *shapes = realloc(table->shapes, (table->shapes_count + 1) * sizeof(*shapes));

	if (shapes != NULL)
		table->shapes = shapes;
}

struct route_table *route_table_new(const struct config *config, struct err *err)
{
	struct route_table *table = calloc(1, sizeof(*table));
	int rc = 0;

	if (table == NULL || allocate(table, config->routes_count) != 0) {
		route_table_free(&table);
		err_set(err, "there is not enough memory for the routes");
		return NULL;
	}
	table->config = config;
	collect_shapes(table);
	shrink_shapes(table);
	for (size_t i = 0; i < config->routes_count && rc == 0; i++)
		rc = insert(table, (uint32_t)i, err);
	if (rc != 0)
		route_table_free(&table);
	return table;
}

void route_table_free(struct route_table **table)
{
	struct route_table *t = *table;

	*table = NULL;
	if (t == NULL)
		return;
	free(t->entries);
	free(t->slots);
	free(t->shapes);
	free(t);
}

/* "example.org." is the same host as "example.org". */
static struct slice host_of(const char *host)
{
	struct slice slice = slice_of(host);

	if (slice.len > 1 && slice.ptr[slice.len - 1] == '.')
		slice.len--;
	return slice;
}

static void cut(const char *text, const char *host, struct cut_path *out)
{
	struct slice rest = slice_of(text), segment;
	uint32_t hash = PATTERN_HASH_START;

	out->text = text;
	out->host = host_of(host);
	out->segments = 0;
	out->bounds[0].len = 0;
	out->bounds[0].hash = hash;
	out->bounds_count = 1;
	while (pattern_next(&rest, &segment)) {
		hash = pattern_hash_segment(hash, segment);
		out->segments++;
		if (out->bounds_count <= PATTERN_SEGMENTS_MAX) {
			out->bounds[out->bounds_count].len = (size_t)(rest.ptr - text);
			out->bounds[out->bounds_count++].hash = hash;
		}
	}
	out->hash = hash;
}

/* Matches the pattern's segments against the beginning of the path.  The rest
 * of the path is what is left: for a route that is no prefix it must be empty. */
static bool match_segments(const char *pattern, const char *path, struct route_match *match, struct slice *rest_out)
{
	struct slice pattern_rest = pattern_text(pattern), wanted, got;

	*rest_out = slice_of(path);
	match->params_count = 0;
	while (pattern_next(&pattern_rest, &wanted)) {
		if (!pattern_next(rest_out, &got))
			return false;
		if (!pattern_is_name(wanted)) {
			if (wanted.len != got.len || memcmp(wanted.ptr, got.ptr, got.len) != 0)
				return false;
			continue;
		}
		if (got.len == 0 || match->params_count == ROUTE_PARAMS_MAX)
			return false;
		match->params[match->params_count].name = (struct slice){ wanted.ptr + 1, wanted.len - 2 };
		match->params[match->params_count++].value = got;
	}
	return true;
}

/* For a prefix *rest is what becomes PATH_INFO. */
static bool match_path(const struct route_config *route, const char *path, struct route_match *match)
{
	struct slice rest;
	bool is_prefix = pattern_text(route->path).len != strlen(route->path);

	if (!match_segments(route->path, path, match, &rest) || (!is_prefix && rest.len > 0))
		return false;
	match->route = route;
	match->script_name_len = (size_t)(rest.ptr - path);
	/* "/" is the whole of its path, yet SCRIPT_NAME has no '/' at its end. */
	if (strcmp(route->path, "/") == 0)
		match->script_name_len = 0;
	return true;
}

bool route_matches(const struct route_config *route, const char *host, const char *path, struct route_match *match_out)
{
	if (route->host != NULL && !slice_is_nocase(host_of(host), route->host))
		return false;
	return match_path(route, path, match_out);
}

/* Adds what a route takes to the list of allowed methods, whole words only. */
static void allow_one(char *allow, size_t size, const char *method)
{
	size_t used = strlen(allow), len = strlen(method);

	for (const char *at = allow; *at != '\0'; at += strcspn(at, " ") + (at[strcspn(at, " ")] != '\0'))
		if (strncmp(at, method, len) == 0 && (at[len] == ',' || at[len] == '\0'))
			return;
	if (used + len + 3 <= size)
		snprintf(allow + used, size - used, "%s%s", used == 0 ? "" : ", ", method);
}

static void allow_all(struct route_match *match, char *const *methods)
{
	for (; methods != NULL && *methods != NULL; methods++) {
		allow_one(match->allow, sizeof(match->allow), *methods);
		if (strcmp(*methods, "GET") == 0)
			allow_one(match->allow, sizeof(match->allow), "HEAD");
	}
}

/* The first route of a chain that takes the method; NULL for none. */
static const struct route_config *take(struct search *search, uint32_t first)
{
	const struct route_table *table = search->table;

	for (uint32_t at = first; at != 0; at = table->entries[at - 1].next) {
		const struct route_config *route = &table->config->routes[at - 1];
		if (methods_take(route->methods, search->method))
			return route;
		search->has_path = true;
		allow_all(search->match, route->methods);
	}
	return NULL;
}

static bool has_host(const struct route_config *route, struct slice host)
{
	return host.len == 0 ? route->host == NULL : route->host != NULL && slice_is_nocase(host, route->host);
}

static bool look_up_host(struct search *search, uint32_t hash, uint32_t shape, size_t len, struct slice host)
{
	const struct route_table *table = search->table;
	hash = pattern_hash_end(hash, shape == SHAPE_PREFIX || (shape >= SHAPE_FIRST
		&& table->shapes[shape - SHAPE_FIRST].is_prefix), host);

	for (uint32_t at = hash & table->mask; table->slots[at] != 0; at = (at + 1) & table->mask) {
		const struct entry *entry = &table->entries[table->slots[at] - 1];
		const struct route_config *route = &table->config->routes[table->slots[at] - 1];
		if (entry->hash != hash || entry->shape != shape || !has_host(route, host)
			|| !match_path(route, search->path->text, search->match))
			continue;
		if (shape == SHAPE_PREFIX && pattern_text(route->path).len != len)
			continue;
		route = take(search, table->slots[at]);
		return route != NULL && match_path(route, search->path->text, search->match);
	}
	return false;
}

/* At the same place a route with the host comes before one without. */
static bool look_up(struct search *search, uint32_t hash, uint32_t shape, size_t len)
{
	if (search->table->has_hosts && search->path->host.len > 0
		&& look_up_host(search, hash, shape, len, search->path->host))
		return true;
	return look_up_host(search, hash, shape, len, (struct slice){ 0 });
}

/* The path's hash under a shape; false where a name would be empty. */
static bool hash_under(const struct cut_path *path, const struct pattern *shape, uint32_t *hash_out)
{
	struct slice rest = slice_of(path->text), segment;
	uint32_t hash = PATTERN_HASH_START;

	for (unsigned i = 0; i < shape->segments && pattern_next(&rest, &segment); i++) {
		bool is_name = shape->names & (UINT64_C(1) << (63 - i));
		if (is_name && segment.len == 0)
			return false;
		hash = is_name ? pattern_hash_name(hash) : pattern_hash_segment(hash, segment);
	}
	*hash_out = hash;
	return true;
}

/* All shapes of one length, from *next on, which is moved past them. */
static bool search_shapes(struct search *search, size_t *next, bool is_prefix, unsigned segments)
{
	const struct route_table *table = search->table;

	for (; *next < table->shapes_count; ++*next) {
		const struct pattern *shape = &table->shapes[*next];
		uint32_t hash;
		if (shape->is_prefix != is_prefix || shape->segments < segments)
			return false;
		if (shape->segments == segments && hash_under(search->path, shape, &hash)
			&& look_up(search, hash, (uint32_t)*next + SHAPE_FIRST, 0))
			return true;
	}
	return false;
}

static bool search_prefixes(struct search *search, size_t *next)
{
	const struct cut_path *path = search->path;

	for (unsigned i = path->bounds_count; i-- > 0; ) {
		if (i <= search->table->prefix_segments_max
			&& look_up(search, path->bounds[i].hash, SHAPE_PREFIX, path->bounds[i].len))
			return true;
		if (search_shapes(search, next, true, i))
			return true;
	}
	return false;
}

static bool search_all(struct search *search)
{
	const struct cut_path *path = search->path;
	size_t next = 0;

	if (look_up(search, path->hash, SHAPE_EXACT, 0) || search_shapes(search, &next, false, path->segments))
		return true;
	while (next < search->table->shapes_count && !search->table->shapes[next].is_prefix)
		next++;
	return search_prefixes(search, &next);
}

enum route_result route_find(const struct route_table *table, const char *method, const char *host,
	const char *path, struct route_match *match_out)
{
	struct cut_path cut_path;
	struct search search = { .table = table, .path = &cut_path, .method = method, .match = match_out };

	match_out->route = NULL;
	match_out->params_count = 0;
	match_out->script_name_len = 0;
	match_out->allow[0] = '\0';
	cut(path, host, &cut_path);
	if (search_all(&search)) {
		match_out->allow[0] = '\0';
		return ROUTE_FOUND;
	}
	match_out->route = NULL;
	match_out->params_count = 0;
	return search.has_path ? ROUTE_WRONG_METHOD : ROUTE_NONE;
}
