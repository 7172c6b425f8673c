#include "wire/cgi_header.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* With what is dropped, a header may be this many times max_bytes long. */
enum { RAW_TIMES = 2 };

struct field { struct slice name, value; };

static enum cgi_header_state bad(struct cgi_header *header, const char *reason)
{
	header->reason = reason;
	header->state = CGI_HEADER_BAD;
	return header->state;
}

static void drop(struct cgi_header *header, struct slice line, const char *why)
{
	if (header->on_dropped != NULL)
		header->on_dropped(header->ctx, line, why);
}

void cgi_header_init(struct cgi_header *header, size_t max_bytes, cgi_header_dropped_fn *on_dropped, void *ctx)
{
	*header = (struct cgi_header){ .max_bytes = max_bytes, .on_dropped = on_dropped, .ctx = ctx };
	bytes_init(&header->line, max_bytes);
	bytes_init(&header->fields, max_bytes);
	bytes_init(&header->location, max_bytes);
}

void cgi_header_fini(struct cgi_header *header)
{
	bytes_fini(&header->line);
	bytes_fini(&header->fields);
	bytes_fini(&header->location);
}

static bool is_token(struct slice s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c) != NULL)
			return false;
	}
	return s.len > 0;
}

static bool has_control(struct slice s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return true;
	}
	return false;
}

static bool is_http_status_line(struct slice line)
{
	return line.len > 5 && memcmp(line.ptr, "HTTP/", 5) == 0 && line.ptr[5] >= '0' && line.ptr[5] <= '9';
}

/* Blanks before the colon are taken away, as RFC 9112 section 5.1 tells proxies. */
static bool split(struct slice line, struct field *out)
{
	const char *colon = memchr(line.ptr, ':', line.len);

	if (colon == NULL)
		return false;
	out->name = (struct slice){ line.ptr, (size_t)(colon - line.ptr) };
	out->value = (struct slice){ colon + 1, line.len - out->name.len - 1 };
	out->name = slice_trim(out->name);
	out->value = slice_trim(out->value);
	return is_token(out->name);
}

static int take_status(struct cgi_header *header, struct slice value)
{
	struct slice code = { value.ptr, value.len < 3 ? value.len : 3 };
	struct slice reason = { value.ptr + code.len, value.len - code.len };
	uint64_t status;

	if (header->has_status) {
		bad(header, "two Status lines");
		return -1;
	}
	if (code.len != 3 || text_to_u64(code, &status) != 0 || status < 200 || status > 599
	    || has_control(reason) || (reason.len > 0 && reason.ptr[0] != ' ' && reason.ptr[0] != '\t')) {
		bad(header, "malformed Status");
		return -1;
	}
	reason = slice_trim(reason);
	header->has_status = true;
	header->status = (unsigned)status;
	header->fields_count++;
	if (reason.len >= sizeof(header->status_reason))
		reason.len = sizeof(header->status_reason) - 1;
	if (reason.len > 0)
		memcpy(header->status_reason, reason.ptr, reason.len);
	header->status_reason[reason.len] = '\0';
	return 0;
}

static int take_length(struct cgi_header *header, struct slice value)
{
	uint64_t length;

	if (text_to_u64(value, &length) != 0) {
		bad(header, "Content-Length is no number");
		return -1;
	}
	if (header->has_length && length != header->content_length) {
		bad(header, "two different Content-Lengths");
		return -1;
	}
	if (!header->has_length)
		header->fields_count++;
	header->has_length = true;
	header->content_length = length;
	return 0;
}

static int keep(struct cgi_header *header, const struct field *field)
{
	struct bytes *fields = &header->fields;

	if (field->name.len + field->value.len + 4 > bytes_room(fields)) {
		bad(header, "header too large");
		return -1;
	}
	if (bytes_append(fields, field->name.ptr, field->name.len) != 0 || bytes_append(fields, ": ", 2) != 0
	    || bytes_append(fields, field->value.ptr, field->value.len) != 0 || bytes_append(fields, "\r\n", 2) != 0) {
		bad(header, "no memory for the header");
		return -1;
	}
	header->fields_count++;
	return 0;
}

static int take_location(struct cgi_header *header, struct slice line, const struct field *field)
{
	if (field->value.len == 0 || header->has_location) {
		drop(header, line, field->value.len == 0 ? "empty Location" : "repeated Location");
		return 0;
	}
	if (bytes_append(&header->location, field->value.ptr, field->value.len) != 0) {
		bad(header, "no memory for the header");
		return -1;
	}
	header->has_location = true;
	return keep(header, field);
}

static bool is_connection_level(struct slice name)
{
	static const char *const names[] = {
		"Connection", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
		"HTTP2-Settings",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (slice_is_nocase(name, names[i]))
			return true;
	return false;
}

static int take_field(struct cgi_header *header, struct slice line, const struct field *field)
{
	if (slice_is_nocase(field->name, "Status"))
		return take_status(header, field->value);
	if (slice_is_nocase(field->name, "Content-Length"))
		return take_length(header, field->value);
	if (has_control(field->value)) {
		drop(header, line, "control bytes");
		return 0;
	}
	if (is_connection_level(field->name)) {
		drop(header, line, "a connection-level field");
		return 0;
	}
	if (slice_is_nocase(field->name, "Location"))
		return take_location(header, line, field);
	return keep(header, field);
}

static int take_line(struct cgi_header *header, struct slice line)
{
	bool is_first = !header->is_begun;
	struct field field;

	header->is_begun = true;
	if (is_first && is_http_status_line(line)) {
		bad(header, "an HTTP status line (as from an nph- script) instead of a CGI header");
		return -1;
	}
	if (line.ptr[0] == ' ' || line.ptr[0] == '\t') {
		drop(header, line, "a continuation line");
		return 0;
	}
	if (!split(line, &field)) {
		drop(header, line, "no header field");
		return 0;
	}
	return take_field(header, line, &field);
}

static const char *reason_of(const struct cgi_header *header)
{
	return header->status_reason[0] != '\0' ? header->status_reason : cgi_status_reason(header->status);
}

static int put_status(const struct cgi_header *header, char *out, size_t out_size)
{
	return snprintf(out, out_size, "Status: %u %s\r\n", header->status, reason_of(header));
}

/* RFC 9110 section 8.6: never with 204; a 304 and an answer to HEAD may have it. */
static int put_length(const struct cgi_header *header, char *out, size_t out_size)
{
	out[0] = '\0';
	if (!header->has_length || header->status == 204)
		return 0;
	return snprintf(out, out_size, "Content-Length: %llu\r\n", (unsigned long long)header->content_length);
}

struct ends { char status[192], length[64]; size_t size; };

/* The lines that are not in `fields`; size is of the whole header as sent on. */
static void make_ends(const struct cgi_header *header, struct ends *ends)
{
	size_t status_len = (size_t)put_status(header, ends->status, sizeof(ends->status));
	size_t length_len = (size_t)put_length(header, ends->length, sizeof(ends->length));

	ends->size = status_len + header->fields.len + length_len + 2;
}

static enum cgi_header_state finish(struct cgi_header *header)
{
	struct ends ends;

	if (header->fields_count == 0)
		return bad(header, "no header");
	if (!header->has_status)
		header->status = header->has_location ? 302 : 200;
	make_ends(header, &ends);
	if (ends.size > header->max_bytes)
		return bad(header, "header too large");
	bytes_fini(&header->line);
	header->state = CGI_HEADER_DONE;
	return header->state;
}

/* A line without its '\n'. */
static enum cgi_header_state end_line(struct cgi_header *header, struct slice line)
{
	if (line.len > 0 && line.ptr[line.len - 1] == '\r')
		line.len--;
	if (line.len == 0)
		return finish(header);
	take_line(header, line);
	bytes_clear(&header->line);
	return header->state;
}

static enum cgi_header_state check_raw(struct cgi_header *header, struct slice part)
{
	if (part.len > 0 && memchr(part.ptr, '\0', part.len) != NULL)
		return bad(header, "a NUL in the header");
	header->read_bytes += part.len;
	if (part.len > bytes_room(&header->line) || header->read_bytes / RAW_TIMES > header->max_bytes)
		return bad(header, "header too large");
	return CGI_HEADER_MORE;
}

/* Up to and with the next '\n', or all. */
static struct slice take_part(struct slice *input, bool *is_whole_out)
{
	const char *newline = memchr(input->ptr, '\n', input->len);
	struct slice part = { input->ptr, newline == NULL ? input->len : (size_t)(newline - input->ptr) + 1 };

	*is_whole_out = newline != NULL;
	input->ptr += part.len;
	input->len -= part.len;
	return part;
}

enum cgi_header_state cgi_header_read(struct cgi_header *header, struct slice *input)
{
	while (header->state == CGI_HEADER_MORE && input->len > 0) {
		bool is_whole;
		struct slice part = take_part(input, &is_whole);

		if (check_raw(header, part) == CGI_HEADER_BAD)
			break;
		if (is_whole)
			part.len--;
		if (is_whole && header->line.len == 0) {
			end_line(header, part);
			continue;
		}
		if (bytes_append(&header->line, part.ptr, part.len) != 0)
			return bad(header, "no memory for the header");
		if (is_whole)
			end_line(header, (struct slice){ (const char *)bytes_data(&header->line), header->line.len });
	}
	return header->state;
}

int cgi_header_add(struct cgi_header *header, const char *name, const char *value)
{
	size_t field_bytes = strlen(name) + strlen(value) + 4;
	struct ends ends;

	make_ends(header, &ends);
	if (ends.size + field_bytes > header->max_bytes || bytes_printf(&header->fields, "%s: %s\r\n", name, value) < 0)
		return -1;
	header->fields_count++;
	return 0;
}

enum cgi_header_state cgi_header_make(struct cgi_header *header, const char *content_type)
{
	if (bytes_printf(&header->fields, "Content-Type: %s\r\n", content_type) < 0)
		return bad(header, "header too large");
	header->fields_count = 1;
	return finish(header);
}

bool cgi_header_is_local_redirect(const struct cgi_header *header)
{
	const char *path = (const char *)bytes_data(&header->location);
	size_t len = header->location.len;

	if (header->state != CGI_HEADER_DONE || !header->has_location || header->has_status || header->fields_count != 1)
		return false;
	/* Clients take "/\" for "//", and a fragment is only for clients. */
	return path[0] == '/' && (len == 1 || (path[1] != '/' && path[1] != '\\')) && memchr(path, '#', len) == NULL;
}

bool cgi_header_forbids_body(const struct cgi_header *header, const char *method)
{
	return header->status == 204 || header->status == 304 || strcmp(method, "HEAD") == 0;
}

int cgi_header_write(const struct cgi_header *header, struct bytes *out)
{
	struct ends ends;

	make_ends(header, &ends);
	if (ends.size > header->max_bytes || bytes_reserve(out, ends.size) == NULL)
		return -1;
	/* There is room for all of it now. */
	bytes_append_text(out, ends.status);
	bytes_append(out, bytes_data(&header->fields), header->fields.len);
	bytes_append_text(out, ends.length);
	bytes_append(out, "\r\n", 2);
	return 0;
}

const char *cgi_status_reason(unsigned status)
{
	static const struct { unsigned status; const char *reason; } reasons[] = {
		{ 200, "OK" }, { 201, "Created" }, { 202, "Accepted" }, { 203, "Non-Authoritative Information" },
		{ 204, "No Content" }, { 205, "Reset Content" }, { 206, "Partial Content" }, { 207, "Multi-Status" },
		{ 208, "Already Reported" }, { 226, "IM Used" },
		{ 300, "Multiple Choices" }, { 301, "Moved Permanently" }, { 302, "Found" }, { 303, "See Other" },
		{ 304, "Not Modified" }, { 305, "Use Proxy" }, { 307, "Temporary Redirect" }, { 308, "Permanent Redirect" },
		{ 400, "Bad Request" }, { 401, "Unauthorized" }, { 402, "Payment Required" }, { 403, "Forbidden" },
		{ 404, "Not Found" }, { 405, "Method Not Allowed" }, { 406, "Not Acceptable" },
		{ 407, "Proxy Authentication Required" }, { 408, "Request Timeout" }, { 409, "Conflict" }, { 410, "Gone" },
		{ 411, "Length Required" }, { 412, "Precondition Failed" }, { 413, "Content Too Large" },
		{ 414, "URI Too Long" }, { 415, "Unsupported Media Type" }, { 416, "Range Not Satisfiable" },
		{ 417, "Expectation Failed" }, { 418, "I'm a teapot" }, { 421, "Misdirected Request" },
		{ 422, "Unprocessable Content" }, { 423, "Locked" }, { 424, "Failed Dependency" }, { 425, "Too Early" },
		{ 426, "Upgrade Required" }, { 428, "Precondition Required" }, { 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" }, { 451, "Unavailable For Legal Reasons" },
		{ 500, "Internal Server Error" }, { 501, "Not Implemented" }, { 502, "Bad Gateway" },
		{ 503, "Service Unavailable" }, { 504, "Gateway Timeout" }, { 505, "HTTP Version Not Supported" },
		{ 506, "Variant Also Negotiates" }, { 507, "Insufficient Storage" }, { 508, "Loop Detected" },
		{ 511, "Network Authentication Required" },
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unknown";
}
