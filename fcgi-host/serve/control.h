/*
 * control.h - the local socket on which `fcgi-host status` and `reload` ask.
 *
 * An abstract unix socket whose name follows from the configuration's path, so
 * that both ends find it and nothing is left behind.  Only root and the user
 * that serves are answered.  One line in, one answer out, closed.
 */
#ifndef FCGI_HOST_SERVE_CONTROL_H
#define FCGI_HOST_SERVE_CONTROL_H

#include "base/err.h"
#include "config/config.h"

#include <sys/un.h>

struct control;         /* opaque, see control.c */
struct host;

/* Where the host with this configuration listens. */
socklen_t control_address(const char *config_file, struct sockaddr_un *out);

/* NULL with err, for example when another host has this configuration. */
struct control *control_open(struct host *host, struct err *err);
void control_free(struct control **control);

#endif
