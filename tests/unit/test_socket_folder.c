#include "process/socket_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const struct identity nobody_else;
static char parent[32];

static int begin(void **state)
{
	(void)state;
	strcpy(parent, "/tmp/fcgi-host-test-XXXXXX");
	return mkdtemp(parent) == NULL ? -1 : setenv("RUNTIME_DIRECTORY", parent, 1);
}

static int end(void **state)
{
	(void)state;
	return rmdir(parent);
}

static void is_made_closed_and_removed_with_what_is_in_it(void **state)
{
	char path[SOCKET_FOLDER_BYTES], inside[SOCKET_FOLDER_BYTES + 8];
	struct stat st;
	struct err err;

	(void)state;
	assert_int_equal(socket_folder_make(path, &nobody_else, &err), 0);
	assert_memory_equal(path, parent, strlen(parent));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	snprintf(inside, sizeof(inside), "%s/1", path);
	assert_int_equal(close(open(inside, O_CREAT | O_WRONLY, 0600)), 0);
	socket_folder_remove(path);
	assert_int_not_equal(stat(path, &st), 0);
	socket_folder_remove(path);
	socket_folder_remove("");
}

/* Whose it was may have put a link there. */
static void a_link_in_its_place_is_not_followed(void **state)
{
	char path[SOCKET_FOLDER_BYTES], target[64], inside[72];
	struct stat st;
	struct err err;

	(void)state;
	assert_int_equal(socket_folder_make(path, &nobody_else, &err), 0);
	assert_int_equal(rmdir(path), 0);
	snprintf(target, sizeof(target), "%s/target", parent);
	snprintf(inside, sizeof(inside), "%s/1", target);
	assert_int_equal(mkdir(target, 0700), 0);
	assert_int_equal(close(open(inside, O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(symlink(target, path), 0);
	socket_folder_remove(path);
	assert_int_equal(stat(inside, &st), 0);
	unlink(inside);
	unlink(path);
	rmdir(target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(is_made_closed_and_removed_with_what_is_in_it, begin, end),
		cmocka_unit_test_setup_teardown(a_link_in_its_place_is_not_followed, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
