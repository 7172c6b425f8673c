/*
 * bytes.h - the one growable buffer whose size a peer may choose.
 *
 * A queue of bytes: appended at the end, consumed at the front, never longer
 * than `max_bytes`.  Memory is taken when needed and given back by
 * bytes_fini() or bytes_release().
 */
#ifndef FCGI_HOST_BASE_BYTES_H
#define FCGI_HOST_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>

struct bytes {
	uint8_t *base;          /* the allocation, NULL while empty */
	size_t start;           /* first byte in use, offset from base */
	size_t len;             /* bytes in use */
	size_t cap;             /* size of the allocation */
	size_t max_bytes;       /* len never passes this */
};

void bytes_init(struct bytes *b, size_t max_bytes);
void bytes_fini(struct bytes *b);               /* b may be used again after */
void bytes_release(struct bytes *b);            /* fini if it is empty */

/* First byte in use; valid until the next call that changes b. */
uint8_t *bytes_data(const struct bytes *b);
size_t bytes_room(const struct bytes *b);       /* max_bytes - len */

/* 0, or -1 when it would pass max_bytes or there is no memory (b unchanged). */
int bytes_append(struct bytes *b, const void *data, size_t len);
int bytes_append_text(struct bytes *b, const char *text);
int bytes_printf(struct bytes *b, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Makes room for `len` more bytes and returns where they go, or NULL.  Call
 * bytes_commit() with how many were written. */
uint8_t *bytes_reserve(struct bytes *b, size_t len);
void bytes_commit(struct bytes *b, size_t len);

void bytes_consume(struct bytes *b, size_t len);        /* len <= b->len */
void bytes_clear(struct bytes *b);                      /* keeps the memory */

#endif
