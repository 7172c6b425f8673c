/*
 * call_body.h - the body that `fcgi-host call` sends, as a file: its length must
 * be known before it is sent.
 */
#ifndef FCGI_HOST_CLI_CALL_BODY_H
#define FCGI_HOST_CLI_CALL_BODY_H

#include "base/err.h"

#include <stdint.h>

/* Of "text", "@FILE" or "@-" for standard input.  A descriptor at the beginning
 * of it, which the caller closes, or -1 with err. */
int call_body_open(const char *data, uint64_t *size_bytes_out, struct err *err);

#endif
