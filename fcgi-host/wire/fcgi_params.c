#include "wire/fcgi_params.h"

#include <string.h>

enum { SHORT_MAX = 127 };

/* One byte up to 127, else four with the top bit set, which may hold a small
 * value as well. */
static int get_length(struct slice *block, size_t *out)
{
	const uint8_t *p = (const uint8_t *)block->ptr;
	size_t size;

	if (block->len == 0)
		return -1;
	size = p[0] <= SHORT_MAX ? 1 : 4;
	if (block->len < size)
		return -1;
	if (size == 1)
		*out = p[0];
	else
		*out = (size_t)(p[0] & 0x7f) << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
	block->ptr += size;
	block->len -= size;
	return 0;
}

enum fcgi_pair fcgi_next_pair(struct slice *block, struct slice *name_out, struct slice *value_out)
{
	size_t name_len, value_len;

	if (block->len == 0)
		return FCGI_PAIR_NONE;
	if (get_length(block, &name_len) != 0 || get_length(block, &value_len) != 0)
		return FCGI_PAIR_BAD;
	if (name_len > block->len || value_len > block->len - name_len)
		return FCGI_PAIR_BAD;
	*name_out = (struct slice){ block->ptr, name_len };
	*value_out = (struct slice){ block->ptr + name_len, value_len };
	block->ptr += name_len + value_len;
	block->len -= name_len + value_len;
	return FCGI_PAIR_OK;
}

static uint8_t *put_length(uint8_t *to, size_t len)
{
	if (len <= SHORT_MAX) {
		*to++ = (uint8_t)len;
		return to;
	}
	*to++ = (uint8_t)(len >> 24 | 0x80);
	*to++ = (uint8_t)(len >> 16);
	*to++ = (uint8_t)(len >> 8);
	*to++ = (uint8_t)len;
	return to;
}

static uint8_t *put_text(uint8_t *to, struct slice text)
{
	if (text.len > 0)
		memcpy(to, text.ptr, text.len);
	return to + text.len;
}

int fcgi_put_pair(struct bytes *out, struct slice name, struct slice value)
{
	const size_t len_max = 0x7fffffff;
	uint64_t total;
	uint8_t *to;

	if (name.len > len_max || value.len > len_max)
		return -1;
	total = (uint64_t)name.len + value.len + (name.len <= SHORT_MAX ? 1 : 4) + (value.len <= SHORT_MAX ? 1 : 4);
	if (total > bytes_room(out))
		return -1;
	to = bytes_reserve(out, (size_t)total);
	if (to == NULL)
		return -1;
	to = put_length(to, name.len);
	to = put_length(to, value.len);
	to = put_text(to, name);
	put_text(to, value);
	bytes_commit(out, (size_t)total);
	return 0;
}
