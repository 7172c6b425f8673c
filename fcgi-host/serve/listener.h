/*
 * listener.h - a socket on which web servers connect.
 */
#ifndef FCGI_HOST_SERVE_LISTENER_H
#define FCGI_HOST_SERVE_LISTENER_H

#include "base/err.h"
#include "config/config.h"
#include "serve/host.h"

struct listener;        /* opaque, see listener.c */

/* Binds and listens.  A dead unix socket at the path is replaced; a live one is
 * refused with its owner's pid, and anything else there is left alone.  The
 * rights of a unix socket are never wider than configured.  NULL with err. */
struct listener *listener_open(struct host *host, const struct listen_config *config, struct err *err);

/* On a socket that somebody opened for us; takes ownership of fd.  `config` is
 * the first one, for its `allow`; may be NULL. */
struct listener *listener_adopt(struct host *host, int fd, struct err *err);

/* Is it bound to the address of this one?  Never for a socket handed over. */
bool listener_is_at(const struct listener *listener, const struct listen_config *config);

/* Can it still be found there?  False when its socket file was removed or replaced. */
bool listener_has_file(const struct listener *listener);

/* Goes by `config` from now on: backlog and allow.  Owner and mode:
 * process/socket_rights.h. */
void listener_update(struct listener *listener, const struct listen_config *config);

void listener_start(struct listener *listener);
void listener_descriptor_freed(struct listener *listener);

/* For messages: the address as configured, or that the socket was handed over. */
const char *listener_name(const struct listener *listener);
unsigned listener_backlog(const struct listener *listener);      /* 0: not ours to know */
bool listener_is_paused(const struct listener *listener);        /* accepts nothing for now */

/* Before a close that must lose nobody: who has connected is accepted, and a
 * socket file is removed first, so that nobody comes any more. */
void listener_drain(struct listener *listener);

/* Stops accepting.  Removes the socket file that listener_open() made, if it is
 * still that one. */
void listener_close(struct listener **listener);

/* Refuses what other parts of a check would accept: is `fd` a listening
 * stream socket? */
int listener_check_inherited(int fd, struct err *err);

#endif
