/*
 * tree.h - a YAML document as a tree in which every node knows its line and
 * column.  Knows nothing of keys or their meaning.
 *
 * One document, without anchors, aliases, merge keys and tags: those are
 * complained about, since each has a plainer way to say the same.
 */
#ifndef FCGI_HOST_CONFIG_TREE_H
#define FCGI_HOST_CONFIG_TREE_H

#include "config/complaint.h"

enum node_kind {
	NODE_SCALAR, NODE_LIST, NODE_MAP,
	NODE_BROKEN,            /* complained about already: say no more */
};

struct node {
	enum node_kind kind;
	bool is_plain;          /* a scalar that was written without quotes */
	struct mark mark;
	char *text;             /* of a scalar; no NUL inside */
	struct node *items;     /* of a list: its items; of a map: key, value, key, value, … */
	size_t items_count, items_cap;
};

/* 0 with a tree to give back by node_fini(); -1 when the text is no YAML or
 * there is no memory, which is in `complaints`. */
int tree_read(const char *text, size_t len, struct complaints *complaints, struct node *root_out);
void node_fini(struct node *node);

/* The value, or the key itself, of a member; NULL where `map` is no map (NULL
 * too) or has none of that name.  `name` need not end with NUL. */
const struct node *node_get(const struct node *map, struct slice name);
const struct node *node_get_key(const struct node *map, struct slice name);

/* Is nothing written there: "key:", "key: ~" or "key: null"? */
bool node_is_null(const struct node *node);

#endif
