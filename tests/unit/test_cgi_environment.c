#include "base/env_names.h"
#include "wire/cgi_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct cgi_environment plain = {
	.method = "GET", .query = "", .script_name = "/app", .path_info = "/x y/w", .script_filename = "/srv/app.cgi",
	.request_id = "r1", .is_process = true,
};

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

static struct vars *build(struct vars *front, const struct cgi_environment *how)
{
	struct vars *out = vars_new(1 << 16);

	assert_int_equal(cgi_environment_build(front, how, out), 0);
	vars_free(&front);
	return out;
}

static void check_var(const struct vars *vars, const char *name, const char *wanted)
{
	const char *value = vars_get(vars, name);

	if (wanted == NULL && value != NULL)
		fail_msg("%s is set: %s", name, value);
	if (wanted != NULL && value == NULL)
		fail_msg("%s is not set", name);
	if (wanted != NULL)
		assert_string_equal(value, wanted);
}

static void all_musts_without_help_from_the_front(void **state)
{
	static const struct cgi_pair wanted[] = {
		{ "GATEWAY_INTERFACE", "CGI/1.1" }, { "QUERY_STRING", "" }, { "REMOTE_ADDR", "127.0.0.1" },
		{ "REQUEST_METHOD", "GET" }, { "SCRIPT_NAME", "/app" }, { "PATH_INFO", "/x y/w" },
		{ "SERVER_NAME", "localhost" }, { "SERVER_PORT", "80" }, { "SERVER_PROTOCOL", "HTTP/1.1" },
		{ "SERVER_SOFTWARE", "fcgi-host/" PACKAGE_VERSION }, { "SCRIPT_FILENAME", "/srv/app.cgi" },
		{ "REDIRECT_STATUS", "200" }, { "REQUEST_ID", "r1" },
	};
	struct vars *out = build(vars_new(1000), &plain);

	(void)state;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		check_var(out, wanted[i].name, wanted[i].value);
	assert_int_equal(vars_count(out), sizeof(wanted) / sizeof(wanted[0]));
	vars_free(&out);
}

/* What the three really send for the same request. */
static struct vars *from_nginx(void)
{
	return FRONT("QUERY_STRING=a=%3D&b", "REQUEST_METHOD=POST", "CONTENT_TYPE=text/plain", "CONTENT_LENGTH=5",
		"SCRIPT_NAME=/app/x y/w", "REQUEST_URI=/app/x%20y//w?a=%3D&b", "DOCUMENT_URI=/app/x y/w",
		"DOCUMENT_ROOT=/srv/www", "SERVER_PROTOCOL=HTTP/1.1", "REQUEST_SCHEME=http", "GATEWAY_INTERFACE=CGI/1.1",
		"SERVER_SOFTWARE=s", "REMOTE_ADDR=192.0.2.7", "REMOTE_PORT=40296", "REMOTE_USER=",
		"SERVER_ADDR=127.0.0.1", "SERVER_PORT=80", "SERVER_NAME=example.test", "REDIRECT_STATUS=200",
		"HTTP_HOST=example.test", "GIT_PROJECT_ROOT=/srv/git", "HTTP_USER_AGENT=curl", "HTTP_ACCEPT=*/*",
		"HTTP_PROXY=x", "HTTP_AUTHORIZATION=Basic YTpi", "HTTP_CONTENT_LENGTH=5", "HTTP_CONTENT_TYPE=text/plain",
		"HTTPS=");
}

static struct vars *from_mod_proxy_fcgi(void)
{
	return FRONT("UNIQUE_ID=aw3q", "GIT_PROJECT_ROOT=/srv/git", "HTTP_HOST=example.test", "HTTP_USER_AGENT=curl",
		"HTTP_ACCEPT=*/*", "CONTENT_LENGTH=5", "CONTENT_TYPE=text/plain", "PATH=/usr/bin:/bin", "SERVER_SIGNATURE=",
		"SERVER_SOFTWARE=s", "SERVER_NAME=example.test", "SERVER_ADDR=127.0.0.1", "SERVER_PORT=80",
		"REMOTE_ADDR=192.0.2.7", "DOCUMENT_ROOT=/srv/www", "REQUEST_SCHEME=http", "CONTEXT_PREFIX=",
		"CONTEXT_DOCUMENT_ROOT=/srv/www", "SERVER_ADMIN=[no address given]",
		"SCRIPT_FILENAME=proxy:fcgi://127.0.0.1:9000/app/x%20y/w", "REMOTE_PORT=40296", "GATEWAY_INTERFACE=CGI/1.1",
		"SERVER_PROTOCOL=HTTP/1.1", "REQUEST_METHOD=POST", "QUERY_STRING=a=%3D&b",
		"REQUEST_URI=/app/x%20y//w?a=%3D&b", "SCRIPT_NAME=/app/x y/w", "proxy-nokeepalive=1", "FCGI_ROLE=RESPONDER");
}

static struct vars *from_mod_fcgid(void)
{
	return FRONT("UNIQUE_ID=aw3q", "GIT_PROJECT_ROOT=/srv/git", "HTTP_HOST=example.test", "HTTP_USER_AGENT=curl",
		"HTTP_ACCEPT=*/*", "CONTENT_LENGTH=5", "CONTENT_TYPE=text/plain", "PATH=/usr/bin:/bin", "SERVER_SIGNATURE=",
		"SERVER_SOFTWARE=s", "SERVER_NAME=example.test", "SERVER_ADDR=127.0.0.1", "SERVER_PORT=80",
		"REMOTE_ADDR=192.0.2.7", "DOCUMENT_ROOT=/srv/www", "REQUEST_SCHEME=http", "CONTEXT_PREFIX=/",
		"CONTEXT_DOCUMENT_ROOT=/srv/fcgi-host/", "SERVER_ADMIN=[no address given]", "SCRIPT_FILENAME=/srv/fcgi-host",
		"REMOTE_PORT=40296", "GATEWAY_INTERFACE=CGI/1.1", "SERVER_PROTOCOL=HTTP/1.1", "REQUEST_METHOD=POST",
		"QUERY_STRING=a=%3D&b", "REQUEST_URI=/app/x%20y//w?a=%3D&b", "SCRIPT_NAME=", "PATH_INFO=/app/x y/w",
		"PATH_TRANSLATED=/srv/fcgi-host/app/x y/w", "HTTP_CONNECTION=close", "REDIRECT_HANDLER=fcgid-script",
		"REDIRECT_HTTP_AUTHORIZATION=Basic YTpi");
}

static struct vars *handler_vars(struct vars *front)
{
	struct cgi_environment how = plain;
	struct cgi_request request;
	struct vars *out = vars_new(1 << 16);

	assert_int_equal(cgi_request_read(front, &request, NULL), 0);
	assert_string_equal(request.path, "/app/x y/w");
	how.method = request.method;
	how.query = request.query;
	how.has_body = how.has_length = request.has_length;
	how.content_length = request.content_length;
	assert_int_equal(cgi_environment_build(front, &how, out), 0);
	cgi_request_fini(&request);
	vars_free(&front);
	return out;
}

static void check_same(const struct vars *a, const struct vars *b)
{
	for (size_t i = 0; i < vars_count(a); i++)
		check_var(b, vars_at(a, i).name, vars_at(a, i).value);
	assert_int_equal(vars_count(a), vars_count(b));
}

static void same_variables_from_three_fronts(void **state)
{
	struct vars *nginx = handler_vars(from_nginx());
	struct vars *proxy = handler_vars(from_mod_proxy_fcgi());
	struct vars *fcgid = handler_vars(from_mod_fcgid());

	(void)state;
	check_same(nginx, proxy);
	check_same(proxy, nginx);
	check_same(nginx, fcgid);
	check_same(fcgid, nginx);
	check_var(nginx, "PATH_TRANSLATED", "/srv/www/x y/w");
	check_var(nginx, "CONTENT_LENGTH", "5");
	check_var(nginx, "GIT_PROJECT_ROOT", "/srv/git");
	check_var(nginx, "REQUEST_URI", "/app/x%20y//w?a=%3D&b");
	check_var(nginx, "HTTPS", NULL);
	check_var(nginx, "REMOTE_USER", NULL);
	vars_free(&nginx);
	vars_free(&proxy);
	vars_free(&fcgid);
}

static void guarded_fields(void **state)
{
	static const char *const pairs[] = {
		"HTTP_PROXY=x", "http_proxy=x", "Http_Proxy=x", "HTTP_AUTHORIZATION=secret", "http_authorization=secret",
		"AUTHORIZATION=secret", "HTTP_PROXY_AUTHORIZATION=secret", "REDIRECT_HTTP_AUTHORIZATION=secret", NULL,
	};
	static const struct cgi_pair env[] = { { "HTTP_PROXY", "http://operator" }, { "PATH", "/opt/bin" } };
	struct cgi_environment how = plain;
	struct vars *out = build(front_of(pairs), &how);

	(void)state;
	for (size_t i = 0; i < vars_count(out); i++)
		assert_true(strcmp(vars_at(out, i).value, "x") != 0 && strcmp(vars_at(out, i).value, "secret") != 0);
	vars_free(&out);
	how.pass_authorization = true;
	how.env = env;
	how.env_count = 2;
	out = build(front_of(pairs), &how);
	check_var(out, "HTTP_AUTHORIZATION", "secret");
	check_var(out, "HTTP_PROXY_AUTHORIZATION", NULL);
	check_var(out, "HTTP_PROXY", "http://operator");
	check_var(out, "PATH", "/opt/bin");
	check_var(out, "http_proxy", NULL);
	vars_free(&out);
	out = build(FRONT("REDIRECT_HTTP_AUTHORIZATION=Basic x"), &how);
	check_var(out, "HTTP_AUTHORIZATION", "Basic x");
	vars_free(&out);
}

static void loader_names_never_reach_a_process(void **state)
{
	static const char *const names[] = {
		"LD_PRELOAD", "LD_", "GCONV_PATH", "GLIBC_TUNABLES", "IFS", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PS4",
		"PYTHONPATH", "PYTHONSTARTUP", "PERL5LIB", "RUBYOPT", "NODE_OPTIONS", "PHPRC", "PHP_INI_SCAN_DIR",
		"JAVA_TOOL_OPTIONS", "MALLOC_CHECK_", "LOCPATH", "NLSPATH", "TMPDIR", "HOME", "PATH", "BASH_FUNC_ls",
		"BASH_FUNC_ls%%", "BASH_FUNC_ls()", "1A", "A-B", "A B", "", "\xc3\xa4", "A.B",
	};
	static const char *const fine[] = { "GIT_PROJECT_ROOT", "A", "_a1", "LDAP_URL", "ENVIRONMENT", "PATH_INFO", "SSL_CIPHER" };
	struct cgi_environment how = plain;
	struct vars *out;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_false(env_name_is_safe(names[i], strlen(names[i])));
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		assert_true(env_name_is_safe(fine[i], strlen(fine[i])));
	out = build(FRONT("LD_PRELOAD=/x", "TMPDIR=/x", "APP_MODE=test", "A-B=1"), &how);
	check_var(out, "LD_PRELOAD", NULL);
	check_var(out, "TMPDIR", NULL);
	check_var(out, "A-B", NULL);
	check_var(out, "APP_MODE", "test");
	vars_free(&out);
	how.is_process = false;
	out = build(FRONT("TMPDIR=/x", "PATH=/x"), &how);
	check_var(out, "TMPDIR", "/x");
	check_var(out, "PATH", NULL);
	vars_free(&out);
}

static void one_form_of_the_standard_ones(void **state)
{
	struct cgi_environment how = plain;
	struct vars *out = build(FRONT("HTTPS=on", "REMOTE_ADDR=unix:", "SERVER_NAME=_", "HTTP_HOST=[::1]:8443",
		"CONTENT_TYPE=", "CONTENT_LENGTH=0", "DOCUMENT_ROOT=/srv/www/", "SCRIPT_FILENAME=/front/guess"), &how);

	(void)state;
	check_var(out, "HTTPS", "on");
	check_var(out, "REMOTE_ADDR", "127.0.0.1");
	check_var(out, "SERVER_NAME", "[::1]");
	check_var(out, "SERVER_PORT", "8443");
	check_var(out, "CONTENT_TYPE", NULL);
	check_var(out, "CONTENT_LENGTH", NULL);
	check_var(out, "PATH_TRANSLATED", "/srv/www/x y/w");
	check_var(out, "SCRIPT_FILENAME", "/srv/app.cgi");
	vars_free(&out);
	how.path_info = "";
	out = build(FRONT("HTTPS=off", "DOCUMENT_ROOT=/srv/www", "PATH_TRANSLATED=/x"), &how);
	check_var(out, "HTTPS", NULL);
	check_var(out, "PATH_INFO", "");
	check_var(out, "PATH_TRANSLATED", NULL);
	vars_free(&out);
}

static void script_filename_of_foreign_workers(void **state)
{
	static const struct { const char *sent, *wanted; } cases[] = {
		{ "SCRIPT_FILENAME=/srv/www/x.php", "/srv/www/x.php" },
		{ "SCRIPT_FILENAME=proxy:fcgi://127.0.0.1:9000/srv/a%20b.php", "/srv/a b.php" },
		{ "SCRIPT_FILENAME=proxy:fcgi://127.0.0.1:9000/srv/a.php?x", "/srv/a.php" },
		{ "SCRIPT_FILENAME=proxy:unix:/run/x.sock|fcgi://localhost/srv/a.php", "/srv/a.php" },
		{ "SCRIPT_FILENAME=proxy:balancer://pool/srv/100%.php", "/srv/100%.php" },
		{ "SCRIPT_FILENAME=proxy:fcgi://127.0.0.1:9000", NULL },
		{ "SCRIPT_FILENAME=", NULL },
	};
	struct cgi_environment how = plain;

	(void)state;
	how.script_filename = NULL;
	how.is_process = false;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vars *out = build(FRONT(cases[i].sent), &how);

		check_var(out, "SCRIPT_FILENAME", cases[i].wanted);
		vars_free(&out);
	}
}

static void route_and_operator_win(void **state)
{
	static const struct cgi_pair params[] = { { "PARAM_ID", "7" } };
	static const struct cgi_pair env[] = { { "APP", "mine" }, { "LD_PRELOAD", "/opt/x.so" }, { "SERVER_NAME", "n" } };
	struct cgi_environment how = plain;
	struct vars *out;

	(void)state;
	how.params = params;
	how.params_count = 1;
	how.env = env;
	how.env_count = 3;
	out = build(FRONT("PARAM_ID=front", "APP=front", "REQUEST_ID=front", "SERVER_NAME=front"), &how);
	check_var(out, "PARAM_ID", "7");
	check_var(out, "APP", "mine");
	check_var(out, "LD_PRELOAD", "/opt/x.so");
	check_var(out, "REQUEST_ID", "r1");
	check_var(out, "SERVER_NAME", "n");
	vars_free(&out);
}

static void too_many_variables_are_told(void **state)
{
	struct vars *front = vars_new(100), *out;

	(void)state;
	for (size_t max = 0; max < 251; max += 7) {
		out = vars_new(max);
		assert_int_equal(cgi_environment_build(front, &plain, out), -1);
		vars_free(&out);
	}
	vars_free(&front);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_musts_without_help_from_the_front),
		cmocka_unit_test(same_variables_from_three_fronts),
		cmocka_unit_test(guarded_fields),
		cmocka_unit_test(loader_names_never_reach_a_process),
		cmocka_unit_test(one_form_of_the_standard_ones),
		cmocka_unit_test(script_filename_of_foreign_workers),
		cmocka_unit_test(route_and_operator_win),
		cmocka_unit_test(too_many_variables_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
