#include "wire/fcgi.h"
#include "wire/fcgi_params.h"

#include <fastcgi.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { IN_HEADER, IN_CONTENT, IN_PADDING, IN_BAD };

/* A multiple of 8, so that a full record is aligned without padding. */
enum { STREAM_CONTENT_MAX = 65528 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void skip(struct slice *input, size_t len)
{
	if (len == 0)
		return;
	input->ptr += len;
	input->len -= len;
}

static uint16_t get_u16(const uint8_t *p)
{
	return (uint16_t)((unsigned)p[0] << 8 | p[1]);
}

static uint32_t get_u32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/*
 *      0         1      2    3        4         5         6          7
 *  +---------+------+--------+-----------------+---------+----------+
 *  | version | type |   id   |  content length | padding | reserved |
 *  +---------+------+--------+-----------------+---------+----------+
 */
static enum fcgi_event decode_header(struct fcgi_decoder *d, struct slice *input)
{
	size_t len = least(input->len, sizeof(d->header) - d->header_len);

	if (len > 0)
		memcpy(d->header + d->header_len, input->ptr, len);
	skip(input, len);
	d->header_len = (uint8_t)(d->header_len + len);
	if (d->header_len > 0 && d->header[0] != FCGI_VERSION_1) {
		d->state = IN_BAD;
		return FCGI_BAD;
	}
	if (d->header_len < sizeof(d->header))
		return FCGI_MORE;
	d->type = d->header[1];
	d->id = get_u16(d->header + 2);
	d->content_len = get_u16(d->header + 4);
	d->content_left = d->content_len;
	d->padding_left = d->header[6];
	d->state = IN_CONTENT;
	return FCGI_START;
}

static enum fcgi_event decode_content(struct fcgi_decoder *d, struct slice *input, struct slice *content_out)
{
	size_t len = least(input->len, d->content_left);

	if (len == 0)
		return FCGI_MORE;
	*content_out = (struct slice){ input->ptr, len };
	skip(input, len);
	d->content_left -= (uint32_t)len;
	return FCGI_CONTENT;
}

static enum fcgi_event decode_padding(struct fcgi_decoder *d, struct slice *input)
{
	size_t len = least(input->len, d->padding_left);

	skip(input, len);
	d->padding_left = (uint8_t)(d->padding_left - len);
	if (d->padding_left > 0)
		return FCGI_MORE;
	d->header_len = 0;
	d->state = IN_HEADER;
	return FCGI_END;
}

enum fcgi_event fcgi_decode(struct fcgi_decoder *d, struct slice *input, struct slice *content_out)
{
	*content_out = (struct slice){ NULL, 0 };
	if (d->state == IN_BAD)
		return FCGI_BAD;
	if (d->state == IN_HEADER)
		return decode_header(d, input);
	if (d->state == IN_CONTENT && d->content_left > 0)
		return decode_content(d, input, content_out);
	d->state = IN_PADDING;
	return decode_padding(d, input);
}

void fcgi_fixed_put(struct fcgi_fixed *fixed, struct slice content)
{
	size_t len = least(content.len, sizeof(fixed->bytes) - fixed->len);

	memcpy(fixed->bytes + fixed->len, content.ptr, len);
	fixed->len = (uint8_t)(fixed->len + len);
}

void fcgi_get_begin(const uint8_t *body, struct fcgi_begin *out)
{
	out->role = get_u16(body);
	out->flags = body[2];
}

void fcgi_get_end(const uint8_t *body, struct fcgi_end *out)
{
	out->app_status = get_u32(body);
	out->protocol_status = body[4];
}

void fcgi_put_header(uint8_t out[8], uint8_t type, uint16_t id, uint16_t content_len, uint8_t padding_len)
{
	out[0] = FCGI_VERSION_1;
	out[1] = type;
	out[2] = (uint8_t)(id >> 8);
	out[3] = (uint8_t)id;
	out[4] = (uint8_t)(content_len >> 8);
	out[5] = (uint8_t)content_len;
	out[6] = padding_len;
	out[7] = 0;
}

static uint8_t *put_fixed(uint8_t out[16], uint8_t type, uint16_t id)
{
	memset(out, 0, FCGI_HEADER_BYTES + FCGI_BODY_BYTES);
	fcgi_put_header(out, type, id, FCGI_BODY_BYTES, 0);
	return out + FCGI_HEADER_BYTES;
}

void fcgi_put_begin(uint8_t out[16], uint16_t id, uint16_t role, uint8_t flags)
{
	uint8_t *body = put_fixed(out, FCGI_BEGIN_REQUEST, id);

	body[0] = (uint8_t)(role >> 8);
	body[1] = (uint8_t)role;
	body[2] = flags;
}

void fcgi_put_end(uint8_t out[16], uint16_t id, uint32_t app_status, uint8_t protocol_status)
{
	uint8_t *body = put_fixed(out, FCGI_END_REQUEST, id);

	body[0] = (uint8_t)(app_status >> 24);
	body[1] = (uint8_t)(app_status >> 16);
	body[2] = (uint8_t)(app_status >> 8);
	body[3] = (uint8_t)app_status;
	body[4] = protocol_status;
}

void fcgi_put_unknown_type(uint8_t out[16], uint8_t type)
{
	put_fixed(out, FCGI_UNKNOWN_TYPE, FCGI_NULL_REQUEST_ID)[0] = type;
}

int fcgi_put_stream(struct bytes *out, uint8_t type, uint16_t id, const void *data, size_t len)
{
	size_t records = len == 0 ? 1 : len / STREAM_CONTENT_MAX + (len % STREAM_CONTENT_MAX != 0);
	size_t room = bytes_room(out);
	const uint8_t *from = data;
	uint8_t *to;

	if (len > room || records > (room - len) / FCGI_HEADER_BYTES)
		return -1;
	to = bytes_reserve(out, len + records * FCGI_HEADER_BYTES);
	if (to == NULL)
		return -1;
	bytes_commit(out, len + records * FCGI_HEADER_BYTES);
	for (; records > 0; records--) {
		size_t part = least(len, STREAM_CONTENT_MAX);

		fcgi_put_header(to, type, id, (uint16_t)part, 0);
		if (part > 0) {
			memcpy(to + FCGI_HEADER_BYTES, from, part);
			from += part;
		}
		to += FCGI_HEADER_BYTES + part;
		len -= part;
	}
	return 0;
}

int fcgi_put_values(struct bytes *out, struct slice asked, uint32_t max_conns, uint32_t max_reqs)
{
	const struct { const char *name; uint32_t value; } known[] = {
		{ FCGI_MAX_CONNS, max_conns }, { FCGI_MAX_REQS, max_reqs }, { FCGI_MPXS_CONNS, 0 },
	};
	enum { KNOWN = sizeof(known) / sizeof(known[0]) };
	bool is_answered[KNOWN] = { false };
	struct slice name, value;
	enum fcgi_pair pair;
	struct bytes answer;
	int result = 0;

	bytes_init(&answer, 256);
	while ((pair = fcgi_next_pair(&asked, &name, &value)) == FCGI_PAIR_OK)
		for (size_t i = 0; i < KNOWN; i++) {
			char number[16];

			if (is_answered[i] || !slice_is(name, known[i].name))
				continue;
			is_answered[i] = true;
			snprintf(number, sizeof(number), "%u", known[i].value);
			result |= fcgi_put_pair(&answer, name, slice_of(number));
		}
	if (pair == FCGI_PAIR_BAD || result != 0)
		result = -1;
	else
		result = fcgi_put_stream(out, FCGI_GET_VALUES_RESULT, FCGI_NULL_REQUEST_ID, bytes_data(&answer), answer.len);
	bytes_fini(&answer);
	return result;
}
