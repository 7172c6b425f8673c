#include "base/clock.h"
#include "process/spawn_proto.h"
#include "process/spawner.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static char *command[] = { (char *)"/bin/sleep", (char *)"300", NULL };
static struct handler_config handlers[] = {
	{ .number = 0, .name = (char *)"sleep", .command = command },
	{ .number = 1, .name = (char *)"scripts", .scripts = (char *)"/usr/lib" },
	{ .number = 2, .name = (char *)"connect" },
};
static const struct config config = { .handlers = handlers, .handlers_count = 3 };

/* A spawner to which anything may be said. */
struct talk {
	pid_t pid;
	int fd, err_fd;
};

static void talk_begin(struct talk *talk)
{
	int fds[2], err_fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(pipe(err_fds), 0);
	talk->pid = fork();
	if (talk->pid == 0) {
		dup2(err_fds[1], 2);
		spawner_main(fds[1], &config, &(struct spawn_cleanup){ .folder = "", .has_sockets = true });
	}
	close(fds[1]);
	close(err_fds[1]);
	talk->fd = fds[0];
	talk->err_fd = err_fds[0];
}

static void say(struct talk *talk, const struct spawn_ask *ask, const char *payload)
{
	assert_int_equal(send(talk->fd, ask, sizeof(*ask), MSG_NOSIGNAL), sizeof(*ask));
	if (payload != NULL)
		send(talk->fd, payload, ask->script_len + ask->environ_len, MSG_NOSIGNAL);
}

/* The spawner ends with status 1 and one line that tells what was wrong. */
static void expect_end(struct talk *talk, const char *what)
{
	char line[256] = "";
	int wait_status;
	ssize_t n;

	assert_int_equal(waitpid(talk->pid, &wait_status, 0), talk->pid);
	assert_true(WIFEXITED(wait_status));
	assert_int_equal(WEXITSTATUS(wait_status), 1);
	n = read(talk->err_fd, line, sizeof(line) - 1);
	assert_true(n > 0);
	if (strstr(line, what) == NULL || strchr(line, '\n') != line + n - 1)
		fail_msg("'%s' is not one line with '%s'", line, what);
	close(talk->fd);
	close(talk->err_fd);
}

static void bad_messages_end_the_spawner(void **state)
{
	static const struct { struct spawn_ask ask; const char *payload, *says; } bad[] = {
		{ { .kind = 99 }, NULL, "kind" },
		{ { .kind = SPAWN_ASK_START, .environ_len = UINT32_MAX }, NULL, "length" },
		{ { .kind = SPAWN_ASK_START, .script_len = SPAWN_SCRIPT_MAX_BYTES + 1 }, NULL, "length" },
		{ { .kind = SPAWN_ASK_SIGNAL, .signal = SIGTERM, .environ_len = 1 }, "", "length" },
		{ { .kind = SPAWN_ASK_START, .handler = 3 }, NULL, "no such handler" },
		{ { .kind = SPAWN_ASK_START, .handler = UINT32_MAX }, NULL, "no such handler" },
		{ { .kind = SPAWN_ASK_START, .handler = 2 }, NULL, "not started" },
		{ { .kind = SPAWN_ASK_START, .handler = 0, .script_len = 2 }, "x", "script" },
		{ { .kind = SPAWN_ASK_START, .handler = 1 }, NULL, "script" },
		{ { .kind = SPAWN_ASK_START, .handler = 1, .script_len = 2 }, "xy", "script" },
		{ { .kind = SPAWN_ASK_START, .handler = 1, .script_len = 4 }, "x\0y", "script" },
		{ { .kind = SPAWN_ASK_START, .environ_len = 3 }, "A=1", "variables" },
		{ { .kind = SPAWN_ASK_START, .fds = 8 }, NULL, "descriptors" },
		{ { .kind = SPAWN_ASK_START, .fds = 1 }, NULL, "descriptors" },
		{ { .kind = SPAWN_ASK_SIGNAL, .signal = SIGSTOP }, NULL, "signal" },
		{ { .kind = SPAWN_ASK_SIGNAL, .signal = 1000 }, NULL, "signal" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct talk talk;

		talk_begin(&talk);
		say(&talk, &bad[i].ask, bad[i].payload);
		expect_end(&talk, bad[i].says);
	}
}

static void id_in_use_ends_the_spawner_and_its_processes(void **state)
{
	struct spawn_ask ask = { .id = 7, .kind = SPAWN_ASK_START };
	struct spawn_report report;
	struct talk talk;

	(void)state;
	talk_begin(&talk);
	say(&talk, &ask, NULL);
	assert_int_equal(recv(talk.fd, &report, sizeof(report), MSG_WAITALL), sizeof(report));
	assert_int_equal(report.kind, SPAWN_REPORT_STARTED);
	assert_int_equal(report.id, 7);
	say(&talk, &ask, NULL);
	expect_end(&talk, "id in use");
	assert_int_equal(kill(report.pid, 0), -1);
}

static void descriptors_that_nobody_asked_for_end_the_spawner(void **state)
{
	union { struct cmsghdr header; char bytes[CMSG_SPACE(5 * sizeof(int))]; } control = { .bytes = { 0 } };
	struct spawn_ask ask = { .kind = SPAWN_ASK_START, .fds = 1 };
	struct iovec iov = { &ask, sizeof(ask) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control) };
	struct talk talk;

	(void)state;
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(5 * sizeof(int));
	talk_begin(&talk);
	assert_int_equal(sendmsg(talk.fd, &msg, 0), sizeof(ask));
	expect_end(&talk, "descriptors");
}

static void messages_may_come_in_any_pieces(void **state)
{
	char bytes[2 * sizeof(struct spawn_ask) + 4];
	struct spawn_ask start = { .id = 1, .kind = SPAWN_ASK_START, .environ_len = 4 };
	struct spawn_ask kill_it = { .id = 1, .kind = SPAWN_ASK_SIGNAL, .signal = SIGKILL };
	struct spawn_report reports[2];
	struct talk talk;
	int wait_status;

	(void)state;
	memcpy(bytes, &start, sizeof(start));
	memcpy(bytes + sizeof(start), "A=1", 4);
	memcpy(bytes + sizeof(start) + 4, &kill_it, sizeof(kill_it));
	talk_begin(&talk);
	for (size_t i = 0; i < sizeof(bytes); i++)
		assert_int_equal(send(talk.fd, bytes + i, 1, 0), 1);
	assert_int_equal(recv(talk.fd, reports, sizeof(reports), MSG_WAITALL), sizeof(reports));
	assert_int_equal(reports[0].kind, SPAWN_REPORT_STARTED);
	assert_int_equal(reports[1].kind, SPAWN_REPORT_EXITED);
	assert_int_equal(reports[1].wait_status, SIGKILL);
	close(talk.fd);
	assert_int_equal(waitpid(talk.pid, &wait_status, 0), talk.pid);
	assert_int_equal(wait_status, 0);
	close(talk.err_fd);
}

/* A signal for one that is gone is no mistake: it was on its way. */
static void signals_do_not_end_the_spawner(void **state)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGPIPE, SIGALRM, SIGQUIT };
	struct spawn_ask late = { .id = 5, .kind = SPAWN_ASK_SIGNAL, .signal = SIGTERM };
	struct spawn_ask start = { .id = 6, .kind = SPAWN_ASK_START };
	struct spawn_report report;
	struct talk talk;

	(void)state;
	talk_begin(&talk);
	say(&talk, &start, NULL);
	assert_int_equal(recv(talk.fd, &report, sizeof(report), MSG_WAITALL), sizeof(report));
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		kill(talk.pid, signals[i]);
	say(&talk, &late, NULL);
	late = (struct spawn_ask){ .id = 6, .kind = SPAWN_ASK_SIGNAL, .signal = SIGTERM };
	say(&talk, &late, NULL);
	assert_int_equal(recv(talk.fd, &report, sizeof(report), MSG_WAITALL), sizeof(report));
	assert_int_equal(report.kind, SPAWN_REPORT_EXITED);
	close(talk.fd);
	assert_int_equal(waitpid(talk.pid, NULL, 0), talk.pid);
	close(talk.err_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_messages_end_the_spawner),
		cmocka_unit_test(id_in_use_ends_the_spawner_and_its_processes),
		cmocka_unit_test(descriptors_that_nobody_asked_for_end_the_spawner),
		cmocka_unit_test(messages_may_come_in_any_pieces),
		cmocka_unit_test(signals_do_not_end_the_spawner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
