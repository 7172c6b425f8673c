/*
 * escape.h - text of others between double quotes of ours, in log lines and JSON.
 */
#ifndef FCGI_HOST_BASE_ESCAPE_H
#define FCGI_HOST_BASE_ESCAPE_H

#include "base/bytes.h"
#include "base/text.h"

enum { ESCAPED_MAX_BYTES = 5 };         /* one byte, escaped, at most */

/* What has no short form, and what is no UTF-8 or would steer a terminal, is
 * shown as two hexadecimal digits behind `hex_prefix`: "\\x", or in JSON "\\\\x". */
void escape_text(struct bytes *out, struct slice value, const char *hex_prefix);

#endif
