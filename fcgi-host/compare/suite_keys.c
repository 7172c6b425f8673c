#include "compare/suite_keys.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 32 };

/* Maps. */

static const struct key *find_row(const struct suite_keys *known, const char *name)
{
	for (size_t i = 0; i < known->count; i++)
		if (strcmp(known->rows[i].name, name) == 0)
			return &known->rows[i];
	return NULL;
}

static struct hint hint_for_row(const struct suite_keys *known, const char *word)
{
	const char *names[ROWS_MAX + 1];
	size_t count = 0;

	for (; count < known->count && count < ROWS_MAX; count++)
		names[count] = known->rows[count].name;
	names[count] = NULL;
	return hint_for(word, names);
}

static int check_is_map(const struct site *site, const char *of_what)
{
	if (site->node->kind == NODE_BROKEN)
		return -1;
	if (site->node->kind == NODE_MAP)
		return 0;
	return site_error(site, "needs a map of %s, not a %s", of_what, site->node->kind == NODE_LIST ? "list" : "value alone");
}

static int check_names(const struct site *site, const struct suite_keys *known)
{
	int rc = 0;

	for (size_t i = 0; i < site->node->items_count; i += 2) {
		const struct node *name = &site->node->items[i];

		if (name->kind != NODE_SCALAR)
			rc = -1;
		else if (find_row(known, name->text) == NULL)
			rc = site_error_at(site, name, "there is no key '%s'%s", name->text, hint_for_row(known, name->text).text);
	}
	return rc;
}

static int read_row(const struct site *map, const struct key *row, void *field)
{
	struct node fallback = { .kind = NODE_SCALAR, .is_plain = true, .text = (char *)row->fallback };
	const struct node *node = node_get(map->node, slice_of(row->name));
	struct place place = { map->place, row->name, 0 };
	struct site site = { map->reader, row, &place, node != NULL ? node : &fallback };

	if (node != NULL || row->fallback != NULL)
		return row->kind->read(&site, field);
	return row->is_needed ? site_error(map, "'%s' is missing", row->name) : 0;
}

int suite_keys_read(const struct site *site, const struct suite_keys *known, void *object)
{
	int rc = check_is_map(site, "keys");

	if (rc != 0)
		return rc;
	rc = check_names(site, known);
	for (size_t i = 0; i < known->count; i++)
		if (read_row(site, &known->rows[i], (char *)object + known->rows[i].offset) != 0)
			rc = -1;
	return rc;
}

static bool is_name(const char *text)
{
	for (const char *c = text; *c != '\0'; c++)
		if (!isalnum((unsigned char)*c) && strchr("-_.", *c) == NULL)
			return false;
	return text[0] != '\0';
}

static int check_name(const struct site *map, const struct node *name)
{
	return is_name(name->text) ? 0 :
		site_error_at(map, name, "'%s' is no name: it is made of letters, digits, '-', '_' and '.'", name->text);
}

static int read_entries(const struct site *site, suite_entry_fn *read, void *object)
{
	const struct node *map = site->node;
	int rc = 0;

	for (size_t i = 0; i < map->items_count; i += 2) {
		struct place place = { site->place, map->items[i].text, 0 };
		struct site entry = { site->reader, site->key, &place, &map->items[i + 1] };

		/* A key that is no text was complained about already. */
		if (map->items[i].kind != NODE_SCALAR || read(&entry, map->items[i].text, object) != 0)
			rc = -1;
	}
	return rc;
}

int suite_names_read(const struct site *site, const char *of_what, suite_entry_fn *read, void *object)
{
	const struct node *map = site->node;
	int rc = check_is_map(site, of_what);

	if (rc != 0)
		return rc;
	if (map->items_count == 0)
		return site_error(site, "the map of %s is empty", of_what);
	for (size_t i = 0; i < map->items_count; i += 2)
		if (map->items[i].kind == NODE_SCALAR && check_name(site, &map->items[i]) != 0)
			rc = -1;
	return read_entries(site, read, object) != 0 ? -1 : rc;
}

int suite_texts_read(const struct site *site, const char *of_what, suite_entry_fn *read, void *object)
{
	int rc = check_is_map(site, of_what);

	return rc != 0 ? rc : read_entries(site, read, object);
}

/* Values. */

static int line_read(const struct site *site, void *field)
{
	const char *text = site_text(site);

	if (text == NULL)
		return -1;
	if (text[0] == '\0')
		return site_error(site, "needs a value");
	for (const char *c = text; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return site_error(site, "must be one line");
	*(char **)field = site_copy(site, text);
	return *(char **)field == NULL ? -1 : 0;
}

static int text_read(const struct site *site, void *field)
{
	const char *text = site_text(site);

	*(char **)field = text == NULL ? NULL : site_copy(site, text);
	return *(char **)field == NULL ? -1 : 0;
}

static int number_read(const struct site *site, void *field)
{
	const char *text = site_text(site);
	uint64_t value;

	if (text == NULL)
		return -1;
	if (text_to_u64(slice_of(text), &value) != 0)
		return site_error(site, "'%s' is not a whole number", text);
	if (value < site->key->min || value > site->key->max)
		return site_error(site, "'%s' is out of bounds: from %" PRIu64 " to %" PRIu64, text, site->key->min, site->key->max);
	*(uint64_t *)field = value;
	return 0;
}

static int size_read(const struct site *site, void *field)
{
	uint64_t value;

	if (number_read(site, &value) != 0)
		return -1;
	*(size_t *)field = (size_t)value;
	return 0;
}

static int decimal_read(const struct site *site, void *field)
{
	const char *text = site_text(site);
	char *end;
	double value;

	if (text == NULL)
		return -1;
	value = strtod(text, &end);
	if (text[strspn(text, "0123456789.")] != '\0' || end == text || *end != '\0')
		return site_error(site, "'%s' is not a number such as 12 or 0.5", text);
	if (value <= 0 || value > (double)site->key->max)
		return site_error(site, "'%s' is out of bounds: above 0, up to %" PRIu64, text, site->key->max);
	*(double *)field = value;
	return 0;
}

int suite_pair_add(const struct site *site, struct pair **pairs, size_t *count, const char *name, const char *value)
{
	struct pair *more = realloc(*pairs, (*count + 1) * sizeof(*more));
	struct pair new = { .name = NULL };

	if (more == NULL)
		return site_no_memory(site);
	*pairs = more;
	new.name = site_copy(site, name);
	new.value = site_copy(site, value);
	if (new.name == NULL || new.value == NULL) {
		free(new.name);
		free(new.value);
		return -1;
	}
	more[(*count)++] = new;
	return 0;
}

const struct key_kind kind_suite_line = { .name = "one line", .read = line_read };
const struct key_kind kind_suite_text = { .name = "text", .read = text_read };
const struct key_kind kind_suite_number = { .name = "number", .read = number_read };
const struct key_kind kind_suite_size = { .name = "number", .read = size_read };
const struct key_kind kind_suite_decimal = { .name = "number", .read = decimal_read };
