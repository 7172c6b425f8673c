/* Any answer, as HTTP/1.1 and as a CGI program's, whole and byte by byte: both
 * ways end in the same state, and nothing is read beyond the answer. */
#include "compare/reply.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(struct reply *reply, const uint8_t *data, size_t size, size_t piece_len)
{
	enum reply_state state = REPLY_HEAD;
	size_t done = 0;

	while (done < size && state != REPLY_DONE && state != REPLY_BAD) {
		size_t len = size - done < piece_len ? size - done : piece_len;
		struct slice piece = { (const char *)data + done, len };

		state = reply_take(reply, &piece);
		if (piece.len > len || (piece.len > 0 && state != REPLY_DONE && state != REPLY_BAD))
			abort();
		done += len - piece.len;
	}
	if (state != REPLY_DONE && state != REPLY_BAD)
		reply_end(reply);
}

static void compare(bool is_http, const uint8_t *data, size_t size)
{
	struct reply whole, bytewise;

	reply_init(&whole, is_http, false);
	reply_init(&bytewise, is_http, false);
	reply_reset(&whole);
	reply_reset(&bytewise);
	take(&whole, data, size, size);
	take(&bytewise, data, size, 1);
	if (whole.state != bytewise.state)
		abort();
	if (whole.state == REPLY_DONE && (whole.status != bytewise.status || whole.body_bytes != bytewise.body_bytes))
		abort();
	reply_fini(&whole);
	reply_fini(&bytewise);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	compare(true, data, size);
	compare(false, data, size);
	return 0;
}
