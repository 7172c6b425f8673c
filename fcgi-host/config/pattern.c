/*
 * pattern.c - reads, hashes and compares the paths of routes.
 */
#include "config/pattern.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool is_prefix_text(const char *path)
{
	size_t len = strlen(path);

	return len >= 2 && path[len - 1] == '*' && path[len - 2] == '/';
}

struct slice pattern_text(const char *path)
{
	struct slice text = slice_of(path);

	if (is_prefix_text(path))
		text.len -= 2;
	return text;
}

bool pattern_next(struct slice *rest, struct slice *segment_out)
{
	if (rest->len == 0)
		return false;
	rest->ptr++;
	rest->len--;
	const char *slash = memchr(rest->ptr, '/', rest->len);
	*segment_out = (struct slice){ rest->ptr, slash == NULL ? rest->len : (size_t)(slash - rest->ptr) };
	rest->ptr += segment_out->len;
	rest->len -= segment_out->len;
	return true;
}

bool pattern_is_name(struct slice segment)
{
	return segment.len > 0 && segment.ptr[0] == '{';
}

static int check_name(const char *path, struct slice segment, struct err *err)
{
	if (segment.len < 3 || segment.ptr[segment.len - 1] != '}')
		return err_set(err, "'%s': a name takes a whole segment, as in /users/{id}", path);
	for (size_t i = 1; i < segment.len - 1; i++) {
		unsigned char c = (unsigned char)segment.ptr[i];
		if (c != '_' && !isalpha(c) && (i == 1 || !isdigit(c)))
			return err_set(err, "'%s': '%.*s' is not made of letters, digits and '_'", path, (int)segment.len, segment.ptr);
	}
	return 0;
}

static int check_literal(const char *path, struct slice segment, struct err *err)
{
	if (slice_is(segment, ".") || slice_is(segment, ".."))
		return err_set(err, "'%s': no request has a path with '.' or '..' in it", path);
	for (size_t i = 0; i < segment.len; i++) {
		unsigned char c = (unsigned char)segment.ptr[i];
		if (c == '*')
			return err_set(err, "'%s': '*' stands at the end only, as in /git/*", path);
		if (c == '{' || c == '}')
			return err_set(err, "'%s': a name takes a whole segment, as in /users/{id}", path);
		if (c == '?' || c == '#')
			return err_set(err, "'%s': a route is a path, without query or fragment", path);
		if (c == '%' && i + 2 < segment.len && isxdigit((unsigned char)segment.ptr[i + 1])
			&& isxdigit((unsigned char)segment.ptr[i + 2]))
			return err_set(err, "'%s': write it decoded, without %%%.2s", path, segment.ptr + i + 1);
		if (c < ' ' || c == 0x7f)
			return err_set(err, "'%s' has a control character", path);
	}
	return 0;
}

/* Are two of the names the same once they are upper case? */
static int check_names_differ(const char *path, struct err *err)
{
	struct slice names[PATTERN_PARAMS_MAX], rest = pattern_text(path), segment;
	size_t count = 0;

	while (pattern_next(&rest, &segment)) {
		if (!pattern_is_name(segment))
			continue;
		if (count == PATTERN_PARAMS_MAX)
			return err_set(err, "'%s' has more than %d names", path, PATTERN_PARAMS_MAX);
		for (size_t i = 0; i < count; i++)
			if (names[i].len == segment.len && strncasecmp(names[i].ptr, segment.ptr, segment.len) == 0)
				return err_set(err, "'%s' has the name %.*s twice", path, (int)segment.len, segment.ptr);
		names[count++] = segment;
	}
	return 0;
}

static int read_segments(const char *path, struct pattern *out, struct err *err)
{
	struct slice rest = pattern_text(path), segment;

	while (pattern_next(&rest, &segment)) {
		if (segment.len == 0 && (rest.len > 0 || out->is_prefix))
			return err_set(err, "'%s' has an empty segment ('//')", path);
		if (out->segments == PATTERN_SEGMENTS_MAX)
			return err_set(err, "'%s' has more than %d segments", path, PATTERN_SEGMENTS_MAX);
		bool is_name = pattern_is_name(segment);
		if ((is_name ? check_name(path, segment, err) : check_literal(path, segment, err)) != 0)
			return -1;
		if (is_name)
			out->names |= UINT64_C(1) << (63 - out->segments);
		out->segments++;
	}
	return 0;
}

int pattern_parse(const char *path, struct pattern *out, struct err *err)
{
	*out = (struct pattern){ .is_prefix = is_prefix_text(path) };
	if (path[0] != '/')
		return err_set(err, "'%s' does not begin with '/'", path);
	if (read_segments(path, out, err) != 0)
		return -1;
	return check_names_differ(path, err);
}

/* FNV-1a, 32 bits. */
static uint32_t hash_byte(uint32_t hash, unsigned char byte)
{
	return (hash ^ byte) * UINT32_C(16777619);
}

uint32_t pattern_hash_segment(uint32_t hash, struct slice segment)
{
	hash = hash_byte(hash, '/');
	for (size_t i = 0; i < segment.len; i++)
		hash = hash_byte(hash, (unsigned char)segment.ptr[i]);
	return hash;
}

uint32_t pattern_hash_name(uint32_t hash)
{
	return hash_byte(hash_byte(hash, '/'), 0);
}

uint32_t pattern_hash_end(uint32_t hash, bool is_prefix, struct slice host)
{
	hash = hash_byte(hash, is_prefix ? 1 : 2);
	for (size_t i = 0; i < host.len; i++)
		hash = hash_byte(hash, (unsigned char)tolower((unsigned char)host.ptr[i]));
	return hash ^ (hash >> 15);
}

uint32_t pattern_hash(const char *path, const char *host)
{
	struct slice rest = pattern_text(path), segment;
	uint32_t hash = PATTERN_HASH_START;

	while (pattern_next(&rest, &segment))
		hash = pattern_is_name(segment) ? pattern_hash_name(hash) : pattern_hash_segment(hash, segment);
	return pattern_hash_end(hash, is_prefix_text(path), slice_of(host));
}

bool pattern_is_same(const char *a, const char *b)
{
	struct slice rest_a = pattern_text(a), rest_b = pattern_text(b), segment_a, segment_b;

	if (is_prefix_text(a) != is_prefix_text(b))
		return false;
	for (;;) {
		bool has_a = pattern_next(&rest_a, &segment_a), has_b = pattern_next(&rest_b, &segment_b);
		if (!has_a || !has_b)
			return has_a == has_b;
		bool is_name = pattern_is_name(segment_a);
		if (is_name != pattern_is_name(segment_b))
			return false;
		if (!is_name && (segment_a.len != segment_b.len || memcmp(segment_a.ptr, segment_b.ptr, segment_a.len) != 0))
			return false;
	}
}

bool route_is_same_place(const struct route_config *a, const struct route_config *b)
{
	if ((a->host == NULL) != (b->host == NULL) || (a->host != NULL && strcasecmp(a->host, b->host) != 0))
		return false;
	return pattern_is_same(a->path, b->path);
}

bool methods_take(char *const *methods, const char *method)
{
	if (methods == NULL)
		return true;
	for (; *methods != NULL; methods++)
		if (strcmp(*methods, method) == 0 || (strcmp(*methods, "GET") == 0 && strcmp(method, "HEAD") == 0))
			return true;
	return false;
}

bool methods_overlap(char *const *a, char *const *b)
{
	if (a == NULL || b == NULL)
		return true;
	for (char *const *method = a; *method != NULL; method++)
		if (methods_take(b, *method))
			return true;
	for (char *const *method = b; *method != NULL; method++)
		if (methods_take(a, *method))
			return true;
	return false;
}
