/* Loops on a simulated clock, against a simulated server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "compare/latencies.h"
#include "compare/schedule.h"

#include <math.h>

/* Answers one request at a time, each in service_ns; does nothing at all from
 * stall_from_ns for stall_ns. */
struct server {
	uint64_t service_ns, stall_from_ns, stall_ns;
	uint64_t free_ns;
};

static uint64_t serve(struct server *server, uint64_t now_ns)
{
	uint64_t begin = now_ns > server->free_ns ? now_ns : server->free_ns, end;

	if (begin >= server->stall_from_ns && begin < server->stall_from_ns + server->stall_ns)
		begin = server->stall_from_ns + server->stall_ns;
	end = begin + server->service_ns;
	if (begin < server->stall_from_ns && end > server->stall_from_ns)
		end += server->stall_ns;
	return server->free_ns = end;
}

enum { PLACES = 4096 };

/* Runs the schedule to its end; answers come in the order of the requests. */
static uint64_t simulate(struct schedule *schedule, struct server *server, struct latencies *latencies)
{
	static uint64_t from_ns[PLACES], answered_ns[PLACES];
	size_t first = 0, last = 0;
	uint64_t now_ns = 1000000;

	schedule_begin(schedule, now_ns);
	while (!schedule_is_over(schedule)) {
		uint64_t next_ns = schedule_next_ns(schedule);

		while (schedule_take(schedule, now_ns, &from_ns[last % PLACES])) {
			answered_ns[last % PLACES] = serve(server, now_ns);
			last++;
			assert_true(last - first <= PLACES);
		}
		next_ns = schedule_next_ns(schedule);
		if (first < last && answered_ns[first % PLACES] <= next_ns) {
			now_ns = answered_ns[first % PLACES] > now_ns ? answered_ns[first % PLACES] : now_ns;
			latencies_add(latencies, now_ns - from_ns[first++ % PLACES]);
			schedule_end_one(schedule);
		} else {
			assert_true(next_ns != SCHEDULE_NEVER);
			now_ns = next_ns > now_ns ? next_ns : now_ns;
		}
	}
	return now_ns - 1000000;
}

static struct latencies *new_latencies(void)
{
	struct latencies *latencies = calloc(1, sizeof(*latencies));

	assert_non_null(latencies);
	return latencies;
}

static void a_closed_loop_keeps_so_many_on_their_way(void **state)
{
	struct schedule schedule = { .kind = SCHEDULE_CLOSED, .requests = 10, .concurrency = 3 };
	uint64_t from_ns;

	(void)state;
	schedule_begin(&schedule, 5);
	for (int i = 0; i < 3; i++) {
		assert_true(schedule_take(&schedule, 5, &from_ns));
		assert_int_equal(from_ns, 5);
	}
	assert_false(schedule_take(&schedule, 6, &from_ns));
	assert_true(schedule_next_ns(&schedule) == SCHEDULE_NEVER);
	schedule_end_one(&schedule);
	assert_true(schedule_take(&schedule, 9, &from_ns));
	assert_int_equal(from_ns, 9);
}

static void a_closed_loop_measures_the_service_and_the_line(void **state)
{
	struct schedule schedule = { .kind = SCHEDULE_CLOSED, .requests = 1000, .concurrency = 4 };
	struct server server = { .service_ns = 100000 };
	struct latencies *latencies = new_latencies();
	uint64_t elapsed_ns = simulate(&schedule, &server, latencies);

	(void)state;
	assert_int_equal(latencies->count, 1000);
	assert_int_equal(elapsed_ns, 1000 * 100000);
	assert_int_equal(latencies->max_ns, 400000);
	free(latencies);
}

static void an_open_loop_keeps_its_rate_and_is_random(void **state)
{
	struct random random = { 11 };
	struct schedule schedule = { .kind = SCHEDULE_OPEN, .requests = 100000, .concurrency = 1000, .rate_per_s = 1000,
		.random = &random };
	struct server server = { .service_ns = 10 };
	struct latencies *latencies = new_latencies();
	double elapsed_s = (double)simulate(&schedule, &server, latencies) / 1e9;

	(void)state;
	assert_true(fabs(elapsed_s - 100) < 1.5);
	assert_true(latencies_percentile_ns(latencies, 99) < 1000);
	free(latencies);
}

/* 1000 a second for 10 s; a stall of 200 ms makes the 200 that come meanwhile wait from
 * 200 ms down to nothing, so that 2 % of all are disturbed: at 99 % stands the one
 * in the middle, which waits about 100 ms.  The truth is told by every latency. */
static void a_stall_of_200_ms_is_seen_at_p99_of_an_open_loop(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct random random = { seed }, same = { seed };
		struct schedule schedule = { .kind = SCHEDULE_OPEN, .requests = 10000, .concurrency = 1000, .rate_per_s = 1000,
			.random = &random };
		struct server server = { .service_ns = 50000, .stall_from_ns = 3000000000, .stall_ns = 200000000 };
		struct latencies *latencies = new_latencies();
		uint64_t *exact = calloc(10000, sizeof(*exact)), measured, truth;
		double at_ns = 1000000;
		struct server again = server;

		simulate(&schedule, &server, latencies);
		/* The same arrivals without any client: what each of them would have met. */
		for (int i = 0; i < 10000; i++) {
			at_ns += random_exponential(&same) * 1e6;
			exact[i] = serve(&again, (uint64_t)at_ns) - (uint64_t)at_ns;
		}
		for (int i = 0; i < 10000; i++)
			for (int j = i; j > 0 && exact[j - 1] > exact[j]; j--) {
				uint64_t swap = exact[j];

				exact[j] = exact[j - 1];
				exact[j - 1] = swap;
			}
		truth = exact[9900 - 1];
		measured = latencies_percentile_ns(latencies, 99);
		assert_true(truth > 50000000);
		assert_true(fabs((double)measured - (double)truth) < 0.02 * (double)truth);
		free(exact);
		free(latencies);
	}
}

/* With few places the requests wait at the client, and that counts. */
static void a_stall_is_seen_with_a_single_place_too(void **state)
{
	struct random random = { 5 };
	struct schedule schedule = { .kind = SCHEDULE_OPEN, .requests = 10000, .concurrency = 1, .rate_per_s = 1000, .random = &random };
	struct server server = { .service_ns = 50000, .stall_from_ns = 3000000000, .stall_ns = 200000000 };
	struct latencies *latencies = new_latencies();

	(void)state;
	simulate(&schedule, &server, latencies);
	assert_true(latencies_percentile_ns(latencies, 99) > 70000000);
	assert_true(latencies->max_ns > 195000000);
	free(latencies);
}

static void a_closed_loop_hardly_sees_it(void **state)
{
	struct schedule schedule = { .kind = SCHEDULE_CLOSED, .requests = 100000, .concurrency = 1 };
	struct server server = { .service_ns = 50000, .stall_from_ns = 3000000000, .stall_ns = 200000000 };
	struct latencies *latencies = new_latencies();

	(void)state;
	simulate(&schedule, &server, latencies);
	assert_true(latencies_percentile_ns(latencies, 99) < 60000);
	assert_true(latencies->max_ns > 195000000);
	free(latencies);
}

static void a_stopped_schedule_ends_with_what_is_on_its_way(void **state)
{
	struct schedule schedule = { .kind = SCHEDULE_CLOSED, .requests = 10, .concurrency = 3 };
	uint64_t from_ns;

	(void)state;
	schedule_begin(&schedule, 0);
	assert_true(schedule_take(&schedule, 0, &from_ns));
	schedule_stop(&schedule);
	assert_false(schedule_take(&schedule, 0, &from_ns));
	assert_false(schedule_is_over(&schedule));
	schedule_end_one(&schedule);
	assert_true(schedule_is_over(&schedule));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_closed_loop_keeps_so_many_on_their_way),
		cmocka_unit_test(a_closed_loop_measures_the_service_and_the_line),
		cmocka_unit_test(an_open_loop_keeps_its_rate_and_is_random),
		cmocka_unit_test(a_stall_of_200_ms_is_seen_at_p99_of_an_open_loop),
		cmocka_unit_test(a_stall_is_seen_with_a_single_place_too),
		cmocka_unit_test(a_closed_loop_hardly_sees_it),
		cmocka_unit_test(a_stopped_schedule_ends_with_what_is_on_its_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
