#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct slice slice_of(const char *text)
{
	return (struct slice){ text, text == NULL ? 0 : strlen(text) };
}

bool slice_is(struct slice s, const char *text)
{
	return strlen(text) == s.len && (s.len == 0 || memcmp(s.ptr, text, s.len) == 0);
}

bool slice_is_nocase(struct slice s, const char *text)
{
	return strlen(text) == s.len && (s.len == 0 || strncasecmp(s.ptr, text, s.len) == 0);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct slice slice_trim(struct slice s)
{
	while (s.len > 0 && is_blank(s.ptr[0])) {
		s.ptr++;
		s.len--;
	}
	while (s.len > 0 && is_blank(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

int text_to_u64(struct slice s, uint64_t *out)
{
	uint64_t value = 0;

	if (s.len == 0)
		return -1;
	for (size_t i = 0; i < s.len; i++) {
		unsigned digit = (unsigned)(unsigned char)s.ptr[i] - '0';

		if (digit > 9 || value > (UINT64_MAX - digit) / 10)
			return -1;
		value = value * 10 + digit;
	}
	*out = value;
	return 0;
}

char *slice_dup(struct slice s)
{
	char *copy = malloc(s.len + 1);

	if (copy == NULL)
		return NULL;
	if (s.len > 0)
		memcpy(copy, s.ptr, s.len);
	copy[s.len] = '\0';
	return copy;
}

enum { WORD_MAX = 64 };

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Edit distance with one row of the table; words are short. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[WORD_MAX + 1];
	size_t b_len = strlen(b);

	for (size_t j = 0; j <= b_len; j++)
		row[j] = (unsigned)j;
	for (size_t i = 0; a[i] != '\0'; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i + 1;
		for (size_t j = 0; j < b_len; j++) {
			unsigned above = row[j + 1];
			unsigned change = diagonal + (a[i] == b[j] ? 0 : 1);

			row[j + 1] = least(change, least(above, row[j]) + 1);
			diagonal = above;
		}
	}
	return row[b_len];
}

const char *text_nearest(const char *word, const char *const *candidates)
{
	const char *best = NULL;
	unsigned best_distance;
	size_t len = strlen(word);

	if (len == 0 || len > WORD_MAX)
		return NULL;
	best_distance = len < 4 ? 1 : (unsigned)len / 3 + 1;
	for (; *candidates != NULL; candidates++) {
		unsigned d;

		if (strlen(*candidates) > WORD_MAX)
			continue;
		d = distance(word, *candidates);
		if (d < best_distance || (d == best_distance && best == NULL)) {
			best_distance = d;
			best = *candidates;
		}
	}
	return best;
}
