/*
 * reload.h - a new configuration without losing a request.
 *
 * Everything is checked first, by the relay and by the spawners, each of which
 * reads the file itself.  Handlers that did not change keep their workers, new
 * and changed ones start beside the old, and only when those that must have
 * workers have them does the new configuration take over.  Until then, and
 * when anything is wrong, the old one serves.
 */
#ifndef FCGI_HOST_SERVE_RELOAD_H
#define FCGI_HOST_SERVE_RELOAD_H

#include <stdbool.h>

struct host;

/* `text` says why not, or what to note; it is borrowed. */
typedef void reload_done_fn(void *ctx, bool is_fine, const char *text);

/* Asks for a reload.  One that is asked for while one runs follows it.  on_done
 * (may be NULL) runs once, from the loop. */
void reload_request(struct host *host, reload_done_fn *on_done, void *ctx);

/* on_done of this ctx does not run any more. */
void reload_forget(struct host *host, const void *ctx);

/* The host takes no new requests any more: the old configuration stays, and who
 * waits is told. */
void reload_stop(struct host *host);

/* Gives up one that is under way; the host ends. */
void reload_end(struct host *host);

#endif
