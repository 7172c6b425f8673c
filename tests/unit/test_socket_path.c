#include "process/socket_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static char folder[64];
static struct listen_config wanted;

static int begin(void **state)
{
	char text[128];
	struct err err;

	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/fcgi-host-test-XXXXXX");
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(text, sizeof(text), "unix:%s/sock", folder);
	return address_parse(text, &wanted.address, &err);
}

static int end(void **state)
{
	(void)state;
	unlink(socket_path(&wanted));
	address_fini(&wanted.address);
	return rmdir(folder);
}

static int bind_socket(int type, int backlog)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&wanted.address.sockaddr, wanted.address.sockaddr_len), 0);
	if (backlog >= 0)
		assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

static bool is_there(void)
{
	struct stat st;

	return lstat(socket_path(&wanted), &st) == 0;
}

static void remove_dead(void)
{
	const struct config config = { .listen = &wanted, .listen_count = 1 };

	socket_path_remove_dead(&config);
}

static void a_free_path_is_free(void **state)
{
	struct err err = { "" };

	(void)state;
	assert_int_equal(socket_path_check(&wanted, &err), 0);
	assert_string_equal(err.text, "");
	remove_dead();
}

static void a_dead_socket_may_be_replaced(void **state)
{
	struct err err = { "" };

	(void)state;
	close(bind_socket(SOCK_STREAM, 1));
	assert_int_equal(socket_path_check(&wanted, &err), 0);
	assert_true(is_there());                /* looking removes nothing */
	remove_dead();
	assert_false(is_there());
}

static void a_live_owner_is_named(void **state)
{
	int fd = bind_socket(SOCK_STREAM, 5);
	char pid[32];
	struct err err = { "" };

	(void)state;
	snprintf(pid, sizeof(pid), "process %d ", (int)getpid());
	assert_int_equal(socket_path_check(&wanted, &err), -1);
	assert_non_null(strstr(err.text, pid));
	assert_non_null(strstr(err.text, wanted.address.text));
	remove_dead();
	assert_true(is_there());
	close(fd);
}

static void an_owner_too_busy_to_take_a_connection_is_alive(void **state)
{
	int fd = bind_socket(SOCK_STREAM, 0), clients[64], count = 0;
	struct err err = { "" };

	(void)state;
	for (int is_full = 0; !is_full && count < 64; count++) {
		clients[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		is_full = connect(clients[count], (const struct sockaddr *)&wanted.address.sockaddr, wanted.address.sockaddr_len) < 0;
	}
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(socket_path_check(&wanted, &err), -1);
	assert_non_null(strstr(err.text, "busy"));
	remove_dead();
	assert_true(is_there());
	while (count > 0)
		close(clients[--count]);
	close(fd);
}

static void a_file_or_a_folder_or_a_link_is_left_alone(void **state)
{
	struct err err = { "" };

	(void)state;
	fclose(fopen(socket_path(&wanted), "w"));
	assert_int_equal(socket_path_check(&wanted, &err), -1);
	assert_non_null(strstr(err.text, "no socket"));
	remove_dead();
	assert_true(is_there());
	unlink(socket_path(&wanted));
	assert_int_equal(symlink("nowhere", socket_path(&wanted)), 0);
	assert_int_equal(socket_path_check(&wanted, &err), -1);
	remove_dead();
	assert_true(is_there());
	unlink(socket_path(&wanted));
	assert_int_equal(mkdir(socket_path(&wanted), 0700), 0);
	assert_int_equal(socket_path_check(&wanted, &err), -1);
	remove_dead();
	assert_int_equal(rmdir(socket_path(&wanted)), 0);
}

static void a_socket_of_another_kind_is_left_alone(void **state)
{
	int fd = bind_socket(SOCK_DGRAM, -1);
	struct err err = { "" };

	(void)state;
	assert_int_equal(socket_path_check(&wanted, &err), -1);
	assert_string_not_equal(err.text, "");
	remove_dead();
	assert_true(is_there());
	close(fd);
}

static void a_folder_that_is_none_is_said(void **state)
{
	struct listen_config other = { 0 };
	struct err err = { "" };

	(void)state;
	assert_int_equal(address_parse("unix:/dev/null/sock", &other.address, &err), 0);
	assert_int_equal(socket_path_check(&other, &err), -1);
	assert_non_null(strstr(err.text, "/dev/null/sock"));
	address_fini(&other.address);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_free_path_is_free, begin, end),
		cmocka_unit_test_setup_teardown(a_dead_socket_may_be_replaced, begin, end),
		cmocka_unit_test_setup_teardown(a_live_owner_is_named, begin, end),
		cmocka_unit_test_setup_teardown(an_owner_too_busy_to_take_a_connection_is_alive, begin, end),
		cmocka_unit_test_setup_teardown(a_file_or_a_folder_or_a_link_is_left_alone, begin, end),
		cmocka_unit_test_setup_teardown(a_socket_of_another_kind_is_left_alone, begin, end),
		cmocka_unit_test(a_folder_that_is_none_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
