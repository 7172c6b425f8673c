/*
 * suite_request.c - the load of a suite: what is asked, how often and how much at a time.
 */
#include "compare/suite_private.h"

#include "compare/target.h"
#include "config/pattern.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 60000, OPEN_CONCURRENCY = 256 /* so that it is not the places that limit */, REQUESTS_MAX = 1000000000, RATE_MAX = 10000000 };

static const struct word kind_words[] = { { "closed", SCHEDULE_CLOSED }, { "open", SCHEDULE_OPEN }, { NULL, 0 } };

/* As RFC 9110 has it. */
static bool is_token(const char *text)
{
	static const char marks[] = "!#$%&'*+-.^_`|~";

	for (const char *c = text; *c != '\0'; c++)
		if (!(*c >= '0' && *c <= '9') && !(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z') && strchr(marks, *c) == NULL)
			return false;
	return text[0] != '\0';
}

static int method_read(const struct site *site, void *field)
{
	const char *text = site_text(site);

	if (text == NULL)
		return -1;
	return is_token(text) ? kind_suite_line.read(site, field) : site_error(site, "'%s' is no method of a request", text);
}
static const struct key_kind kind_method = { .name = "method", .read = method_read };

/* "{1..1000}"; 0 where there is none, -1 after complaining. */
static int check_numbers(const struct site *site, const char *path)
{
	const char *from = strchr(path, '{');
	unsigned long long first, last;
	int len = 0;

	if (from == NULL)
		return 0;
	if (sscanf(from, "{%llu..%llu}%n", &first, &last, &len) != 2 || len == 0 || last < first || strchr(from + len, '{') != NULL)
		return site_error(site, "'%s': in a path there is one number, as in {1..1000}", path);
	return last - first < TARGET_VARIANTS_MAX ? 0 :
		site_error(site, "'%s': there are more than %d numbers", path, TARGET_VARIANTS_MAX);
}

static int path_read(const struct site *site, void *field)
{
	const char *text = site_text(site);

	if (text == NULL)
		return -1;
	if (text[0] != '/')
		return site_error(site, "'%s' does not begin with '/'", text);
	for (const char *c = text; *c != '\0'; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f || *c == '#')
			return site_error(site, "'%s' holds a character that no URL has: write it as %%%02x", text, (unsigned char)*c);
	return check_numbers(site, text) != 0 ? -1 : kind_suite_line.read(site, field);
}
static const struct key_kind kind_path_asked = { .name = "path", .read = path_read };

/* Headers. */

struct headers { char ***list; size_t count; };

static int add_header(const struct site *site, const char *name, void *object)
{
	struct headers *headers = object;
	const char *value = site_text(site);
	char **more;

	if (value == NULL)
		return -1;
	if (!is_token(name))
		return site_error(site, "'%s' is no name of a header field", name);
	for (const char *c = value; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return site_error(site, "holds a byte that no header field can have");
	more = realloc(*headers->list, (headers->count + 2) * sizeof(*more));
	if (more == NULL)
		return site_no_memory(site);
	*headers->list = more;
	more[headers->count + 1] = NULL;
	if (asprintf(&more[headers->count], "%s: %s", name, value) < 0) {
		more[headers->count] = NULL;
		return site_no_memory(site);
	}
	headers->count++;
	return 0;
}

static int headers_read(const struct site *site, void *field)
{
	struct headers headers = { .list = field };

	return suite_texts_read(site, "names and values", add_header, &headers);
}
static const struct key_kind kind_headers = { .name = "map", .read = headers_read };

/* What is expected. */

#define LOAD(field) .offset = offsetof(struct load_plan, field)

static const struct key expect_rows[] = {
	{ LOAD(status), .name = "status", .kind = &kind_count, .min = 200, .max = 599, .fallback = "200" },
	{ LOAD(contains), .name = "contains", .kind = &kind_suite_text },
};

static int expect_read(const struct site *site, void *load)
{
	static const struct suite_keys known = SUITE_KEYS(expect_rows);

	return suite_keys_read(site, &known, load);
}
static const struct key_kind kind_expect = { .name = "map", .read = expect_read };

/* The whole of it. */

static const struct key load_rows[] = {
	{ LOAD(kind), .name = "kind", .kind = &kind_word, .words = kind_words, .fallback = "closed" },
	{ LOAD(requests), .name = "requests", .kind = &kind_suite_number, .min = 1, .max = REQUESTS_MAX, .fallback = "1000" },
	{ LOAD(blocks), .name = "blocks", .kind = &kind_suite_size, .min = PLAN_BLOCKS_MIN, .max = PLAN_BLOCKS_MAX, .fallback = "20" },
	{ LOAD(concurrency), .name = "concurrency", .kind = &kind_suite_size, .min = 1, .max = PLAN_CONCURRENCY_MAX, .fallback = "1" },
	{ LOAD(rate_per_s), .name = "rate", .kind = &kind_suite_decimal, .max = RATE_MAX },
	{ LOAD(method), .name = "method", .kind = &kind_method },
	{ LOAD(path), .name = "path", .kind = &kind_path_asked, .fallback = "/" },
	{ LOAD(route), .name = "route", .kind = &kind_route_path },
	{ LOAD(headers), .name = "headers", .kind = &kind_headers },
	{ LOAD(body), .name = "body", .kind = &kind_suite_text },
	{ LOAD(keep), .name = "keep", .kind = &kind_bool, .fallback = "true" },
	{ LOAD(via), .name = "via", .kind = &kind_word, .words = suite_via_words, .fallback = "none" },
	{ .name = "expect", .kind = &kind_expect },
};

static int error_at_key(const struct site *site, const char *name, const char *what)
{
	struct place place = { site->place, name, 0 };
	struct site at = { site->reader, NULL, &place, node_get(site->node, slice_of(name)) };

	if (at.node == NULL)
		at = *site;
	return site_error(&at, "%s", what);
}

static int check_load(const struct site *site, const struct load_plan *load)
{
	bool has_rate = node_get(site->node, slice_of("rate")) != NULL;
	int rc = 0;

	if (load->kind == SCHEDULE_OPEN && !has_rate)
		rc = site_error(site, "'rate' is missing: kind: open sends at a rate");
	if (load->kind == SCHEDULE_CLOSED && has_rate)
		rc = error_at_key(site, "rate", "goes with kind: open only");
	if (load->blocks % 2 != 0)
		rc = error_at_key(site, "blocks", "is odd: blocks come in pairs, of which one is run in reverse order");
	if (load->requests != 0 && load->requests < load->blocks)
		rc = error_at_key(site, "requests", "is less than one for each block");
	return rc;
}

/* A path without numbers is its own route; what no route can look like is left to the one for everything. */
static char *route_for(const char *path)
{
	char *route = slice_dup((struct slice){ path, strcspn(path, "?") });
	struct pattern pattern;

	if (route != NULL && (strpbrk(route, "{%*") != NULL || pattern_parse(route, &pattern, NULL) != 0)) {
		free(route);
		route = strdup("/*");
	}
	return route;
}

static int complete(const struct site *site, struct load_plan *load)
{
	load->timeout_ms = TIMEOUT_MS;
	if (load->kind == SCHEDULE_OPEN && node_get(site->node, slice_of("concurrency")) == NULL)
		load->concurrency = OPEN_CONCURRENCY;
	load->body_len = load->body == NULL ? 0 : strlen(load->body);
	if (load->method == NULL)
		load->method = site_copy(site, load->body == NULL ? "GET" : "POST");
	if (load->route == NULL && load->path != NULL && (load->route = route_for(load->path)) == NULL)
		return site_no_memory(site);
	return load->method == NULL ? -1 : 0;
}

static int load_read(const struct site *site, void *field)
{
	static const struct suite_keys known = SUITE_KEYS(load_rows);
	struct load_plan *load = field;
	int rc;

	load->status = 200;             /* without `expect` */
	rc = suite_keys_read(site, &known, load);
	if (site->node->kind != NODE_MAP)
		return rc;
	if (check_load(site, load) != 0)
		rc = -1;
	return complete(site, load) != 0 ? -1 : rc;
}
const struct key_kind kind_suite_load = { .name = "map", .read = load_read };
