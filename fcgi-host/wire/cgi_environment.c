/*
 * cgi_environment.c - the second half of cgi_request.h: from the web server's
 * variables to the handler's.
 */
#include "wire/cgi_request.h"
#include "base/env_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct name { const char *text; uint8_t len; bool is_prefix; };
#define EXACT(text) { text, sizeof(text) - 1, false }
#define PREFIX(text) { text, sizeof(text) - 1, true }
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static bool is_listed(const struct name *table, size_t count, struct slice name)
{
	for (size_t i = 0; i < count; i++)
		if (table[i].text[0] == name.ptr[0] && table[i].len <= name.len
		    && (table[i].is_prefix || table[i].len == name.len)
		    && memcmp(table[i].text, name.ptr, table[i].len) == 0)
			return true;
	return false;
}

/* Set here, from the front's value or without it, in one form. */
static const struct name standard_names[] = {
	EXACT("AUTH_TYPE"), EXACT("CONTENT_LENGTH"), EXACT("CONTENT_TYPE"), EXACT("DOCUMENT_ROOT"),
	EXACT("GATEWAY_INTERFACE"), EXACT("HTTPS"), EXACT("PATH_INFO"), EXACT("PATH_TRANSLATED"), EXACT("QUERY_STRING"),
	EXACT("REMOTE_ADDR"), EXACT("REMOTE_HOST"), EXACT("REMOTE_IDENT"), EXACT("REMOTE_PORT"), EXACT("REMOTE_USER"),
	EXACT("REQUEST_METHOD"), EXACT("REQUEST_SCHEME"), EXACT("REQUEST_URI"), EXACT("SCRIPT_FILENAME"),
	EXACT("SCRIPT_NAME"), EXACT("SERVER_ADDR"), EXACT("SERVER_NAME"), EXACT("SERVER_PORT"), EXACT("SERVER_PROTOCOL"),
	EXACT("SERVER_SOFTWARE"),
};

/* What one web server adds of its own accord and the others do not, and what is
 * between it and us. */
static const struct name front_names[] = {
	EXACT("DOCUMENT_URI"), EXACT("CONTEXT_PREFIX"), EXACT("CONTEXT_DOCUMENT_ROOT"), EXACT("SERVER_ADMIN"),
	EXACT("SERVER_SIGNATURE"), EXACT("SCRIPT_URI"), EXACT("SCRIPT_URL"), EXACT("UNIQUE_ID"), EXACT("PATH"),
	EXACT("nokeepalive"), PREFIX("REDIRECT_"), PREFIX("FCGI_"),
};

/* The same among the fields of the client. */
static const struct name front_fields[] = {
	/* Nginx sends these beside CONTENT_LENGTH and CONTENT_TYPE; the rest concern the
	 * client's connection, which the handler does not see (mod_fcgid forces one). */
	EXACT("HTTP_CONTENT_LENGTH"), EXACT("HTTP_CONTENT_TYPE"), EXACT("HTTP_CONNECTION"), EXACT("HTTP_KEEP_ALIVE"),
	EXACT("HTTP_PROXY_CONNECTION"), EXACT("HTTP_TE"), EXACT("HTTP_TRAILER"), EXACT("HTTP_TRANSFER_ENCODING"),
	EXACT("HTTP_UPGRADE"), EXACT("HTTP_HTTP2_SETTINGS"), EXACT("HTTP_EXPECT"),
};

static bool is_http(struct slice name)
{
	return name.len > 5 && slice_is_nocase((struct slice){ name.ptr, 5 }, "HTTP_");
}

/* The client's own fields that no handler may see: httpoxy, passwords. */
static bool is_guarded_field(struct slice name)
{
	return slice_is_nocase(name, "HTTP_PROXY") || slice_is_nocase(name, "HTTP_AUTHORIZATION")
		|| slice_is_nocase(name, "HTTP_PROXY_AUTHORIZATION");
}

static bool passes(const struct cgi_environment *how, struct slice name)
{
	if (!env_name_is_variable(name.ptr, name.len))
		return false;
	if (is_http(name))
		return !is_listed(front_fields, COUNT(front_fields), name) && !is_guarded_field(name);
	if (is_listed(standard_names, COUNT(standard_names), name) || is_listed(front_names, COUNT(front_names), name))
		return false;
	if (slice_is_nocase(name, "AUTHORIZATION"))
		return false;
	return !how->is_process || env_name_is_safe(name.ptr, name.len);
}

static int put(struct vars *out, const char *name, const char *value)
{
	return vars_set_text(out, name, value) <= VARS_REPLACED ? 0 : -1;
}

static int pass_on(const struct vars *front, const struct cgi_environment *how, struct vars *out)
{
	for (size_t i = 0; i < vars_count(front); i++) {
		struct var var = vars_at(front, i);

		if (passes(how, (struct slice){ var.name, var.name_len }) && vars_copy(out, front, i) == VARS_FULL)
			return -1;
	}
	return 0;
}

static const char *first_of(const struct vars *front, const char *const *names)
{
	for (; *names != NULL; names++) {
		const char *value = vars_get(front, *names);

		if (value != NULL && value[0] != '\0')
			return value;
	}
	return NULL;
}

static const char *sent(const struct vars *front, const char *name)
{
	const char *const names[] = { name, NULL };

	return first_of(front, names);
}

static const char *sent_or(const struct vars *front, const char *name, const char *otherwise)
{
	const char *value = sent(front, name);

	return value == NULL ? otherwise : value;
}

static bool is_https(const struct vars *front)
{
	struct slice value = slice_of(sent(front, "HTTPS"));

	return value.len > 0 && !slice_is_nocase(value, "off") && !slice_is_nocase(value, "no")
		&& !slice_is_nocase(value, "0") && !slice_is_nocase(value, "false");
}

/* An empty value (nginx sends those) says the same as none. */
static int put_optional(const struct vars *front, struct vars *out)
{
	static const char *const names[] = {
		"AUTH_TYPE", "CONTENT_TYPE", "DOCUMENT_ROOT", "REMOTE_HOST", "REMOTE_IDENT", "REMOTE_PORT", "REMOTE_USER",
		"REQUEST_SCHEME", "REQUEST_URI", "SERVER_ADDR",
	};

	for (size_t i = 0; i < COUNT(names); i++) {
		const char *value = sent(front, names[i]);

		if (value != NULL && put(out, names[i], value) != 0)
			return -1;
	}
	if (is_https(front))
		return put(out, "HTTPS", sent(front, "HTTPS"));
	return 0;
}

/* SERVER_NAME and SERVER_PORT must be set; "_" is how nginx says that it has no
 * name, and the client's idea of it is then the best there is. */
static int put_server(const struct vars *front, struct vars *out)
{
	struct slice port, host = cgi_host_split(sent(front, "HTTP_HOST"), &port);
	const char *name = sent(front, "SERVER_NAME");
	uint64_t number;

	if (host.len == 0)
		host = slice_of("localhost");
	if (name != NULL && strcmp(name, "_") != 0)
		host = slice_of(name);
	if (sent(front, "SERVER_PORT") != NULL)
		port = slice_of(sent(front, "SERVER_PORT"));
	else if (text_to_u64(port, &number) != 0 || number > UINT16_MAX)
		port = slice_of(is_https(front) ? "443" : "80");
	if (vars_set(out, slice_of("SERVER_NAME"), host) == VARS_FULL)
		return -1;
	return vars_set(out, slice_of("SERVER_PORT"), port) == VARS_FULL ? -1 : 0;
}

static int put_required(const struct vars *front, const struct cgi_environment *how, struct vars *out)
{
	const char *address = sent(front, "REMOTE_ADDR");
	const struct cgi_pair pairs[] = {
		{ "GATEWAY_INTERFACE", "CGI/1.1" },
		{ "QUERY_STRING", how->query },
		/* Nginx says "unix:" of a client on its own unix socket. */
		{ "REMOTE_ADDR", address == NULL || strcmp(address, "unix:") == 0 ? "127.0.0.1" : address },
		{ "REQUEST_METHOD", how->method },
		{ "SCRIPT_NAME", how->script_name },
		{ "PATH_INFO", how->path_info },
		{ "SERVER_PROTOCOL", sent_or(front, "SERVER_PROTOCOL", "HTTP/1.1") },
		{ "SERVER_SOFTWARE", sent_or(front, "SERVER_SOFTWARE", PACKAGE_NAME "/" PACKAGE_VERSION) },
		{ "REDIRECT_STATUS", "200" },
		{ "REQUEST_ID", how->request_id },
	};

	for (size_t i = 0; i < COUNT(pairs); i++)
		if (pairs[i].value != NULL && put(out, pairs[i].name, pairs[i].value) != 0)
			return -1;
	return put_server(front, out);
}

/*
 * Apache's mod_proxy_fcgi sends "proxy:fcgi://host:port/path", encoded, for
 * anything that it proxies (also "proxy:balancer://", "proxy:unix:…|fcgi://").
 */
static int put_script_filename(const struct vars *front, const struct cgi_environment *how, struct vars *out)
{
	const char *file = how->script_filename == NULL ? sent(front, "SCRIPT_FILENAME") : how->script_filename;
	char *decoded = NULL;
	int result = 0;

	if (file == NULL)
		return 0;
	if (how->script_filename == NULL && strncmp(file, "proxy:", 6) == 0) {
		file = strstr(file, "://");
		file = file == NULL ? NULL : strchr(file + 3, '/');
		if (file == NULL)
			return 0;
		if (cgi_path_decode(slice_of(file), &decoded, NULL) == 0)
			file = decoded;
	}
	result = put(out, "SCRIPT_FILENAME", file);
	free(decoded);
	return result;
}

static int put_path_translated(const struct vars *front, const struct cgi_environment *how, struct vars *out)
{
	const char *root = sent(front, "DOCUMENT_ROOT");
	size_t root_len, info_len = strlen(how->path_info);
	enum vars_result result;
	char *path;

	if (root == NULL || info_len == 0)
		return 0;
	root_len = strlen(root);
	if (root[root_len - 1] == '/' && how->path_info[0] == '/')
		root_len--;
	path = malloc(root_len + info_len + 1);
	if (path == NULL)
		return -1;
	memcpy(path, root, root_len);
	memcpy(path + root_len, how->path_info, info_len + 1);
	result = vars_set_text(out, "PATH_TRANSLATED", path);
	free(path);
	return result == VARS_FULL ? -1 : 0;
}

static int put_body(const struct cgi_environment *how, struct vars *out)
{
	char number[24];

	if (!how->has_body || !how->has_length || how->content_length == 0)
		return 0;
	snprintf(number, sizeof(number), "%llu", (unsigned long long)how->content_length);
	return put(out, "CONTENT_LENGTH", number);
}

/* Apache hands it on under other names when a rewrite rule has to help. */
static int put_authorization(const struct vars *front, const struct cgi_environment *how, struct vars *out)
{
	static const char *const names[] = {
		"HTTP_AUTHORIZATION", "REDIRECT_HTTP_AUTHORIZATION", "AUTHORIZATION", NULL,
	};
	const char *value = how->pass_authorization ? first_of(front, names) : NULL;

	return value == NULL ? 0 : put(out, "HTTP_AUTHORIZATION", value);
}

static int put_pairs(const struct cgi_pair *pairs, size_t count, struct vars *out)
{
	for (size_t i = 0; i < count; i++)
		if (vars_set_text(out, pairs[i].name, pairs[i].value) == VARS_FULL)
			return -1;
	return 0;
}

int cgi_environment_build(const struct vars *front, const struct cgi_environment *how, struct vars *out)
{
	if (pass_on(front, how, out) != 0 || put_optional(front, out) != 0 || put_required(front, how, out) != 0)
		return -1;
	if (put_script_filename(front, how, out) != 0 || put_path_translated(front, how, out) != 0)
		return -1;
	if (put_body(how, out) != 0 || put_authorization(front, how, out) != 0)
		return -1;
	if (put_pairs(how->params, how->params_count, out) != 0)
		return -1;
	return put_pairs(how->env, how->env_count, out);
}
