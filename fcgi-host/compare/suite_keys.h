/*
 * suite_keys.h - maps of a suite's file, each described by a table of rows as the
 * configuration's are (config/keys.h), and the kinds of values that only a suite has.
 */
#ifndef FCGI_HOST_COMPARE_SUITE_KEYS_H
#define FCGI_HOST_COMPARE_SUITE_KEYS_H

#include "config/keys.h"

/* The rows of one map; the scope of a row has no meaning here. */
struct suite_keys {
	const struct key *rows;
	size_t count;
};
#define SUITE_KEYS(array) { (array), sizeof(array) / sizeof((array)[0]) }

/* Reads the site's map into `object`, each key at its row's offset.  0, or -1 after complaining,
 * also about keys that no row has. */
int suite_keys_read(const struct site *site, const struct suite_keys *known, void *object);

/* Calls `read` for each entry of a map whose keys are names of the operator's own: letters,
 * digits, '-', '_' and '.'.  The entry's site has the value.  0, or -1 when something was wrong. */
typedef int suite_entry_fn(const struct site *site, const char *name, void *object);
int suite_names_read(const struct site *site, const char *of_what, suite_entry_fn *read, void *object);

/* The same for maps of texts, whose keys are any text. */
int suite_texts_read(const struct site *site, const char *of_what, suite_entry_fn *read, void *object);

/* Field types are in brackets. */
extern const struct key_kind kind_suite_line;           /* one line, not empty [char *] */
extern const struct key_kind kind_suite_text;           /* [char *] */
extern const struct key_kind kind_suite_number;         /* [uint64_t] */
extern const struct key_kind kind_suite_size;           /* a number [size_t] */
extern const struct key_kind kind_suite_decimal;        /* above 0; max of the row is its greatest [double] */

/* For maps of texts: adds a pair whose texts are copied.  -1 after complaining. */
int suite_pair_add(const struct site *site, struct pair **pairs, size_t *count, const char *name, const char *value);

#endif
