#include "base/escape.h"

#include <stdbool.h>
#include <stdint.h>

static void put_hex(struct bytes *out, unsigned char byte, const char *prefix)
{
	static const char digits[] = "0123456789abcdef";
	char hex[3] = { digits[byte >> 4], digits[byte & 15], '\0' };

	bytes_append_text(out, prefix);
	bytes_append(out, hex, 2);
}

/* Length of the well-formed UTF-8 sequence that begins here and shows no
 * control character, or 0. */
static size_t utf8_length(const unsigned char *p, size_t left)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	uint32_t code = p[0] & (0xffu >> (len + 1));

	if (p[0] < 0xc2 || p[0] > 0xf4 || len > left)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if (code < smallest[len] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) || code < 0xa0 ||
	    code == 0x2028 || code == 0x2029 || (code >= 0x202a && code <= 0x202e))
		return 0;
	return len;
}

void escape_text(struct bytes *out, struct slice value, const char *hex_prefix)
{
	const unsigned char *p = (const unsigned char *)value.ptr;
	size_t plain = 0;

	for (size_t i = 0; i < value.len; ) {
		size_t len = p[i] >= 0x80 ? utf8_length(p + i, value.len - i) : 1;
		bool is_plain = p[i] >= 0x80 ? len > 0 : p[i] >= ' ' && p[i] != '"' && p[i] != '\\' && p[i] != 0x7f;

		if (is_plain) {
			i += len;
			continue;
		}
		bytes_append(out, p + plain, i - plain);
		if (p[i] == '"' || p[i] == '\\')
			bytes_printf(out, "\\%c", p[i]);
		else if (p[i] == '\n' || p[i] == '\r' || p[i] == '\t')
			bytes_append_text(out, p[i] == '\n' ? "\\n" : p[i] == '\r' ? "\\r" : "\\t");
		else
			put_hex(out, p[i], hex_prefix);
		plain = ++i;
	}
	bytes_append(out, p + plain, value.len - plain);
}
