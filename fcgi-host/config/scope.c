/*
 * scope.c - goes through the table of keys for one struct: reads it, prints it,
 * gives it back.
 */
#include "config/keys.h"

#include <string.h>

enum { NAME_MAX_BYTES = 96 };

static const struct node *find(const struct node *map, const struct key *key)
{
	struct slice group = key_group(key);
	const struct node *inside = group.len == 0 ? map : node_get(map, group);

	return node_get(inside, slice_of(key_leaf(key)));
}

static bool has_program(const struct node *map, enum key_scope scope)
{
	for (size_t i = 0; i < keys_count; i++)
		if (keys[i].scope == scope && keys[i].is_program && find(map, &keys[i]) != NULL)
			return true;
	return false;
}

static const struct node *find_default(const struct scope_source *source, const struct key *key)
{
	if (source->defaults == NULL || (key->is_program && has_program(source->own, key->scope)))
		return NULL;
	return find(source->defaults, key);
}

const struct node *scope_get(const struct scope_source *source, const struct key *key, bool *is_own_out)
{
	const struct node *own = find(source->own, key);

	*is_own_out = own != NULL;
	return own != NULL ? own : find_default(source, key);
}

/* The names that could stand where `word` does, for a hint: those of the same
 * map first, then the whole name of a key of that name inside of a group. */
static struct hint hint_for_key(enum key_scope scope, struct slice group, const char *word)
{
	const char *names[128];
	size_t count = 0;
	struct hint hint;

	for (size_t i = 0; i < keys_count && count < 127; i++) {
		struct slice other = key_group(&keys[i]);
		if (keys[i].scope == scope && other.len == group.len && (group.len == 0 || memcmp(other.ptr, group.ptr, group.len) == 0))
			names[count++] = key_leaf(&keys[i]);
	}
	names[count] = NULL;
	hint = hint_for(word, names);
	for (size_t i = 0; i < keys_count && hint.text[0] == '\0'; i++)
		if (keys[i].scope == scope && strcmp(key_leaf(&keys[i]), word) == 0)
			snprintf(hint.text, sizeof(hint.text), ", did you mean '%s'?", keys[i].name);
	return hint;
}

struct names_check {
	struct reader *reader;
	enum key_scope scope;
	const struct key *group;        /* NULL outside of one */
	const struct place *place;
};

static int check_names(const struct names_check *check, const struct node *map);

static int check_name(const struct names_check *check, const struct node *name, const struct node *value)
{
	char full[NAME_MAX_BYTES];
	const char *group = check->group == NULL ? "" : check->group->name;
	snprintf(full, sizeof(full), "%s%s%s", group, group[0] == '\0' ? "" : ".", name->text);
	const struct key *key = strchr(name->text, '.') != NULL ? NULL : key_find(check->scope, full);
	struct site site = { check->reader, key, check->place, name };

	if (key == NULL)
		return site_error(&site, "there is no key '%s'%s", name->text,
			hint_for_key(check->scope, slice_of(group), name->text).text);
	if (key->is_not_yet)
		return site_error(&site, "'%s' is not yet supported", key->name);
	if (key->kind != &kind_group || node_is_null(value))
		return 0;
	struct place inside = { check->place, key->name, 0 };
	struct names_check deeper = { check->reader, check->scope, key, &inside };
	return check_names(&deeper, value);
}

static int check_names(const struct names_check *check, const struct node *map)
{
	struct site site = { check->reader, check->group, check->place, map };
	int rc = 0;

	if (map->kind == NODE_BROKEN)
		return -1;
	if (map->kind != NODE_MAP)
		return site_error(&site, "needs a map of keys, not a %s", map->kind == NODE_LIST ? "list" : "value alone");
	for (size_t i = 0; i < map->items_count; i += 2)
		if (map->items[i].kind != NODE_SCALAR || check_name(check, &map->items[i], &map->items[i + 1]) != 0)
			rc = -1;
	return rc;
}

static int read_node(struct site *site, const struct node *node, bool is_quiet, void *field)
{
	bool was_quiet = site->reader->is_quiet;

	site->node = node;
	site->reader->is_quiet = was_quiet || is_quiet;
	int rc = site->key->kind->read(site, field);
	site->reader->is_quiet = was_quiet;
	return rc;
}

static int read_fallback(struct site *site, void *field)
{
	struct node node = { .kind = NODE_SCALAR, .is_plain = true, .text = (char *)site->key->fallback };

	return read_node(site, &node, false, field);
}

static int read_key(struct reader *reader, const struct key *key, const struct scope_source *source,
	const struct place *up, void *field)
{
	struct place place = { up, key->name, 0 };
	struct site site = { reader, key, &place, source->own };
	const struct node *own = find(source->own, key);
	const struct node *inherited = find_default(source, key);
	int rc = 0;

	if (inherited != NULL && (own == NULL || key->kind->is_merged))
		rc = read_node(&site, inherited, true, field);
	if (own != NULL)
		return read_node(&site, own, false, field) != 0 ? -1 : rc;
	if (inherited != NULL)
		return rc;
	if (key->fallback != NULL)
		return read_fallback(&site, field);
	if (!key->is_needed)
		return 0;
	site.place = up;
	return site_error(&site, "'%s' is missing", key->name);
}

int scope_read(struct reader *reader, enum key_scope scope, const struct scope_source *source,
	const struct place *place, void *object)
{
	struct names_check check = { reader, scope, NULL, place };
	int rc = 0;

	if (!node_is_null(source->own))
		rc = check_names(&check, source->own);
	if (rc != 0 && source->own->kind != NODE_MAP)
		return rc;
	for (size_t i = 0; i < keys_count; i++) {
		const struct key *key = &keys[i];
		if (key->scope != scope || key->is_not_yet || key->kind == &kind_group)
			continue;
		if (read_key(reader, key, source, place, (char *)object + key->offset) != 0)
			rc = -1;
	}
	return rc;
}

void scope_print(struct printer *printer, enum key_scope scope, const void *object)
{
	for (size_t i = 0; i < keys_count; i++) {
		const struct key *key = &keys[i];
		if (key->scope == scope && !key->is_not_yet && key->kind->print != NULL)
			key->kind->print(printer, key, (const char *)object + key->offset);
	}
	printer_keys_end(printer);
}

void scope_fini(enum key_scope scope, void *object)
{
	for (size_t i = 0; i < keys_count; i++)
		if (keys[i].scope == scope && !keys[i].is_not_yet && keys[i].kind->fini != NULL)
			keys[i].kind->fini((char *)object + keys[i].offset);
}
