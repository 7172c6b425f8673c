/* Ways side by side, on a simulated machine that is noisy, drifts and stalls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "compare/blocks.h"
#include "noise.h"

#include <math.h>
#include <stdbool.h>

enum { WAYS_MAX = 4, REQUESTS = 50 };

/* Everything on it takes a factor longer that wanders, and sometimes a block is hit. */
struct machine {
	struct random random;
	double now_s, wander;
	double cost_ns[WAYS_MAX];
	size_t calls, fail_at;          /* fail_at: the call that ends everything, from 1; 0: none */
	size_t order[1024];
	double noise, drift, hit;       /* of a request; of a block; chance of a hit */
};

static int run_block(void *ctx, size_t way, size_t index, struct block *block, struct latencies *latencies)
{
	struct machine *machine = ctx;
	double factor;

	(void)index;
	if (machine->calls < 1024)
		machine->order[machine->calls] = way;
	if (++machine->calls == machine->fail_at)
		return -1;
	machine->wander += machine->drift * noise_normal(&machine->random);
	factor = exp(machine->wander + 0.1 * sin(machine->now_s));
	if (random_unit(&machine->random) < machine->hit)
		factor *= 1 + random_exponential(&machine->random);
	for (int i = 0; i < REQUESTS; i++) {
		double ns = machine->cost_ns[way] * factor * exp(machine->noise * noise_normal(&machine->random));

		machine->now_s += ns / 1e9;
		latencies_add(latencies, (uint64_t)ns);
		block->sum_ns += floor(ns);
		block->elapsed_ns += (uint64_t)ns;
		block->answered++;
	}
	return 0;
}

static void ways_are_run_there_and_back(void **state)
{
	static const size_t wanted[] = { 0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0 };
	struct machine machine = { .cost_ns = { 1e6, 1e6, 1e6 } };
	struct series series[3];

	(void)state;
	assert_int_equal(blocks_run(series, 3, 4, run_block, &machine), 0);
	assert_int_equal(machine.calls, 12);
	assert_memory_equal(machine.order, wanted, sizeof(wanted));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(series[i].count, 4);
		assert_int_equal(series[i].answered, 4 * REQUESTS);
		assert_int_equal(series[i].latencies->count, 4 * REQUESTS);
		series_fini(&series[i]);
	}
}

static void an_end_before_the_end_keeps_whole_rounds(void **state)
{
	struct machine machine = { .cost_ns = { 1e6, 1e6 }, .fail_at = 8 };
	struct series series[2];

	(void)state;
	assert_int_equal(blocks_run(series, 2, 10, run_block, &machine), -1);
	assert_int_equal(series[0].count, 3);
	assert_int_equal(series[1].count, 3);
	assert_int_equal(series[1].latencies->count, 3 * REQUESTS);
	assert_false(series_ratio(&series[0], &series[1], &machine.random).is_known);
	series_fini(&series[0]);
	series_fini(&series[1]);
}

static struct estimate measure(struct machine *machine, size_t blocks, struct estimate *difference_out)
{
	struct series series[2];
	struct estimate ratio;

	assert_int_equal(blocks_run(series, 2, blocks, run_block, machine), 0);
	ratio = series_ratio(&series[1], &series[0], &machine->random);
	if (difference_out != NULL)
		*difference_out = series_difference_ns(&series[1], &series[0], &machine->random);
	series_fini(&series[0]);
	series_fini(&series[1]);
	return ratio;
}

static void of_100_runs_of_a_way_against_itself_at_most_5_show_a_difference(void **state)
{
	static const struct machine machines[] = {
		{ .noise = 0.05, .drift = 0.02, .hit = 0 },     /* quiet */
		{ .noise = 0.3, .drift = 0.1, .hit = 0.1 },     /* busy */
		{ .noise = 1, .drift = 0.3, .hit = 0.3 },       /* hopeless */
	};

	(void)state;
	for (size_t m = 0; m < 3; m++)
		for (size_t blocks = 12; blocks <= 40; blocks += 28) {
			struct machine machine = machines[m];
			unsigned shown = 0;

			machine.random.state = 1000 * m + blocks;
			machine.cost_ns[0] = machine.cost_ns[1] = 1e6;
			for (int run = 0; run < 100; run++)
				shown += measure(&machine, blocks, NULL).is_shown;
			assert_in_range(shown, 0, 5);
		}
}

static void an_added_2_per_cent_is_recovered_within_a_tenth(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct machine machine = { .random = { seed }, .cost_ns = { 1e6, 1.02e6 }, .noise = 0.02, .drift = 0.002, .hit = 0.01 };
		struct estimate ratio = measure(&machine, 80, NULL);

		assert_true(ratio.is_shown);
		assert_true(fabs(ratio.value - 1.02) < 0.002);
	}
}

static void added_50_microseconds_are_recovered_within_a_tenth(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct machine machine = { .random = { seed }, .cost_ns = { 1e6, 1.05e6 }, .noise = 0.05, .drift = 0.005, .hit = 0.01 };
		struct estimate difference;

		measure(&machine, 80, &difference);
		assert_true(difference.is_shown);
		/* The machine's own factor lies on the 50 us too. */
		assert_true(fabs(difference.value / exp(machine.wander / 2) - 50000) < 5000);
	}
}

static void a_drift_of_the_machine_is_no_difference(void **state)
{
	struct machine machine = { .random = { 3 }, .cost_ns = { 1e6, 1e6 }, .noise = 0.02 };
	struct series series[2];

	(void)state;
	/* Twice as slow at the end as at the beginning. */
	assert_int_equal(blocks_run(series, 2, 40, run_block, &machine), 0);
	for (int way = 0; way < 2; way++)
		for (size_t i = 0; i < 40; i++)
			series[way].blocks[i].sum_ns *= 1 + ((double)(2 * i) + (i % 2 == 0 ? way : 1 - way)) / 80;
	assert_false(series_ratio(&series[1], &series[0], &machine.random).is_shown);
	series_fini(&series[0]);
	series_fini(&series[1]);
}

static void pairs_without_an_answer_are_left_out(void **state)
{
	struct machine machine = { .random = { 3 }, .cost_ns = { 1e6, 2e6 } };
	struct series series[2];

	(void)state;
	assert_int_equal(blocks_run(series, 2, 20, run_block, &machine), 0);
	series[0].blocks[4] = series[0].blocks[5] = (struct block){ .failed = REQUESTS };
	assert_true(fabs(series_ratio(&series[1], &series[0], &machine.random).value - 2) < 0.02);
	series_fini(&series[0]);
	series_fini(&series[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ways_are_run_there_and_back),
		cmocka_unit_test(an_end_before_the_end_keeps_whole_rounds),
		cmocka_unit_test(of_100_runs_of_a_way_against_itself_at_most_5_show_a_difference),
		cmocka_unit_test(an_added_2_per_cent_is_recovered_within_a_tenth),
		cmocka_unit_test(added_50_microseconds_are_recovered_within_a_tenth),
		cmocka_unit_test(a_drift_of_the_machine_is_no_difference),
		cmocka_unit_test(pairs_without_an_answer_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
