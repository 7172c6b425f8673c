#include "serve/body.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static uint8_t byte_at(uint64_t offset)
{
	return (uint8_t)(offset * 31 + offset / 256 * 7);
}

static void put(struct body *body, size_t len)
{
	uint8_t *data = malloc(len + 1);
	struct err err = { "" };

	for (size_t i = 0; i < len; i++)
		data[i] = byte_at(body->received_bytes + i);
	assert_int_equal(body_put(body, data, len, &err), 0);
	assert_string_equal(err.text, "");
	free(data);
}

/* Takes up to `len` bytes, which must be the ones from *offset on. */
static size_t take(struct body *body, size_t len, uint64_t *offset)
{
	struct slice piece;
	struct err err;

	assert_int_equal(body_peek(body, &piece, &err), 0);
	if (piece.len < len)
		len = piece.len;
	for (size_t i = 0; i < len; i++)
		assert_int_equal((uint8_t)piece.ptr[i], byte_at(*offset + i));
	body_consume(body, len);
	*offset += len;
	return len;
}

static void memory_bounds_what_is_taken(void **state)
{
	uint64_t offset = 0;
	struct body body;

	(void)state;
	body_init(&body);
	assert_int_equal(body_room(&body), BODY_MEMORY_BYTES);
	put(&body, BODY_MEMORY_BYTES - 1);
	assert_int_equal(body_room(&body), 1);
	put(&body, 1);
	assert_int_equal(body_room(&body), 0);
	assert_int_equal(body_waiting(&body), BODY_MEMORY_BYTES);
	assert_int_equal(take(&body, 100, &offset), 100);
	assert_int_equal(body_room(&body), 100);
	assert_int_equal(body.spool.fd, -1);
	body_fini(&body);
}

static void it_is_spent_when_all_has_come_and_all_was_taken(void **state)
{
	uint64_t offset = 0;
	struct body body;

	(void)state;
	body_init(&body);
	assert_false(body_is_spent(&body));
	put(&body, 10);
	assert_int_equal(take(&body, 10, &offset), 10);
	assert_false(body_is_spent(&body));
	body.is_complete = true;
	assert_true(body_is_spent(&body));
	assert_int_equal(take(&body, 10, &offset), 0);
	body_fini(&body);
}

static void what_memory_does_not_hold_is_spooled_in_order(void **state)
{
	enum { ALL_BYTES = 1000000 };
	uint64_t offset = 0;
	struct body body;

	(void)state;
	body_init(&body);
	put(&body, 1000);
	body_allow_spool(&body);
	assert_int_equal(body_room(&body), SIZE_MAX);
	put(&body, ALL_BYTES / 2 - 1000);
	assert_true(body.spool.fd >= 0);
	assert_int_equal(body_waiting(&body), ALL_BYTES / 2);
	assert_true(body.spool.memory.cap <= BODY_MEMORY_BYTES);
	while (offset < 200000)                 /* taken and put in turns */
		take(&body, 777, &offset);
	put(&body, ALL_BYTES / 2);
	while (take(&body, SIZE_MAX, &offset) > 0)
		assert_true(body.spool.memory.cap <= BODY_MEMORY_BYTES);
	assert_int_equal(offset, ALL_BYTES);
	assert_int_equal(body_waiting(&body), 0);
	put(&body, 500);                        /* memory again */
	assert_int_equal(take(&body, SIZE_MAX, &offset), 500);
	assert_int_equal(body.received_bytes, ALL_BYTES + 500);
	body_fini(&body);
}

static void bytes_in_the_file_come_before_those_that_come_later(void **state)
{
	uint64_t offset = 0;
	struct body body;

	(void)state;
	body_init(&body);
	body_allow_spool(&body);
	put(&body, BODY_MEMORY_BYTES + 10);
	assert_int_equal(take(&body, BODY_MEMORY_BYTES, &offset), BODY_MEMORY_BYTES);
	put(&body, 20);                         /* memory is empty, the file is not */
	while (offset < BODY_MEMORY_BYTES + 30)
		assert_true(take(&body, SIZE_MAX, &offset) > 0);
	body_fini(&body);
}

static unsigned files_in(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count - 2;       /* . and .. */
}

static void the_file_has_no_name_and_nobody_else_may_read_it(void **state)
{
	char folder[] = "/tmp/fcgi-host-test-XXXXXX";
	struct body body;
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(folder));
	setenv("TMPDIR", folder, 1);
	body_init(&body);
	body_allow_spool(&body);
	put(&body, BODY_MEMORY_BYTES + 1);
	assert_int_equal(files_in(folder), 0);
	assert_int_equal(fstat(body.spool.fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(st.st_nlink, 0);
	body_fini(&body);
	unsetenv("TMPDIR");
	assert_int_equal(rmdir(folder), 0);
}

static void a_folder_that_is_not_there_is_an_error(void **state)
{
	char data[BODY_MEMORY_BYTES + 1] = { 0 };
	struct err err = { "" };
	struct body body;

	(void)state;
	setenv("TMPDIR", "/nonexistent", 1);
	body_init(&body);
	body_allow_spool(&body);
	assert_int_equal(body_put(&body, data, sizeof(data), &err), -1);
	assert_non_null(strstr(err.text, "/nonexistent"));
	body_fini(&body);
	unsetenv("TMPDIR");
}

static void a_discarded_body_keeps_nothing(void **state)
{
	struct body body;

	(void)state;
	body_init(&body);
	body_allow_spool(&body);
	put(&body, 3 * BODY_MEMORY_BYTES);
	body_discard(&body);
	assert_int_equal(body_waiting(&body), 0);
	assert_int_equal(body.spool.fd, -1);
	assert_null(body.spool.memory.base);
	assert_int_equal(body.received_bytes, 3 * BODY_MEMORY_BYTES);
	body.is_complete = true;
	assert_true(body_is_spent(&body));
	body_discard(&body);
	body_fini(&body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_bounds_what_is_taken),
		cmocka_unit_test(it_is_spent_when_all_has_come_and_all_was_taken),
		cmocka_unit_test(what_memory_does_not_hold_is_spooled_in_order),
		cmocka_unit_test(bytes_in_the_file_come_before_those_that_come_later),
		cmocka_unit_test(the_file_has_no_name_and_nobody_else_may_read_it),
		cmocka_unit_test(a_folder_that_is_not_there_is_an_error),
		cmocka_unit_test(a_discarded_body_keeps_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
