#include "wire/vars.h"
#include "wire/fcgi_params.h"
#include "wire/siphash.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/*
 * All text lies in one block as "NAME\0" and "VALUE\0"; entries, in order, point
 * into it by offset; slots, the hash table, hold entry numbers plus one.  A value
 * that no longer fits where it was leaves a hole, and the block is packed before
 * holes can make it grow.
 */
struct entry {
	uint32_t name, name_len;        /* name is an offset into text */
	uint32_t value, value_len;
	uint32_t hash;
};

struct vars {
	size_t max_bytes, bytes;        /* bytes: live text, NULs counted */
	char *text;
	size_t text_len, text_cap;      /* text_len: live text and holes */
	struct entry *entries;
	size_t count, entries_cap;
	uint32_t *slots;
	size_t slots_count;             /* a power of two, more than half of it free; or 0 */
};

/* Offsets are 32 bits wide, and the block may be eight times the live text. */
static const size_t BYTES_MOST = UINT32_MAX / 16;
enum { TEXT_FIRST = 4096, ENTRIES_FIRST = 64, SLOTS_FIRST = 128 };

static uint32_t hash_of(struct slice name)
{
	static uint64_t key[2];

	/* No entropy yet is no reason to fail: an address is better than nothing. */
	while (key[0] == 0)
		if (getrandom(key, sizeof(key), GRND_NONBLOCK) != (ssize_t)sizeof(key))
			key[0] = (uintptr_t)&key | (uintptr_t)malloc | 1;
	return (uint32_t)siphash(key, name.ptr, name.len);
}

struct vars *vars_new(size_t max_bytes)
{
	struct vars *vars = calloc(1, sizeof(*vars));

	if (vars != NULL)
		vars->max_bytes = max_bytes < BYTES_MOST ? max_bytes : BYTES_MOST;
	return vars;
}

void vars_free(struct vars **vars)
{
	if (*vars == NULL)
		return;
	free((*vars)->text);
	free((*vars)->entries);
	free((*vars)->slots);
	free(*vars);
	*vars = NULL;
}

/* The slot that holds the name, or the free one where it belongs.  There is
 * always a free one. */
static uint32_t *slot_of(const struct vars *vars, struct slice name, uint32_t hash)
{
	size_t mask = vars->slots_count - 1;

	for (size_t i = hash & mask;; i = (i + 1) & mask) {
		const struct entry *entry;

		if (vars->slots[i] == 0)
			return &vars->slots[i];
		entry = &vars->entries[vars->slots[i] - 1];
		if (entry->hash == hash && entry->name_len == name.len
		    && memcmp(vars->text + entry->name, name.ptr, name.len) == 0)
			return &vars->slots[i];
	}
}

static void index_all(struct vars *vars)
{
	size_t mask = vars->slots_count - 1;

	memset(vars->slots, 0, vars->slots_count * sizeof(*vars->slots));
	for (size_t n = 0; n < vars->count; n++) {
		size_t i = vars->entries[n].hash & mask;

		while (vars->slots[i] != 0)
			i = (i + 1) & mask;
		vars->slots[i] = (uint32_t)n + 1;
	}
}

static int make_slots(struct vars *vars)
{
	size_t count = vars->slots_count == 0 ? SLOTS_FIRST : vars->slots_count * 2;
	uint32_t *slots;

	if (vars->slots_count > (vars->count + 1) * 2)
		return 0;
	slots = malloc(count * sizeof(*slots));
	if (slots == NULL)
		return -1;
	free(vars->slots);
	vars->slots = slots;
	vars->slots_count = count;
	index_all(vars);
	return 0;
}

static int make_entry(struct vars *vars)
{
	size_t cap = vars->entries_cap == 0 ? ENTRIES_FIRST : vars->entries_cap * 2;
	struct entry *entries;

	if (vars->count < vars->entries_cap)
		return 0;
	entries = realloc(vars->entries, cap * sizeof(*entries));
	if (entries == NULL)
		return -1;
	vars->entries = entries;
	vars->entries_cap = cap;
	return 0;
}

static uint32_t put(struct vars *vars, const char *ptr, size_t len)
{
	uint32_t at = (uint32_t)vars->text_len;

	if (len > 0)
		memcpy(vars->text + at, ptr, len);
	vars->text[at + len] = '\0';
	vars->text_len += len + 1;
	return at;
}

/* Room for `need` more bytes of text.  Moving packs, so the block grows only
 * with live text, and half of it is free after a move. */
static int make_text(struct vars *vars, size_t need)
{
	char *old = vars->text;
	size_t cap = vars->text_cap == 0 ? TEXT_FIRST : vars->text_cap;
	char *text;

	if (need <= vars->text_cap - vars->text_len)
		return 0;
	while (cap < 2 * (vars->bytes + need))
		cap *= 2;
	text = malloc(cap);
	if (text == NULL)
		return -1;
	vars->text = text;
	vars->text_cap = cap;
	vars->text_len = 0;
	for (size_t i = 0; i < vars->count; i++) {
		struct entry *entry = &vars->entries[i];

		entry->name = put(vars, old + entry->name, entry->name_len);
		entry->value = put(vars, old + entry->value, entry->value_len);
	}
	free(old);
	return 0;
}

static bool is_within(const struct vars *vars, struct slice s)
{
	uintptr_t ptr = (uintptr_t)s.ptr, text = (uintptr_t)vars->text;

	return s.len > 0 && ptr >= text && ptr < text + vars->text_cap;
}

static enum vars_result replace(struct vars *vars, struct entry *entry, struct slice value)
{
	if (vars->bytes - entry->value_len + value.len > vars->max_bytes)
		return VARS_FULL;
	if (value.len <= entry->value_len) {
		if (value.len > 0)
			memmove(vars->text + entry->value, value.ptr, value.len);
		vars->text[entry->value + value.len] = '\0';
	} else {
		if (make_text(vars, value.len + 1) != 0)
			return VARS_FULL;
		entry->value = put(vars, value.ptr, value.len);
	}
	vars->bytes = vars->bytes - entry->value_len + value.len;
	entry->value_len = (uint32_t)value.len;
	return VARS_REPLACED;
}

static enum vars_result add(struct vars *vars, struct slice name, uint32_t hash, struct slice value)
{
	size_t need = name.len + value.len + 2;
	struct entry *entry;

	if (need > vars->max_bytes - vars->bytes)
		return VARS_FULL;
	if (make_entry(vars) != 0 || make_slots(vars) != 0 || make_text(vars, need) != 0)
		return VARS_FULL;
	*slot_of(vars, name, hash) = (uint32_t)vars->count + 1;
	entry = &vars->entries[vars->count++];
	entry->hash = hash;
	entry->name = put(vars, name.ptr, name.len);
	entry->name_len = (uint32_t)name.len;
	entry->value = put(vars, value.ptr, value.len);
	entry->value_len = (uint32_t)value.len;
	vars->bytes += need;
	return VARS_SET;
}

static enum vars_result set_hashed(struct vars *vars, struct slice name, uint32_t hash, struct slice value)
{
	uint32_t *slot = vars->slots_count == 0 ? NULL : slot_of(vars, name, hash);

	if (slot != NULL && *slot != 0)
		return replace(vars, &vars->entries[*slot - 1], value);
	return add(vars, name, hash, value);
}

static enum vars_result set(struct vars *vars, struct slice name, struct slice value)
{
	return set_hashed(vars, name, hash_of(name), value);
}

enum vars_result vars_set(struct vars *vars, struct slice name, struct slice value)
{
	enum vars_result result;
	char *copy;

	if (name.len == 0 || memchr(name.ptr, '=', name.len) != NULL || memchr(name.ptr, '\0', name.len) != NULL)
		return VARS_REFUSED;
	if (value.len > 0 && memchr(value.ptr, '\0', value.len) != NULL)
		return VARS_REFUSED;
	if (name.len > vars->max_bytes || value.len > vars->max_bytes)
		return VARS_FULL;
	if (!is_within(vars, name) && !is_within(vars, value))
		return set(vars, name, value);

	/* The set's own text moves while it grows. */
	copy = malloc(name.len + value.len + 1);
	if (copy == NULL)
		return VARS_FULL;
	memcpy(copy, name.ptr, name.len);
	if (value.len > 0)
		memcpy(copy + name.len, value.ptr, value.len);
	result = set(vars, (struct slice){ copy, name.len }, (struct slice){ copy + name.len, value.len });
	free(copy);
	return result;
}

enum vars_result vars_set_text(struct vars *vars, const char *name, const char *value)
{
	return vars_set(vars, slice_of(name), slice_of(value));
}

enum vars_result vars_copy(struct vars *to, const struct vars *from, size_t i)
{
	const struct entry *entry = &from->entries[i];

	return set_hashed(to, (struct slice){ from->text + entry->name, entry->name_len }, entry->hash,
		(struct slice){ from->text + entry->value, entry->value_len });
}

struct slice vars_field_name(struct slice field, char buffer[VARS_FIELD_NAME_BYTES])
{
	static const char prefix[] = "HTTP_";
	size_t prefix_len = sizeof(prefix) - 1;
	struct slice name = { buffer, prefix_len + field.len };

	if (field.len == 0 || name.len > VARS_FIELD_NAME_BYTES)
		return (struct slice){ buffer, 0 };
	memcpy(buffer, prefix, prefix_len);
	for (size_t i = 0; i < field.len; i++) {
		char c = field.ptr[i] >= 'a' && field.ptr[i] <= 'z' ? (char)(field.ptr[i] - 0x20) : field.ptr[i];

		buffer[prefix_len + i] = c == '-' ? '_' : c;
	}
	if (slice_is(name, "HTTP_CONTENT_TYPE") || slice_is(name, "HTTP_CONTENT_LENGTH"))
		return (struct slice){ buffer + prefix_len, field.len };
	return name;
}

void vars_unset(struct vars *vars, const char *name)
{
	struct slice wanted = slice_of(name);
	struct entry *entry;
	size_t number;

	if (vars->slots_count == 0)
		return;
	number = *slot_of(vars, wanted, hash_of(wanted));
	if (number == 0)
		return;
	entry = &vars->entries[number - 1];
	vars->bytes -= (size_t)entry->name_len + entry->value_len + 2;
	memmove(entry, entry + 1, (vars->count - number) * sizeof(*entry));
	vars->count--;
	index_all(vars);
}

const char *vars_get(const struct vars *vars, const char *name)
{
	struct slice wanted = slice_of(name);
	uint32_t number;

	if (vars->slots_count == 0)
		return NULL;
	number = *slot_of(vars, wanted, hash_of(wanted));
	return number == 0 ? NULL : vars->text + vars->entries[number - 1].value;
}

size_t vars_count(const struct vars *vars)
{
	return vars->count;
}

size_t vars_bytes(const struct vars *vars)
{
	return vars->bytes;
}

struct var vars_at(const struct vars *vars, size_t i)
{
	const struct entry *entry = &vars->entries[i];

	return (struct var){
		.name = vars->text + entry->name, .name_len = entry->name_len,
		.value = vars->text + entry->value, .value_len = entry->value_len,
	};
}

int vars_to_environ(const struct vars *vars, struct bytes *out)
{
	char *to = (char *)bytes_reserve(out, vars->bytes);

	if (vars->count == 0)
		return 0;
	if (to == NULL)
		return -1;
	for (size_t i = 0; i < vars->count; i++) {
		struct var var = vars_at(vars, i);

		memcpy(to, var.name, var.name_len);
		to[var.name_len] = '=';
		memcpy(to + var.name_len + 1, var.value, var.value_len + 1);
		to += var.name_len + var.value_len + 2;
	}
	bytes_commit(out, vars->bytes);
	return 0;
}

int vars_to_params(const struct vars *vars, struct bytes *out)
{
	for (size_t i = 0; i < vars->count; i++) {
		struct var var = vars_at(vars, i);

		if (fcgi_put_pair(out, (struct slice){ var.name, var.name_len },
		    (struct slice){ var.value, var.value_len }) != 0)
			return -1;
	}
	return 0;
}
