#include "spawn_fixture.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void output_status_and_usage_are_reported(void **state)
{
	struct fixture fixture;
	struct spawn_request request = { 0 };
	struct run run;

	(void)state;
	fixture_init(&fixture);
	fixture_shell(&fixture, "echo out; echo err >&2; read line || echo end; exit 3");
	fixture_begin(&fixture);
	assert_string_equal(run_whole(&run, &fixture, &request), "out\nerr\nend\n");
	assert_true(run.is_started);
	assert_int_equal(run.process.state, PROCESS_GONE);
	assert_int_equal(run.process.failed_step, SPAWN_STEP_NONE);
	assert_true(WIFEXITED(run.process.wait_status));
	assert_int_equal(WEXITSTATUS(run.process.wait_status), 3);
	assert_true(run.process.pid > 0);
	assert_true(run.process.asked_ns <= run.process.started_ns);
	assert_true(run.process.started_ns <= run.process.exited_ns);
	assert_true(run.process.usage.max_rss_kib > 0);
	assert_true(run.process.usage.minor_faults > 0);
	assert_int_equal(spawner_starting_count(fixture.spawner), 0);
	run_fini(&run);
	fixture_end(&fixture);
}

static void started_comes_while_the_process_runs(void **state)
{
	struct fixture fixture;
	struct spawn_request request = { 0 };
	struct run run;

	(void)state;
	fixture_init(&fixture);
	fixture_shell(&fixture, "exec sleep 300");
	fixture_begin(&fixture);
	run_start(&run, &fixture, &request);
	assert_int_equal(run.process.state, PROCESS_STARTING);
	assert_int_equal(spawner_starting_count(fixture.spawner), 1);
	run_until(&run, &run.is_started);
	assert_int_equal(run.process.state, PROCESS_RUNNING);
	assert_int_equal(spawner_starting_count(fixture.spawner), 0);
	process_signal(&run.process, SIGUSR1);
	run_until(&run, &run.is_gone);
	assert_int_equal(run.process.wait_status, SIGUSR1);
	process_signal(&run.process, SIGKILL);          /* nothing happens */
	run_fini(&run);
	fixture_end(&fixture);
}

static void environment_is_built_from_scratch(void **state)
{
	static char *command[] = { (char *)"/usr/bin/env", NULL };
	struct pair env[] = { { (char *)"OWN", (char *)"mine" }, { (char *)"LD_DEBUG_OUTPUT", (char *)"/dev/null" } };
	static const char sent[] = "A=1\0OWN=theirs\0LD_PRELOAD=/x.so\0PYTHONPATH=/x\0no-name=1\0EMPTY=\0PATH=/x\0novalue";
	struct fixture fixture;
	struct bytes block;
	struct spawn_request request = { .environ = &block };
	struct run run;

	(void)state;
	fixture_init(&fixture);
	fixture.handler.command = command;
	fixture.handler.env = env;
	fixture.handler.env_count = 2;
	bytes_init(&block, sizeof(sent));
	bytes_append(&block, sent, sizeof(sent));
	setenv("INHERITED", "x", 1);
	fixture_begin(&fixture);
	assert_string_equal(run_whole(&run, &fixture, &request),
		"OWN=mine\nLD_DEBUG_OUTPUT=/dev/null\n"
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nA=1\nEMPTY=\n");
	run_fini(&run);
	env[0] = (struct pair){ (char *)"PATH", (char *)"/mine" };
	fixture_end(&fixture);
	fixture_init(&fixture);
	fixture.handler.command = command;
	fixture.handler.env = env;
	fixture.handler.env_count = 1;
	fixture_begin(&fixture);
	assert_string_equal(run_whole(&run, &fixture, &request), "PATH=/mine\nA=1\nOWN=theirs\nEMPTY=\n");
	run_fini(&run);
	fixture_end(&fixture);
	bytes_fini(&block);
}

static void descriptors_signals_and_group_are_clean(void **state)
{
	struct fixture fixture;
	struct spawn_request request = { 0 };
	struct run run;
	sigset_t usr1, old;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, &old);
	fixture_init(&fixture);
	fixture_shell(&fixture, "for i in $(seq 0 99); do test -e /proc/$$/fd/$i && echo $i; done; readlink /proc/$$/fd/0; "
		"read x comm s ppid pgrp r </proc/$$/stat; echo $(($$ - pgrp)); exec grep -E '^Sig(Blk|Ign)' /proc/self/status");
	fixture_begin(&fixture);
	assert_string_equal(run_whole(&run, &fixture, &request),
		"0\n1\n2\n/dev/null\n0\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
	run_fini(&run);
	fixture_end(&fixture);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

static void host_without_standard_descriptors(void **state)
{
	struct fixture fixture;
	struct spawn_request request = { 0 };
	struct run run;
	pid_t pid = fork();
	int wait_status;

	(void)state;
	if (pid == 0) {
		close(0);
		close(1);
		close(2);
		fixture_init(&fixture);
		fixture_shell(&fixture, "echo note >&2 || exit 9; echo alive");
		fixture_begin(&fixture);
		wait_status = strcmp(run_whole(&run, &fixture, &request), "note\nalive\n") == 0 ? 0 : 1;
		run_fini(&run);
		fixture_end(&fixture);
		_exit(wait_status);
	}
	assert_int_equal(waitpid(pid, &wait_status, 0), pid);
	assert_int_equal(wait_status, 0);
}

static void directory_is_where_the_program_is_or_as_configured(void **state)
{
	static char *command[] = { NULL, NULL };
	struct fixture fixture;
	struct spawn_request request = { 0 };
	struct run run;
	char expected[128], path[PATH_MAX];

	(void)state;
	fixture_init(&fixture);
	strcpy(path, fixture_file(&fixture, "where", "#!/bin/sh\npwd\n", 0755));
	command[0] = path;
	fixture.handler.command = command;
	fixture_begin(&fixture);
	snprintf(expected, sizeof(expected), "%s\n", fixture.folder);
	assert_string_equal(run_whole(&run, &fixture, &request), expected);
	run_fini(&run);
	fixture_end(&fixture);
	fixture_init(&fixture);
	fixture_shell(&fixture, "pwd");
	fixture.handler.directory = (char *)"/usr/lib";
	fixture_begin(&fixture);
	assert_string_equal(run_whole(&run, &fixture, &request), "/usr/lib\n");
	run_fini(&run);
	fixture_end(&fixture);
}

static void user_and_groups_are_changed(void **state)
{
	struct identity identity = { .is_set = true, .uid = 65534, .gid = 65533, .groups = (gid_t[]){ 65532 }, .groups_count = 1 };
	struct fixture fixture;
	struct spawn_request request = { 0 };
	struct run run;

	(void)state;
	if (geteuid() != 0)
		skip();
	fixture_init(&fixture);
	fixture_shell(&fixture, "id -ru; id -u; id -rg; id -G; grep ^CapEff /proc/self/status");
	fixture.handler.identity = identity;
	fixture_begin(&fixture);
	assert_string_equal(run_whole(&run, &fixture, &request),
		"65534\n65534\n65533\n65533 65532\nCapEff:\t0000000000000000\n");
	run_fini(&run);
	fixture_end(&fixture);
	/* The relay's user where the handler has none. */
	fixture_init(&fixture);
	fixture_shell(&fixture, "id -u");
	fixture.config.user = identity;
	fixture_begin(&fixture);
	assert_string_equal(run_whole(&run, &fixture, &request), "65534\n");
	run_fini(&run);
	fixture_end(&fixture);
}

static pid_t pid_in(struct run *run)
{
	while (bytes_data(&run->output) == NULL || memchr(bytes_data(&run->output), '\n', run->output.len) == NULL)
		loop_run(run->fixture->loop);
	return (pid_t)strtol((char *)bytes_data(&run->output), NULL, 10);
}

static void ended_group_goes_as_a_whole(void **state)
{
	struct fixture fixture;
	struct spawn_request request = { 0 };
	struct run run;
	pid_t other;

	(void)state;
	fixture_init(&fixture);
	fixture_shell(&fixture, "sleep 300 & echo $!; wait");
	fixture_begin(&fixture);
	run_start(&run, &fixture, &request);
	other = pid_in(&run);
	process_signal(&run.process, SIGTERM);
	run_until(&run, &run.is_gone);
	assert_int_equal(run.process.wait_status, SIGTERM);
	assert_false(is_running(other));
	run_fini(&run);
	fixture_end(&fixture);
}

static void kill_reaches_who_ignored_term_after_the_leader_ended(void **state)
{
	struct fixture fixture;
	struct spawn_request request = { 0 };
	struct run run;
	pid_t other;

	(void)state;
	fixture_init(&fixture);
	fixture_shell(&fixture, "(trap '' TERM; exec sleep 300) & sleep 0.1; echo $!; wait");
	fixture_begin(&fixture);
	run_start(&run, &fixture, &request);
	other = pid_in(&run);
	process_signal(&run.process, SIGTERM);
	assert_true(ends_soon(run.process.pid));
	assert_true(is_running(other));
	assert_false(run.is_gone);
	process_signal(&run.process, SIGKILL);
	run_until(&run, &run.is_gone);
	assert_int_equal(run.process.wait_status, SIGTERM);
	assert_true(ends_soon(other));
	run_fini(&run);
	fixture_end(&fixture);
}

static void background_child_of_one_that_ended_by_itself_lives_on(void **state)
{
	struct fixture fixture;
	struct spawn_request request = { 0 };
	struct run run;
	pid_t other;

	(void)state;
	fixture_init(&fixture);
	fixture_shell(&fixture, "sleep 300 >/dev/null 2>&1 & echo $!");
	fixture_begin(&fixture);
	other = (pid_t)strtol(run_whole(&run, &fixture, &request), NULL, 10);
	assert_int_equal(run.process.wait_status, 0);
	assert_true(is_running(other));
	run_fini(&run);
	fixture_end(&fixture);
	assert_true(is_running(other));
	kill(other, SIGKILL);
	assert_true(ends_soon(other));
}

static void processes_end_when_the_spawner_is_freed(void **state)
{
	struct fixture fixture;
	struct spawn_request request = { 0 };
	struct run run;
	pid_t pid;

	(void)state;
	fixture_init(&fixture);
	fixture_shell(&fixture, "trap '' TERM INT HUP; sleep 300; exit");
	fixture_begin(&fixture);
	run_start(&run, &fixture, &request);
	run_until(&run, &run.is_started);
	pid = run.process.pid;
	run_fini(&run);
	fixture_end(&fixture);
	assert_true(ends_soon(pid));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);       /* the spawner is reaped */
}

static void processes_end_when_the_relay_is_killed(void **state)
{
	struct fixture fixture;
	struct spawn_request request = { 0 };
	struct run run;
	pid_t relay, pid = 0;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	relay = fork();
	if (relay == 0) {
		fixture_init(&fixture);
		fixture_shell(&fixture, "exec sleep 300");
		fixture_begin(&fixture);
		run_start(&run, &fixture, &request);
		run_until(&run, &run.is_started);
		rmdir(fixture.folder);
		if (write(fds[1], &run.process.pid, sizeof(pid)) > 0)
			pause();
		_exit(1);
	}
	assert_int_equal(read(fds[0], &pid, sizeof(pid)), sizeof(pid));
	assert_true(is_running(pid));
	kill(relay, SIGKILL);
	assert_int_equal(waitpid(relay, NULL, 0), relay);
	assert_true(ends_soon(pid));
	close(fds[0]);
	close(fds[1]);
}

static pid_t parent_of(pid_t pid)
{
	char command[64], text[32] = "";
	FILE *ps;

	snprintf(command, sizeof(command), "cut -d' ' -f4 /proc/%d/stat", (int)pid);
	ps = popen(command, "r");
	assert_non_null(ps);
	assert_non_null(fgets(text, sizeof(text), ps));
	pclose(ps);
	return (pid_t)strtol(text, NULL, 10);
}

static void killed_spawner_takes_its_processes_along_and_is_told(void **state)
{
	struct fixture fixture;
	struct spawn_request request = { 0 };
	struct process another = { 0 };
	struct run run;
	struct err err;

	(void)state;
	fixture_init(&fixture);
	fixture_shell(&fixture, "exec sleep 300");
	fixture_begin(&fixture);
	run_start(&run, &fixture, &request);
	run_until(&run, &run.is_started);
	kill(parent_of(run.process.pid), SIGKILL);
	run_until(&run, &run.is_gone);
	assert_int_equal(run.process.failed_step, SPAWN_STEP_LOST);
	while (fixture.lost == 0)
		loop_run(fixture.loop);
	assert_int_equal(fixture.lost, 1);
	assert_true(ends_soon(run.process.pid));
	assert_int_equal(process_start(fixture.spawner, &another, &request, &err), -1);
	run_fini(&run);
	fixture_end(&fixture);
}

enum { MANY = 600 };

/* More than its socket takes: the relay goes on, and nothing is lost. */
static void stopped_spawner_does_not_block_the_relay(void **state)
{
	static struct run runs[MANY];
	struct fixture fixture;
	struct bytes block;
	struct spawn_request request = { 0 };
	struct run first;
	pid_t spawner;

	(void)state;
	bytes_init(&block, 65536);
	bytes_printf(&block, "A=%01000d", 7);
	bytes_append(&block, "", 1);
	fixture_init(&fixture);
	fixture.config.spawners = 1;
	fixture_shell(&fixture, "echo ${#A}; test -z \"$WAIT\" || exec sleep 300");
	fixture_begin(&fixture);
	request.environ = &(struct bytes){ .base = (uint8_t *)"WAIT=1", .len = 7, .cap = 7, .max_bytes = 7 };
	run_start(&first, &fixture, &request);
	run_until(&first, &first.is_started);
	spawner = parent_of(first.process.pid);
	kill(spawner, SIGSTOP);
	request.environ = &block;
	for (int i = 0; i < MANY; i++)
		run_start(&runs[i], &fixture, &request);
	assert_int_equal(spawner_starting_count(fixture.spawner), MANY);
	process_signal(&first.process, SIGKILL);
	kill(spawner, SIGCONT);
	for (int i = 0; i < MANY; i++) {
		run_until(&runs[i], &runs[i].is_gone);
		run_until(&runs[i], &runs[i].is_read);
		assert_int_equal(runs[i].output.len, 5);
		assert_memory_equal(bytes_data(&runs[i].output), "1000\n", 5);
		run_fini(&runs[i]);
	}
	run_until(&first, &first.is_gone);
	run_fini(&first);
	bytes_fini(&block);
	fixture_end(&fixture);
}

static void forgotten_process_is_not_heard_of(void **state)
{
	struct fixture fixture;
	struct spawn_request request = { 0 };
	struct run forgotten, run;

	(void)state;
	fixture_init(&fixture);
	fixture_shell(&fixture, "echo x");
	fixture_begin(&fixture);
	run_start(&forgotten, &fixture, &request);
	process_forget(&forgotten.process);
	process_forget(&forgotten.process);
	run_until(&forgotten, &forgotten.is_read);      /* it goes on */
	run_whole(&run, &fixture, &request);
	assert_false(forgotten.is_started || forgotten.is_gone);
	run_fini(&run);
	run_fini(&forgotten);
	fixture_end(&fixture);
}

static void free_in_on_gone(void *ctx)
{
	struct run *run = ctx;

	spawner_free(&run->fixture->spawner);
	run->is_gone = true;
	loop_stop(run->fixture->loop);
}

static void spawner_may_be_freed_in_a_callback(void **state)
{
	struct fixture fixture;
	struct spawn_request request = { 0 };
	struct run run;

	(void)state;
	fixture_init(&fixture);
	fixture_shell(&fixture, "exit 0");
	fixture_begin(&fixture);
	run_start(&run, &fixture, &request);
	run.process.on_gone = free_in_on_gone;
	run_until(&run, &run.is_gone);
	run_until(&run, &run.is_read);
	run_fini(&run);
	fixture_end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_status_and_usage_are_reported),
		cmocka_unit_test(started_comes_while_the_process_runs),
		cmocka_unit_test(environment_is_built_from_scratch),
		cmocka_unit_test(descriptors_signals_and_group_are_clean),
		cmocka_unit_test(host_without_standard_descriptors),
		cmocka_unit_test(directory_is_where_the_program_is_or_as_configured),
		cmocka_unit_test(user_and_groups_are_changed),
		cmocka_unit_test(ended_group_goes_as_a_whole),
		cmocka_unit_test(kill_reaches_who_ignored_term_after_the_leader_ended),
		cmocka_unit_test(background_child_of_one_that_ended_by_itself_lives_on),
		cmocka_unit_test(processes_end_when_the_spawner_is_freed),
		cmocka_unit_test(processes_end_when_the_relay_is_killed),
		cmocka_unit_test(killed_spawner_takes_its_processes_along_and_is_told),
		cmocka_unit_test(stopped_spawner_does_not_block_the_relay),
		cmocka_unit_test(forgotten_process_is_not_heard_of),
		cmocka_unit_test(spawner_may_be_freed_in_a_callback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
