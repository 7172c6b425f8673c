#include "compare/reply.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HEAD_MAX_BYTES = 256 * 1024, CHUNK_LINE_MAX = 64 };

void reply_init(struct reply *reply, bool is_http, bool is_head_request)
{
	*reply = (struct reply){ .is_http = is_http, .is_head_request = is_head_request };
	bytes_init(&reply->head, HEAD_MAX_BYTES);
}

void reply_fini(struct reply *reply)
{
	bytes_fini(&reply->head);
}

void reply_reset(struct reply *reply)
{
	struct bytes head = reply->head;

	*reply = (struct reply){ .is_http = reply->is_http, .is_head_request = reply->is_head_request };
	reply->head = head;
	bytes_clear(&reply->head);
}

static enum reply_state bad(struct reply *reply, const char *reason)
{
	reply->reason = reason;
	return reply->state = REPLY_BAD;
}

/* The head. */

static bool is_field(struct slice line, const char *name, struct slice *value_out)
{
	size_t len = strlen(name);

	if (line.len <= len || line.ptr[len] != ':' || strncasecmp(line.ptr, name, len) != 0)
		return false;
	*value_out = slice_trim((struct slice){ line.ptr + len + 1, line.len - len - 1 });
	return true;
}

static bool has_word(struct slice value, const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i + len <= value.len; i++)
		if (strncasecmp(value.ptr + i, word, len) == 0)
			return true;
	return false;
}

static unsigned three_digits(struct slice text)
{
	unsigned value = 0;

	if (text.len < 3 || (text.len > 3 && text.ptr[3] != ' '))
		return 0;
	for (int i = 0; i < 3; i++) {
		if (text.ptr[i] < '0' || text.ptr[i] > '9')
			return 0;
		value = value * 10 + (unsigned)(text.ptr[i] - '0');
	}
	return value;
}

static int read_status_line(struct reply *reply, struct slice line)
{
	if (line.len < 12 || memcmp(line.ptr, "HTTP/1.", 7) != 0)
		return -1;
	reply->status = three_digits((struct slice){ line.ptr + 9, line.len - 9 });
	reply->must_close = line.ptr[7] == '0';
	return reply->status == 0 ? -1 : 0;
}

static int read_field(struct reply *reply, struct slice line)
{
	struct slice value;

	switch (line.len == 0 ? 0 : line.ptr[0] | 0x20) {
	case 's':
		if (!reply->is_http && is_field(line, "Status", &value))
			return (reply->status = three_digits(value)) == 0 ? -1 : 0;
		break;
	case 't':
		if (reply->is_http && is_field(line, "Transfer-Encoding", &value))
			reply->is_chunked = has_word(value, "chunked");
		break;
	case 'c':
		if (is_field(line, "Content-Length", &value)) {
			reply->has_length = true;
			return text_to_u64(value, &reply->content_length);
		}
		if (reply->is_http && is_field(line, "Connection", &value))
			reply->must_close = has_word(value, "close") || (reply->must_close && !has_word(value, "keep-alive"));
		break;
	default:
		break;
	}
	return 0;
}

static bool has_no_body(const struct reply *reply)
{
	return reply->is_head_request || reply->status == 204 || reply->status == 304;
}

static enum reply_state begin_body(struct reply *reply)
{
	if (!reply->is_http) {
		if (reply->status == 0)
			reply->status = 200;
		return reply->state = REPLY_BODY;
	}
	if (reply->status < 200) {              /* an interim answer: the real one follows */
		bytes_clear(&reply->head);
		reply->line_start = 0;
		reply->status = 0;
		return reply->state = REPLY_HEAD;
	}
	if (has_no_body(reply))
		return reply->state = REPLY_DONE;
	if (reply->is_chunked)
		return reply->state = REPLY_CHUNK_SIZE;
	if (!reply->has_length)
		reply->must_close = true;
	reply->left = reply->has_length ? reply->content_length : UINT64_MAX;
	return reply->state = reply->left == 0 ? REPLY_DONE : REPLY_BODY;
}

static enum reply_state read_head(struct reply *reply)
{
	const char *text = (const char *)bytes_data(&reply->head), *end = text + reply->head.len;

	for (bool is_first = true; text < end; is_first = false) {
		const char *line_end = memchr(text, '\n', (size_t)(end - text));
		struct slice line = { text, (size_t)(line_end - text) };

		if (line.len > 0 && line.ptr[line.len - 1] == '\r')
			line.len--;
		text = line_end + 1;
		if (is_first && reply->is_http ? read_status_line(reply, line) < 0 : read_field(reply, line) < 0)
			return bad(reply, "its header is broken");
	}
	return begin_body(reply);
}

static enum reply_state take_head(struct reply *reply, struct slice *input)
{
	const char *line_end = memchr(input->ptr, '\n', input->len);
	size_t len = line_end == NULL ? input->len : (size_t)(line_end - input->ptr) + 1;
	size_t line_len;

	if (bytes_append(&reply->head, input->ptr, len) < 0)
		return bad(reply, "its header is too large");
	input->ptr += len;
	input->len -= len;
	if (line_end == NULL)
		return REPLY_HEAD;
	line_len = reply->head.len - reply->line_start;
	if (line_len == 1 || (line_len == 2 && bytes_data(&reply->head)[reply->line_start] == '\r'))
		return read_head(reply);
	reply->line_start = reply->head.len;
	return REPLY_HEAD;
}

/* The body. */

static void take_body(struct reply *reply, const char *data, size_t len)
{
	const struct bytes *expected = reply->expected;

	if (expected != NULL && (reply->body_bytes + len > expected->len ||
	    memcmp(bytes_data(expected) + reply->body_bytes, data, len) != 0))
		reply->is_wrong = true;
	if (reply->kept != NULL && bytes_append(reply->kept, data, len) < 0)
		bad(reply, "its body is too large");
	reply->body_bytes += len;
}

static enum reply_state take_some(struct reply *reply, struct slice *input, enum reply_state next)
{
	size_t len = input->len < reply->left ? input->len : (size_t)reply->left;

	take_body(reply, input->ptr, len);
	input->ptr += len;
	input->len -= len;
	reply->left -= len;
	if (reply->left == 0 && reply->state != REPLY_BAD)
		reply->state = next;
	return reply->state;
}

/* A line of a chunked body is gathered behind the head. */
static int take_line(struct reply *reply, struct slice *input)
{
	const char *line_end = memchr(input->ptr, '\n', input->len);
	size_t len = line_end == NULL ? input->len : (size_t)(line_end - input->ptr) + 1;

	if (bytes_append(&reply->head, input->ptr, len) < 0)
		return -1;
	input->ptr += len;
	input->len -= len;
	return line_end != NULL;
}

static enum reply_state take_chunk_line(struct reply *reply, struct slice *input)
{
	int is_line;
	char text[CHUNK_LINE_MAX] = "";
	size_t len;

	if (reply->line_start == 0)
		reply->line_start = reply->head.len;
	is_line = take_line(reply, input);
	if (is_line < 0)
		return bad(reply, "its chunks are broken");
	if (is_line == 0)
		return reply->state;
	len = reply->head.len - reply->line_start;
	memcpy(text, bytes_data(&reply->head) + reply->line_start, len < sizeof(text) - 1 ? len : sizeof(text) - 1);
	reply->head.len = reply->line_start;
	reply->line_start = 0;
	if (reply->state == REPLY_CHUNK_END)
		return reply->state = REPLY_CHUNK_SIZE;
	if (reply->state == REPLY_TRAILER)
		return reply->state = text[0] == '\n' || text[0] == '\r' ? REPLY_DONE : REPLY_TRAILER;
	char *end;
	reply->left = strtoull(text, &end, 16);
	if (end == text)
		return bad(reply, "its chunks are broken");
	return reply->state = reply->left == 0 ? REPLY_TRAILER : REPLY_CHUNK;
}

static enum reply_state finish(struct reply *reply)
{
	if (reply->expected != NULL && reply->body_bytes != reply->expected->len && !has_no_body(reply))
		reply->is_wrong = true;
	return reply->state = REPLY_DONE;
}

static enum reply_state take_once(struct reply *reply, struct slice *input)
{
	switch (reply->state) {
	case REPLY_HEAD:
		take_head(reply, input);
		if (reply->state != REPLY_HEAD)
			reply->line_start = 0;
		return reply->state;
	case REPLY_BODY:
		if (reply->is_http)
			return take_some(reply, input, REPLY_DONE);
		take_body(reply, input->ptr, input->len);
		input->len = 0;
		return reply->state;
	case REPLY_CHUNK:
		return take_some(reply, input, REPLY_CHUNK_END);
	case REPLY_CHUNK_SIZE:
	case REPLY_CHUNK_END:
	case REPLY_TRAILER:
		return take_chunk_line(reply, input);
	case REPLY_DONE:
	case REPLY_BAD:
		break;
	}
	return reply->state;
}

enum reply_state reply_take(struct reply *reply, struct slice *input)
{
	while (input->len > 0 && reply->state != REPLY_DONE && reply->state != REPLY_BAD)
		take_once(reply, input);
	return reply->state == REPLY_DONE ? finish(reply) : reply->state;
}

enum reply_state reply_end(struct reply *reply)
{
	if (reply->state == REPLY_BAD || reply->state == REPLY_DONE)
		return reply->state;
	if (reply->state == REPLY_HEAD)
		return bad(reply, reply->head.len == 0 ? "it is empty" : "its header does not end");
	if (reply->state != REPLY_BODY || (reply->is_http && reply->has_length))
		return bad(reply, "it is cut");
	if (reply->has_length && !has_no_body(reply) && reply->content_length != reply->body_bytes)
		return bad(reply, "its body is not as long as its Content-Length");
	return finish(reply);
}
