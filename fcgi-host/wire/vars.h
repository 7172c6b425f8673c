/*
 * vars.h - the variables of a request: names and values, bounded, in order.
 *
 * Names are unique, the last value set wins.  Lookups cost the same however
 * many there are (a peer chooses the names).
 */
#ifndef FCGI_HOST_WIRE_VARS_H
#define FCGI_HOST_WIRE_VARS_H

#include "base/bytes.h"
#include "base/text.h"


struct var {
	const char *name;       /* NUL-terminated, owned by the set */
	const char *value;      /* NUL-terminated, owned by the set */
	uint32_t name_len, value_len;
};

struct vars;            /* opaque, see vars.c */

/* `max_bytes` bounds names and values together, each with two bytes more. */
struct vars *vars_new(size_t max_bytes);
void vars_free(struct vars **vars);

enum vars_result {
	VARS_SET, VARS_REPLACED,
	VARS_REFUSED,           /* a name that is empty or has '=' or NUL, a value with NUL */
	VARS_FULL,              /* over max_bytes, or no memory */
};
enum vars_result vars_set(struct vars *vars, struct slice name, struct slice value);
enum vars_result vars_set_text(struct vars *vars, const char *name, const char *value);
/* What the i-th of another set says: cheaper, its name is known to be good. */
enum vars_result vars_copy(struct vars *to, const struct vars *from, size_t i);

/* A header field as the variable that a web server makes of it: "HTTP_" and the
 * name in capitals, or CONTENT_TYPE, CONTENT_LENGTH.  An empty slice: no name, or
 * a too long one. */
enum { VARS_FIELD_NAME_BYTES = 256 };
struct slice vars_field_name(struct slice field, char buffer[VARS_FIELD_NAME_BYTES]);

void vars_unset(struct vars *vars, const char *name);

/* The value, or NULL.  Valid until the set changes. */
const char *vars_get(const struct vars *vars, const char *name);
size_t vars_count(const struct vars *vars);
size_t vars_bytes(const struct vars *vars);     /* as counted against max_bytes */

/* The i-th in order of first setting, 0 <= i < vars_count(). */
struct var vars_at(const struct vars *vars, size_t i);

/* The two sinks.  "NAME=value\0" one after the other, as execve wants them; and
 * FastCGI pairs.  0, or -1 when `out` is full. */
int vars_to_environ(const struct vars *vars, struct bytes *out);
int vars_to_params(const struct vars *vars, struct bytes *out);

#endif
