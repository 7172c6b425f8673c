#include "compare/target.h"

#include "base/text.h"
#include "config/config.h"
#include "wire/cgi_request.h"
#include "wire/fcgi.h"
#include "wire/vars.h"

#include <errno.h>
#include <fastcgi.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { REQUEST_ID = 1, VARS_MAX = 1 << 20, REQUEST_MAX = 256 << 20 };

/* Paths. */

struct numbers { unsigned long long first, last; const char *from, *to; };      /* from, to: "{1..1000}" in the path */

static bool find_numbers(const char *path, struct numbers *out)
{
	for (const char *at = strchr(path, '{'); at != NULL; at = strchr(at + 1, '{')) {
		int len = 0;

		if (sscanf(at, "{%llu..%llu}%n", &out->first, &out->last, &len) == 2 && len > 0 && out->last >= out->first) {
			out->from = at;
			out->to = at + len;
			return true;
		}
	}
	return false;
}

static char *path_with(const char *path, const struct numbers *numbers, unsigned long long number)
{
	char *text = NULL;

	if (asprintf(&text, "%.*s%llu%s", (int)(numbers->from - path), path, number, numbers->to) < 0)
		return NULL;
	return text;
}

/* FastCGI: what a web server would send. */

static int add_header_var(struct vars *vars, const char *text)
{
	const char *colon = strchr(text, ':');
	char buffer[VARS_FIELD_NAME_BYTES];
	struct slice name = { buffer, 0 };

	if (colon != NULL)
		name = vars_field_name((struct slice){ text, (size_t)(colon - text) }, buffer);
	return name.len == 0 || vars_set(vars, name, slice_trim(slice_of(colon + 1))) > VARS_REPLACED ? -1 : 0;
}

static void set_vars(struct vars *vars, const struct request_spec *spec, const char *path)
{
	char *decoded = NULL, length[24];
	const char *query = strchr(path, '?');

	vars_set_text(vars, "REQUEST_METHOD", spec->method);
	vars_set_text(vars, "REQUEST_URI", path);
	vars_set_text(vars, "QUERY_STRING", query == NULL ? "" : query + 1);
	if (cgi_path_decode(slice_of(path), &decoded, NULL) == 0)
		vars_set_text(vars, "SCRIPT_NAME", decoded);
	free(decoded);
	if (spec->body != NULL) {
		snprintf(length, sizeof(length), "%zu", spec->body_len);
		vars_set_text(vars, "CONTENT_LENGTH", length);
		vars_set_text(vars, "CONTENT_TYPE", "application/x-www-form-urlencoded");
	}
	vars_set_text(vars, "HTTP_HOST", "localhost");
	vars_set_text(vars, "HTTP_ACCEPT", "*/*");
	vars_set_text(vars, "HTTP_USER_AGENT", PACKAGE_NAME "/" PACKAGE_VERSION);
	vars_set_text(vars, "GATEWAY_INTERFACE", "CGI/1.1");
	vars_set_text(vars, "SERVER_PROTOCOL", "HTTP/1.1");
	vars_set_text(vars, "SERVER_SOFTWARE", PACKAGE_NAME "/" PACKAGE_VERSION);
	vars_set_text(vars, "SERVER_NAME", "localhost");
	vars_set_text(vars, "SERVER_PORT", "80");
	vars_set_text(vars, "REQUEST_SCHEME", "http");
	vars_set_text(vars, "REMOTE_ADDR", "127.0.0.1");
}

static int put_fastcgi(struct bytes *out, const struct request_spec *spec, const char *path)
{
	struct vars *vars = vars_new(VARS_MAX);
	uint8_t begin[FCGI_HEADER_BYTES + FCGI_BODY_BYTES];
	struct bytes params;
	int status = vars == NULL ? -1 : 0;

	bytes_init(&params, 2 * VARS_MAX);
	if (vars != NULL)
		set_vars(vars, spec, path);
	for (size_t i = 0; status == 0 && spec->headers != NULL && spec->headers[i] != NULL; i++)
		status = add_header_var(vars, spec->headers[i]);
	if (status == 0)
		status = vars_to_params(vars, &params);
	fcgi_put_begin(begin, REQUEST_ID, FCGI_RESPONDER, spec->keep ? FCGI_KEEP_CONN : 0);
	status |= bytes_append(out, begin, sizeof(begin));
	status |= fcgi_put_stream(out, FCGI_PARAMS, REQUEST_ID, bytes_data(&params), params.len);
	status |= fcgi_put_stream(out, FCGI_PARAMS, REQUEST_ID, NULL, 0);
	if (spec->body_len > 0)
		status |= fcgi_put_stream(out, FCGI_STDIN, REQUEST_ID, spec->body, spec->body_len);
	status |= fcgi_put_stream(out, FCGI_STDIN, REQUEST_ID, NULL, 0);
	bytes_fini(&params);
	vars_free(&vars);
	return status;
}

/* HTTP. */

static bool has_header(const struct request_spec *spec, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; spec->headers != NULL && spec->headers[i] != NULL; i++)
		if (strncasecmp(spec->headers[i], name, len) == 0 && spec->headers[i][len] == ':')
			return true;
	return false;
}

static int put_http(struct bytes *out, const struct request_spec *spec, const char *path, const char *host)
{
	int status = bytes_printf(out, "%s %s HTTP/1.1\r\n", spec->method, path);

	if (!has_header(spec, "Host"))
		status |= bytes_printf(out, "Host: %s\r\n", host);
	if (!has_header(spec, "User-Agent"))
		status |= bytes_append_text(out, "User-Agent: " PACKAGE_NAME "/" PACKAGE_VERSION "\r\n");
	if (!has_header(spec, "Accept"))
		status |= bytes_append_text(out, "Accept: */*\r\n");
	for (size_t i = 0; spec->headers != NULL && spec->headers[i] != NULL; i++)
		status |= bytes_printf(out, "%s\r\n", spec->headers[i]);
	if (spec->body != NULL && !has_header(spec, "Content-Type"))
		status |= bytes_append_text(out, "Content-Type: application/x-www-form-urlencoded\r\n");
	if (spec->body != NULL)
		status |= bytes_printf(out, "Content-Length: %zu\r\n", spec->body_len);
	if (!spec->keep)
		status |= bytes_append_text(out, "Connection: close\r\n");
	status |= bytes_append_text(out, "\r\n");
	if (spec->body_len > 0)
		status |= bytes_append(out, spec->body, spec->body_len);
	return status;
}

/* Both. */

static int put_request(struct target *target, const struct request_spec *spec, const char *path, const char *host)
{
	struct bytes *request = &target->requests[target->requests_count];

	bytes_init(request, REQUEST_MAX);
	target->requests_count++;
	return target->is_http ? put_http(request, spec, path, host) : put_fastcgi(request, spec, path);
}

static int put_requests(struct target *target, const struct request_spec *spec, const char *path, const char *host, struct err *err)
{
	struct numbers numbers = { 0, 0, NULL, NULL };
	bool is_numbered = find_numbers(path, &numbers);
	unsigned long long count = is_numbered ? numbers.last - numbers.first + 1 : 1;
	int status = 0;

	count = count > TARGET_VARIANTS_MAX || count == 0 ? TARGET_VARIANTS_MAX : count;
	target->keep = spec->keep;
	target->is_head_request = strcmp(spec->method, "HEAD") == 0;
	target->requests = calloc(count, sizeof(*target->requests));
	if (target->requests == NULL)
		return err_set(err, "no memory for the requests");
	for (unsigned long long i = 0; i < count && status == 0; i++) {
		char *one = is_numbered ? path_with(path, &numbers, numbers.first + i) : NULL;

		status = is_numbered && one == NULL ? -1 : put_request(target, spec, is_numbered ? one : path, host);
		free(one);
	}
	return status == 0 ? 0 : err_set(err, "the request cannot be made: a header is no 'Name: value', or it is too large");
}

int target_init_fastcgi(struct target *target, const char *address, const struct request_spec *spec, struct err *err)
{
	struct address parsed;

	*target = (struct target){ .name = strdup(address) };
	if (address_parse(address, &parsed, err) != 0)
		return -1;
	target->address = parsed.sockaddr;
	target->address_len = parsed.sockaddr_len;
	address_fini(&parsed);
	return put_requests(target, spec, spec->path, "localhost", err);
}

static int resolve(struct target *target, struct slice authority, struct err *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
	char *text = slice_dup(authority);
	struct slice port, host = cgi_host_split(text, &port);
	char *host_text, *port_text = port.len == 0 ? strdup("80") : slice_dup(port);
	int rc;

	if (host.len > 2 && host.ptr[0] == '[')
		host = (struct slice){ host.ptr + 1, host.len - 2 };
	host_text = slice_dup(host);
	rc = host_text == NULL || port_text == NULL ? EAI_MEMORY : getaddrinfo(host_text, port_text, &hints, &found);
	if (rc == 0) {
		memcpy(&target->address, found->ai_addr, found->ai_addrlen);
		target->address_len = found->ai_addrlen;
		freeaddrinfo(found);
	}
	free(text);
	free(host_text);
	free(port_text);
	return rc == 0 ? 0 : err_set(err, "%s: %s", target->name, gai_strerror(rc));
}

int target_init_http(struct target *target, const char *url, const struct request_spec *spec, struct err *err)
{
	static const char scheme[] = "http://";
	struct slice authority;
	char *host;
	int status;

	*target = (struct target){ .name = strdup(url), .is_http = true };
	if (strncasecmp(url, scheme, sizeof(scheme) - 1) != 0)
		return err_set(err, "'%s' is no URL that begins with http://", url);
	authority = (struct slice){ url + sizeof(scheme) - 1, strcspn(url + sizeof(scheme) - 1, "/?#") };
	if (authority.len == 0)
		return err_set(err, "'%s' names no host", url);
	if (target->name == NULL || resolve(target, authority, err) != 0)
		return -1;
	host = slice_dup(authority);
	status = host == NULL ? err_set(err, "no memory") :
		put_requests(target, spec, authority.ptr[authority.len] == '/' ? authority.ptr + authority.len : spec->path, host, err);
	free(host);
	return status;
}

void target_fini(struct target *target)
{
	for (size_t i = 0; i < target->requests_count; i++)
		bytes_fini(&target->requests[i]);
	free(target->requests);
	free(target->name);
	*target = (struct target){ 0 };
}

int target_connect(const struct target *target)
{
	int fd = socket(target->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1, saved;

	if (fd < 0)
		return -1;
	if (target->address.ss_family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (const struct sockaddr *)&target->address, target->address_len) == 0 || errno == EINPROGRESS)
		return fd;
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}
