/* Any answer of a handler, in any pieces: the same result, within its size,
 * with no line in it that the handler could have smuggled. */
#include "wire/cgi_header.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 512 };

static void check_lines(struct slice text)
{
	if (text.len > MAX_BYTES || memchr(text.ptr, '\0', text.len) != NULL || strncmp(text.ptr, "Status: ", 8) != 0)
		abort();
	while (text.len > 0) {
		const char *newline = memchr(text.ptr, '\n', text.len);
		const char *end = memchr(text.ptr, '\r', text.len);

		if (newline == NULL || end != newline - 1 || (end == text.ptr) != (text.len == 2))
			abort();
		if (text.len > 2 && memchr(text.ptr, ':', (size_t)(end - text.ptr)) == NULL)
			abort();
		text.len -= (size_t)(newline + 1 - text.ptr);
		text.ptr = newline + 1;
	}
}

/* Returns how many bytes were taken. */
static size_t read_pieces(const uint8_t *data, size_t size, size_t piece, struct bytes *out, enum cgi_header_state *state)
{
	struct cgi_header header;
	size_t at = 0;

	cgi_header_init(&header, MAX_BYTES, NULL, NULL);
	while (at < size && header.state == CGI_HEADER_MORE) {
		struct slice input = { (const char *)data + at, size - at < piece ? size - at : piece };

		cgi_header_read(&header, &input);
		at = (size_t)((const uint8_t *)input.ptr - data);
	}
	*state = header.state;
	if ((header.state == CGI_HEADER_BAD) != (header.reason != NULL))
		abort();
	if (header.state == CGI_HEADER_DONE) {
		if (cgi_header_write(&header, out) != 0)
			abort();
		check_lines((struct slice){ (const char *)bytes_data(out), out->len });
		cgi_header_is_local_redirect(&header);
	}
	cgi_header_fini(&header);
	return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes whole, pieces;
	enum cgi_header_state whole_state, pieces_state;
	size_t whole_len, pieces_len;

	if (size < 1)
		return 0;
	bytes_init(&whole, MAX_BYTES);
	bytes_init(&pieces, MAX_BYTES);
	whole_len = read_pieces(data + 1, size - 1, size, &whole, &whole_state);
	pieces_len = read_pieces(data + 1, size - 1, (size_t)data[0] % 32 + 1, &pieces, &pieces_state);
	if (whole_state == CGI_HEADER_DONE && (pieces_state != CGI_HEADER_DONE || whole_len != pieces_len
	    || whole.len != pieces.len || memcmp(bytes_data(&whole), bytes_data(&pieces), whole.len) != 0))
		abort();
	if ((whole_state == CGI_HEADER_DONE) != (pieces_state == CGI_HEADER_DONE))
		abort();
	bytes_fini(&whole);
	bytes_fini(&pieces);
	return 0;
}
