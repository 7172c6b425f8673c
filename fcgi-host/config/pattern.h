/*
 * pattern.h - the path of a route: what it may look like, and when two are the
 * same.  Routing itself is route.h's.
 */
#ifndef FCGI_HOST_CONFIG_PATTERN_H
#define FCGI_HOST_CONFIG_PATTERN_H

#include "base/text.h"
#include "config/config.h"

enum { PATTERN_SEGMENTS_MAX = 63, PATTERN_PARAMS_MAX = 16 };

/* "/users/{id}" has two segments, of which the second is a name; with "/" and
 * "*" after it, it is a prefix too. */
struct pattern {
	bool is_prefix;
	unsigned segments;              /* without the '*' of a prefix */
	uint64_t names;                 /* segment i is {name}: bit 63 - i */
};

/* 0, or -1 with what is wrong with the path of a route. */
int pattern_parse(const char *path, struct pattern *out, struct err *err);

/* The next segment of a pattern or a path, without its '/'.  false at the end;
 * for a pattern, before its "*" too.  *rest begins with '/' or is empty. */
bool pattern_next(struct slice *rest, struct slice *segment_out);
/* The text of a pattern without the "/" and "*" that end a prefix. */
struct slice pattern_text(const char *path);
bool pattern_is_name(struct slice segment);     /* "{id}" */

/* Hashes, built up piece by piece: of a path segment by segment, at last of the
 * host.  What is the same hashes the same. */
enum { PATTERN_HASH_START = 0x1505 };
uint32_t pattern_hash_segment(uint32_t hash, struct slice segment);
uint32_t pattern_hash_name(uint32_t hash);
uint32_t pattern_hash_end(uint32_t hash, bool is_prefix, struct slice host);
uint32_t pattern_hash(const char *path, const char *host);      /* host may be NULL */

/* Do both match the same paths, whatever their names are called? */
bool pattern_is_same(const char *a, const char *b);

/* The same, and the same host. */
bool route_is_same_place(const struct route_config *a, const struct route_config *b);

/* Lists end with NULL; NULL is every method; GET stands for HEAD too. */
bool methods_overlap(char *const *a, char *const *b);
bool methods_take(char *const *methods, const char *method);

#endif
