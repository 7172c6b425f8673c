/* The last failures are kept, the newest first, and their texts are cut to size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "serve/request.h"

static void fail_one(struct failures *failures, unsigned number, const char *path)
{
	struct handler_config handler = { .name = (char *)"h" };
	struct request request = { .handler = &handler, .begun_ns = 1000000, .answered_ns = 3500000 };
	struct outcome outcome = { .end = REQUEST_END_FAILED, .status = 504 };

	snprintf(request.id, sizeof(request.id), "boot-%u", number);
	snprintf(request.reason, sizeof(request.reason), "number %u", number);
	request.cgi.method = "GET";
	request.cgi.path = (char *)path;
	failures_add(failures, &request, &outcome);
}

static void nothing_at_first(void **state)
{
	static struct failures failures;

	(void)state;
	assert_null(failures_at(&failures, 0));
}

static void the_newest_come_first_and_the_oldest_go(void **state)
{
	static struct failures failures;
	char id[40];

	(void)state;
	for (unsigned i = 1; i <= 3 * FAILURES_KEPT + 7; i++) {
		unsigned kept = i < FAILURES_KEPT ? i : FAILURES_KEPT;

		fail_one(&failures, i, "/x");
		assert_null(failures_at(&failures, kept));
		for (unsigned n = 0; n < kept; n++) {
			snprintf(id, sizeof(id), "boot-%u", i - n);
			assert_string_equal(failures_at(&failures, n)->id, id);
		}
	}
	assert_int_equal(failures.count, 3 * FAILURES_KEPT + 7);
}

static void all_of_it_is_there(void **state)
{
	static struct failures failures;
	const struct failed_request *failed;

	(void)state;
	fail_one(&failures, 9, "/some/where");
	failed = failures_at(&failures, 0);
	assert_int_equal(failed->failure, FAILURE_TIMEOUTS);
	assert_int_equal(failed->status, 504);
	assert_int_equal(failed->total_us, 2500);
	assert_string_equal(failed->handler, "h");
	assert_string_equal(failed->method, "GET");
	assert_string_equal(failed->path, "/some/where");
	assert_string_equal(failed->reason, "number 9");
	assert_int_equal(strlen(failed->time), 24);
}

static void a_long_path_is_cut_and_none_is_empty(void **state)
{
	static struct failures failures;
	char path[5000];

	(void)state;
	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	fail_one(&failures, 1, path);
	assert_int_equal(strlen(failures_at(&failures, 0)->path), sizeof(failures.kept[0].path) - 1);
	fail_one(&failures, 2, NULL);
	assert_string_equal(failures_at(&failures, 0)->path, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_at_first),
		cmocka_unit_test(the_newest_come_first_and_the_oldest_go),
		cmocka_unit_test(all_of_it_is_there),
		cmocka_unit_test(a_long_path_is_cut_and_none_is_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
