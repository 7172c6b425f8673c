/*
 * json.h - JSON written straight into a buffer, member by member.
 *
 * For answers that may become large and must not keep the event loop: nothing
 * is built in memory first.  Text that is no UTF-8, and control characters,
 * are shown as \xNN.  A buffer that is full is noticed at the end, by the one
 * who looks at `is_full`.
 */
#ifndef FCGI_HOST_BASE_JSON_H
#define FCGI_HOST_BASE_JSON_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

struct json {
	struct bytes *out;              /* borrowed */
	bool needs_comma;
	bool is_full;                   /* something was left out: no memory, or max_bytes */
};

void json_init(struct json *json, struct bytes *out);

/* `name` is NULL for the outermost value and inside an array.  It is a word of
 * ours, never escaped. */
void json_begin(struct json *json, const char *name, char bracket);     /* '{' or '[' */
void json_end(struct json *json, char bracket);                         /* '}' or ']' */
void json_str(struct json *json, const char *name, const char *value);  /* NULL: null */
void json_u64(struct json *json, const char *name, uint64_t value);
void json_number(struct json *json, const char *name, const char *digits);      /* as JSON writes numbers */
void json_bool(struct json *json, const char *name, bool value);
void json_null(struct json *json, const char *name);
void json_ms(struct json *json, const char *name, uint64_t us);         /* as 12.345 */

#endif
