/* Processes of all handlers together, and each handler's sure share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "process/budget.h"

struct pool_of { struct budget_share share; int told_free, told_need; bool has_need, is_generous; };

static void on_free(void *ctx)
{
	((struct pool_of *)ctx)->told_free++;
}

static bool has_need(void *ctx)
{
	return ((struct pool_of *)ctx)->has_need;
}

static bool on_need(void *ctx)
{
	struct pool_of *pool = ctx;

	pool->told_need++;
	return pool->is_generous;
}

static void join(struct budget *budget, struct pool_of *pool, unsigned reserved)
{
	*pool = (struct pool_of){ .share = { .reserved = reserved, .on_free = on_free, .has_need = has_need, .on_need = on_need, .ctx = pool } };
	budget_join(budget, &pool->share);
}

static void without_a_limit_everything_is_given(void **state)
{
	struct budget budget = { 0 };
	struct pool_of a;

	(void)state;
	join(&budget, &a, 0);
	for (int i = 0; i < 1000; i++)
		assert_true(budget_take(&a.share, BUDGET_NEEDED));
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
		assert_true(budget_take(&greedy.share, BUDGET_NEEDED));
	assert_false(budget_take(&greedy.share, BUDGET_NEEDED));
	assert_true(budget_take(&modest.share, BUDGET_NEEDED));
	assert_true(budget_take(&modest.share, BUDGET_NEEDED));
	assert_false(budget_take(&modest.share, BUDGET_NEEDED));
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
	assert_true(budget_take(&a.share, BUDGET_NEEDED));
	assert_false(budget_take(&b.share, BUDGET_NEEDED));
	assert_false(budget_take(&b.share, BUDGET_NEEDED));
	budget_give(&a.share);
	assert_int_equal(b.told_free, 1);
	assert_int_equal(a.told_free, 0);
	assert_true(budget_take(&b.share, BUDGET_NEEDED));
	budget_leave(&b.share);
	assert_int_equal(budget.used, 0);
}

static void only_for_who_waits_another_gives_up_one(void **state)
{
	struct budget budget = { .max = 3 };
	struct pool_of a, b, c;

	(void)state;
	join(&budget, &c, 0);
	join(&budget, &b, 0);
	join(&budget, &a, 0);
	for (int i = 0; i < 2; i++)
		assert_true(budget_take(&b.share, BUDGET_AHEAD));
	assert_true(budget_take(&c.share, BUDGET_AHEAD));
	assert_false(budget_take(&a.share, BUDGET_AHEAD));
	assert_int_equal(b.told_need + c.told_need, 0);
	b.is_generous = c.is_generous = true;
	assert_false(budget_take(&a.share, BUDGET_NEEDED));
	assert_int_equal(b.told_need + c.told_need, 1);
}

static void what_was_given_up_goes_to_who_waits(void **state)
{
	struct budget budget = { .max = 2 };
	struct pool_of a, b;

	(void)state;
	join(&budget, &a, 0);
	join(&budget, &b, 0);
	for (int i = 0; i < 2; i++)
		assert_true(budget_take(&b.share, BUDGET_AHEAD));
	assert_false(budget_take(&a.share, BUDGET_NEEDED));
	a.has_need = true;
	budget_give(&b.share);
	assert_false(budget_take(&b.share, BUDGET_AHEAD));
	assert_true(budget_take(&a.share, BUDGET_NEEDED));
	a.has_need = false;
	budget_give(&a.share);
	assert_int_equal(b.told_free, 1);
	assert_true(budget_take(&b.share, BUDGET_AHEAD));
}

static void among_those_who_need_one_the_one_with_fewest_goes_first(void **state)
{
	struct budget budget = { .max = 2 };
	struct pool_of greedy, modest;

	(void)state;
	join(&budget, &modest, 0);
	join(&budget, &greedy, 0);
	for (int i = 0; i < 2; i++)
		assert_true(budget_take(&greedy.share, BUDGET_NEEDED));
	greedy.has_need = modest.has_need = true;
	assert_false(budget_take(&modest.share, BUDGET_NEEDED));
	budget_give(&greedy.share);
	assert_false(budget_take(&greedy.share, BUDGET_NEEDED));
	assert_true(budget_take(&modest.share, BUDGET_NEEDED));
	modest.has_need = false;
	budget_give(&modest.share);
	assert_true(budget_take(&greedy.share, BUDGET_NEEDED));
}

static void who_was_refused_for_anothers_need_is_told_when_that_is_over(void **state)
{
	struct budget budget = { .max = 2 };
	struct pool_of busy, other;

	(void)state;
	join(&budget, &other, 0);
	join(&budget, &busy, 0);
	assert_true(budget_take(&busy.share, BUDGET_NEEDED));
	other.has_need = true;
	assert_false(budget_take(&busy.share, BUDGET_NEEDED));
	budget_settle(&other.share);
	assert_int_equal(busy.told_free, 0);
	other.has_need = false;                 /* its client has left */
	budget_settle(&other.share);
	budget_settle(&other.share);
	assert_int_equal(busy.told_free, 1);
	assert_true(budget_take(&busy.share, BUDGET_NEEDED));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_limit_everything_is_given),
		cmocka_unit_test(what_is_reserved_is_kept_from_the_greedy),
		cmocka_unit_test(who_was_refused_is_told_once_when_there_is_room),
		cmocka_unit_test(only_for_who_waits_another_gives_up_one),
		cmocka_unit_test(what_was_given_up_goes_to_who_waits),
		cmocka_unit_test(among_those_who_need_one_the_one_with_fewest_goes_first),
		cmocka_unit_test(who_was_refused_for_anothers_need_is_told_when_that_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
