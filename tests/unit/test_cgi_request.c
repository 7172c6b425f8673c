#include "wire/cgi_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A set from "NAME=value" texts up to NULL. */
static struct vars *front_of(const char *const *pairs)
{
	struct vars *front = vars_new(1 << 16);

	for (; *pairs != NULL; pairs++) {
		const char *equals = strchr(*pairs, '=');

		vars_set(front, (struct slice){ *pairs, (size_t)(equals - *pairs) }, slice_of(equals + 1));
	}
	return front;
}
#define FRONT(...) front_of((const char *const[]){ __VA_ARGS__, NULL })

static void check_path(struct vars *front, const char *wanted)
{
	struct cgi_request request;
	struct err err;

	if (cgi_request_read(front, &request, &err) != 0) {
		assert_null(wanted);
	} else {
		assert_non_null(wanted);
		assert_string_equal(request.path, wanted);
	}
	cgi_request_fini(&request);
	vars_free(&front);
}

static void path_from_script_name_and_path_info(void **state)
{
	(void)state;
	check_path(FRONT("SCRIPT_NAME=/app", "PATH_INFO=/x y", "REQUEST_URI=/other", "DOCUMENT_URI=/third"), "/app/x y");
	check_path(FRONT("SCRIPT_NAME=/app/x", "PATH_INFO="), "/app/x");
	check_path(FRONT("SCRIPT_NAME=", "PATH_INFO=/app"), "/app");
	check_path(FRONT("SCRIPT_NAME=/a%20b"), "/a%20b");
	check_path(FRONT("SCRIPT_NAME=/a//b", "PATH_INFO=//c"), "/a//b//c");
	check_path(FRONT("SCRIPT_NAME=/", "PATH_INFO=/c"), "/c");
	check_path(FRONT("SCRIPT_NAME=/", "REQUEST_URI=/x"), "/");
	check_path(FRONT("SCRIPT_NAME=/a/b", "PATH_INFO=/a/b", "DOCUMENT_URI=/a/b"), "/a/b");
	check_path(FRONT("SCRIPT_NAME=/a/b", "PATH_INFO=/b", "DOCUMENT_URI=/a/b"), "/a/b");
	check_path(FRONT("SCRIPT_NAME=/a", "PATH_INFO=/a", "DOCUMENT_URI=/a/a"), "/a/a");
	check_path(FRONT("SCRIPT_NAME=app"), NULL);
	check_path(FRONT("PATH_INFO=app"), NULL);
}

static void path_from_the_rest(void **state)
{
	(void)state;
	check_path(FRONT("DOCUMENT_URI=/a%41", "REQUEST_URI=/x"), "/a%41");
	check_path(FRONT("REQUEST_URI=/a%2541%20b?c=%zz"), "/a%41 b");
	check_path(FRONT("REQUEST_URI=http://host.example:99/q/%41?z"), "/q/A");
	check_path(FRONT("REQUEST_URI=http://host.example"), "/");
	check_path(FRONT("REQUEST_URI=https://host.example?x"), "/");
	check_path(FRONT("REQUEST_URI=?x"), "/");
	check_path(FRONT("REQUEST_URI="), "/");
	check_path(FRONT("REQUEST_METHOD=GET"), "/");
	check_path(FRONT("REQUEST_URI=//host/x"), "//host/x");
	check_path(FRONT("REQUEST_URI=/a%2Fb#c"), "/a/b");
	check_path(FRONT("REQUEST_URI=*"), NULL);
	check_path(FRONT("REQUEST_URI=/a%"), NULL);
	check_path(FRONT("REQUEST_URI=/a%4"), NULL);
	check_path(FRONT("REQUEST_URI=/a%4g"), NULL);
	check_path(FRONT("REQUEST_URI=/a%00b"), NULL);
}

static void climbing_is_refused(void **state)
{
	(void)state;
	check_path(FRONT("SCRIPT_NAME=/.."), NULL);
	check_path(FRONT("SCRIPT_NAME=/a", "PATH_INFO=/../../b"), NULL);
	check_path(FRONT("SCRIPT_NAME=/a/./../..//b"), NULL);
	check_path(FRONT("REQUEST_URI=/%2e%2E/b"), NULL);
	check_path(FRONT("DOCUMENT_URI=//../b"), NULL);
	check_path(FRONT("SCRIPT_NAME=/a/../b"), "/a/../b");
	check_path(FRONT("SCRIPT_NAME=/..a/...", "PATH_INFO=/b.."), "/..a/.../b..");
	assert_true(cgi_path_climbs("/../b"));
	assert_false(cgi_path_climbs("/a/b/../.."));
	assert_false(cgi_path_climbs(""));
}

static void query_method_and_length(void **state)
{
	struct vars *front = FRONT("REQUEST_URI=/x?a?b=%3D", "CONTENT_LENGTH=");
	struct cgi_request request;
	struct err err;

	(void)state;
	assert_int_equal(cgi_request_read(front, &request, &err), 0);
	assert_string_equal(request.query, "a?b=%3D");
	assert_string_equal(request.method, "GET");
	assert_string_equal(request.host, "");
	assert_false(request.has_length);
	cgi_request_fini(&request);
	vars_set_text(front, "QUERY_STRING", "");
	vars_set_text(front, "REQUEST_METHOD", "POST");
	vars_set_text(front, "CONTENT_LENGTH", "0");
	assert_int_equal(cgi_request_read(front, &request, &err), 0);
	assert_string_equal(request.query, "");
	assert_string_equal(request.method, "POST");
	assert_true(request.has_length);
	cgi_request_fini(&request);
	vars_set_text(front, "CONTENT_LENGTH", "18446744073709551615");
	assert_int_equal(cgi_request_read(front, &request, &err), 0);
	assert_true(request.content_length == UINT64_MAX);
	cgi_request_fini(&request);
	vars_set_text(front, "CONTENT_LENGTH", "1x");
	assert_int_equal(cgi_request_read(front, &request, &err), -1);
	assert_non_null(strstr(err.text, "CONTENT_LENGTH"));
	cgi_request_fini(&request);
	vars_free(&front);
}

static void host_without_port(void **state)
{
	static const struct { const char *sent, *wanted; } cases[] = {
		{ "HTTP_HOST=API.Example.org:8080", "api.example.org" }, { "HTTP_HOST=example.org.", "example.org" },
		{ "HTTP_HOST=[::1]:80", "[::1]" }, { "HTTP_HOST=[::1", "[::1" }, { "SERVER_NAME=a.example", "a.example" },
		{ "HTTP_HOST=", "" }, { "HTTP_HOST=:80", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vars *front = FRONT(cases[i].sent);
		struct cgi_request request;

		assert_int_equal(cgi_request_read(front, &request, NULL), 0);
		assert_string_equal(request.host, cases[i].wanted);
		cgi_request_fini(&request);
		vars_free(&front);
	}
}

static void local_location_is_decoded(void **state)
{
	char *path;

	(void)state;
	assert_int_equal(cgi_path_decode(slice_of("/x%20y?z"), &path, NULL), 0);
	assert_string_equal(path, "/x y");
	free(path);
	assert_int_equal(cgi_path_decode((struct slice){ "/\0", 2 }, &path, NULL), -1);
	assert_null(path);
	assert_int_equal(cgi_path_decode((struct slice){ NULL, 0 }, &path, NULL), 0);
	assert_string_equal(path, "/");
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(path_from_script_name_and_path_info),
		cmocka_unit_test(path_from_the_rest),
		cmocka_unit_test(climbing_is_refused),
		cmocka_unit_test(query_method_and_length),
		cmocka_unit_test(host_without_port),
		cmocka_unit_test(local_location_is_decoded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
