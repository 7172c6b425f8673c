/*
 * cgi_header.h - the header of a CGI answer (RFC 3875, section 6), read in any
 * pieces and made into the one form that every web server understands.
 */
#ifndef FCGI_HOST_WIRE_CGI_HEADER_H
#define FCGI_HOST_WIRE_CGI_HEADER_H

#include "base/bytes.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum cgi_header_state {
	CGI_HEADER_MORE,        /* the blank line has not come yet */
	CGI_HEADER_DONE,
	CGI_HEADER_BAD,         /* see `reason`; the answer is 502 */
};

/* Called for a line that is dropped: no field, control bytes, continuation,
 * connection-level.  `line` is borrowed and unescaped. */
typedef void cgi_header_dropped_fn(void *ctx, struct slice line, const char *why);

struct cgi_header {
	size_t max_bytes;               /* of the header as sent on */
	cgi_header_dropped_fn *on_dropped;      /* may be NULL */
	void *ctx;
	enum cgi_header_state state;
	const char *reason;             /* static text, when BAD */
	struct bytes line;              /* the line being read, when it came in pieces */
	struct bytes fields;            /* accepted fields, "Name: value\r\n", in order; not Status, not Content-Length */
	unsigned fields_count;          /* accepted fields, Status and Content-Length too */
	bool is_begun;                  /* a line has been read */
	unsigned status;                /* 200..599; 0 until known */
	char status_reason[128];        /* "" when none was given */
	bool has_status, has_length, has_location;
	uint64_t content_length;
	struct bytes location;          /* value of Location, not NUL-terminated; of the first, if repeated */
	size_t read_bytes;              /* of header taken so far */
};

/* What is BAD: a Status that is not three digits from 200 to 599 with a reason or
 * without, or comes twice; a Content-Length that is no number, or two that differ;
 * a NUL; an HTTP status line; no field at all; more than max_bytes as sent on, a
 * line longer than that, or twice as much with what is dropped. */

void cgi_header_init(struct cgi_header *header, size_t max_bytes, cgi_header_dropped_fn *on_dropped, void *ctx);
void cgi_header_fini(struct cgi_header *header);

/* Takes bytes from the front of *input; after DONE what is left in *input is
 * body.  The first byte after the blank line is never taken. */
enum cgi_header_state cgi_header_read(struct cgi_header *header, struct slice *input);

/* A header that no program wrote: 200 with this Content-Type.  DONE, or BAD. */
enum cgi_header_state cgi_header_make(struct cgi_header *header, const char *content_type);

/* One more field of our own, behind those that came.  Only after DONE.  0, or -1
 * when it passes max_bytes (nothing changed). */
int cgi_header_add(struct cgi_header *header, const char *name, const char *value);

/* A Location without Status that is the only field and a local path: the answer
 * may come from one of our routes (RFC 3875, 6.2.2). */
bool cgi_header_is_local_redirect(const struct cgi_header *header);

/* True for HEAD, 204 and 304: no body may follow. */
bool cgi_header_forbids_body(const struct cgi_header *header, const char *method);

/* Appends "Status: NNN reason\r\n", the fields, Content-Length (not with 204), and
 * the blank line.  Always a Status line and always a reason (the standard one when
 * none was given).  Only after DONE.  0, or -1 when it passes max_bytes, `out` is
 * full or there is no memory (out unchanged). */
int cgi_header_write(const struct cgi_header *header, struct bytes *out);

/* The standard reason phrase, or "Unknown". */
const char *cgi_status_reason(unsigned status);

#endif
