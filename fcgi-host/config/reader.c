/*
 * reader.c - complaints with their place, and paths relative to the file.
 */
#include "config/reader.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { PLACE_MAX_BYTES = 256, MESSAGE_MAX_BYTES = 1024 };

static size_t write_place(const struct place *place, char *out, size_t size)
{
	if (place == NULL) {
		out[0] = '\0';
		return 0;
	}
	size_t used = write_place(place->up, out, size);
	int n = place->name == NULL ? snprintf(out + used, size - used, "[%u]", place->index)
		: snprintf(out + used, size - used, "%s%s", used == 0 ? "" : ".", place->name);
	return n < 0 || (size_t)n >= size - used ? size - 1 : used + (size_t)n;
}

static void complain_at(const struct site *site, enum severity severity, const struct node *node, const char *format,
	va_list args)
{
	char where[PLACE_MAX_BYTES], what[MESSAGE_MAX_BYTES];

	if (site->reader->is_quiet)
		return;
	write_place(site->place, where, sizeof(where));
	vsnprintf(what, sizeof(what), format, args);
	complain(site->reader->complaints, severity, node->mark, where, "%s", what);
}

int site_error(const struct site *site, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain_at(site, COMPLAINT_ERROR, site->node, format, args);
	va_end(args);
	return -1;
}

int site_error_at(const struct site *site, const struct node *node, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain_at(site, COMPLAINT_ERROR, node, format, args);
	va_end(args);
	return -1;
}

void site_warn(const struct site *site, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain_at(site, COMPLAINT_WARNING, site->node, format, args);
	va_end(args);
}

int site_no_memory(const struct site *site)
{
	site->reader->complaints->is_out_of_memory = true;
	return -1;
}

const char *site_text(const struct site *site)
{
	switch (site->node->kind) {
	case NODE_SCALAR:
		if (!node_is_null(site->node))
			return site->node->text;
		site_error(site, "needs a value");
		return NULL;
	case NODE_LIST:
		site_error(site, "needs one value, not a list");
		return NULL;
	case NODE_MAP:
		site_error(site, "needs one value, not a map of keys");
		return NULL;
	case NODE_BROKEN:
		break;
	}
	return NULL;
}

char *site_copy(const struct site *site, const char *text)
{
	char *copy = strdup(text);

	if (copy == NULL)
		site_no_memory(site);
	return copy;
}

/* Appends one segment of a relative path to the folder in `out`. */
static size_t append_segment(char *out, size_t len, const char *segment, size_t segment_len)
{
	if (segment_len == 0 || (segment_len == 1 && segment[0] == '.'))
		return len;
	if (segment_len == 2 && segment[0] == '.' && segment[1] == '.') {
		while (len > 0 && out[--len] != '/')
			;
		return len;
	}
	out[len++] = '/';
	memcpy(out + len, segment, segment_len);
	return len + segment_len;
}

char *path_resolve(const char *folder, const char *path)
{
	if (path[0] == '/')
		return strdup(path);
	size_t len = strlen(folder);
	char *out = malloc(len + strlen(path) + 3);
	if (out == NULL)
		return NULL;
	memcpy(out, folder, len);
	while (len > 0 && out[len - 1] == '/')
		len--;
	for (const char *segment = path;; ) {
		size_t segment_len = strcspn(segment, "/");
		len = append_segment(out, len, segment, segment_len);
		if (segment[segment_len] == '\0')
			break;
		segment += segment_len + 1;
	}
	if (len == 0)
		out[len++] = '/';
	out[len] = '\0';
	return out;
}

char *site_path(const struct site *site, const char *path)
{
	char *out = path_resolve(site->reader->folder, path);

	if (out == NULL)
		site_no_memory(site);
	return out;
}

struct hint hint_for(const char *word, const char *const *names)
{
	struct hint hint = { "" };
	const char *near = text_nearest(word, names);

	if (near != NULL)
		snprintf(hint.text, sizeof(hint.text), ", did you mean '%s'?", near);
	return hint;
}

static int compare_name(const void *word, const void *entry)
{
	return strcmp(word, ((const struct handler_name *)entry)->name);
}

static struct hint hint_for_handler(const struct reader *reader, const char *name)
{
	const char **names = calloc(reader->names_count + 1, sizeof(char *));
	struct hint hint = { "" };

	if (names == NULL)
		return hint;
	for (size_t i = 0; i < reader->names_count; i++)
		names[i] = reader->names[i].name;
	hint = hint_for(name, names);
	free(names);
	return hint;
}

int reader_find_handler(const struct site *site, const char *name, unsigned *out)
{
	const struct reader *reader = site->reader;
	const struct handler_name *found = reader->names_count == 0 ? NULL
		: bsearch(name, reader->names, reader->names_count, sizeof(reader->names[0]), compare_name);

	if (found == NULL)
		return site_error(site, "there is no handler '%s'%s", name, hint_for_handler(reader, name).text);
	*out = found->number;
	return 0;
}
