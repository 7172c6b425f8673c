#include "spawn_fixture.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

struct failure {
	const char *text;               /* of the program; NULL: there is none */
	int mode;
	const char *directory;
	enum spawn_step step;
	int errnum;
	const char *says;
};

static const struct failure failures[] = {
	{ NULL, 0, NULL, SPAWN_STEP_EXEC, ENOENT, "No such file or directory; there is no such file" },
	{ "#!/no/such/interpreter -x\n", 0755, NULL, SPAWN_STEP_EXEC, ENOENT,
	  "bad interpreter: its first line names '/no/such/interpreter -x', which is not there" },
	{ "#!/bin/sh\r\necho\r\n", 0755, NULL, SPAWN_STEP_EXEC, ENOENT, "'/bin/sh' followed by a carriage return" },
	{ "echo no first line\n", 0755, NULL, SPAWN_STEP_EXEC, ENOEXEC, "no '#!' line?" },
	{ "#!/bin/sh\n", 0644, NULL, SPAWN_STEP_EXEC, EACCES, "Permission denied; it is not executable" },
	{ "#!/bin/sh\n", 0755, "/no/such/folder", SPAWN_STEP_DIRECTORY, ENOENT, "step directory: " },
};

static void check_failure(const struct failure *failure)
{
	static char *command[] = { NULL, NULL };
	struct fixture fixture;
	struct spawn_request request = { 0 };
	struct run run;
	struct err why;

	fixture_init(&fixture);
	command[0] = strdup(fixture_file(&fixture, "program", failure->text == NULL ? "" : failure->text, failure->mode));
	assert_non_null(command[0]);
	if (failure->text == NULL)
		unlink(command[0]);
	fixture.handler.command = command;
	fixture.handler.directory = (char *)failure->directory;
	fixture_begin(&fixture);
	run_whole(&run, &fixture, &request);
	assert_false(run.is_started);
	assert_int_equal(run.process.state, PROCESS_GONE);
	assert_int_equal(run.process.failed_step, failure->step);
	assert_int_equal(run.process.failed_errno, failure->errnum);
	assert_int_equal(spawner_starting_count(fixture.spawner), 0);
	spawn_failure_text(run.process.failed_step, run.process.failed_errno, command[0], &why);
	if (strstr(why.text, failure->says) == NULL || strstr(why.text, command[0]) == NULL)
		fail_msg("'%s' does not say '%s'", why.text, failure->says);
	run_fini(&run);
	free(command[0]);
	fixture_end(&fixture);
}

static void the_failing_step_is_reported(void **state)
{
	(void)state;
	if (is_under_valgrind())
		skip();
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
		check_failure(&failures[i]);
}

static void another_user_needs_root(void **state)
{
	struct fixture fixture;
	struct spawn_request request = { 0 };
	struct run run;

	(void)state;
	if (geteuid() == 0 || is_under_valgrind())
		skip();
	fixture_init(&fixture);
	fixture_shell(&fixture, "exit 0");
	fixture.handler.identity = (struct identity){ .is_set = true };
	fixture_begin(&fixture);
	run_whole(&run, &fixture, &request);
	assert_int_equal(run.process.failed_step, SPAWN_STEP_USER);
	assert_int_equal(run.process.failed_errno, EPERM);
	run_fini(&run);
	fixture_end(&fixture);
}

/* One that fits, one variable too long, all together too much for exec, and for
 * any exec. */
static void too_large_variables_are_e2big(void **state)
{
	static const size_t sizes[] = { 100 * 1000, 200 * 1000, 5 * 1000 * 1000, 7 * 1000 * 1000 };
	struct fixture fixture;
	struct bytes block;
	struct spawn_request request = { .environ = &block };
	struct run run;

	(void)state;
	if (is_under_valgrind())
		skip();
	fixture_init(&fixture);
	fixture_shell(&fixture, "echo ${#A}");
	fixture_begin(&fixture);
	for (int i = 0; i < 4; i++) {
		char *room;

		bytes_init(&block, sizes[i]);
		room = (char *)bytes_reserve(&block, sizes[i]);
		assert_non_null(room);
		memset(room, 'x', sizes[i]);
		memcpy(room, "A=", 2);
		room[sizes[i] - 1] = '\0';
		bytes_commit(&block, sizes[i]);
		if (i == 0) {
			assert_string_equal(run_whole(&run, &fixture, &request), "99997\n");
		} else {
			run_whole(&run, &fixture, &request);
			assert_int_equal(run.process.failed_step, SPAWN_STEP_EXEC);
			assert_int_equal(run.process.failed_errno, E2BIG);
		}
		run_fini(&run);
		bytes_fini(&block);
	}
	fixture_end(&fixture);
}

struct script {
	const char *script;
	enum spawn_step step;
	int errnum;
	const char *file, *folder;      /* what runs and where, below the test's own folder */
};

static const struct script scripts[] = {
	{ "a.cgi", SPAWN_STEP_NONE, 0, "/real/a.cgi", "/real" },
	{ "sub/../sub/b.cgi", SPAWN_STEP_NONE, 0, "/real/sub/b.cgi", "/real/sub" },
	{ "inside.cgi", SPAWN_STEP_NONE, 0, "/real/a.cgi", "/real" },
	{ "outside.cgi", SPAWN_STEP_PROGRAM, EACCES, NULL, NULL },
	{ "../outside", SPAWN_STEP_PROGRAM, EACCES, NULL, NULL },
	{ "sub", SPAWN_STEP_PROGRAM, EACCES, NULL, NULL },
	{ "", SPAWN_STEP_PROGRAM, EACCES, NULL, NULL },
	{ "none.cgi", SPAWN_STEP_PROGRAM, ENOENT, NULL, NULL },
	{ "a.cgi/more", SPAWN_STEP_PROGRAM, ENOENT, NULL, NULL },
	{ "plain.txt", SPAWN_STEP_EXEC, EACCES, NULL, NULL },
};

static void make_scripts(struct fixture *fixture)
{
	static const char script[] = "#!/bin/sh\necho \"$0 in $(pwd)\"\n";
	char from[PATH_MAX], to[PATH_MAX];

	snprintf(from, sizeof(from), "%s/real", fixture->folder);
	mkdir(from, 0755);
	snprintf(from, sizeof(from), "%s/real/sub", fixture->folder);
	mkdir(from, 0755);
	fixture_file(fixture, "outside", script, 0755);
	fixture_file(fixture, "real/a.cgi", script, 0755);
	fixture_file(fixture, "real/sub/b.cgi", script, 0755);
	fixture_file(fixture, "real/plain.txt", script, 0644);
	snprintf(from, sizeof(from), "%s/real/inside.cgi", fixture->folder);
	snprintf(to, sizeof(to), "%s/real/a.cgi", fixture->folder);
	assert_int_equal(symlink(to, from), 0);
	snprintf(from, sizeof(from), "%s/real/outside.cgi", fixture->folder);
	assert_int_equal(symlink("../outside", from), 0);
	snprintf(from, sizeof(from), "%s/link", fixture->folder);
	assert_int_equal(symlink("real", from), 0);
}

static void scripts_are_found_below_their_folder_and_nowhere_else(void **state)
{
	struct fixture fixture;
	struct spawn_request request = { 0 };
	struct run run;
	char expected[PATH_MAX], folder[PATH_MAX];

	(void)state;
	fixture_init(&fixture);
	make_scripts(&fixture);
	snprintf(folder, sizeof(folder), "%s/link", fixture.folder);
	fixture.handler.scripts = folder;
	fixture_begin(&fixture);
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		if (scripts[i].step == SPAWN_STEP_EXEC && is_under_valgrind())
			continue;
		request.script = scripts[i].script;
		expected[0] = '\0';
		if (scripts[i].file != NULL)
			snprintf(expected, sizeof(expected), "%s%s in %s%s\n", fixture.folder, scripts[i].file, fixture.folder,
				scripts[i].folder);
		assert_string_equal(run_whole(&run, &fixture, &request), expected);
		assert_int_equal(run.process.failed_step, scripts[i].step);
		assert_int_equal(run.process.failed_errno, scripts[i].errnum);
		run_fini(&run);
	}
	fixture_end(&fixture);
}

static void wrong_requests_are_refused_at_once(void **state)
{
	struct fixture fixture;
	struct spawn_request request = { .handler = 1, .fds = { -1, -1, -1 } };
	struct process process = { 0 };
	struct err err;

	(void)state;
	fixture_init(&fixture);
	fixture_shell(&fixture, "exit 0");
	fixture_begin(&fixture);
	assert_int_equal(process_start(fixture.spawner, &process, &request, &err), -1);
	request.handler = 0;
	request.script = "x";
	assert_int_equal(process_start(fixture.spawner, &process, &request, &err), -1);
	assert_int_equal(process.state, PROCESS_NEW);
	fixture_end(&fixture);
}

static const char *const editions[] = {
	"handlers: {tested: {command: /bin/true}}\nroutes: [{path: /, handler: tested}]\n",
	"handlers: {tested: {command: /bin/false}}\nroutes: [{path: /, handler: tested}]\n",
};

struct loaded {
	struct fixture *fixture;
	unsigned times;
	bool is_fine;
	uint64_t digest;
};

static void on_loaded(void *ctx, bool is_fine, uint64_t digest)
{
	struct loaded *loaded = ctx;

	loaded->times++;
	loaded->is_fine = is_fine;
	loaded->digest = digest;
	loop_stop(loaded->fixture->loop);
}

static void on_never(void *ctx, bool is_fine, uint64_t digest)
{
	(void)ctx;
	(void)is_fine;
	(void)digest;
	fail_msg("a load that was given up has called back");
}

/* The answers to the first come first, and are not taken for the second's. */
static void late_answers_of_a_load_that_was_given_up_do_not_count(void **state)
{
	struct fixture fixture;
	struct loaded loaded = { .fixture = &fixture };
	struct run run;
	struct spawn_request request = { 0 };
	struct err err = { "" };
	uint64_t digest;
	char *path;

	(void)state;
	fixture_init(&fixture);
	fixture_shell(&fixture, "exit 0");
	path = strdup(fixture_file(&fixture, "fcgi-host.yaml", editions[0], 0600));
	fixture.config.file = path;
	fixture_begin(&fixture);
	assert_int_equal(spawner_load(fixture.spawner, 1, on_never, NULL, &err), 0);
	spawner_cancel(fixture.spawner);
	fixture_file(&fixture, "fcgi-host.yaml", editions[1], 0600);
	assert_int_equal(spawner_load(fixture.spawner, 2, on_loaded, &loaded, &err), 0);
	loop_run(fixture.loop);
	/* A whole life, by when every answer has been read. */
	run_whole(&run, &fixture, &request);
	assert_int_equal(loaded.times, 1);
	assert_true(loaded.is_fine);
	digest = loaded.digest;
	assert_int_equal(spawner_load(fixture.spawner, 3, on_loaded, &loaded, &err), 0);
	loop_run(fixture.loop);
	assert_int_equal(loaded.times, 2);
	assert_true(loaded.digest == digest);
	run_fini(&run);
	fixture_end(&fixture);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_failing_step_is_reported),
		cmocka_unit_test(another_user_needs_root),
		cmocka_unit_test(too_large_variables_are_e2big),
		cmocka_unit_test(scripts_are_found_below_their_folder_and_nowhere_else),
		cmocka_unit_test(wrong_requests_are_refused_at_once),
		cmocka_unit_test(late_answers_of_a_load_that_was_given_up_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
