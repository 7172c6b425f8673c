/*
 * rules.h - what must hold between the keys of one entry, and between entries.
 * Called after an entry was read, also when some of its keys were wrong.
 */
#ifndef FCGI_HOST_CONFIG_RULES_H
#define FCGI_HOST_CONFIG_RULES_H

#include "config/keys.h"

/* 0, or -1 after complaining.  The site's node is where the entry stands: for a
 * listener and a route its map, for a handler its name. */
int rules_listen(const struct site *site, struct listen_config *listen);
/* Also settles what depends on another key: `process`. */
int rules_handler(const struct site *site, const struct scope_source *source, struct handler_config *handler);
int rules_route(const struct site *site, const struct route_config *route);
/* Between all listeners, handlers and routes; `root` is the whole file. */
int rules_whole(struct reader *reader, const struct node *root);

#endif
