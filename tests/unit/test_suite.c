/* Suites of comparisons: a file becomes a plan, and every mistake is told with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "compare/suite.h"
#include "config_fixture.h"

struct read_suite {
	struct plan plan;
	struct suite *suite;
	struct config_report report;
};

static void load(struct read_suite *s, const char *yaml)
{
	*s = (struct read_suite){ .suite = NULL };
	config_fixture_write(yaml);
	config_report_init(&s->report);
	s->suite = suite_load("t.yaml", &s->plan, &s->report);
	assert_int_equal(bytes_append(&s->report.errors, "", 1), 0);
	assert_int_equal(bytes_append(&s->report.warnings, "", 1), 0);
}

static void unload(struct read_suite *s)
{
	plan_fini(&s->plan);
	suite_free(&s->suite);
	config_report_fini(&s->report);
}

static const char *errors_of(struct read_suite *s)
{
	return (const char *)bytes_data(&s->report.errors);
}

/* What a private host would get for this way; the caller frees it. */
static char *config_of(const struct way *way, const struct pair *env, size_t env_count)
{
	struct way_place place = { .socket = "unix:/run/t.sock", .log = "/run/t.log", .env = env, .env_count = env_count };
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(way->write_config(way, &place, out), 0);
	fclose(out);
	return text;
}

#define HEAD "suite: s\ntitle: T\nquestion: Q\n"
#define LOAD "load: {requests: 100, blocks: 4}\n"
#define WAY "handler: {command: /bin/true}"
#define GROUPS "groups: {g: {baseline: a, ways: {a: {" WAY "}}}}\n"

static void the_least_suite_has_every_default(void **state)
{
	struct read_suite s;

	(void)state;
	load(&s, HEAD "load: {}\n" GROUPS);
	assert_string_equal(errors_of(&s), "");
	assert_non_null(s.suite);
	const struct plan *p = &s.plan;
	assert_string_equal(p->suite, "s");
	assert_string_equal(p->title, "T");
	assert_string_equal(p->question, "Q");
	assert_null(p->setup);
	assert_false(p->is_strict);
	assert_int_equal(p->load.kind, SCHEDULE_CLOSED);
	assert_int_equal(p->load.requests, 1000);
	assert_int_equal(p->load.blocks, 20);
	assert_int_equal(p->load.concurrency, 1);
	assert_string_equal(p->load.method, "GET");
	assert_string_equal(p->load.path, "/");
	assert_string_equal(p->load.route, "/");
	assert_null(p->load.headers);
	assert_null(p->load.body);
	assert_true(p->load.keep);
	assert_int_equal(p->load.via, VIA_NONE);
	assert_int_equal(p->load.status, 200);
	assert_null(p->load.contains);
	assert_int_equal(p->load.timeout_ms, 60000);
	assert_int_equal(p->comparisons_count, 1);
	assert_string_equal(p->comparisons[0].name, "g");
	assert_string_equal(p->comparisons[0].baseline, "a");
	assert_false(p->comparisons[0].may_differ);
	assert_int_equal(p->comparisons[0].ways_count, 1);
	assert_string_equal(p->comparisons[0].ways[0].name, "a");
	assert_int_equal(p->comparisons[0].ways[0].via, VIA_AS_LOAD);
	unload(&s);
}

static void an_open_load_has_places_enough_unless_it_says_how_many(void **state)
{
	struct read_suite s;

	(void)state;
	load(&s, HEAD "load: {kind: open, rate: 5}\n" GROUPS);
	assert_string_equal(errors_of(&s), "");
	assert_int_equal(s.plan.load.concurrency, 256);
	unload(&s);
	load(&s, HEAD "load: {kind: open, rate: 5, concurrency: 1}\n" GROUPS);
	assert_int_equal(s.plan.load.concurrency, 1);
	unload(&s);
}

static const char everything[] = HEAD
	"published: {note: elsewhere}\n"
	"setup: [./setup, argument]\n"
	"defaults: {workers: {max: 3}}\n"
	"load:\n"
	"  kind: open\n"
	"  rate: 12.5\n"
	"  requests: 600\n"
	"  blocks: 6\n"
	"  concurrency: 7\n"
	"  path: '/users/{1..9}?all=1'\n"
	"  route: '/users/{id}'\n"
	"  headers: {Content-Type: text/css, X-Two: ''}\n"
	"  body: \"a\\nb\"\n"
	"  keep: false\n"
	"  via: nginx\n"
	"  expect: {status: 201, contains: yes}\n"
	"groups:\n"
	"  one:\n"
	"    baseline: kept\n"
	"    answers: any\n"
	"    ways:\n"
	"      kept:\n"
	"        title: worker, kept\n"
	"        requests: 30\n"
	"        via: apache\n"
	"        published: {requests_per_s: 6284, mean_ms: 0.5, p99_ms: 3, ratio: 2, note: not ours}\n"
	"        needs: {cc: gcc, ./a.out: built}\n"
	"        handler: {command: bin/true -x, protocol: fastcgi, process: persistent, env: {A: own}}\n"
	"      native:\n"
	"        server: {command: [bin/server, '{port}'], directory: there, env: {PORT: '{port}', B: ''}}\n"
	"        url: 'http://127.0.0.1:{port}'\n"
	"  two:\n"
	"    baseline: socket\n"
	"    ways:\n"
	"      socket:\n"
	"        server: {command: [/bin/server, '{socket}']}\n"
	"        connect: 'unix:{socket}'\n"
	"      there: {connect: '127.0.0.1:9000'}\n";

static void the_load_is_taken_as_it_is_written(void **state)
{
	struct read_suite s;

	(void)state;
	load(&s, everything);
	assert_string_equal(errors_of(&s), "");
	const struct load_plan *l = &s.plan.load;
	assert_int_equal(l->kind, SCHEDULE_OPEN);
	assert_true(l->rate_per_s == 12.5);
	assert_int_equal(l->requests, 600);
	assert_int_equal(l->blocks, 6);
	assert_int_equal(l->concurrency, 7);
	assert_string_equal(l->method, "POST");
	assert_string_equal(l->path, "/users/{1..9}?all=1");
	assert_string_equal(l->route, "/users/{id}");
	assert_string_equal(l->headers[0], "Content-Type: text/css");
	assert_string_equal(l->headers[1], "X-Two: ");
	assert_null(l->headers[2]);
	assert_string_equal(l->body, "a\nb");
	assert_int_equal(l->body_len, 3);
	assert_false(l->keep);
	assert_int_equal(l->via, VIA_NGINX);
	assert_int_equal(l->status, 201);
	assert_string_equal(l->contains, "yes");
	unload(&s);
}

static void groups_and_ways_are_taken_as_they_are_written(void **state)
{
	struct read_suite s;
	char expected[4200], *here = getcwd(NULL, 0);

	(void)state;
	load(&s, everything);
	assert_int_equal(s.plan.comparisons_count, 2);
	snprintf(expected, sizeof(expected), "%s/setup", here);
	assert_string_equal(s.plan.setup[0], expected);
	assert_string_equal(s.plan.setup[1], "argument");
	assert_string_equal(s.plan.published_note, "elsewhere");
	const struct comparison *one = &s.plan.comparisons[0], *two = &s.plan.comparisons[1];
	assert_true(one->may_differ);
	assert_false(two->may_differ);
	const struct way *kept = &one->ways[0], *native = &one->ways[1];
	assert_string_equal(kept->title, "worker, kept");
	assert_int_equal(kept->requests, 30);
	assert_int_equal(kept->via, VIA_APACHE);
	assert_true(kept->published.requests_per_s == 6284 && kept->published.mean_ms == 0.5 && kept->published.p99_ms == 3 &&
		kept->published.ratio == 2);
	assert_string_equal(kept->published.note, "not ours");
	assert_int_equal(kept->needs_count, 2);
	assert_string_equal(kept->needs[0].program, "cc");
	snprintf(expected, sizeof(expected), "%s/a.out", here);
	assert_string_equal(kept->needs[1].program, expected);
	assert_string_equal(kept->needs[1].package, "built");
	assert_null(native->write_config);
	snprintf(expected, sizeof(expected), "%s/bin/server", here);
	assert_string_equal(native->server[0], expected);
	assert_string_equal(native->server[1], "{port}");
	snprintf(expected, sizeof(expected), "%s/there", here);
	assert_string_equal(native->server_directory, expected);
	assert_int_equal(native->server_env_count, 2);
	assert_string_equal(native->server_env[1].value, "");
	assert_string_equal(native->url, "http://127.0.0.1:{port}");
	assert_string_equal(two->ways[0].connect, "unix:{socket}");
	assert_null(two->ways[1].server);
	free(here);
	unload(&s);
}

static void a_handler_becomes_the_configuration_of_a_private_host(void **state)
{
	static const struct pair env[] = { { (char *)"A", (char *)"setup" }, { (char *)"PGHOST", (char *)"/run/db" } };
	struct read_suite s;
	struct loaded host;

	(void)state;
	load(&s, everything);
	char *text = config_of(&s.plan.comparisons[0].ways[0], env, 2);
	unload(&s);
	config_fixture_load(&host, text);
	assert_string_equal(loaded_errors(&host), "");
	const struct config *c = host.config;
	assert_string_equal(c->listen[0].address.text, "unix:/run/t.sock");
	assert_string_equal(c->log.file, "/run/t.log");
	assert_int_equal(c->handlers_count, 1);
	assert_int_equal(c->handlers[0].protocol, PROTOCOL_FASTCGI);
	assert_int_equal(c->handlers[0].process, PROCESS_PERSISTENT);
	assert_int_equal(c->handlers[0].workers.max, 3);
	assert_string_equal(c->handlers[0].command[1], "-x");
	assert_int_equal(c->handlers[0].env_count, 2);
	assert_string_equal(c->handlers[0].env[0].value, "own");
	assert_string_equal(c->handlers[0].env[1].value, "/run/db");
	assert_int_equal(c->routes_count, 1);
	assert_string_equal(c->routes[0].path, "/users/{id}");
	config_fixture_free(&host);
	free(text);
}

static void the_route_follows_from_the_path(void **state)
{
	static const struct { const char *path, *route; } rows[] = {
		{ "/hello", "/hello" }, { "/hello?x=1", "/hello" }, { "'/a/{1..5}'", "/*" }, { "/a%20b", "/*" }, { "/a//b", "/*" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char yaml[1024];
		struct read_suite s;

		snprintf(yaml, sizeof(yaml), HEAD "load: {path: %s}\n" GROUPS, rows[i].path);
		load(&s, yaml);
		assert_string_equal(errors_of(&s), "");
		char *text = config_of(&s.plan.comparisons[0].ways[0], NULL, 0);
		struct loaded host;
		config_fixture_load(&host, text);
		assert_string_equal(loaded_errors(&host), "");
		assert_string_equal(host.config->routes[0].path, rows[i].route);
		config_fixture_free(&host);
		free(text);
		unload(&s);
	}
}

/* Each of these lets a suite go on without the way. */
static void what_this_build_does_not_support_refuses_the_way_alone(void **state)
{
	struct read_suite s;

	(void)state;
	load(&s, HEAD LOAD "groups: {g: {baseline: a, ways: {a: {" WAY "}, b: {handler: {command: /bin/true, protocol: scgi}}}}}\n");
	assert_string_equal(errors_of(&s), "");
	assert_null(s.plan.comparisons[0].ways[0].refusal);
	assert_string_equal(s.plan.comparisons[0].ways[1].refusal, "'scgi' is not yet supported");
	unload(&s);
}

struct mistake { const char *yaml, *error; };

static void assert_mistakes(const struct mistake *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct read_suite s;
		char expected[1024];

		load(&s, rows[i].yaml);
		assert_null(s.suite);
		snprintf(expected, sizeof(expected), "t.yaml:%s\n", rows[i].error);
		assert_string_equal(errors_of(&s), expected);
		unload(&s);
	}
}
#define ASSERT_MISTAKES(rows) assert_mistakes(rows, sizeof(rows) / sizeof((rows)[0]))

static void mistakes_at_the_top_are_told_with_their_place(void **state)
{
	static const struct mistake rows[] = {
		{ "- a\n", "1:1: needs a map of keys, not a list" },
		{ "title: T\nquestion: Q\n" LOAD GROUPS, "1:1: 'suite' is missing" },
		{ HEAD "lod: {}\n" LOAD GROUPS, "4:1: there is no key 'lod', did you mean 'load'?" },
		{ "suite: a b\ntitle: T\nquestion: Q\n" LOAD GROUPS, "1:8: suite: 'a b' is no name of a suite: it is made of letters, digits and '-'" },
		{ "suite: s\ntitle: \"a\\nb\"\nquestion: Q\n" LOAD GROUPS, "2:8: title: must be one line" },
		{ HEAD "published: old\n" LOAD GROUPS, "4:12: published: needs a map of keys, not a value alone" },
		{ HEAD "setup: []\n" LOAD GROUPS, "4:8: setup: the list is empty" },
		{ HEAD "defaults: {workers: {mx: 3}}\n" LOAD GROUPS, "4:22: defaults.workers: there is no key 'mx', did you mean 'max'?" },
		{ HEAD LOAD "groups: {}\n", "5:9: groups: the map of groups is empty" },
	};

	(void)state;
	ASSERT_MISTAKES(rows);
}

#define WITH_LOAD(load) HEAD "load: {" load "}\n" GROUPS
static void mistakes_in_the_load_are_told_with_their_place(void **state)
{
	static const struct mistake rows[] = {
		{ WITH_LOAD("conccurrency: 3"), "4:8: load: there is no key 'conccurrency', did you mean 'concurrency'?" },
		{ WITH_LOAD("kind: opne"), "4:14: load.kind: 'opne' is not one of closed, open, did you mean 'open'?" },
		{ WITH_LOAD("kind: open"), "4:7: load: 'rate' is missing: kind: open sends at a rate" },
		{ WITH_LOAD("rate: 3"), "4:14: load.rate: goes with kind: open only" },
		{ WITH_LOAD("kind: open, rate: 0"), "4:26: load.rate: '0' is out of bounds: above 0, up to 10000000" },
		{ WITH_LOAD("kind: open, rate: 1e3"), "4:26: load.rate: '1e3' is not a number such as 12 or 0.5" },
		{ WITH_LOAD("blocks: 5"), "4:16: load.blocks: is odd: blocks come in pairs, of which one is run in reverse order" },
		{ WITH_LOAD("blocks: 2"), "4:16: load.blocks: '2' is out of bounds: from 4 to 10000" },
		{ WITH_LOAD("requests: 10"), "4:18: load.requests: is less than one for each block" },
		{ WITH_LOAD("requests: many"), "4:18: load.requests: 'many' is not a whole number" },
		{ WITH_LOAD("method: 'GET /'"), "4:16: load.method: 'GET /' is no method of a request" },
		{ WITH_LOAD("path: hello"), "4:14: load.path: 'hello' does not begin with '/'" },
		{ WITH_LOAD("path: '/a b'"), "4:14: load.path: '/a b' holds a character that no URL has: write it as %20" },
		{ WITH_LOAD("path: '/a/{id}'"), "4:14: load.path: '/a/{id}': in a path there is one number, as in {1..1000}" },
		{ WITH_LOAD("path: '/a/{9..1}'"), "4:14: load.path: '/a/{9..1}': in a path there is one number, as in {1..1000}" },
		{ WITH_LOAD("path: '/{1..9}/{1..9}'"), "4:14: load.path: '/{1..9}/{1..9}': in a path there is one number, as in {1..1000}" },
		{ WITH_LOAD("path: '/{1..10000}'"), "4:14: load.path: '/{1..10000}': there are more than 4096 numbers" },
		{ WITH_LOAD("headers: {'A B': c}"), "4:25: load.headers.A B: 'A B' is no name of a header field" },
		{ WITH_LOAD("headers: {A: \"b\\r\\nC: d\"}"), "4:21: load.headers.A: holds a byte that no header field can have" },
		{ WITH_LOAD("keep: yes"), "4:14: load.keep: 'yes' is neither true nor false" },
		{ WITH_LOAD("via: ngnix"), "4:13: load.via: 'ngnix' is not one of none, nginx, apache, did you mean 'nginx'?" },
		{ WITH_LOAD("expect: {statsu: 200}"), "4:17: load.expect: there is no key 'statsu', did you mean 'status'?" },
		{ WITH_LOAD("expect: {status: 99}"), "4:25: load.expect.status: '99' is out of bounds: from 200 to 599" },
	};

	(void)state;
	ASSERT_MISTAKES(rows);
}

#define WITH_WAY(way) HEAD LOAD "groups: {g: {baseline: a, ways: {a: {" way "}}}}\n"
static void mistakes_in_groups_and_ways_are_told_with_their_place(void **state)
{
	static const struct mistake rows[] = {
		{ HEAD LOAD "groups: {g: {ways: {a: {" WAY "}}}}\n", "5:13: groups.g: 'baseline' is missing" },
		{ HEAD LOAD "groups: {g: {baseline: b, ways: {a: {" WAY "}, bb: {" WAY "}}}}\n", "5:24: groups.g.baseline: there is no way 'b', did you mean 'a'?" },
		{ HEAD LOAD "groups: {'g h': {baseline: a, ways: {a: {" WAY "}}}}\n",
			"5:10: groups: 'g h' is no name: it is made of letters, digits, '-', '_' and '.'" },
		{ HEAD LOAD "groups: {g: {baseline: a, answers: some, ways: {a: {" WAY "}}}}\n", "5:36: groups.g.answers: 'some' is not one of same, any, did you mean 'same'?" },
		{ WITH_WAY("title: x"), "5:37: groups.g.ways.a: needs one of 'handler', 'url' and 'connect'" },
		{ WITH_WAY(WAY ", url: 'http://a/'"), "5:37: groups.g.ways.a: has more than one of 'handler', 'url' and 'connect'" },
		{ WITH_WAY(WAY ", server: {command: /bin/true}"), "5:69: groups.g.ways.a: 'server' goes with 'url' or 'connect', not with 'handler'" },
		{ WITH_WAY("hander: {command: /bin/true}, url: 'http://a/'"), "5:38: groups.g.ways.a: there is no key 'hander', did you mean 'handler'?" },
		{ WITH_WAY("url: 'http://a:{port}'"), "5:38: groups.g.ways.a: nobody listens at {port} or {socket} without 'server'" },
		{ WITH_WAY("url: 'http://a/', via: nginx"), "5:56: groups.g.ways.a: 'via' is a web server before a 'handler'" },
		{ WITH_WAY("url: 'https://a/'"), "5:43: groups.g.ways.a.url: 'https://a/' is no URL such as http://127.0.0.1:{port}/hello" },
		{ WITH_WAY("server: {port: 3}, url: 'http://a/'"), "5:46: groups.g.ways.a.server: 'command' is missing\n"
			"t.yaml:5:47: groups.g.ways.a.server: there is no key 'port'" },
		{ WITH_WAY("server: {command: /bin/true, env: {A B: c}}, url: 'http://a/'"),
			"5:78: groups.g.ways.a.server.env.A B: 'A B' is no name of a variable" },
		{ WITH_WAY(WAY ", requests: 0"), "5:79: groups.g.ways.a.requests: '0' is out of bounds: from 1 to 1000000000" },
		{ WITH_WAY(WAY ", published: {mean_m: 3}"), "5:81: groups.g.ways.a.published: there is no key 'mean_m', did you mean 'mean_ms'?" },
		{ WITH_WAY(WAY ", published: {mean_ms: -3}"), "5:90: groups.g.ways.a.published.mean_ms: '-3' is not a number such as 12 or 0.5" },
		{ WITH_WAY(WAY ", needs: [cc]"), "5:76: groups.g.ways.a.needs: needs a map of programs and packages, not a list" },
		{ WITH_WAY("handler: {command: /bin/true, proces: parked}"),
			"5:68: groups.g.ways.a.handler: there is no key 'proces', did you mean 'process'?" },
		{ WITH_WAY("handler: {command: /bin/true, workers: {max: 0}}"),
			"5:83: groups.g.ways.a.handler.workers.max: '0' is out of bounds: from 1 to 10000" },
		{ WITH_WAY("handler: {}"), "5:47: groups.g.ways.a.handler: needs one of 'command', 'scripts' and 'connect'" },
		{ WITH_WAY("handler: /bin/true"), "5:47: groups.g.ways.a.handler: needs a map of keys, not a value alone" },
	};

	(void)state;
	ASSERT_MISTAKES(rows);
}

static void an_address_that_is_none_is_told_with_its_place(void **state)
{
	struct read_suite s;

	(void)state;
	load(&s, WITH_WAY("connect: 'unix:'"));
	assert_null(s.suite);
	assert_int_equal(strncmp(errors_of(&s), "t.yaml:5:47: groups.g.ways.a.connect: ", 38), 0);
	unload(&s);
}

static void all_mistakes_are_told_in_the_order_of_the_file(void **state)
{
	struct read_suite s;

	(void)state;
	load(&s, HEAD "load: {blocks: 5, kep: true}\ngroups:\n  g: {baseline: x, ways: {a: {handler: {command: /bin/true, protocol: cgi, process: persistent}}}}\n");
	assert_null(s.suite);
	assert_int_equal(s.report.errors_count, 4);
	const char *at = errors_of(&s);
	static const char *const in_order[] = { "t.yaml:4:16: load.blocks: ", "t.yaml:4:19: load: there is no key 'kep'", "t.yaml:6:17: groups.g.baseline: ",
		"groups.g.ways.a.handler: a CGI program answers once and ends" };
	for (size_t i = 0; i < sizeof(in_order) / sizeof(in_order[0]); i++) {
		at = strstr(at, in_order[i]);
		assert_non_null(at);
	}
	unload(&s);
}

static void a_file_that_is_not_there_is_told(void **state)
{
	struct read_suite s = { .suite = NULL };

	(void)state;
	config_report_init(&s.report);
	assert_null(suite_load("none.yaml", &s.plan, &s.report));
	assert_int_equal(bytes_append(&s.report.errors, "", 1), 0);
	assert_string_equal(errors_of(&s), "none.yaml: cannot open it: No such file or directory\n");
	unload(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_suite_has_every_default),
		cmocka_unit_test(an_open_load_has_places_enough_unless_it_says_how_many),
		cmocka_unit_test(the_load_is_taken_as_it_is_written),
		cmocka_unit_test(groups_and_ways_are_taken_as_they_are_written),
		cmocka_unit_test(a_handler_becomes_the_configuration_of_a_private_host),
		cmocka_unit_test(the_route_follows_from_the_path),
		cmocka_unit_test(what_this_build_does_not_support_refuses_the_way_alone),
		cmocka_unit_test(mistakes_at_the_top_are_told_with_their_place),
		cmocka_unit_test(mistakes_in_the_load_are_told_with_their_place),
		cmocka_unit_test(mistakes_in_groups_and_ways_are_told_with_their_place),
		cmocka_unit_test(an_address_that_is_none_is_told_with_its_place),
		cmocka_unit_test(all_mistakes_are_told_in_the_order_of_the_file),
		cmocka_unit_test(a_file_that_is_not_there_is_told),
	};

	return cmocka_run_group_tests(tests, config_fixture_begin, config_fixture_end);
}
