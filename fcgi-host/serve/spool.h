/*
 * spool.h - a queue of bytes of any length in bounded memory.
 *
 * The first SPOOL_MEMORY_BYTES stay in memory; what comes while these wait goes
 * to an unlinked temporary file in TMPDIR (/tmp), whose space is given back as
 * it is read.  How much may wait is for the owner to bound.
 */
#ifndef FCGI_HOST_SERVE_SPOOL_H
#define FCGI_HOST_SERVE_SPOOL_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/text.h"

#include <stdint.h>

enum { SPOOL_MEMORY_BYTES = 64 * 1024 };

struct spool {
	struct bytes memory;            /* the oldest bytes */
	int fd;                         /* -1: no file */
	uint64_t read, written;         /* offsets in the file */
	uint64_t freed;                 /* below it the file takes no space */
};

void spool_init(struct spool *spool);
void spool_fini(struct spool *spool);           /* may be used again after */

uint64_t spool_waiting(const struct spool *spool);

/* Takes all of it.  -1 with err: no memory, or the disk. */
int spool_put(struct spool *spool, const void *data, size_t len, struct err *err);

/* The next bytes, empty when none wait.  Valid until the next call.  -1 with err
 * when the file cannot be read. */
int spool_peek(struct spool *spool, struct slice *out, struct err *err);
void spool_consume(struct spool *spool, size_t len);

#endif
