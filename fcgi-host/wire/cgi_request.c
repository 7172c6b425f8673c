#include "wire/cgi_request.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_empty(const char *text)
{
	return text == NULL || text[0] == '\0';
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool cgi_path_climbs(const char *path)
{
	size_t depth = 0;

	while (*path != '\0') {
		size_t len = strcspn(path, "/");

		if (len == 2 && path[0] == '.' && path[1] == '.') {
			if (depth == 0)
				return true;
			depth--;
		} else if (len > 0 && !(len == 1 && path[0] == '.')) {
			depth++;
		}
		path += len + strspn(path + len, "/");
	}
	return false;
}

static int check_path(const char *path, struct err *err)
{
	if (path[0] != '/')
		return err_set(err, "path does not begin with '/'");
	if (cgi_path_climbs(path))
		return err_set(err, "path climbs above its top with '..'");
	return 0;
}

/* What stands after "scheme://authority", when that is how it begins. */
static struct slice without_origin(struct slice uri)
{
	size_t i = 0;

	while (i < uri.len && (isalnum((unsigned char)uri.ptr[i]) || memchr("+-.", uri.ptr[i], 3) != NULL))
		i++;
	if (i == 0 || uri.len - i < 3 || memcmp(uri.ptr + i, "://", 3) != 0)
		return uri;
	for (i += 3; i < uri.len && memchr("/?#", uri.ptr[i], 3) == NULL; i++)
		;
	return (struct slice){ uri.ptr + i, uri.len - i };
}

static int decode(struct slice raw, char *to, struct err *err)
{
	for (size_t i = 0; i < raw.len; i++) {
		int high, low;

		if (raw.ptr[i] != '%') {
			*to++ = raw.ptr[i];
			continue;
		}
		high = raw.len - i > 2 ? hex_digit(raw.ptr[i + 1]) : -1;
		low = raw.len - i > 2 ? hex_digit(raw.ptr[i + 2]) : -1;
		if (high < 0 || low < 0)
			return err_set(err, "path has a '%%' without two hexadecimal digits");
		*to++ = (char)(high * 16 + low);
		i += 2;
	}
	*to = '\0';
	return 0;
}

int cgi_path_decode(struct slice raw, char **path_out, struct err *err)
{
	size_t len = 0;
	char *path;

	*path_out = NULL;
	raw = without_origin(raw);
	while (len < raw.len && raw.ptr[len] != '?' && raw.ptr[len] != '#')
		len++;
	raw.len = len;
	if (len == 0)
		raw = slice_of("/");
	if (memchr(raw.ptr, '\0', raw.len) != NULL)
		return err_set(err, "path has a NUL");
	for (size_t i = 0; i + 2 < raw.len; i++)
		if (memcmp(raw.ptr + i, "%00", 3) == 0)
			return err_set(err, "path has a NUL");
	path = malloc(raw.len + 1);
	if (path == NULL)
		return err_set(err, "no memory for the path");
	if (decode(raw, path, err) != 0 || check_path(path, err) != 0) {
		free(path);
		return -1;
	}
	*path_out = path;
	return 0;
}

/*
 * Two shapes where plain concatenation is not what the web server meant:
 * a script named "/" (old configurations) has no name, and with nginx's
 * `fastcgi_param PATH_INFO $fastcgi_script_name` (or a part of it) SCRIPT_NAME
 * is the whole path already, as DOCUMENT_URI then shows.
 */
static int join_path(const struct vars *front, char **path_out, struct err *err)
{
	const char *script = vars_get(front, "SCRIPT_NAME"), *info = vars_get(front, "PATH_INFO");
	const char *document = vars_get(front, "DOCUMENT_URI");
	size_t script_len, info_len;
	char *path;

	script = script == NULL ? "" : script;
	info = info == NULL ? "" : info;
	script_len = strlen(script);
	info_len = strlen(info);
	if (strcmp(script, "/") == 0 && info[0] == '/')
		script_len = 0;
	else if (document != NULL && strcmp(document, script) == 0 && info_len <= script_len
	    && strcmp(script + script_len - info_len, info) == 0)
		info_len = 0;
	path = malloc(script_len + info_len + 1);
	if (path == NULL)
		return err_set(err, "no memory for the path");
	memcpy(path, script, script_len);
	memcpy(path + script_len, info, info_len);
	path[script_len + info_len] = '\0';
	if (check_path(path, err) != 0) {
		free(path);
		return -1;
	}
	*path_out = path;
	return 0;
}

static int copy_path(const char *text, char **path_out, struct err *err)
{
	if (check_path(text, err) != 0)
		return -1;
	*path_out = slice_dup(slice_of(text));
	return *path_out == NULL ? err_set(err, "no memory for the path") : 0;
}

static int read_path(const struct vars *front, char **path_out, struct err *err)
{
	if (!is_empty(vars_get(front, "SCRIPT_NAME")) || !is_empty(vars_get(front, "PATH_INFO")))
		return join_path(front, path_out, err);
	if (!is_empty(vars_get(front, "DOCUMENT_URI")))
		return copy_path(vars_get(front, "DOCUMENT_URI"), path_out, err);
	return cgi_path_decode(slice_of(vars_get(front, "REQUEST_URI")), path_out, err);
}

static const char *read_query(const struct vars *front)
{
	const char *query = vars_get(front, "QUERY_STRING");
	const char *uri = vars_get(front, "REQUEST_URI");

	if (query != NULL)
		return query;
	uri = uri == NULL ? NULL : strchr(uri, '?');
	return uri == NULL ? "" : uri + 1;
}

struct slice cgi_host_split(const char *text, struct slice *port_out)
{
	size_t len;

	*port_out = (struct slice){ NULL, 0 };
	if (text == NULL)
		return *port_out;
	/* An IPv6 address has colons of its own. */
	len = text[0] == '[' ? strcspn(text, "]") : strcspn(text, ":");
	if (text[len] == ']')
		len++;
	if (text[len] == ':')
		*port_out = slice_of(text + len + 1);
	return (struct slice){ text, len };
}

static char *read_host(const struct vars *front)
{
	const char *text = vars_get(front, "HTTP_HOST");
	struct slice name, port;
	char *host;

	name = cgi_host_split(is_empty(text) ? vars_get(front, "SERVER_NAME") : text, &port);
	if (name.len > 1 && name.ptr[name.len - 1] == '.')
		name.len--;
	host = slice_dup(name);
	for (char *c = host; c != NULL && *c != '\0'; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c | 0x20);
	return host;
}

int cgi_request_read(const struct vars *front, struct cgi_request *out, struct err *err)
{
	const char *method = vars_get(front, "REQUEST_METHOD");
	const char *length = vars_get(front, "CONTENT_LENGTH");

	*out = (struct cgi_request){ .method = is_empty(method) ? "GET" : method, .query = read_query(front) };
	if (!is_empty(length)) {
		if (text_to_u64(slice_of(length), &out->content_length) != 0)
			return err_set(err, "CONTENT_LENGTH is no number");
		out->has_length = true;
	}
	if (read_path(front, &out->path, err) != 0)
		return -1;
	out->host = read_host(front);
	if (out->host == NULL) {
		cgi_request_fini(out);
		return err_set(err, "no memory for the host");
	}
	return 0;
}

void cgi_request_fini(struct cgi_request *request)
{
	free(request->path);
	free(request->host);
	request->path = request->host = NULL;
}
