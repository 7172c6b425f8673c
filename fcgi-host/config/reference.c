/*
 * reference.c - the reference manual of the keys as plain text.
 */
#include "config/keys.h"

#include <inttypes.h>

static const struct {
	enum key_scope scope;
	const char *title;
} chapters[] = {
	{ SCOPE_TOP, "At the top of the file" },
	{ SCOPE_LISTEN, "In an entry of listen" },
	{ SCOPE_HANDLER, "In an entry of handlers, and in defaults" },
	{ SCOPE_ROUTE, "In an entry of routes" },
};

static void print_words(const struct word *words, FILE *out)
{
	for (const struct word *word = words; word->name != NULL; word++)
		fprintf(out, "%s%s%s", word == words ? "" : ", ", word->name, word->value == NOT_YET ? " (not yet supported)" : "");
}

static void print_bounds(const struct key *key, FILE *out)
{
	char low[QUANTITY_TEXT_BYTES], high[QUANTITY_TEXT_BYTES];

	if (key->max == 0 || key->kind == &kind_mode)
		return;
	if (key->kind == &kind_size) {
		size_to_text(key->min, low);
		size_to_text(key->max, high);
	} else if (key->kind == &kind_time) {
		time_to_text(key->min, low);
		time_to_text(key->max, high);
	} else {
		snprintf(low, sizeof(low), "%" PRIu64, key->min);
		snprintf(high, sizeof(high), "%" PRIu64, key->max);
	}
	fprintf(out, ", %s to %s", low, high);
}

static void print_key(const struct key *key, FILE *out)
{
	fprintf(out, "%s: %s", key->name, key->kind->name);
	print_bounds(key, out);
	if (key->words != NULL) {
		fputs(key->kind == &kind_word ? ": " : ", or ", out);
		print_words(key->words, out);
	}
	if (key->fallback != NULL || key->fallback_note != NULL)
		fprintf(out, "; default: %s", key->fallback != NULL ? key->fallback : key->fallback_note);
	if (key->is_needed)
		fputs("; must be there", out);
	if (key->is_not_yet)
		fputs("; not yet supported", out);
	fprintf(out, "\n\t%s\n", key->help);
}

void config_reference(FILE *out)
{
	for (size_t chapter = 0; chapter < sizeof(chapters) / sizeof(chapters[0]); chapter++) {
		fprintf(out, "%s%s\n\n", chapter == 0 ? "" : "\n", chapters[chapter].title);
		for (size_t i = 0; i < keys_count; i++)
			if (keys[i].scope == chapters[chapter].scope)
				print_key(&keys[i], out);
	}
}
