/*
 * greeting.c - POST {"name":"Johnny"} is answered with
 * {"greeting":"Hello, Johnny!"}.
 *
 * Like hello.c it is persistent or per-request, as it is started.
 *
 * On its own: cc -o greeting greeting.c -lfcgi -ljson-c
 */
#include <fcgi_stdio.h>         /* instead of stdio.h: stdin and stdout are the request's */

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_MAX = 65536 };

static const char too_large[] = "{\"error\":\"the body is larger than 64 KiB\"}";
static const char not_expected[] = "{\"error\":\"expected a JSON object with one string, name\"}";

static void
answer(const char *status, const char *json)
{
	printf("Status: %s\nContent-Type: application/json\n\n%s\n", status, json);
}

/* The whole body as one JSON value, or NULL.  The caller puts it. */
static struct json_object *
parse(const char *body, size_t length)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *value;
	int flags = JSON_TOKENER_STRICT;

	if (tokener == NULL)
		return NULL;
#ifdef JSON_TOKENER_VALIDATE_UTF8
	flags |= JSON_TOKENER_VALIDATE_UTF8;
#endif
	json_tokener_set_flags(tokener, flags);
	value = json_tokener_parse_ex(tokener, body, (int)length);
	if (json_tokener_get_error(tokener) != json_tokener_success) {
		json_object_put(value);
		value = NULL;
	}
	json_tokener_free(tokener);
	return value;
}

static void
greet(struct json_object *name)
{
	static const char before[] = "Hello, ";
	size_t name_length = (size_t)json_object_get_string_len(name);
	size_t length = strlen(before) + name_length + 1;
	char *text = malloc(length);
	struct json_object *reply = json_object_new_object();

	if (text == NULL || reply == NULL) {
		answer("500 Internal Server Error", "{\"error\":\"out of memory\"}");
	} else {
		/* By length: a name may hold a NUL, written \u0000. */
		memcpy(text, before, strlen(before));
		memcpy(text + strlen(before), json_object_get_string(name), name_length);
		text[length - 1] = '!';
		json_object_object_add(reply, "greeting", json_object_new_string_len(text, (int)length));
		answer("200 OK", json_object_to_json_string_ext(reply,
			JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	}
	json_object_put(reply);
	free(text);
}

int
main(void)
{
	static char body[BODY_MAX + 1];

	while (FCGI_Accept() >= 0) {
		size_t length = fread(body, 1, sizeof(body), stdin);
		struct json_object *request = NULL, *name = NULL;

		if (length > BODY_MAX) {
			answer("413 Content Too Large", too_large);
			continue;
		}
		if (memchr(body, '\0', length) == NULL)        /* json-c would stop there */
			request = parse(body, length);
		if (json_object_is_type(request, json_type_object) && json_object_object_length(request) == 1 &&
		    json_object_object_get_ex(request, "name", &name) && json_object_is_type(name, json_type_string))
			greet(name);
		else
			answer("400 Bad Request", not_expected);
		json_object_put(request);
	}
	return 0;
}
