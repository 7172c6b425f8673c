/*
 * reader.h - what every reading of a value needs: the table's row, the node of
 * the tree, and where complaints go.
 */
#ifndef FCGI_HOST_CONFIG_READER_H
#define FCGI_HOST_CONFIG_READER_H

#include "config/tree.h"

struct key;

/* The way from the top to a value, for messages: "routes[3].handler". */
struct place {
	const struct place *up;         /* NULL at the top */
	const char *name;               /* NULL where index is used */
	unsigned index;                 /* from 1 */
};

struct handler_name {
	const char *name;               /* borrowed from the tree */
	unsigned number;
};

struct reader {
	struct complaints *complaints;
	struct config *config;          /* being filled */
	const char *folder;             /* absolute; relative paths start here */
	bool is_for_root;               /* root is to serve it, see config.h */
	bool is_quiet;                  /* complained about already */
	const struct node *defaults;    /* of handlers; NULL for none */
	struct handler_name *names;     /* sorted by name */
	size_t names_count;
};

/* One value to be read. */
struct site {
	struct reader *reader;
	const struct key *key;
	const struct place *place;
	const struct node *node;
};

/* Complains at the site's node.  Always returns -1. */
int site_error(const struct site *site, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same at another node. */
int site_error_at(const struct site *site, const struct node *node, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void site_warn(const struct site *site, const char *format, ...) __attribute__((format(printf, 2, 3)));
int site_no_memory(const struct site *site);    /* returns -1 */

/* The text of a scalar; NULL, after complaining, where there is none. */
const char *site_text(const struct site *site);

/* A copy that complains when there is no memory. */
char *site_copy(const struct site *site, const char *text);

/* The absolute form of a path that is relative to a folder, on the heap; "." and
 * ".." in a relative one are taken away as a shell's cd does.  NULL without memory. */
char *path_resolve(const char *folder, const char *path);
/* The same for the folder of the file; complains when there is no memory. */
char *site_path(const struct site *site, const char *path);

/* The index of the handler of that name; -1 after complaining. */
int reader_find_handler(const struct site *site, const char *name, unsigned *out);

/* "did you mean" for a misspelling, or "".  `names` ends with NULL. */
struct hint { char text[160]; };
struct hint hint_for(const char *word, const char *const *names);

#endif
