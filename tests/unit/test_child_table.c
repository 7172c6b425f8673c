#include "process/child_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { MANY = 1000 };

static struct child *add(struct child_table *table, uint64_t id, pid_t pid)
{
	struct child *child = child_table_take(table);

	assert_non_null(child);
	child->id = id;
	child->pid = pid;
	child_table_add(table, child);
	return child;
}

static void entries_are_found_by_id_and_by_pid_until_removed(void **state)
{
	struct child_table table = { 0 };

	(void)state;
	assert_null(child_table_by_id(&table, 1));
	assert_null(child_table_by_pid(&table, 1));
	for (int i = 0; i < MANY; i++)
		add(&table, (uint64_t)i * 64, 100000 - i);      /* all ids in one chain at first */
	assert_int_equal(table.count, MANY);
	for (int i = 0; i < MANY; i += 2)
		child_table_remove(&table, child_table_by_id(&table, (uint64_t)i * 64));
	for (int i = 0; i < MANY; i++) {
		struct child *child = child_table_by_pid(&table, 100000 - i);

		assert_ptr_equal(child_table_by_id(&table, (uint64_t)i * 64), child);
		assert_int_equal(child != NULL, i % 2);
	}
	assert_int_equal(table.count, MANY / 2);
	child_table_fini(&table);
}

static void those_that_left_others_behind_are_listed(void **state)
{
	struct child_table table = { 0 };
	struct child *a, *b;

	(void)state;
	a = add(&table, 1, 11);
	b = add(&table, 2, 12);
	child_table_set_left(&table, a);
	child_table_set_left(&table, b);
	child_table_remove(&table, a);
	assert_ptr_equal(table.left, b);
	child_table_remove(&table, b);
	assert_null(table.left);
	assert_false(add(&table, 3, 13)->is_left);              /* nothing is left of an old one */
	child_table_fini(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_found_by_id_and_by_pid_until_removed),
		cmocka_unit_test(those_that_left_others_behind_are_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
