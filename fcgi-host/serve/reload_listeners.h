/*
 * reload_listeners.h - the listeners of a new configuration, until they take the
 * place of the host's: those of the host that stay, and new ones.
 */
#ifndef FCGI_HOST_SERVE_RELOAD_LISTENERS_H
#define FCGI_HOST_SERVE_RELOAD_LISTENERS_H

#include "base/err.h"
#include "config/config.h"

#include <stddef.h>

struct host;
struct listener;

/* Zero it first. */
struct reload_listeners {
	struct host *host;
	struct listener **list;         /* in the order of config->listen; the new ones are ours */
	size_t count;
};

/* Opens those that are new; they do not accept yet.  Nothing when the host's
 * were inherited.  -1 with err: drop what there is. */
int reload_listeners_open(struct reload_listeners *listeners, struct host *host, const struct config *config, struct err *err);
/* Closes the new ones. */
void reload_listeners_drop(struct reload_listeners *listeners);

/* The new ones begin to accept, those that stay go by `config`, and those of the
 * host that are not named any more go. */
void reload_listeners_swap(struct reload_listeners *listeners, const struct config *config);

#endif
