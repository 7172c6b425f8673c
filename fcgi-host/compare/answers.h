/*
 * answers.h - are the answers of two ways the same bytes?  Pure.
 *
 * A line that changes from one answer of a way to the next, such as a pid or a time,
 * cannot be compared, and is left out everywhere.
 */
#ifndef FCGI_HOST_COMPARE_ANSWERS_H
#define FCGI_HOST_COMPARE_ANSWERS_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { ANSWERS_LINES_MAX = 4096 };

struct answer { unsigned status; struct bytes body; };

/* Which lines of the bodies are left out; all zero: none. */
struct left_out {
	bool is_everything;             /* even their number changes */
	bool lines[ANSWERS_LINES_MAX];  /* from 0; those beyond are compared */
	size_t count;
};

/* Two answers of one way to the same request: adds what differs between them. */
void answers_leave_out(struct left_out *left_out, const struct answer *one, const struct answer *other);

/* 0 when they are the same but for what is left out; -1 with err, where they differ first. */
int answers_compare(const struct left_out *left_out, const struct answer *answer, const struct answer *wanted, struct err *err);

/* "byte for byte", or what was left out, for the report. */
void answers_describe(const struct left_out *left_out, char *out, size_t out_size);

#endif
