/* Processes of all handlers together, and each handler's sure share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "process/budget.h"

struct pool_of { struct budget_share share; int told_free, told_need; };

static void on_free(void *ctx)
{
	((struct pool_of *)ctx)->told_free++;
}

static void on_need(void *ctx)
{
	((struct pool_of *)ctx)->told_need++;
}

static void join(struct budget *budget, struct pool_of *pool, unsigned reserved)
{
	*pool = (struct pool_of){ .share = { .reserved = reserved, .on_free = on_free, .on_need = on_need, .ctx = pool } };
	budget_join(budget, &pool->share);
}

static void without_a_limit_everything_is_given(void **state)
{
	struct budget budget = { 0 };
	struct pool_of a;

	(void)state;
	join(&budget, &a, 0);
	for (int i = 0; i < 1000; i++)
		assert_true(budget_take(&a.share));
	budget_leave(&a.share);
	assert_int_equal(budget.used, 0);
}

static void what_is_reserved_is_kept_from_the_greedy(void **state)
{
	struct budget budget = { .max = 5 };
	struct pool_of greedy, modest;

	(void)state;
	join(&budget, &greedy, 0);
	join(&budget, &modest, 2);
	for (int i = 0; i < 3; i++)
		assert_true(budget_take(&greedy.share));
	assert_false(budget_take(&greedy.share));
	assert_true(budget_take(&modest.share));
	assert_true(budget_take(&modest.share));
	assert_false(budget_take(&modest.share));
	assert_int_equal(greedy.told_need, 1);
	assert_int_equal(budget.used, 5);
}

static void who_was_refused_is_told_once_when_there_is_room(void **state)
{
	struct budget budget = { .max = 1 };
	struct pool_of a, b;

	(void)state;
	join(&budget, &a, 0);
	join(&budget, &b, 0);
	assert_true(budget_take(&a.share));
	assert_false(budget_take(&b.share));
	assert_false(budget_take(&b.share));
	budget_give(&a.share);
	assert_int_equal(b.told_free, 1);
	assert_int_equal(a.told_free, 0);
	assert_true(budget_take(&b.share));
	budget_leave(&b.share);
	assert_int_equal(budget.used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_limit_everything_is_given),
		cmocka_unit_test(what_is_reserved_is_kept_from_the_greedy),
		cmocka_unit_test(who_was_refused_is_told_once_when_there_is_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
