/* Which route takes a request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/pattern.h"
#include "route/route.h"

enum { ROUTES_MAX = 10000 };

static struct route_config routes[ROUTES_MAX];
static struct config config;
static char get_text[] = "GET", post_text[] = "POST", put_text[] = "PUT";
static char *get_only[] = { get_text, NULL }, *post_only[] = { post_text, NULL }, *posts[] = { post_text, put_text, NULL };

static void begin(void)
{
	memset(&config, 0, sizeof(config));
	config.routes = routes;
}

static void add(const char *path, const char *host, char **methods)
{
	routes[config.routes_count++] = (struct route_config){ .path = (char *)path, .host = (char *)host, .methods = methods };
}

static struct route_table *table_of(void)
{
	struct err err = { "" };
	struct route_table *table = route_table_new(&config, &err);

	assert_string_equal(err.text, "");
	assert_non_null(table);
	return table;
}

static bool conflicts(const struct route_config *a, const struct route_config *b)
{
	return route_is_same_place(a, b) && methods_overlap(a->methods, b->methods);
}

/* The path of the route that takes it; "404"; or "405". */
static const char *taken(const struct route_table *table, const char *method, const char *host, const char *path,
	struct route_match *match)
{
	switch (route_find(table, method, host, path, match)) {
	case ROUTE_FOUND:
		return match->route->path;
	case ROUTE_NONE:
		return "404";
	case ROUTE_WRONG_METHOD:
		return "405";
	}
	return NULL;
}

static void script_name_and_path_info(void **state)
{
	static const struct {
		const char *route, *path, *script_name;    /* NULL: not taken */
	} cases[] = {
		{ "/hello", "/hello", "/hello" }, { "/hello", "/hello/", NULL }, { "/hello", "/hell", NULL }, { "/hello", "/Hello", NULL },
		{ "/git/*", "/git", "/git" }, { "/git/*", "/git/", "/git" }, { "/git/*", "/git/a/b", "/git" },
		{ "/git/*", "/gitx", NULL }, { "/git/*", "/gi", NULL }, { "/git/*", "/", NULL }, { "/git/*", "/git//x", "/git" },
		{ "/users/{id}", "/users/7", "/users/7" }, { "/users/{id}", "/users/", NULL }, { "/users/{id}", "/users", NULL },
		{ "/users/{id}", "/users/7/", NULL }, { "/users/{id}", "/users/{id}", "/users/{id}" },
		{ "/*", "/a", "" }, { "/*", "/", "" }, { "/*", "/*", "" }, { "/", "/", "" }, { "/", "/a", NULL }, { "/", "//", NULL },
		{ "/u/{id}/*", "/u/7/x/y", "/u/7" }, { "/u/{id}/*", "/u/7", "/u/7" }, { "/u/{id}/*", "/u/7/", "/u/7" },
		{ "/u/{id}/*", "/u//", NULL }, { "/u/{id}/*", "/u", NULL }, { "/docs/", "/docs/", "/docs/" }, { "/docs/", "/docs", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct route_match match;
		begin();
		add(cases[i].route, NULL, NULL);
		struct route_table *table = table_of();
		const char *got = taken(table, "GET", "", cases[i].path, &match);
		if (strcmp(got, cases[i].script_name == NULL ? "404" : cases[i].route) != 0)
			fail_msg("%s for %s: %s", cases[i].path, cases[i].route, got);
		if (cases[i].script_name != NULL) {
			assert_int_equal(match.script_name_len, strlen(cases[i].script_name));
			assert_memory_equal(cases[i].path, cases[i].script_name, match.script_name_len);
		}
		route_table_free(&table);
	}
}

static void the_most_specific_wins(void **state)
{
	static const struct {
		const char *host, *path, *route;
	} cases[] = {
		{ "", "/a/b", "/a/b" }, { "", "/a/c", "/a/{x}" }, { "", "/z/b", "/{x}/b" }, { "", "/z/z", "/{x}/{y}" },
		{ "", "/a/b/c", "/a/b/*" }, { "", "/a/z/c", "/a/{x}/*" }, { "", "/a", "/a/*" }, { "", "/z", "/*" }, { "", "/", "/*" },
		{ "", "/z/y/x/w", "/*" }, { "x.org", "/a/b", "/a/b" }, { "X.ORG", "/only", "/only" }, { "x.org.", "/only", "/only" },
		{ "y.org", "/only", "/*" }, { "", "/only", "/*" },
	};

	(void)state;
	begin();
	const char *const paths[] = { "/*", "/a/*", "/{x}/{y}", "/{x}/b", "/a/{x}", "/a/b/*", "/a/{x}/*", "/a/b" };
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		add(paths[i], NULL, NULL);
	add("/only", "x.org", NULL);
	struct route_table *table = table_of();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct route_match match;
		const char *got = taken(table, "GET", cases[i].host, cases[i].path, &match);
		if (strcmp(got, cases[i].route) != 0)
			fail_msg("%s on '%s': %s", cases[i].path, cases[i].host, got);
	}
	route_table_free(&table);
}

static void a_host_counts_at_the_same_place_only(void **state)
{
	struct route_match match;

	(void)state;
	begin();
	add("/*", "x.org", NULL);
	add("/*", NULL, NULL);
	add("/a", NULL, NULL);
	struct route_table *table = table_of();
	taken(table, "GET", "x.org", "/b", &match);
	assert_ptr_equal(match.route, &routes[0]);
	taken(table, "GET", "y.org", "/b", &match);
	assert_ptr_equal(match.route, &routes[1]);
	taken(table, "GET", "x.org", "/a", &match);
	assert_ptr_equal(match.route, &routes[2]);
	route_table_free(&table);
}

static void names_come_with_their_values(void **state)
{
	struct route_match match;

	(void)state;
	begin();
	add("/{a}/x/{long_name}/*", NULL, NULL);
	struct route_table *table = table_of();
	taken(table, "GET", "", "/one/x/two/three", &match);
	assert_int_equal(match.params_count, 2);
	assert_true(slice_is(match.params[0].name, "a"));
	assert_true(slice_is(match.params[0].value, "one"));
	assert_true(slice_is(match.params[1].name, "long_name"));
	assert_true(slice_is(match.params[1].value, "two"));
	route_table_free(&table);
}

static void the_method_decides_only_after_the_path(void **state)
{
	struct route_match match;

	(void)state;
	begin();
	add("/a", NULL, get_only);
	add("/a", NULL, posts);
	add("/a/*", NULL, post_only);
	add("/b", NULL, post_only);
	add("/*", NULL, get_only);
	struct route_table *table = table_of();
	assert_string_equal(taken(table, "HEAD", "", "/a", &match), "/a");
	assert_ptr_equal(match.route, &routes[0]);
	assert_string_equal(taken(table, "PUT", "", "/a", &match), "/a");
	assert_ptr_equal(match.route, &routes[1]);
	assert_string_equal(taken(table, "GET", "", "/b", &match), "/*");
	assert_string_equal(match.allow, "");
	assert_string_equal(taken(table, "DELETE", "", "/a", &match), "405");
	assert_string_equal(match.allow, "GET, HEAD, POST, PUT");
	assert_null(match.route);
	assert_string_equal(taken(table, "get", "", "/z", &match), "405");
	assert_string_equal(match.allow, "GET, HEAD");
	route_table_free(&table);
}

static void many_methods_are_listed_in_whole_words(void **state)
{
	static char names[60][20];
	static char *many[61];
	struct route_match match;

	(void)state;
	for (int i = 0; i < 60; i++) {
		snprintf(names[i], sizeof(names[i]), "METHOD%d", i);
		many[i] = names[i];
	}
	begin();
	add("/a", NULL, many);
	struct route_table *table = table_of();
	assert_string_equal(taken(table, "METHOD", "", "/a", &match), "405");
	assert_true(strlen(match.allow) > 230 && strlen(match.allow) < sizeof(match.allow));
	assert_null(strstr(match.allow, "METHOD59"));
	assert_true(match.allow[strlen(match.allow) - 1] != ',');
	route_table_free(&table);
}

static void routes_that_nothing_tells_apart_are_refused(void **state)
{
	struct route_table *table;
	struct err err;

	(void)state;
	begin();
	add("/u/{id}", NULL, get_only);
	add("/u/{name}", NULL, NULL);
	assert_true(conflicts(&routes[0], &routes[1]));
	assert_null(route_table_new(&config, &err));
	assert_non_null(strstr(err.text, "apart"));
	routes[1].host = post_text;
	assert_false(conflicts(&routes[0], &routes[1]));
	table = table_of();
	route_table_free(&table);
}

/* Smaller is more specific; a literal counts before a name, from the left. */
static int rank(const struct route_config *a, const struct route_config *b)
{
	struct pattern p, q;

	pattern_parse(a->path, &p, NULL);
	pattern_parse(b->path, &q, NULL);
	if (p.is_prefix != q.is_prefix)
		return p.is_prefix ? 1 : -1;
	if (p.segments != q.segments)
		return p.segments > q.segments ? -1 : 1;
	if (p.names != q.names)
		return p.names < q.names ? -1 : 1;
	return a->host != NULL ? -1 : 1;
}

static const struct route_config *find_slowly(const char *method, const char *host, const char *path)
{
	const struct route_config *best = NULL;

	for (size_t i = 0; i < config.routes_count; i++) {
		struct route_match match;
		if (route_matches(&routes[i], host, path, &match) && methods_take(routes[i].methods, method)
			&& (best == NULL || rank(&routes[i], best) < 0))
			best = &routes[i];
	}
	return best;
}

static unsigned random_below(unsigned limit)
{
	static uint64_t seed = 1;

	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(seed >> 33) % limit;
}

static void random_path(char *out, size_t size, bool is_route)
{
	static const char *const segments[] = { "a", "b", "cc", "{x}" };
	unsigned count = random_below(5);

	out[0] = '\0';
	for (unsigned i = 0; i < count; i++) {
		unsigned which = random_below(is_route ? 4 : 3);
		size_t used = strlen(out);
		if (which == 3)
			snprintf(out + used, size - used, "/{x%u}", i);
		else
			snprintf(out + used, size - used, "/%s", !is_route && random_below(9) == 0 ? "" : segments[which]);
	}
	if (is_route && random_below(2) == 0)
		strcat(out, "/*");
	else if (out[0] == '\0' || random_below(8) == 0)
		strcat(out, "/");
}

static void the_table_finds_what_a_search_through_all_finds(void **state)
{
	static char paths[60][64];
	static char *const *const methods[] = { NULL, get_only, post_only };
	static const char *const hosts[] = { NULL, "x.org", "y.org" }, *const asked[] = { "GET", "POST", "PUT" };

	(void)state;
	for (int round = 0; round < 60; round++) {
		begin();
		for (int i = 0; i < 60; i++) {
			random_path(paths[i], sizeof(paths[i]), true);
			add(paths[i], hosts[random_below(3)], (char **)methods[random_below(3)]);
			for (size_t j = 0; j + 1 < config.routes_count; j++)
				if (conflicts(&routes[j], &routes[config.routes_count - 1])) {
					config.routes_count--;
					break;
				}
		}
		struct route_table *table = table_of();
		for (int i = 0; i < 200; i++) {
			char path[64];
			struct route_match match;
			const char *host = hosts[random_below(3)], *method = asked[random_below(3)];
			random_path(path, sizeof(path), false);
			route_find(table, method, host == NULL ? "" : host, path, &match);
			const struct route_config *slow = find_slowly(method, host == NULL ? "" : host, path);
			if (match.route != slow)
				fail_msg("%s %s: %s, not %s", method, path, match.route == NULL ? "none" : match.route->path,
					slow == NULL ? "none" : slow->path);
		}
		route_table_free(&table);
	}
}

static void ten_thousand_routes_and_paths_of_any_length(void **state)
{
	static char paths[ROUTES_MAX][32];
	static char path[70000];
	struct route_match match;

	(void)state;
	begin();
	for (int i = 0; i < ROUTES_MAX; i++) {
		snprintf(paths[i], sizeof(paths[i]), i % 3 == 0 ? "/app%d" : i % 3 == 1 ? "/app%d/*" : "/app%d/{id}", i);
		add(paths[i], NULL, NULL);
	}
	struct route_table *table = table_of();
	assert_string_equal(taken(table, "GET", "h", "/app9999", &match), "/app9999");
	assert_string_equal(taken(table, "GET", "h", "/app9997/x", &match), "/app9997/*");
	assert_string_equal(taken(table, "GET", "h", "/app9998/x", &match), "/app9998/{id}");
	assert_string_equal(taken(table, "GET", "h", "/app10000", &match), "404");
	memset(path, '/', sizeof(path) - 1);
	assert_string_equal(taken(table, "GET", "h", path, &match), "404");
	memcpy(path, "/app1", 5);
	assert_string_equal(taken(table, "GET", "h", path, &match), "/app1/*");
	route_table_free(&table);
}

static void no_routes_take_nothing(void **state)
{
	struct route_match match;

	(void)state;
	begin();
	struct route_table *table = table_of();
	assert_string_equal(taken(table, "GET", "", "/", &match), "404");
	route_table_free(&table);
	route_table_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(script_name_and_path_info),
		cmocka_unit_test(the_most_specific_wins),
		cmocka_unit_test(a_host_counts_at_the_same_place_only),
		cmocka_unit_test(names_come_with_their_values),
		cmocka_unit_test(the_method_decides_only_after_the_path),
		cmocka_unit_test(many_methods_are_listed_in_whole_words),
		cmocka_unit_test(routes_that_nothing_tells_apart_are_refused),
		cmocka_unit_test(the_table_finds_what_a_search_through_all_finds),
		cmocka_unit_test(ten_thousand_routes_and_paths_of_any_length),
		cmocka_unit_test(no_routes_take_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
