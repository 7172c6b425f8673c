/*
 * socket_folder.h - the folder where the sockets of workers are made.
 *
 * Only the relay's user may enter it.  It is in memory where there is such a
 * place: on a disk each new socket may have to wait for the journal, and the loop
 * with it.
 */
#ifndef FCGI_HOST_PROCESS_SOCKET_FOLDER_H
#define FCGI_HOST_PROCESS_SOCKET_FOLDER_H

#include "base/err.h"
#include "config/config.h"

enum { SOCKET_FOLDER_BYTES = 96 };      /* its path, with the NUL: a socket's path has 108 */

/* For `user` where we are root and it is set.  -1 with err. */
int socket_folder_make(char path_out[SOCKET_FOLDER_BYTES], const struct identity *user, struct err *err);

/* With the sockets that are in it.  Fine when it is gone, or "". */
void socket_folder_remove(const char *path);

#endif
