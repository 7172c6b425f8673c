#include "serve/script.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* TOP/bin is the folder, TOP/outside and TOP/bin-too are not in it. */
static char top[64];
static char folder[80];

static const char *at(const char *name)
{
	static char path[200];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

static void make_file(const char *name, mode_t mode)
{
	int fd = open(at(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int begin(void **state)
{
	static const char *const folders[] = { "bin", "bin/sub", "bin/sub/deep", "outside", "bin-too" };

	(void)state;
	snprintf(top, sizeof(top), "/tmp/fcgi-host-test-XXXXXX");
	if (mkdtemp(top) == NULL)
		return -1;
	snprintf(folder, sizeof(folder), "%s/bin", top);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (mkdir(at(folders[i]), 0755) < 0)
			return -1;
	make_file("bin/run", 0755);
	make_file("bin/data", 0644);
	make_file("bin/sub/run", 0755);
	make_file("bin/...", 0755);
	make_file("bin/.hidden", 0755);
	make_file("outside/run", 0755);
	make_file("bin-too/run", 0755);
	return mkfifo(at("bin/pipe"), 0755);
}

static int end(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static void is_found(const char *path_info, const char *path, const char *rest)
{
	struct script script;

	assert_int_equal(script_find(folder, path_info, &script), SCRIPT_FOUND);
	assert_string_equal(script.path, path);
	assert_string_equal(path_info + script.taken, rest);
}

static void is_not(const char *path_info, enum script_result result)
{
	struct script script;

	if (script_find(folder, path_info, &script) != result)
		fail_msg("%s: not %d", path_info, (int)result);
}

static void the_first_file_on_the_way_is_the_script_and_the_rest_path_info(void **state)
{
	(void)state;
	is_found("/run", "run", "");
	is_found("/run/", "run", "/");
	is_found("/run/a/b", "run", "/a/b");
	is_found("/run//a/../..", "run", "//a/../..");
	is_found("/sub/run/x", "sub/run", "/x");
}

static void what_is_not_there_is_missing(void **state)
{
	(void)state;
	is_not("", SCRIPT_MISSING);
	is_not("/", SCRIPT_MISSING);
	is_not("run", SCRIPT_MISSING);
	is_not("/nothing", SCRIPT_MISSING);
	is_not("/sub", SCRIPT_MISSING);         /* a folder is no script */
	is_not("/sub/", SCRIPT_MISSING);
	is_not("/sub/deep/run", SCRIPT_MISSING);
	is_not("//run", SCRIPT_MISSING);
}

static void dots_lead_nowhere(void **state)
{
	(void)state;
	is_not("/..", SCRIPT_MISSING);
	is_not("/../bin/run", SCRIPT_MISSING);
	is_not("/../outside/run", SCRIPT_MISSING);
	is_not("/sub/../run", SCRIPT_MISSING);
	is_not("/./run", SCRIPT_MISSING);
	is_found("/...", "...", "");            /* a name like any other */
	is_found("/.hidden", ".hidden", "");
}

static void what_may_not_be_run_is_forbidden(void **state)
{
	(void)state;
	is_not("/data", SCRIPT_FORBIDDEN);
	is_not("/data/x", SCRIPT_FORBIDDEN);
	is_not("/pipe", SCRIPT_FORBIDDEN);
}

static void links_may_lead_about_the_folder_but_not_out_of_it(void **state)
{
	(void)state;
	assert_int_equal(symlink("run", at("bin/inside")), 0);
	assert_int_equal(symlink("../../bin/run", at("bin/sub/round")), 0);
	assert_int_equal(symlink("../outside/run", at("bin/out")), 0);
	assert_int_equal(symlink("../outside", at("bin/out-folder")), 0);
	assert_int_equal(symlink("../bin-too/run", at("bin/neighbour")), 0);
	assert_int_equal(symlink("loop", at("bin/loop")), 0);
	assert_int_equal(symlink("nothing", at("bin/dead")), 0);
	is_found("/inside", "inside", "");
	is_found("/sub/round/x", "sub/round", "/x");
	is_not("/out", SCRIPT_FORBIDDEN);
	is_not("/out-folder/run", SCRIPT_FORBIDDEN);
	is_not("/neighbour", SCRIPT_FORBIDDEN);         /* its name begins like the folder's */
	is_not("/loop", SCRIPT_MISSING);
	is_not("/dead", SCRIPT_MISSING);
}

static void the_folder_may_be_a_link_itself(void **state)
{
	struct script script;

	(void)state;
	assert_int_equal(symlink("bin", at("link")), 0);
	assert_int_equal(script_find(at("link"), "/run", &script), SCRIPT_FOUND);
	assert_int_equal(script_find(at("link"), "/data", &script), SCRIPT_FORBIDDEN);
}

static void a_path_of_any_length_is_only_missing(void **state)
{
	char *path = malloc(3 * PATH_MAX);

	(void)state;
	memset(path, 'x', 3 * PATH_MAX);
	path[0] = '/';
	path[3 * PATH_MAX - 1] = '\0';
	is_not(path, SCRIPT_MISSING);
	path[300] = '\0';
	is_not(path, SCRIPT_MISSING);
	for (int i = 0; i < 3 * PATH_MAX - 5; i += 4)
		memcpy(path + i, "/sub", 5);
	is_not(path, SCRIPT_MISSING);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_file_on_the_way_is_the_script_and_the_rest_path_info),
		cmocka_unit_test(what_is_not_there_is_missing),
		cmocka_unit_test(dots_lead_nowhere),
		cmocka_unit_test(what_may_not_be_run_is_forbidden),
		cmocka_unit_test(links_may_lead_about_the_folder_but_not_out_of_it),
		cmocka_unit_test(the_folder_may_be_a_link_itself),
		cmocka_unit_test(a_path_of_any_length_is_only_missing),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
