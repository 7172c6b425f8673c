#include "serve/client.h"
#include "serve/host.h"
#include "serve/listener.h"

#include "base/log.h"
#include "base/loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static char folder[64];
static char path[96];
static struct host *host;
static struct listen_config wanted;
static struct timer *look;

static void on_look(void *ctx)
{
	(void)ctx;
	loop_stop(host->loop);
}

static void turn(void)
{
	timer_set(look, 2);
	loop_run(host->loop);
}

static int begin(void **state)
{
	const struct log_options options = { .file = path };
	char text[128];
	struct err err;

	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/fcgi-host-test-XXXXXX");
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/log", folder);
	if (log_open(&options, &err) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/sock", folder);
	snprintf(text, sizeof(text), "unix:%s", path);
	host = calloc(1, sizeof(*host));
	host->loop = loop_new(&err);
	look = timer_new(host->loop, on_look, NULL);
	wanted = (struct listen_config){ .mode = 0660, .owner = (uid_t)-1, .group = (gid_t)-1, .backlog = 16 };
	return address_parse(text, &wanted.address, &err);
}

static int end(void **state)
{
	char command[128];

	(void)state;
	while (host->clients != NULL) {
		struct client *client = host->clients;

		client_free(&client);
	}
	timer_free(&look);
	loop_free(&host->loop);
	free(host);
	address_fini(&wanted.address);
	log_close();
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static struct listener *open_it(void)
{
	struct err err = { "" };
	struct listener *listener = listener_open(host, &wanted, &err);

	assert_string_equal(err.text, "");
	assert_non_null(listener);
	return listener;
}

static void is_refused(const char *what)
{
	struct err err = { "" };

	assert_null(listener_open(host, &wanted, &err));
	if (strstr(err.text, what) == NULL)
		fail_msg("not about \"%s\": %s", what, err.text);
}

static mode_t mode_of(const char *file)
{
	struct stat st;

	assert_int_equal(lstat(file, &st), 0);
	return st.st_mode & 07777;
}

static bool is_there(void)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static int connect_to(const struct sockaddr *address, socklen_t len)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, address, len), 0);
	return fd;
}

static int connect_unix(void)
{
	return connect_to((const struct sockaddr *)&wanted.address.sockaddr, wanted.address.sockaddr_len);
}

static void connections_become_clients_once_it_is_started(void **state)
{
	struct listener *listener = open_it();
	int fds[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		fds[i] = connect_unix();
	turn();
	assert_int_equal(host->clients_count, 0);
	listener_start(listener);
	while (host->clients_count < 3)
		turn();
	assert_true(host->clients->is_unix);
	assert_true(fcntl(host->clients->fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(host->clients->fd, F_GETFD) & FD_CLOEXEC);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	while (host->clients_count > 0)
		turn();
	listener_close(&listener);
	assert_null(listener);
	assert_false(is_there());
}

static void the_socket_has_the_rights_of_the_configuration_whatever_the_mask(void **state)
{
	static const mode_t masks[] = { 0, 022, 077, 0777 };

	(void)state;
	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		mode_t old = umask(masks[i]);
		struct listener *listener;

		wanted.mode = i % 2 == 0 ? 0660 : 0600;
		listener = open_it();
		assert_int_equal(mode_of(path), wanted.mode);
		assert_int_equal(umask(old), masks[i]);         /* and leaves it */
		listener_close(&listener);
	}
}

static void when_the_rights_cannot_be_given_there_is_no_socket(void **state)
{
	(void)state;
	if (geteuid() == 0)
		skip();
	wanted.owner = 0;
	is_refused("sock");
	assert_false(is_there());
}

static void a_dead_socket_is_replaced(void **state)
{
	struct listener *listener;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&wanted.address.sockaddr, wanted.address.sockaddr_len), 0);
	close(fd);
	listener = open_it();
	close(connect_unix());
	listener_close(&listener);
}

static void a_live_one_is_refused_with_its_owner(void **state)
{
	struct listener *listener = open_it();
	char pid[32];

	(void)state;
	snprintf(pid, sizeof(pid), "process %d ", (int)getpid());
	is_refused(pid);
	close(connect_unix());          /* it still listens */
	listener_close(&listener);
	assert_false(is_there());
}

static void a_file_is_never_removed(void **state)
{
	(void)state;
	fclose(fopen(path, "w"));
	is_refused("no socket");
	assert_true(is_there());
}

static void closing_leaves_what_somebody_else_has_put_there(void **state)
{
	struct listener *listener = open_it();

	(void)state;
	assert_int_equal(unlink(path), 0);
	fclose(fopen(path, "w"));
	listener_close(&listener);
	assert_true(is_there());
}

static void a_folder_that_is_not_there_is_said(void **state)
{
	struct err err;

	(void)state;
	address_fini(&wanted.address);
	assert_int_equal(address_parse("unix:/nonexistent/sock", &wanted.address, &err), 0);
	is_refused("its folder is not there");
}

/* TCP. */

static void use_tcp(void)
{
	struct sockaddr_in *address = (struct sockaddr_in *)&wanted.address.sockaddr;
	struct err err;
	socklen_t len = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address_fini(&wanted.address);
	assert_int_equal(address_parse("127.0.0.1:9000", &wanted.address, &err), 0);
	address->sin_port = 0;          /* a free one */
	assert_int_equal(bind(fd, (struct sockaddr *)address, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)address, &len), 0);
	close(fd);
}

static void tcp_is_served_and_a_taken_port_refused(void **state)
{
	struct listener *listener;
	int fd;

	(void)state;
	use_tcp();
	listener = open_it();
	listener_start(listener);
	is_refused("127.0.0.1");
	fd = connect_unix();
	while (host->clients_count == 0)
		turn();
	assert_false(host->clients->is_unix);
	close(fd);
	listener_close(&listener);
}

static void only_those_that_are_allowed_may_connect(void **state)
{
	struct prefix allow = { .family = AF_INET, .address = { 10, 0, 0, 0 }, .bits = 8 };
	struct listener *listener;
	char byte;
	int fd;

	(void)state;
	use_tcp();
	wanted.allow.list = &allow;
	wanted.allow.count = 1;
	listener = open_it();
	listener_start(listener);
	fd = connect_unix();
	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (read(fd, &byte, 1) < 0 && errno == EAGAIN)
		turn();
	assert_int_equal(host->clients_count, 0);
	close(fd);
	allow.address[0] = 127;
	fd = connect_unix();
	while (host->clients_count == 0)
		turn();
	close(fd);
	listener_close(&listener);
}

/* Sockets that were handed over. */

static void a_socket_that_was_handed_over_is_served_and_its_file_stays(void **state)
{
	struct listener *listener;
	struct err err;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), client;

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&wanted.address.sockaddr, wanted.address.sockaddr_len), 0);
	assert_int_equal(listen(fd, 5), 0);
	listener = listener_adopt(host, fd, &err);
	assert_non_null(listener);
	listener_start(listener);
	client = connect_unix();
	while (host->clients_count == 0)
		turn();
	assert_true(host->clients->is_unix);
	close(client);
	listener_close(&listener);
	assert_true(is_there());
}

static void what_does_not_listen_is_not_adopted(void **state)
{
	int pair[2], pipes[2];
	struct err err = { "" };

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_null(listener_adopt(host, pair[0], &err));
	assert_non_null(strstr(err.text, "does not listen"));
	assert_int_equal(fcntl(pair[0], F_GETFD), -1);          /* closed all the same */
	assert_null(listener_adopt(host, pipes[0], &err));
	assert_non_null(strstr(err.text, "no stream socket"));
	assert_int_equal(listener_check_inherited(-1, &err), -1);
	close(pair[1]);
	close(pipes[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(connections_become_clients_once_it_is_started, begin, end),
		cmocka_unit_test_setup_teardown(the_socket_has_the_rights_of_the_configuration_whatever_the_mask, begin, end),
		cmocka_unit_test_setup_teardown(when_the_rights_cannot_be_given_there_is_no_socket, begin, end),
		cmocka_unit_test_setup_teardown(a_dead_socket_is_replaced, begin, end),
		cmocka_unit_test_setup_teardown(a_live_one_is_refused_with_its_owner, begin, end),
		cmocka_unit_test_setup_teardown(a_file_is_never_removed, begin, end),
		cmocka_unit_test_setup_teardown(closing_leaves_what_somebody_else_has_put_there, begin, end),
		cmocka_unit_test_setup_teardown(a_folder_that_is_not_there_is_said, begin, end),
		cmocka_unit_test_setup_teardown(tcp_is_served_and_a_taken_port_refused, begin, end),
		cmocka_unit_test_setup_teardown(only_those_that_are_allowed_may_connect, begin, end),
		cmocka_unit_test_setup_teardown(a_socket_that_was_handed_over_is_served_and_its_file_stays, begin, end),
		cmocka_unit_test_setup_teardown(what_does_not_listen_is_not_adopted, begin, end),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
