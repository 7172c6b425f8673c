#include "process/socket_rights.h"
#include "process/socket_path.h"

#include <errno.h>
#include <fcntl.h>
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

enum { SOCKETS = 2 };

static char folder[64];
static struct listen_config old_listen[SOCKETS], new_listen[SOCKETS];
static struct config old_config = { .listen = old_listen, .listen_count = SOCKETS };
static struct config new_config = { .listen = new_listen, .listen_count = SOCKETS };

static void place(struct listen_config *listen, int number)
{
	char text[128];
	struct err err;

	snprintf(text, sizeof(text), "unix:%s/%d", folder, number);
	*listen = (struct listen_config){ .owner = (uid_t)-1, .group = (gid_t)-1, .mode = 0600 };
	assert_int_equal(address_parse(text, &listen->address, &err), 0);
}

static int begin(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/fcgi-host-test-XXXXXX");
	if (mkdtemp(folder) == NULL)
		return -1;
	for (int i = 0; i < SOCKETS; i++) {
		place(&old_listen[i], i);
		place(&new_listen[i], i);
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (int i = 0; i < SOCKETS; i++) {
		unlink(socket_path(&old_listen[i]));
		address_fini(&old_listen[i].address);
		address_fini(&new_listen[i].address);
	}
	return rmdir(folder);
}

static void make_socket(int number)
{
	const struct address *address = &old_listen[number].address;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (const struct sockaddr *)&address->sockaddr, address->sockaddr_len), 0);
	assert_int_equal(chmod(socket_path(&old_listen[number]), 0600), 0);
	close(fd);
}

static unsigned mode_of(int number)
{
	struct stat st;

	assert_int_equal(lstat(socket_path(&old_listen[number]), &st), 0);
	return st.st_mode & 07777;
}

static void only_differences_count(void **state)
{
	(void)state;
	assert_false(socket_rights_differ(&old_config, &new_config));
	new_listen[1].backlog = 77;
	assert_false(socket_rights_differ(&old_config, &new_config));
	new_listen[1].mode = 0660;
	assert_true(socket_rights_differ(&old_config, &new_config));
	old_config.listen_count = 1;
	assert_false(socket_rights_differ(&old_config, &new_config));
	old_config.listen_count = SOCKETS;
}

static void all_take_the_new_mode(void **state)
{
	size_t failed = 9;

	(void)state;
	make_socket(0);
	make_socket(1);
	new_listen[0].mode = 0620;
	new_listen[1].mode = 0666;
	assert_int_equal(socket_rights_change(&old_config, &new_config, &failed), 0);
	assert_int_equal(mode_of(0), 0620);
	assert_int_equal(mode_of(1), 0666);
}

static void one_that_fails_leaves_all_as_they_were(void **state)
{
	size_t failed = 9;

	(void)state;
	make_socket(0);
	new_listen[0].mode = new_listen[1].mode = 0666;
	assert_int_equal(socket_rights_change(&old_config, &new_config, &failed), ENOENT);
	assert_int_equal(failed, 1);
	assert_int_equal(mode_of(0), 0600);
}

/* A link or a file in the place of the socket keeps its rights. */
static void nothing_but_a_socket_is_changed(void **state)
{
	char target[128];
	size_t failed;
	struct stat st;

	(void)state;
	snprintf(target, sizeof(target), "%s/target", folder);
	close(open(target, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(symlink(target, socket_path(&old_listen[0])), 0);
	make_socket(1);
	new_listen[0].mode = new_listen[1].mode = 0666;
	assert_int_equal(socket_rights_change(&old_config, &new_config, &failed), ENOTSOCK);
	assert_int_equal(failed, 0);
	assert_int_equal(stat(target, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(mode_of(1), 0600);
	unlink(target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_differences_count, begin, end),
		cmocka_unit_test_setup_teardown(all_take_the_new_mode, begin, end),
		cmocka_unit_test_setup_teardown(one_that_fails_leaves_all_as_they_were, begin, end),
		cmocka_unit_test_setup_teardown(nothing_but_a_socket_is_changed, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
