#include "base/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALLEST = 256 };

void bytes_init(struct bytes *b, size_t max_bytes)
{
	*b = (struct bytes){ .max_bytes = max_bytes };
}

void bytes_fini(struct bytes *b)
{
	free(b->base);
	b->base = NULL;
	b->start = b->len = b->cap = 0;
}

void bytes_release(struct bytes *b)
{
	if (b->len == 0)
		bytes_fini(b);
}

uint8_t *bytes_data(const struct bytes *b)
{
	return b->base == NULL ? NULL : b->base + b->start;
}

size_t bytes_room(const struct bytes *b)
{
	return b->max_bytes - b->len;
}

uint8_t *bytes_reserve(struct bytes *b, size_t len)
{
	size_t need, cap;
	uint8_t *base;

	if (len > bytes_room(b))
		return NULL;
	need = b->len + len;
	if (b->base != NULL && b->start + need <= b->cap)
		return b->base + b->start + b->len;
	if (b->base != NULL && need <= b->cap) {
		memmove(b->base, b->base + b->start, b->len);
		b->start = 0;
		return b->base + b->len;
	}
	for (cap = b->cap > SMALLEST ? b->cap : SMALLEST; cap < need; cap *= 2)
		;
	base = malloc(cap);
	if (base == NULL)
		return NULL;
	if (b->len > 0)
		memcpy(base, b->base + b->start, b->len);
	free(b->base);
	b->base = base;
	b->start = 0;
	b->cap = cap;
	return base + b->len;
}

void bytes_commit(struct bytes *b, size_t len)
{
	b->len += len;
}

int bytes_append(struct bytes *b, const void *data, size_t len)
{
	uint8_t *room;

	if (len == 0)
		return 0;
	room = bytes_reserve(b, len);
	if (room == NULL)
		return -1;
	memcpy(room, data, len);
	bytes_commit(b, len);
	return 0;
}

int bytes_append_text(struct bytes *b, const char *text)
{
	return bytes_append(b, text, strlen(text));
}

int bytes_printf(struct bytes *b, const char *format, ...)
{
	va_list args;
	uint8_t *room;
	int len;

	va_start(args, format);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (len < 0)
		return -1;
	room = bytes_reserve(b, (size_t)len + 1);
	if (room == NULL)
		return -1;
	va_start(args, format);
	vsnprintf((char *)room, (size_t)len + 1, format, args);
	va_end(args);
	bytes_commit(b, (size_t)len);
	return 0;
}

void bytes_consume(struct bytes *b, size_t len)
{
	b->start += len;
	b->len -= len;
	if (b->len == 0)
		b->start = 0;
}

void bytes_clear(struct bytes *b)
{
	b->start = b->len = 0;
}
