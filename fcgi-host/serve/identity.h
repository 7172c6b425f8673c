/*
 * identity.h - gives up root.
 */
#ifndef FCGI_HOST_SERVE_IDENTITY_H
#define FCGI_HOST_SERVE_IDENTITY_H

#include "base/err.h"
#include "config/config.h"

/* For a host that was not started as root: -1 when a handler has a `user`. */
int identity_check_handlers(const struct config *config, struct err *err);

/* Started as root with a `user:`, becomes that user for good and checks that
 * there is no way back.  Otherwise does nothing. */
int identity_assume(const struct identity *identity, struct err *err);

#endif
