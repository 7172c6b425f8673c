/*
 * socket_path.h - what stands at the path of a unix socket that we want.
 */
#ifndef FCGI_HOST_PROCESS_SOCKET_PATH_H
#define FCGI_HOST_PROCESS_SOCKET_PATH_H

#include "base/err.h"
#include "config/config.h"

/* 0: nothing, or the socket of a host that is dead, which may be removed.
 * -1 with err: somebody serves there (says who), or it is no socket at all. */
int socket_path_check(const struct listen_config *config, struct err *err);

/* The path in the file system; only for unix sockets. */
const char *socket_path(const struct listen_config *config);

/* Removes what dead hosts left at the unix sockets of a configuration. */
void socket_path_remove_dead(const struct config *config);

#endif
