/*
 * lines.h - cuts a stream of bytes into lines, for a log.
 */
#ifndef FCGI_HOST_BASE_LINES_H
#define FCGI_HOST_BASE_LINES_H

#include "base/bytes.h"
#include "base/text.h"

enum { LINES_MAX_BYTES = 64 * 1024 };   /* a longer line comes in pieces */

/* `line` has no end-of-line bytes and is borrowed. */
typedef void lines_fn(void *ctx, struct slice line);

struct lines {
	struct bytes rest;      /* the line that has no end yet */
	lines_fn *on_line;
	void *ctx;
};

void lines_init(struct lines *lines, lines_fn *on_line, void *ctx);
void lines_put(struct lines *lines, const void *data, size_t len);
void lines_fini(struct lines *lines);   /* an unfinished line comes first */

#endif
