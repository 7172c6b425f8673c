/*
 * members.h - the JSON of `fcgi-host status` as text for people: what the table
 * of `status` and the screen of `top` share.
 *
 * A member that is not there, as with another version of the host, is a dash or
 * 0, like one that is null.
 */
#ifndef FCGI_HOST_CLI_MEMBERS_H
#define FCGI_HOST_CLI_MEMBERS_H

#include <json-c/json.h>
#include <stddef.h>
#include <stdint.h>

enum { MEMBER_TEXT_BYTES = 32, STATUS_MAX_BYTES = 64 * 1024 * 1024 };

struct err;

/* Asks the host with this configuration.  NULL with err; the caller puts it. */
struct json_object *members_ask(const char *file, struct err *err);

struct json_object *member(struct json_object *of, const char *name);   /* borrowed; NULL */
uint64_t member_number(struct json_object *of, const char *name);
double member_double(struct json_object *of, const char *name);
const char *member_text(struct json_object *of, const char *name);      /* borrowed */
size_t members_count(struct json_object *array);

/* "0.42ms", "12.3s", "5m07s", "3h20m", "4d02h".  Returns `out`. */
const char *member_span(struct json_object *of, const char *name, char out[MEMBER_TEXT_BYTES]);
const char *members_span(double ms, char out[MEMBER_TEXT_BYTES]);
/* "1.5MiB", of a member in KiB. */
const char *member_memory(struct json_object *of, const char *name, char out[MEMBER_TEXT_BYTES]);

/* Requests that failed, of the totals. */
uint64_t members_failed(struct json_object *totals);

#endif
