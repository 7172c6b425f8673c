/*
 * fcgi_params.h - FastCGI name-value pairs (specification, section 3.4).
 */
#ifndef FCGI_HOST_WIRE_FCGI_PARAMS_H
#define FCGI_HOST_WIRE_FCGI_PARAMS_H

#include "base/bytes.h"
#include "base/text.h"

enum fcgi_pair { FCGI_PAIR_NONE, FCGI_PAIR_OK, FCGI_PAIR_BAD };

/* Takes the next pair from the front of *block: OK; NONE when it is empty; BAD
 * when a length points past its end.  Slices point into the block. */
enum fcgi_pair fcgi_next_pair(struct slice *block, struct slice *name_out, struct slice *value_out);

/* 0, or -1 when `out` is full or a length passes 31 bits (out unchanged). */
int fcgi_put_pair(struct bytes *out, struct slice name, struct slice value);

#endif
