/*
 * kinds_route.c - what is in a route: path, host, methods, handler.
 */
#include "config/keys.h"
#include "config/pattern.h"

#include <ctype.h>
#include <string.h>

static int path_read(const struct site *site, void *field)
{
	const char *text = site_text(site);
	struct pattern pattern;
	struct err err;

	if (text == NULL)
		return -1;
	if (pattern_parse(text, &pattern, &err) != 0)
		return site_error(site, "%s", err.text);
	*(char **)field = site_copy(site, text);
	return *(char **)field == NULL ? -1 : 0;
}

static bool is_host(const char *text)
{
	if (text[0] == '[')
		return strspn(text + 1, "0123456789abcdefABCDEF:.") + 2 == strlen(text) && text[strlen(text) - 1] == ']';
	for (const char *c = text; *c != '\0'; c++)
		if (!isalnum((unsigned char)*c) && strchr("-._", *c) == NULL)
			return false;
	return text[0] != '\0';
}

static const char *host_hint(const char *text)
{
	if (strchr(text, '*') != NULL)
		return " (wildcards are not supported)";
	if (strchr(text, '/') != NULL)
		return " (without scheme and path)";
	return strchr(text, ':') != NULL ? " (without port)" : "";
}

static int host_read(const struct site *site, void *field)
{
	const char *text = site_text(site);

	if (text == NULL)
		return -1;
	if (!is_host(text))
		return site_error(site, "'%s' is no host such as www.example.org%s", text, host_hint(text));
	char *copy = site_copy(site, text);
	if (copy == NULL)
		return -1;
	for (char *c = copy; *c != '\0'; c++)
		*c = (char)tolower((unsigned char)*c);
	*(char **)field = copy;
	return 0;
}

static int method_check(const struct site *site, const char *method)
{
	bool has_lower = false;

	for (const char *c = method; *c != '\0'; c++) {
		if (!isalnum((unsigned char)*c) && strchr("!#$%&'*+-.^_`|~", *c) == NULL)
			return site_error(site, "'%s' is no method such as GET", method);
		has_lower |= islower((unsigned char)*c) != 0;
	}
	if (method[0] == '\0')
		return site_error(site, "'' is no method such as GET");
	if (has_lower)
		return site_error(site, "'%s': methods are upper case", method);
	return 0;
}

static int methods_read(const struct site *site, void *field)
{
	char ***out = field;
	int rc = texts_read(site, out);

	for (char **method = *out; method != NULL && *method != NULL; method++) {
		if (method_check(site, *method) != 0)
			rc = -1;
		for (char **other = *out; other != method; other++)
			if (strcmp(*other, *method) == 0)
				rc = site_error(site, "%s is here twice", *method);
	}
	return rc;
}

static int handler_read(const struct site *site, void *field)
{
	const char *text = site_text(site);

	return text == NULL ? -1 : reader_find_handler(site, text, field);
}

static void handler_print(struct printer *printer, const struct key *key, const void *field)
{
	const struct route_config *route = (const struct route_config *)((const char *)field - key->offset);

	if (route->builtin != BUILTIN_NONE)
		return;
	key_print(printer, key);
	printer_text(printer, printer_config(printer)->handlers[route->handler].name);
}

const struct key_kind kind_route_path = { .name = "route path", .read = path_read, .print = text_print, .fini = text_fini };
const struct key_kind kind_host = { .name = "host", .read = host_read, .print = text_print, .fini = text_fini };
const struct key_kind kind_methods = { .name = "list of methods", .read = methods_read, .print = texts_print,
	.fini = texts_fini };
const struct key_kind kind_handler = { .name = "name of a handler", .read = handler_read, .print = handler_print };
