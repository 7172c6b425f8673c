/* Any bytes, in any pieces: the decoder never hands out more than a header
 * announced, and what it says does not depend on the pieces. */
#include "wire/fcgi.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sum { uint64_t events, content; };

static struct sum decode(const uint8_t *data, size_t size, size_t piece)
{
	struct fcgi_decoder decoder = { .state = 0 };
	struct sum sum = { 0, 0 };
	size_t record = 0;

	for (size_t at = 0; at < size; at += piece) {
		struct slice input = { (const char *)data + at, size - at < piece ? size - at : piece };
		struct slice content;
		enum fcgi_event event;

		while ((event = fcgi_decode(&decoder, &input, &content)) != FCGI_MORE) {
			if (event == FCGI_BAD)
				return sum;
			if (event == FCGI_START)
				record = 0;
			record += content.len;
			if (record > decoder.content_len || (event == FCGI_CONTENT) != (content.len > 0))
				abort();
			if (event == FCGI_END && record != decoder.content_len)
				abort();
			sum.events += event != FCGI_CONTENT;
			for (size_t i = 0; i < content.len; i++)
				sum.content = sum.content * 31 + (uint8_t)content.ptr[i];
		}
		if (input.len != 0)
			abort();
	}
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sum whole, pieces;

	if (size < 1)
		return 0;
	whole = decode(data + 1, size - 1, size);
	pieces = decode(data + 1, size - 1, (size_t)data[0] + 1);
	if (whole.events != pieces.events || whole.content != pieces.content)
		abort();
	return 0;
}
