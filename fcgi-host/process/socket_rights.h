/*
 * socket_rights.h - owner and mode of the unix sockets of a configuration, when
 * another one takes its place.
 *
 * Only root may change them: where the relay has given that up, the first
 * spawner does it, from its own copies of both configurations.
 */
#ifndef FCGI_HOST_PROCESS_SOCKET_RIGHTS_H
#define FCGI_HOST_PROCESS_SOCKET_RIGHTS_H

#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>

/* Does any socket that both have get other rights? */
bool socket_rights_differ(const struct config *from, const struct config *to);

/* Gives every socket that both have the rights of `to`, without a moment of
 * wider ones than those of one of them.  0, or errno: nothing is changed, because
 * of to->listen[*failed_out]. */
int socket_rights_change(const struct config *from, const struct config *to, size_t *failed_out);

#endif
