/* The configuration: defaults, merging, paths, and every mistake with its place. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "config_fixture.h"

#define HELLO "handlers:\n  hello: {command: /bin/true}\n"
#define ROUTE "routes:\n  - {path: /hello, handler: hello}\n"

static void the_least_file_has_every_default(void **state)
{
	struct loaded l;

	(void)state;
	config_fixture_load(&l, HELLO ROUTE);
	assert_string_equal(loaded_errors(&l), "");
	const struct config *c = l.config;
	assert_int_equal(c->listen_count, 1);
	assert_string_equal(c->listen[0].address.text, "unix:" RUNSTATEDIR "/fcgi-host/fcgi-host.sock");
	assert_int_equal(c->listen[0].mode, 0660);
	assert_true(c->listen[0].owner == (uid_t)-1 && c->listen[0].group == (gid_t)-1);
	assert_int_equal(c->listen[0].backlog, 1024);
	assert_int_equal(c->spawners, 0);
	assert_int_equal(c->params_max_bytes, 256 * 1024);
	assert_string_equal(c->log.file, "stderr");
	assert_int_equal(c->log.level, LOG_LEVEL_INFO);
	const struct handler_config *h = &c->handlers[0];
	assert_string_equal(h->name, "hello");
	assert_int_equal(h->line, 2);
	assert_int_equal(h->column, 3);
	assert_int_equal(h->protocol, PROTOCOL_CGI);
	assert_int_equal(h->process, PROCESS_PER_REQUEST);
	assert_int_equal(h->workers.max, 8);
	assert_int_equal(h->workers.idle_timeout_ms, 60000);
	assert_int_equal(h->queue.max, 100);
	assert_int_equal(h->queue.timeout_ms, 10000);
	assert_int_equal(h->timeout.start_ms, 10000);
	assert_int_equal(h->timeout.response_ms, 30000);
	assert_int_equal(h->timeout.idle_ms, 60000);
	assert_int_equal(h->timeout.total_ms, 0);
	assert_int_equal(h->timeout.kill_ms, 5000);
	assert_int_equal(h->body.max_bytes, 64 << 20);
	assert_int_equal(h->header.max_bytes, 32 << 10);
	assert_false(h->pass_authorization);
	assert_int_equal(h->on_abort, ABORT_KILL);
	config_fixture_free(&l);
}

static void defaults_merge_key_by_key_and_the_handler_wins(void **state)
{
	struct loaded l;

	(void)state;
	config_fixture_load(&l, "defaults:\n  timeout: {response: 1s, kill: 1s}\n  env: {A: one, B: two}\n  command: /bin/false\n"
		"  workers: {max: 2}\n"
		"handlers:\n  own:\n    connect: 127.0.0.1:9000\n    protocol: fastcgi\n    timeout: {idle: 2s, kill: 250ms}\n"
		"    env: {B: three, C: 4}\n  plain:\n"
		"routes: [{path: /a, handler: own}, {path: /b, handler: plain}]\n");
	assert_string_equal(loaded_errors(&l), "");
	const struct handler_config *own = &l.config->handlers[0], *plain = &l.config->handlers[1];
	assert_int_equal(own->timeout.response_ms, 1000);
	assert_int_equal(own->timeout.idle_ms, 2000);
	assert_int_equal(own->timeout.kill_ms, 250);
	assert_int_equal(own->workers.max, 2);
	assert_int_equal(own->process, PROCESS_PERSISTENT);
	assert_null(own->command);
	assert_string_equal(own->connect.text, "127.0.0.1:9000");
	assert_int_equal(own->env_count, 3);
	assert_string_equal(own->env[0].value, "one");
	assert_string_equal(own->env[1].value, "three");
	assert_string_equal(own->env[2].value, "4");
	assert_string_equal(plain->command[0], "/bin/false");
	assert_int_equal(plain->timeout.idle_ms, 60000);
	config_fixture_free(&l);
}

static void paths_are_relative_to_the_file(void **state)
{
	struct loaded l;
	char here[256], want[300];

	(void)state;
	assert_non_null(getcwd(here, sizeof(here)));
	config_fixture_load(&l, "listen: unix:run/x.sock\nlog: {file: log/x}\nhandlers:\n"
		"  a: {command: ./bin/a.py -x  ../y, directory: sub}\n  b: {scripts: ../../cgi}\n  c: {command: [a.sh, '', 'x y']}\n"
		"routes: [{path: /a, handler: a}, {path: /b/*, handler: b}, {path: /c, handler: c}]\n");
	assert_string_equal(loaded_errors(&l), "");
	snprintf(want, sizeof(want), "unix:%s/run/x.sock", here);
	assert_string_equal(l.config->listen[0].address.text, want);
	snprintf(want, sizeof(want), "%s/log/x", here);
	assert_string_equal(l.config->log.file, want);
	snprintf(want, sizeof(want), "%s/bin/a.py", here);
	assert_string_equal(l.config->handlers[0].command[0], want);
	assert_string_equal(l.config->handlers[0].command[1], "-x");
	assert_string_equal(l.config->handlers[0].command[2], "../y");
	assert_null(l.config->handlers[0].command[3]);
	snprintf(want, sizeof(want), "%s/sub", here);
	assert_string_equal(l.config->handlers[0].directory, want);
	assert_string_equal(l.config->handlers[1].scripts, "/cgi");
	assert_string_equal(l.config->handlers[2].command[1], "");
	assert_string_equal(l.config->handlers[2].command[2], "x y");
	snprintf(want, sizeof(want), "%s/t.yaml", here);
	assert_string_equal(l.config->file, want);
	config_fixture_free(&l);
}

struct mistake {
	const char *yaml, *errors;
};

static void check_mistakes(const struct mistake *mistakes)
{
	for (; mistakes->yaml != NULL; mistakes++) {
		struct loaded l;
		config_fixture_load(&l, mistakes->yaml);
		if (strcmp(loaded_errors(&l), mistakes->errors) != 0)
			fail_msg("%s\nsays %s\nnot %s", mistakes->yaml, loaded_errors(&l), mistakes->errors);
		assert_null(l.config);
		config_fixture_free(&l);
	}
}

static void every_mistake_is_said_at_once_in_order(void **state)
{
	static const struct mistake mistakes[] = {
		{ "spawners: 0\nhandlers:\n  hello:\n    command: /bin/true\n    timout: 3s\n    timeout: {respose: 3, kill: 0s}\n"
		  "    body: {max: 1GB}\nroutes:\n  - {path: hello, handler: helo}\n  - {path: /x, handler: nobody, methods: [get]}\n",
		  "t.yaml:1:11: spawners: '0' is out of bounds: from 1 to 64\n"
		  "t.yaml:5:5: handlers.hello: there is no key 'timout', did you mean 'timeout'?\n"
		  "t.yaml:6:15: handlers.hello.timeout: there is no key 'respose', did you mean 'response'?\n"
		  "t.yaml:6:33: handlers.hello.timeout.kill: '0s' is out of bounds: from 1ms to 1h\n"
		  "t.yaml:7:17: handlers.hello.body.max: '1GB' has no unit that is known: KiB, MiB or GiB (a bare number is bytes)\n"
		  "t.yaml:9:12: routes[1].path: 'hello' does not begin with '/'\n"
		  "t.yaml:9:28: routes[1].handler: there is no handler 'helo', did you mean 'hello'?\n"
		  "t.yaml:10:25: routes[2].handler: there is no handler 'nobody'\n"
		  "t.yaml:10:42: routes[2].methods: 'get': methods are upper case\n" },
		{ NULL, NULL },
	};

	(void)state;
	check_mistakes(mistakes);
}

static void mistakes_in_values(void **state)
{
	static const struct mistake mistakes[] = {
		{ "params: {max: 1}\n" HELLO ROUTE, "t.yaml:1:15: params.max: '1' is out of bounds: from 64KiB to 16MiB\n" },
		{ "params: {max: 99999999999999999999}\n" HELLO ROUTE, "t.yaml:1:15: params.max: '99999999999999999999' is too large\n" },
		{ "params: {max: 99999999999999GiB}\n" HELLO ROUTE, "t.yaml:1:15: params.max: '99999999999999GiB' is too large\n" },
		{ "params: 256KiB\n" HELLO ROUTE, "t.yaml:1:9: params: needs a map of keys, not a value alone\n" },
		{ "params: {max: [1]}\n" HELLO ROUTE, "t.yaml:1:15: params.max: needs one value, not a list\n" },
		{ "params: {max: }\n" HELLO ROUTE, "t.yaml:1:15: params.max: needs a value\n" },
		{ "spawners: many\n" HELLO ROUTE, "t.yaml:1:11: spawners: 'many' is not auto or a whole number\n" },
		{ "log: {format: xml, level: warn}\n" HELLO ROUTE,
		  "t.yaml:1:15: log.format: 'xml' is not one of text, json\n"
		  "t.yaml:1:27: log.level: 'warn' is not one of error, warning, info, debug\n" },
		{ "defaults: {timeout: {idle: 5}, pass_authorization: yes, nonsense: 1}\n" HELLO ROUTE,
		  "t.yaml:1:28: defaults.timeout.idle: '5' needs a unit: ms, s, m or h\n"
		  "t.yaml:1:52: defaults.pass_authorization: 'yes' is neither true nor false\n"
		  "t.yaml:1:57: defaults: there is no key 'nonsense'\n" },
		{ "defaults: {header: {max: 61KiB}}\n" HELLO ROUTE,
		  "t.yaml:1:26: defaults.header.max: '61KiB' is out of bounds: from 1KiB to 60KiB\n" },
		{ "defaults: {env: {'A=B': x, C: , D: [1]}}\n" HELLO ROUTE,
		  "t.yaml:1:18: defaults.env: 'A=B' is no name of a variable\n"
		  "t.yaml:1:31: defaults.env.C: needs a value; \"\" is an empty one\n"
		  "t.yaml:1:36: defaults.env.D: needs one value, not a list\n" },
		{ "defaults: {max_requests: 5}\n" HELLO ROUTE,
		  "t.yaml:1:12: defaults: there is no key 'max_requests', did you mean 'workers.max_requests'?\n" },
		{ "- a\n", "t.yaml:1:1: needs a map of keys, not a list\n" },
		{ NULL, NULL },
	};

	(void)state;
	check_mistakes(mistakes);
}

static void mistakes_in_handlers(void **state)
{
	static const struct mistake mistakes[] = {
		{ "handlers:\n  a:\n  b: {command: /b, scripts: /c}\n  c: x\n  'd e': {command: /b}\n",
		  "t.yaml:2:3: handlers.a: needs one of 'command', 'scripts' and 'connect'\n"
		  "t.yaml:3:3: handlers.b: has more than one of 'command', 'scripts' and 'connect'\n"
		  "t.yaml:4:6: handlers.c: needs a map of keys, not a value alone\n"
		  "t.yaml:5:3: handlers.d e: the name of a handler is made of letters, digits, '-', '_' and '.'\n" },
		{ "handlers:\n  a: {command: /b, protocol: stdio, process: persistent}\n",
		  "t.yaml:2:46: handlers.a: a stdio function answers once and ends, so it cannot be persistent; its fast ways are 'parked' and 'zygote'\n" },
		{ "handlers:\n  a: {connect: unix:/b, protocol: stdio}\n",
		  "t.yaml:2:16: handlers.a: 'connect' needs protocol: fastcgi\n" },
		{ "handlers:\n  a: {command: /b, protocol: stdio, content_type: text}\n",
		  "t.yaml:2:51: handlers.a.content_type: 'text' is no media type, such as text/plain or application/json\n" },
		{ "handlers:\n  a: {command: /b, protocol: stdio, content_type: \"text/plain\\r\\nX: y\"}\n",
		  "t.yaml:2:51: handlers.a.content_type: holds a byte that no header field can have\n" },
		{ "handlers:\n  a: {command: /b, process: persistent}\n",
		  "t.yaml:2:29: handlers.a: a CGI program answers once and ends, so it cannot be persistent; its fast ways are 'parked' and 'zygote'\n" },
		{ "handlers:\n  a: {connect: '127.0.0.1:1'}\n  b: {connect: '127.0.0.1:1', protocol: fastcgi, process: per-request}\n"
		  "  c: {connect: '127.0.0.1:1', protocol: fastcgi, directory: /}\n",
		  "t.yaml:2:16: handlers.a: 'connect' needs protocol: fastcgi\n"
		  "t.yaml:3:59: handlers.b: 'connect' cannot be process: per-request: its workers are started by someone else\n"
		  "t.yaml:4:50: handlers.c: 'directory' has no meaning with 'connect': the workers are started by someone else\n" },
		{ "handlers:\n  a: {scripts: /b, protocol: fastcgi}\n",
		  "t.yaml:2:30: handlers.a: 'scripts' are started for each request: say process: per-request\n" },
		{ "handlers:\n  a: {command: []}\n  b: {command: ' '}\n  c: {command: [{x: 1}]}\n",
		  "t.yaml:2:16: handlers.a.command: the list is empty\n"
		  "t.yaml:3:16: handlers.b.command: names no program\n"
		  "t.yaml:4:17: handlers.c.command: needs one value, not a map of keys\n" },
		{ "handlers:\n  a: {command: /b, workers: {min: 3, max: 2}}\n",
		  "t.yaml:2:35: handlers.a: workers.min (3) is above workers.max (2)\n" },
		{ "handlers:\n  a: {command: /b, group: no-such-group}\n",
		  "t.yaml:2:27: handlers.a.group: there is no group 'no-such-group'\n"
		  "t.yaml:2:27: handlers.a: 'group' needs 'user'\n" },
		{ NULL, NULL },
	};

	(void)state;
	check_mistakes(mistakes);
}

static void shares_and_limits(void **state)
{
	static const struct mistake mistakes[] = {
		{ "max_processes: 5\nhandlers:\n  a: {command: /b, workers: {max: 4, reserved: 4}}\n"
		  "  b: {command: /b, workers: {max: 4, reserved: 2}}\n  c: {command: /b, workers: {max: 4, reserved: 5}}\n"
		  "  d: {command: /b, protocol: fastcgi, limits: {cpu: 10s}}\n",
		  "t.yaml:1:1: max_processes (5) is below the sum of workers.reserved (11)\n"
		  "t.yaml:5:48: handlers.c: workers.reserved is above workers.max\n"
		  "t.yaml:6:53: handlers.d: limits.cpu counts a process's whole life, so it is not for persistent workers; timeout.total limits a request\n" },
		{ NULL, NULL },
	};

	(void)state;
	check_mistakes(mistakes);
}

static void not_yet_supported(void **state)
{
	static const struct mistake mistakes[] = {
		{ "handlers:\n  b: {command: /b, protocol: scgi}\n"
		  "routes: []\n",
		  "t.yaml:2:30: handlers.b.protocol: 'scgi' is not yet supported\n" },
		{ NULL, NULL },
	};

	(void)state;
	check_mistakes(mistakes);
}

static void what_cannot_wait_is_refused_with_the_reason(void **state)
{
	static const struct mistake mistakes[] = {
		{ "handlers:\n  a: {scripts: /b, process: parked}\n"
		  "  b: {connect: unix:/s, protocol: fastcgi, process: zygote}\n"
		  "  c: {command: /b, process: parked, preload: [auto, json]}\n"
		  "  d: {command: /b, process: parked, preload: [json, 'a:b']}\n"
		  "  e: {command: /b, process: parked, preload: ['File::Temp', 'A::B::C']}\n"
		  "  f: {command: /b, process: parked, preload: ['a:::b']}\n"
		  "  g: {command: /b, process: parked, preload: ['a::']}\n",
		  "t.yaml:2:29: handlers.a: 'scripts' cannot be process: parked: what waits is one program; give the script a handler of its own, with 'command'\n"
		  "t.yaml:3:53: handlers.b: 'connect' cannot be process: zygote: its workers are started by someone else\n"
		  "t.yaml:4:46: handlers.c: 'auto' and 'none' stand alone, not in a list of modules\n"
		  "t.yaml:5:46: handlers.d: a module's name is not empty and has no ':', only Perl's '::'\n"
		  "t.yaml:7:46: handlers.f: a module's name is not empty and has no ':', only Perl's '::'\n"
		  "t.yaml:8:46: handlers.g: a module's name is not empty and has no ':', only Perl's '::'\n" },
		{ NULL, NULL },
	};

	(void)state;
	check_mistakes(mistakes);
}

static void mistakes_in_listen(void **state)
{
	static const struct mistake mistakes[] = {
		{ "listen: 0.0.0.0:9000\n" HELLO ROUTE,
		  "t.yaml:1:9: listen: '0.0.0.0:9000' is open to other machines: it needs 'allow' with the addresses that may connect\n" },
		{ "listen: [unix:/a, '[::]:1', unix:/a, {mode: \"0660\"}]\n" HELLO ROUTE,
		  "t.yaml:1:19: listen[2]: '[::]:1' is open to other machines: it needs 'allow' with the addresses that may connect\n"
		  "t.yaml:1:29: listen[3]: 'unix:/a' is here twice: first in line 1\n"
		  "t.yaml:1:38: listen[4]: 'address' is missing\n" },
		{ "listen: {address: unix:/a, mode: 0660, allow: [127.0.0.1]}\n" HELLO ROUTE,
		  "t.yaml:1:34: listen.mode: write it quoted: \"0660\"\n"
		  "t.yaml:1:40: listen: 'allow' is for TCP addresses: 'mode', 'owner' and 'group' say who may use a unix socket\n" },
		{ "listen: {address: '127.0.0.1:1', mode: \"0888\", owner: no-such-user, allow: [10.0.0.1/8, x]}\n" HELLO ROUTE,
		  "t.yaml:1:34: listen: 'mode' is for unix sockets: 'allow' says who may use a TCP address\n"
		  "t.yaml:1:40: listen.mode: '0888' is no mode such as \"0660\"\n"
		  "t.yaml:1:48: listen: 'owner' is for unix sockets: 'allow' says who may use a TCP address\n"
		  "t.yaml:1:55: listen.owner: there is no user 'no-such-user'\n"
		  "t.yaml:1:76: listen.allow: '10.0.0.1/8' has bits set after the first 8: what is meant?\n"
		  "t.yaml:1:76: listen.allow: 'x' is no address or prefix such as 10.0.0.0/8\n" },
		{ "listen: {address: '0.0.0.0:1', allow: []}\n" HELLO ROUTE, "t.yaml:1:39: listen.allow: the list is empty\n" },
		{ "listen: []\n" HELLO ROUTE, "t.yaml:1:9: listen: the list is empty: nothing could connect\n" },
		{ NULL, NULL },
	};

	(void)state;
	check_mistakes(mistakes);
}

static void mistakes_in_routes(void **state)
{
	static const struct mistake mistakes[] = {
		{ HELLO "routes:\n  - {path: '/u/{id}', handler: hello}\n  - {path: '/u/{name}', handler: hello, methods: [GET]}\n",
		  "t.yaml:5:5: routes[2]: no request can tell '/u/{name}' from '/u/{id}' in line 4, column 5: same path, same host, a method in common\n" },
		{ HELLO "routes:\n  - {path: /a, handler: hello, methods: HEAD, host: X.org}\n"
		  "  - {path: /a, handler: hello, methods: [GET], host: x.ORG}\n",
		  "t.yaml:5:5: routes[2]: no request can tell '/a' from '/a' in line 4, column 5: same path, same host, a method in common\n" },
		{ HELLO "routes:\n  - {path: '/{a}/{A}', handler: hello, host: 'x:80'}\n  - {handler: hello}\n  - {path: /a}\n  - x\n  -\n",
		  "t.yaml:4:12: routes[1].path: '/{a}/{A}' has the name {A} twice\n"
		  "t.yaml:4:46: routes[1].host: 'x:80' is no host such as www.example.org (without port)\n"
		  "t.yaml:5:5: routes[2]: 'path' is missing\n"
		  "t.yaml:6:5: routes[3]: 'handler' is missing\n"
		  "t.yaml:7:5: routes[4]: needs a map of keys, not a value alone\n"
		  "t.yaml:8:4: routes[5]: needs a route, such as {path: /hello, handler: hello}\n" },
		{ HELLO "routes: {path: /a}\n", "t.yaml:3:9: routes: needs a list of routes, each such as - {path: /hello, handler: hello}\n" },
		{ NULL, NULL },
	};

	(void)state;
	check_mistakes(mistakes);
}

static void routes_that_a_method_or_a_host_tells_apart_are_fine(void **state)
{
	struct loaded l;

	(void)state;
	config_fixture_load(&l, HELLO "routes:\n  - {path: /a, handler: hello, methods: [GET]}\n"
		"  - {path: /a, handler: hello, methods: [POST, PUT]}\n  - {path: /a, handler: hello, host: x.org}\n"
		"  - {path: /a/*, handler: hello}\n  - {path: '/{a}', handler: hello}\n");
	assert_string_equal(loaded_errors(&l), "");
	assert_non_null(l.config);
	config_fixture_free(&l);
}

static void warnings_do_not_stop_a_start(void **state)
{
	struct loaded l;

	(void)state;
	config_fixture_load(&l, "user: root\nhandlers:\n  gone: {command: /no/such/program}\n  plain: {command: /etc/passwd}\n"
		"  folder: {command: /etc}\n  lost: {command: /bin/true}\nroutes:\n  - {path: /a, handler: gone}\n"
		"  - {path: /b, handler: plain}\n  - {path: /c, handler: folder}\n");
	assert_non_null(l.config);
	assert_non_null(strstr(loaded_warnings(&l),
		"t.yaml:3:19: warning: handlers.gone: '/no/such/program': is not there yet\n"));
	assert_non_null(strstr(loaded_warnings(&l),
		"t.yaml:4:20: warning: handlers.plain: '/etc/passwd' is not executable: chmod +x\n"));
	assert_non_null(strstr(loaded_warnings(&l), "t.yaml:5:21: warning: handlers.folder: '/etc' is a folder, not a program\n"));
	assert_non_null(strstr(loaded_warnings(&l), "t.yaml:6:3: warning: handlers.lost: no route leads here\n"));
	config_fixture_free(&l);
}

static void a_file_that_others_may_write_is_refused(void **state)
{
	struct config_report report;

	(void)state;
	config_fixture_write(HELLO ROUTE);
	static const mode_t modes[] = { 0664, 0646, 0666 };
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(chmod("t.yaml", modes[i]), 0);
		assert_int_equal(symlink("t.yaml", "link.yaml"), 0);
		config_report_init(&report);
		assert_null(config_load("link.yaml", &report));
		assert_int_equal(report.errors_count, 1);
		assert_memory_equal(bytes_data(&report.errors), "link.yaml: its mode ", 20);
		config_report_fini(&report);
		assert_int_equal(unlink("link.yaml"), 0);
	}
	if (geteuid() == 0) {
		assert_int_equal(chmod("t.yaml", 0644), 0);
		assert_int_equal(chown("t.yaml", 4711, 0), 0);
		config_report_init(&report);
		assert_null(config_load("t.yaml", &report));
		assert_memory_equal(bytes_data(&report.errors), "t.yaml: it belongs to user 4711", 31);
		config_report_fini(&report);
		unlink("t.yaml");
	}
}

static void a_file_that_is_none_is_refused(void **state)
{
	static const char *const names[] = { "no-such-file", "/tmp", "/dev/null", NULL };

	(void)state;
	for (const char *const *name = names; *name != NULL; name++) {
		struct config_report report;
		config_report_init(&report);
		assert_null(config_load(*name, &report));
		assert_int_equal(report.errors_count, 1);
		config_report_fini(&report);
	}
}

static void any_beginning_of_a_file_loads_or_is_refused(void **state)
{
	char *text = source_file("conf/fcgi-host.yaml");
	size_t len = strlen(text);

	(void)state;
	for (size_t end = len; end > 0; end -= end > 97 ? 97 : end) {
		struct loaded l;
		text[end] = '\0';
		config_fixture_load(&l, text);
		assert_true(l.config != NULL || l.report.errors_count > 0);
		config_fixture_free(&l);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_file_has_every_default),
		cmocka_unit_test(defaults_merge_key_by_key_and_the_handler_wins),
		cmocka_unit_test(paths_are_relative_to_the_file),
		cmocka_unit_test(every_mistake_is_said_at_once_in_order),
		cmocka_unit_test(mistakes_in_values),
		cmocka_unit_test(mistakes_in_handlers),
		cmocka_unit_test(not_yet_supported),
		cmocka_unit_test(what_cannot_wait_is_refused_with_the_reason),
		cmocka_unit_test(shares_and_limits),
		cmocka_unit_test(mistakes_in_listen),
		cmocka_unit_test(mistakes_in_routes),
		cmocka_unit_test(routes_that_a_method_or_a_host_tells_apart_are_fine),
		cmocka_unit_test(warnings_do_not_stop_a_start),
		cmocka_unit_test(a_file_that_others_may_write_is_refused),
		cmocka_unit_test(a_file_that_is_none_is_refused),
		cmocka_unit_test(any_beginning_of_a_file_loads_or_is_refused),
	};

	return cmocka_run_group_tests(tests, config_fixture_begin, config_fixture_end);
}
