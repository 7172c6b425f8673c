#include "compare/answers.h"

#include "base/escape.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN_BYTES = 60 };

/* The next line, with its end. */
static bool next_line(struct slice *rest, struct slice *line)
{
	const char *end = rest->len == 0 ? NULL : memchr(rest->ptr, '\n', rest->len);

	if (rest->len == 0)
		return false;
	*line = (struct slice){ rest->ptr, end == NULL ? rest->len : (size_t)(end - rest->ptr) + 1 };
	rest->ptr += line->len;
	rest->len -= line->len;
	return true;
}

static struct slice body_of(const struct answer *answer)
{
	return (struct slice){ (const char *)bytes_data(&answer->body), answer->body.len };
}

static bool is_same(struct slice a, struct slice b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

void answers_leave_out(struct left_out *left_out, const struct answer *one, const struct answer *other)
{
	struct slice a = body_of(one), b = body_of(other), a_line, b_line;

	for (size_t i = 0; a.len > 0 || b.len > 0; i++) {
		if (!next_line(&a, &a_line) || !next_line(&b, &b_line)) {
			left_out->is_everything = true;
			return;
		}
		if (is_same(a_line, b_line))
			continue;
		if (i >= ANSWERS_LINES_MAX) {
			left_out->is_everything = true;
			return;
		}
		left_out->count += !left_out->lines[i];
		left_out->lines[i] = true;
	}
}

static void shown(struct slice line, char out[SHOWN_BYTES * ESCAPED_MAX_BYTES + 8])
{
	struct bytes text;

	bytes_init(&text, SHOWN_BYTES * ESCAPED_MAX_BYTES);
	while (line.len > 0 && line.ptr[line.len - 1] == '\n')
		line.len--;
	if (line.len > SHOWN_BYTES)
		line.len = SHOWN_BYTES;
	out[0] = '\0';
	if (line.len > 0 && bytes_reserve(&text, SHOWN_BYTES * ESCAPED_MAX_BYTES) != NULL) {
		escape_text(&text, line, "\\x");
		memcpy(out, bytes_data(&text), text.len);
		out[text.len] = '\0';
	}
	bytes_fini(&text);
}

static int tell_line(size_t number, struct slice line, struct slice wanted, struct err *err)
{
	char ours[SHOWN_BYTES * ESCAPED_MAX_BYTES + 8], theirs[SHOWN_BYTES * ESCAPED_MAX_BYTES + 8];

	shown(line, ours);
	shown(wanted, theirs);
	if (strcmp(ours, theirs) != 0)
		return err_set(err, "line %zu of the body is '%s' instead of '%s'", number + 1, ours, theirs);
	if (line.len > SHOWN_BYTES && wanted.len > SHOWN_BYTES)
		return err_set(err, "line %zu of the body differs after its first %d bytes, '%s'", number + 1, SHOWN_BYTES, ours);
	return err_set(err, "line %zu of the body, '%s', has %s line feed", number + 1, ours, line.len < wanted.len ? "no" : "a");
}

int answers_compare(const struct left_out *left_out, const struct answer *answer, const struct answer *wanted, struct err *err)
{
	struct slice a = body_of(answer), b = body_of(wanted), a_line, b_line;

	if (answer->status != wanted->status)
		return err_set(err, "its status is %u instead of %u", answer->status, wanted->status);
	if (left_out->is_everything)
		return 0;
	for (size_t i = 0; a.len > 0 || b.len > 0; i++) {
		bool has_a = next_line(&a, &a_line), has_b = next_line(&b, &b_line);

		if (!has_a || !has_b)
			return err_set(err, "its body has %zu bytes instead of %zu", answer->body.len, wanted->body.len);
		if (!is_same(a_line, b_line) && (i >= ANSWERS_LINES_MAX || !left_out->lines[i]))
			return tell_line(i, a_line, b_line, err);
	}
	return 0;
}

void answers_describe(const struct left_out *left_out, char *out, size_t out_size)
{
	size_t at = 0, listed = 0;

	if (left_out->is_everything) {
		snprintf(out, out_size, "status only: the bodies change from request to request");
		return;
	}
	if (left_out->count == 0) {
		snprintf(out, out_size, "byte for byte");
		return;
	}
	at = (size_t)snprintf(out, out_size, "byte for byte, but for what changes from request to request: line");
	for (size_t i = 0; i < ANSWERS_LINES_MAX && at < out_size; i++) {
		if (!left_out->lines[i])
			continue;
		if (listed++ == 8) {
			snprintf(out + at, out_size - at, ", …");
			return;
		}
		at += (size_t)snprintf(out + at, out_size - at, "%s %zu", listed == 1 ? "" : ",", i + 1);
	}
}
