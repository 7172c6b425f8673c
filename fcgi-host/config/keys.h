/*
 * keys.h - the one table of keys.  Reading, checking, printing, giving back and
 * the reference manual all go by it: a key is added or becomes supported here
 * and nowhere else.
 */
#ifndef FCGI_HOST_CONFIG_KEYS_H
#define FCGI_HOST_CONFIG_KEYS_H

#include "config/kinds.h"

/* Where a key may stand: at the top, in an entry of `listen`, of `handlers`
 * (and in `defaults`), of `routes`. */
enum key_scope { SCOPE_TOP, SCOPE_LISTEN, SCOPE_HANDLER, SCOPE_ROUTE };

enum { NOT_YET = -1 };

struct word {
	const char *name;       /* NULL ends a list */
	int value;              /* NOT_YET: "not yet supported" */
};

struct key {
	enum key_scope scope;
	const char *name;       /* "timeout", or "timeout.response" inside of it */
	const struct key_kind *kind;
	size_t offset;          /* of the field, in the struct of the scope */
	uint64_t min, max;      /* of numbers, sizes and times, in the unit of the field */
	const char *fallback;   /* the default as it would be written; NULL: unset */
	const char *fallback_note;      /* for the manual, where the default depends */
	const struct word *words;
	const char *help;
	bool is_not_yet;        /* "not yet supported" */
	bool is_program;        /* one of the three ways to name a program */
	bool is_needed;         /* an error where it is missing */
};

extern const struct key keys[];
extern const size_t keys_count;

/* The row, or NULL. */
const struct key *key_find(enum key_scope scope, const char *name);

/* The name inside of its group ("response"), or the whole name. */
const char *key_leaf(const struct key *key);
/* The name of its group ("timeout"), empty outside of one. */
struct slice key_group(const struct key *key);

void key_print(struct printer *printer, const struct key *key);

/* The word for a value, NULL when there is none. */
const char *word_for(const struct word *words, int value);
const struct word *word_find(const struct word *words, const char *name);


/* All keys of one scope, over the struct of that scope. */
struct scope_source {
	const struct node *own;         /* a map, or broken */
	const struct node *defaults;    /* NULL for none */
};
/* Reads every key into `object`; complaints, also about unknown keys, go to the
 * reader.  0, or -1 when there was one. */
int scope_read(struct reader *reader, enum key_scope scope, const struct scope_source *source,
	const struct place *place, void *object);
void scope_print(struct printer *printer, enum key_scope scope, const void *object);
void scope_fini(enum key_scope scope, void *object);

/* The node of a key, its own before that of defaults; NULL for none. */
const struct node *scope_get(const struct scope_source *source, const struct key *key, bool *is_own_out);

#endif
