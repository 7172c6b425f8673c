/*
 * kinds_number.c - truths, numbers, sizes, times and words.
 */
#include "config/keys.h"

#include <inttypes.h>
#include <string.h>

struct unit {
	const char *name;       /* NULL ends a list */
	uint64_t factor;
};

static const struct unit size_units[] = { { "GiB", UINT64_C(1) << 30 }, { "MiB", UINT64_C(1) << 20 },
	{ "KiB", UINT64_C(1) << 10 }, { "B", 1 }, { NULL, 0 } };
static const struct unit time_units[] = { { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 }, { NULL, 0 } };

static void join_words(const struct word *words, const char *last, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (; words->name != NULL && used < size; words++)
		if (words->value != NOT_YET)
			used += (size_t)snprintf(out + used, size - used, "%s%s", used == 0 ? "" : ", ", words->name);
	if (last != NULL && used < size)
		snprintf(out + used, size - used, "%s%s", used == 0 ? "" : " or ", last);
}

static int bool_read(const struct site *site, void *field)
{
	const char *text = site_text(site);

	if (text == NULL)
		return -1;
	bool is_true = strcmp(text, "true") == 0;
	if (!site->node->is_plain || (!is_true && strcmp(text, "false") != 0))
		return site_error(site, "'%s' is neither true nor false", text);
	*(bool *)field = is_true;
	return 0;
}

static void bool_print(struct printer *printer, const struct key *key, const void *field)
{
	key_print(printer, key);
	printer_number(printer, *(const bool *)field ? "true" : "false");
}

static int check_bounds(const struct site *site, uint64_t value)
{
	const struct key *key = site->key;

	if (value >= key->min && value <= key->max)
		return 0;
	if (key->kind == &kind_size || key->kind == &kind_time) {
		char low[QUANTITY_TEXT_BYTES], high[QUANTITY_TEXT_BYTES];
		void (*to_text)(uint64_t, char *) = key->kind == &kind_size ? size_to_text : time_to_text;
		to_text(key->min, low);
		to_text(key->max, high);
		return site_error(site, "'%s' is out of bounds: from %s to %s", site->node->text, low, high);
	}
	return site_error(site, "'%s' is out of bounds: from %" PRIu64 " to %" PRIu64, site->node->text, key->min, key->max);
}

static int count_read(const struct site *site, void *field)
{
	const char *text = site_text(site);
	const struct word *word = text == NULL || site->key->words == NULL ? NULL : word_find(site->key->words, text);
	uint64_t value;

	if (text == NULL)
		return -1;
	if (word != NULL) {
		*(unsigned *)field = (unsigned)word->value;
		return 0;
	}
	if (text_to_u64(slice_of(text), &value) != 0) {
		char words[128] = "";
		if (site->key->words != NULL)
			join_words(site->key->words, "a whole number", words, sizeof(words));
		return site_error(site, "'%s' is not %s", text, words[0] == '\0' ? "a whole number" : words);
	}
	if (check_bounds(site, value) != 0)
		return -1;
	*(unsigned *)field = (unsigned)value;
	return 0;
}

static void count_print(struct printer *printer, const struct key *key, const void *field)
{
	unsigned value = *(const unsigned *)field;
	const char *word = key->words == NULL ? NULL : word_for(key->words, (int)value);
	char text[QUANTITY_TEXT_BYTES];

	snprintf(text, sizeof(text), "%u", value);
	key_print(printer, key);
	printer_number(printer, word != NULL ? word : text);
}

static int percent_read(const struct site *site, void *field)
{
	const char *text = site_text(site);
	uint64_t value;

	if (text == NULL)
		return -1;
	struct slice number = slice_of(text);
	if (number.len == 0 || number.ptr[number.len - 1] != '%')
		return site_error(site, "'%s' is no percentage such as 10%%", text);
	number.len--;
	if (text_to_u64(number, &value) != 0)
		return site_error(site, "'%s' is no percentage such as 10%%", text);
	if (check_bounds(site, value) != 0)
		return -1;
	*(unsigned *)field = (unsigned)value;
	return 0;
}

static void percent_print(struct printer *printer, const struct key *key, const void *field)
{
	char text[QUANTITY_TEXT_BYTES];

	snprintf(text, sizeof(text), "%u%%", *(const unsigned *)field);
	key_print(printer, key);
	printer_number(printer, text);
}

enum quantity { QUANTITY_OK, QUANTITY_NO_NUMBER, QUANTITY_NO_UNIT, QUANTITY_BAD_UNIT, QUANTITY_TOO_LARGE };

static const struct unit *find_unit(const struct unit *units, struct slice name)
{
	for (; units->name != NULL; units++)
		if (slice_is(name, units->name))
			return units;
	return NULL;
}

/* A number and its unit.  Without a unit *value_out is the bare number. */
static enum quantity parse_quantity(const char *text, const struct unit *units, uint64_t *value_out)
{
	struct slice number = { text, strspn(text, "0123456789") };
	struct slice name = slice_trim(slice_of(text + number.len));
	const struct unit *unit = find_unit(units, name);

	if (number.len == 0)
		return QUANTITY_NO_NUMBER;
	if (text_to_u64(number, value_out) != 0)
		return QUANTITY_TOO_LARGE;
	if (name.len == 0)
		return QUANTITY_NO_UNIT;
	if (unit == NULL)
		return QUANTITY_BAD_UNIT;
	if (__builtin_mul_overflow(*value_out, unit->factor, value_out))
		return QUANTITY_TOO_LARGE;
	return QUANTITY_OK;
}

static int quantity_error(const struct site *site, enum quantity why, const char *text, const char *form, const char *units)
{
	switch (why) {
	case QUANTITY_NO_UNIT:
		return site_error(site, "'%s' needs a unit: %s", text, units);
	case QUANTITY_BAD_UNIT:
		return site_error(site, "'%s' has no unit that is known: %s", text, units);
	case QUANTITY_TOO_LARGE:
		return site_error(site, "'%s' is too large", text);
	default:
		return site_error(site, "'%s' is no %s", text, form);
	}
}

static int size_read(const struct site *site, void *field)
{
	const char *text = site_text(site);
	uint64_t value;

	if (text == NULL)
		return -1;
	enum quantity result = parse_quantity(text, size_units, &value);
	if (result != QUANTITY_OK && result != QUANTITY_NO_UNIT)
		return quantity_error(site, result, text, "size such as 64MiB", "KiB, MiB or GiB (a bare number is bytes)");
	if (check_bounds(site, value) != 0)
		return -1;
	*(uint64_t *)field = value;
	return 0;
}

static int time_read(const struct site *site, void *field)
{
	const char *text = site_text(site);
	uint64_t value;

	if (text == NULL)
		return -1;
	enum quantity result = parse_quantity(text, time_units, &value);
	bool is_bare_zero = result == QUANTITY_NO_UNIT && value == 0;
	if (result != QUANTITY_OK && !is_bare_zero)
		return quantity_error(site, result, text, "time such as 10s", "ms, s, m or h");
	if (check_bounds(site, value) != 0)
		return -1;
	*(uint64_t *)field = value;
	return 0;
}

void size_to_text(uint64_t bytes, char out[QUANTITY_TEXT_BYTES])
{
	const struct unit *unit = size_units;

	while (bytes % unit->factor != 0)
		unit++;
	if (bytes == 0 || unit->factor == 1)
		snprintf(out, QUANTITY_TEXT_BYTES, "%" PRIu64, bytes);
	else
		snprintf(out, QUANTITY_TEXT_BYTES, "%" PRIu64 "%s", bytes / unit->factor, unit->name);
}

/* 60s and not 1m, as people write it; 2m and not 120s. */
void time_to_text(uint64_t ms, char out[QUANTITY_TEXT_BYTES])
{
	const struct unit *unit = time_units;

	while (ms % unit->factor != 0 || (unit->factor == 60000 && ms == 60000))
		unit++;
	if (ms == 0)
		snprintf(out, QUANTITY_TEXT_BYTES, "0s");
	else
		snprintf(out, QUANTITY_TEXT_BYTES, "%" PRIu64 "%s", ms / unit->factor, unit->name);
}

static void size_print(struct printer *printer, const struct key *key, const void *field)
{
	char text[QUANTITY_TEXT_BYTES];

	size_to_text(*(const uint64_t *)field, text);
	key_print(printer, key);
	printer_number(printer, text);
}

static void time_print(struct printer *printer, const struct key *key, const void *field)
{
	char text[QUANTITY_TEXT_BYTES];

	time_to_text(*(const uint64_t *)field, text);
	key_print(printer, key);
	printer_number(printer, text);
}

static int word_unknown(const struct site *site, const char *text)
{
	const char *names[16];
	char allowed[256];
	size_t count = 0;

	for (const struct word *word = site->key->words; word->name != NULL && count < 15; word++)
		names[count++] = word->name;
	names[count] = NULL;
	join_words(site->key->words, NULL, allowed, sizeof(allowed));
	return site_error(site, "'%s' is not one of %s%s", text, allowed, hint_for(text, names).text);
}

static int word_read(const struct site *site, void *field)
{
	const char *text = site_text(site);
	const struct word *word = text == NULL ? NULL : word_find(site->key->words, text);

	*(int *)field = -1;
	if (text == NULL)
		return -1;
	if (word == NULL)
		return word_unknown(site, text);
	if (word->value == NOT_YET)
		return site_error(site, "'%s' is not yet supported", text);
	*(int *)field = word->value;
	return 0;
}

static void word_print(struct printer *printer, const struct key *key, const void *field)
{
	const char *word = word_for(key->words, *(const int *)field);

	if (word == NULL)
		return;
	key_print(printer, key);
	printer_text(printer, word);
}

/* Only names are read here: what is inside has its own rows. */
const struct key_kind kind_group = { .name = "map" };
const struct key_kind kind_bool = { .name = "true or false", .read = bool_read, .print = bool_print };
const struct key_kind kind_count = { .name = "number", .read = count_read, .print = count_print };
const struct key_kind kind_percent = { .name = "percentage", .read = percent_read, .print = percent_print };
const struct key_kind kind_size = { .name = "size", .read = size_read, .print = size_print };
const struct key_kind kind_time = { .name = "time", .read = time_read, .print = time_print };
const struct key_kind kind_word = { .name = "word", .read = word_read, .print = word_print };
