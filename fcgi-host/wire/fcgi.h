/*
 * fcgi.h - FastCGI records: decode and encode.  No descriptors, no log.
 *
 * FastCGI specification, section 3.3 and 8.  The decoder hands record content
 * out in the pieces in which it arrived and stores nothing but the header, so
 * a record of any size costs no memory.
 */
#ifndef FCGI_HOST_WIRE_FCGI_H
#define FCGI_HOST_WIRE_FCGI_H

#include "base/bytes.h"
#include "base/text.h"

#include <stddef.h>
#include <stdint.h>

enum { FCGI_MAX_CONTENT = 65535, FCGI_HEADER_BYTES = 8, FCGI_BODY_BYTES = 8 };

struct fcgi_decoder {
	uint8_t header[8];
	uint8_t header_len;             /* bytes of header[] so far */
	uint8_t padding_left;
	uint8_t type;                   /* of the record being read */
	uint8_t state;                  /* for fcgi.c only; 0 at first */
	uint16_t id;
	uint16_t content_len;           /* of the whole record */
	uint32_t content_left;          /* not handed out yet */
};

enum fcgi_event {
	FCGI_MORE,              /* all input is used up */
	FCGI_START,             /* a header is complete: type, id, content_len */
	FCGI_CONTENT,           /* *content_out holds at least one byte of it */
	FCGI_END,               /* content and padding are complete */
	FCGI_BAD,               /* wrong version: close the connection */
};

/* Takes bytes from the front of *input until there is something to say.
 * Zero the decoder before its first use.  Every record gives START, any number
 * of CONTENT (none when it is empty), END. */
enum fcgi_event fcgi_decode(struct fcgi_decoder *decoder, struct slice *input, struct slice *content_out);

struct fcgi_begin { uint16_t role; uint8_t flags; };
struct fcgi_end { uint32_t app_status; uint8_t protocol_status; };
/* The body of such a record, gathered from its pieces; what it is too long by is
 * dropped.  Set len to 0 first; whole when it is FCGI_BODY_BYTES. */
struct fcgi_fixed { uint8_t bytes[FCGI_BODY_BYTES]; uint8_t len; };
void fcgi_fixed_put(struct fcgi_fixed *fixed, struct slice content);
/* `body` has FCGI_BODY_BYTES bytes. */
void fcgi_get_begin(const uint8_t *body, struct fcgi_begin *out);
void fcgi_get_end(const uint8_t *body, struct fcgi_end *out);

/* Padding and reserved bytes are written as zero. */
void fcgi_put_header(uint8_t out[8], uint8_t type, uint16_t id, uint16_t content_len, uint8_t padding_len);
void fcgi_put_begin(uint8_t out[16], uint16_t id, uint16_t role, uint8_t flags);
void fcgi_put_end(uint8_t out[16], uint16_t id, uint32_t app_status, uint8_t protocol_status);
void fcgi_put_unknown_type(uint8_t out[16], uint8_t type);

/* A stream (PARAMS, STDIN, STDOUT) cut into records of at most 65528 bytes;
 * len 0 writes the empty record.  0, or -1 when `out` is full (unchanged). */
int fcgi_put_stream(struct bytes *out, uint8_t type, uint16_t id, const void *data, size_t len);

/* Answers a GET_VALUES body: the known names among those asked, each once, as
 * one GET_VALUES_RESULT record.  0, or -1 when the body is no list of pairs. */
int fcgi_put_values(struct bytes *out, struct slice asked, uint32_t max_conns, uint32_t max_reqs);

#endif
