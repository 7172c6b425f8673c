/*
 * text.h - borrowed pieces of text, and the few operations on them.
 */
#ifndef FCGI_HOST_BASE_TEXT_H
#define FCGI_HOST_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Borrowed bytes, not NUL-terminated.  ptr may be NULL when len is 0. */
struct slice {
	const char *ptr;
	size_t len;
};

struct slice slice_of(const char *text);        /* NULL gives an empty slice */
bool slice_is(struct slice s, const char *text);        /* equal, exact case */
bool slice_is_nocase(struct slice s, const char *text); /* equal, ASCII case */
struct slice slice_trim(struct slice s);        /* spaces and tabs, both ends */

/* Decimal digits only, no sign, no space.  0, or -1 when it is no number or
 * does not fit. */
int text_to_u64(struct slice s, uint64_t *out);

/* A NUL-terminated copy on the heap; NULL without memory. */
char *slice_dup(struct slice s);

/* The candidate closest to `word` by edit distance, or NULL when none is near
 * enough to be a likely misspelling.  `candidates` ends with NULL. */
const char *text_nearest(const char *word, const char *const *candidates);

#endif
