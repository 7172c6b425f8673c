#include "base/lines.h"

#include <string.h>

void lines_init(struct lines *lines, lines_fn *on_line, void *ctx)
{
	bytes_init(&lines->rest, LINES_MAX_BYTES);
	lines->on_line = on_line;
	lines->ctx = ctx;
}

static void say(struct lines *lines, const char *line, size_t len)
{
	if (len > 0 && line[len - 1] == '\r')
		len--;
	lines->on_line(lines->ctx, (struct slice){ line, len });
}

static void say_rest(struct lines *lines)
{
	say(lines, (const char *)bytes_data(&lines->rest), lines->rest.len);
	bytes_clear(&lines->rest);
}

static void keep(struct lines *lines, const char *data, size_t len)
{
	while (len > 0) {
		size_t part;

		if (bytes_room(&lines->rest) == 0)
			say_rest(lines);
		part = len < bytes_room(&lines->rest) ? len : bytes_room(&lines->rest);
		if (bytes_append(&lines->rest, data, part) < 0)
			return;         /* without memory a log line is what can be spared */
		data += part;
		len -= part;
	}
}

void lines_put(struct lines *lines, const void *data, size_t len)
{
	const char *at = data, *end = at + len;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		if (newline == NULL) {
			keep(lines, at, (size_t)(end - at));
			return;
		}
		if (lines->rest.len == 0 && newline - at <= LINES_MAX_BYTES) {
			say(lines, at, (size_t)(newline - at));
		} else {
			keep(lines, at, (size_t)(newline - at));
			say_rest(lines);
		}
		at = newline + 1;
	}
	bytes_release(&lines->rest);
}

void lines_fini(struct lines *lines)
{
	if (lines->rest.len > 0)
		say_rest(lines);
	bytes_fini(&lines->rest);
}
