/* Printing loads again and prints the same; the samples and the manual hold every key. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config_fixture.h"
#include "config/keys.h"

static char *print(const struct config *config)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	config_print(config, out);
	fclose(out);
	return text;
}

/* Loads, prints, loads that and prints: the two must be the same. */
static char *print_twice(const char *yaml)
{
	struct loaded first, second;

	config_fixture_load(&first, yaml);
	assert_string_equal(loaded_errors(&first), "");
	char *once = print(first.config);
	config_fixture_load(&second, once);
	assert_string_equal(loaded_errors(&second), "");
	char *twice = print(second.config);
	assert_string_equal(once, twice);
	free(twice);
	config_fixture_free(&first);
	config_fixture_free(&second);
	return once;
}

static void the_print_has_every_default_and_reads_back(void **state)
{
	(void)state;
	char *text = print_twice("handlers: {hello: {command: /bin/true}}\nroutes: [{path: /hello, handler: hello}]\n");
	assert_string_equal(text,
		"listen:\n"
		"- {address: 'unix:" RUNSTATEDIR "/fcgi-host/fcgi-host.sock', mode: \"0660\", backlog: 1024}\n"
		"spawners: auto\n"
		"max_processes: 0\n"
		"params: {max: 256KiB}\n"
		"log: {file: stderr, format: text, level: info, slow: 0s}\n"
		"handlers:\n"
		"  hello:\n"
		"    command: [/bin/true]\n"
		"    protocol: cgi\n"
		"    process: per-request\n"
		"    workers: {min: 0, max: 8, spare: 1, reserved: 0, idle_timeout: 60s, max_requests: 0, max_age: 0s, jitter: 10%}\n"
		"    queue: {max: 100, timeout: 10s}\n"
		"    timeout: {start: 10s, response: 30s, idle: 60s, total: 0s, kill: 5s}\n"
		"    body: {max: 64MiB, chunked: stream}\n"
		"    header: {max: 32KiB}\n"
		"    content_type: text/plain\n"
		"    hold: 64MiB\n"
		"    server_timing: false\n"
		"    pass_authorization: false\n"
		"    limits: {memory: 0, cpu: 0s, files: 0, processes: 0}\n"
		"    on_abort: kill\n"
		"    preload: [auto]\n"
		"routes:\n"
		"- {path: /hello, handler: hello}\n");
	free(text);
}

static void a_builtin_route_has_no_handler(void **state)
{
	(void)state;
	char *text = print_twice("handlers: {hello: {command: /bin/true}}\nroutes: [{path: /s, builtin: status, allow: 10.1.0.0/16}]\n");
	assert_non_null(strstr(text, "\nroutes:\n- {path: /s, builtin: status, allow: [\"10.1.0.0/16\"]}\n"));
	free(text);
}

static void awkward_texts_read_back(void **state)
{
	(void)state;
	free(print_twice("listen: [unix:a b, {address: '[::]:9', allow: [10.0.0.0/8, '2001:db8::/32']}, {address: unix:/x, owner: root, group: root}]\n"
		"user: root\ngroup: root\nspawners: 3\nlog: {file: 'true', format: json}\nhandlers:\n  'null':\n    command: [a, '', '~', ' x ', "
		"\"\\n\\t\\\"\\e\", 'é', \"\\u2028\\x85\\ufeff\", '#', 'a: b', '- x', '{', '%', '@', '`', '0x1', 'x:']\n"
		"    env: {A: '', B: 'yes', C: 12, D: \"1\\\\2\\r\", '#': '*x'}\n    timeout: {total: 90s, idle: 1500ms, response: 2h, start: 2m}\n"
		"    body: {max: 1025, chunked: spool}\n  '1.0': {connect: '[::1]:9', protocol: fastcgi, on_abort: finish}\n"
		"routes:\n  - {path: '/a b/{x}/*', handler: 'null', host: X.org, methods: POST}\n  - {path: '/{y}', handler: '1.0'}\n"));
	free(print_twice("handlers:\nroutes: []\n"));
	free(print_twice("routes: [{path: /s, builtin: status}, {path: /t, builtin: status, allow: [10.0.0.0/8, '2001:db8::/32']}]\n"));
}

static void a_long_key_or_value_reads_back(void **state)
{
	char yaml[9000] = "handlers: {h: {command: /bin/true, env: {";
	size_t used = strlen(yaml);

	(void)state;
	memset(yaml + used, 'N', 300);
	used += 300;
	memcpy(yaml + used, ": ", 2);
	memset(yaml + used + 2, 'v', 8000);
	strcpy(yaml + used + 8002, "}}}\n");
	free(print_twice(yaml));
}

static void the_samples_load(void **state)
{
	static const char *const names[] = { "conf/minimal.yaml", "conf/fcgi-host.yaml", "conf/git.yaml", NULL };

	(void)state;
	for (const char *const *name = names; *name != NULL; name++) {
		char *text = source_file(*name);
		free(print_twice(text));
		free(text);
	}
}

/* Is there a line "key:" or "{key: " or ", key: ", in a comment or not? */
static bool mentions(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *at = strstr(text, key); at != NULL; at = strstr(at + 1, key))
		if (at[len] == ':' && (at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '_')))
			return true;
	return false;
}

static void the_commented_sample_mentions_every_key(void **state)
{
	char *text = source_file("conf/fcgi-host.yaml");

	(void)state;
	for (size_t i = 0; i < keys_count; i++)
		if (!keys[i].is_not_yet && !mentions(text, key_leaf(&keys[i])))
			fail_msg("conf/fcgi-host.yaml does not mention '%s'", keys[i].name);
	free(text);
}

static void the_table_is_well_formed(void **state)
{
	(void)state;
	for (size_t i = 0; i < keys_count; i++) {
		const struct key *key = &keys[i];
		char group[64];
		assert_true(key->help != NULL && key->help[0] != '\0');
		assert_ptr_equal(key_find(key->scope, key->name), key);
		snprintf(group, sizeof(group), "%.*s", (int)key_group(key).len, key_group(key).ptr);
		if (group[0] != '\0')
			assert_ptr_equal(key_find(key->scope, group)->kind, &kind_group);
		if (key->kind != &kind_group && !key->is_not_yet)
			assert_non_null(key->kind->read);
	}
}

static void the_reference_has_every_key(void **state)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	config_reference(out);
	fclose(out);
	for (size_t i = 0; i < keys_count; i++) {
		char line[128];
		snprintf(line, sizeof(line), "\n%s: ", keys[i].name);
		assert_non_null(strstr(text, line));
		assert_non_null(strstr(text, keys[i].help));
	}
	assert_non_null(strstr(text, "\nheader.max: size, 1KiB to 60KiB; default: 32KiB\n"));
	assert_non_null(strstr(text, "\nspawners: number, 1 to 64, or auto; default: auto\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_print_has_every_default_and_reads_back),
		cmocka_unit_test(a_builtin_route_has_no_handler),
		cmocka_unit_test(awkward_texts_read_back),
		cmocka_unit_test(a_long_key_or_value_reads_back),
		cmocka_unit_test(the_samples_load),
		cmocka_unit_test(the_commented_sample_mentions_every_key),
		cmocka_unit_test(the_table_is_well_formed),
		cmocka_unit_test(the_reference_has_every_key),
	};

	return cmocka_run_group_tests(tests, config_fixture_begin, config_fixture_end);
}
