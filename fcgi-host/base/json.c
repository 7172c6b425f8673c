#include "base/json.h"

#include "base/escape.h"

#include <string.h>

void json_init(struct json *json, struct bytes *out)
{
	*json = (struct json){ .out = out };
}

static void put(struct json *json, const char *text, size_t len)
{
	if (bytes_append(json->out, text, len) < 0)
		json->is_full = true;
}

static void put_name(struct json *json, const char *name)
{
	if (json->needs_comma)
		put(json, ",", 1);
	json->needs_comma = true;
	if (name == NULL)
		return;
	put(json, "\"", 1);
	put(json, name, strlen(name));
	put(json, "\":", 2);
}

void json_begin(struct json *json, const char *name, char bracket)
{
	put_name(json, name);
	put(json, &bracket, 1);
	json->needs_comma = false;
}

void json_end(struct json *json, char bracket)
{
	put(json, &bracket, 1);
	json->needs_comma = true;
}

void json_str(struct json *json, const char *name, const char *value)
{
	struct slice text = slice_of(value);

	if (value == NULL) {
		json_null(json, name);
		return;
	}
	put_name(json, name);
	put(json, "\"", 1);
	if (bytes_reserve(json->out, text.len * ESCAPED_MAX_BYTES) == NULL)
		json->is_full = true;
	else
		escape_text(json->out, text, "\\\\x");
	put(json, "\"", 1);
}

static void put_u64(struct json *json, uint64_t value, unsigned least_digits)
{
	char digits[24];
	size_t at = sizeof(digits);

	for (unsigned n = 0; value > 0 || n < least_digits; n++) {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	}
	put(json, digits + at, sizeof(digits) - at);
}

void json_u64(struct json *json, const char *name, uint64_t value)
{
	put_name(json, name);
	put_u64(json, value, 1);
}

void json_number(struct json *json, const char *name, const char *digits)
{
	put_name(json, name);
	put(json, digits, strlen(digits));
}

void json_bool(struct json *json, const char *name, bool value)
{
	put_name(json, name);
	put(json, value ? "true" : "false", value ? 4 : 5);
}

void json_null(struct json *json, const char *name)
{
	put_name(json, name);
	put(json, "null", 4);
}

void json_ms(struct json *json, const char *name, uint64_t us)
{
	put_name(json, name);
	put_u64(json, us / 1000, 1);
	put(json, ".", 1);
	put_u64(json, us % 1000, 3);
}
