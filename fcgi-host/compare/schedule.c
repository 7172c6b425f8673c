#include "compare/schedule.h"

static double gap_ns(const struct schedule *schedule)
{
	return random_exponential(schedule->random) * 1e9 / schedule->rate_per_s;
}

void schedule_begin(struct schedule *schedule, uint64_t now_ns)
{
	schedule->given = schedule->over = 0;
	schedule->next_ns = (double)now_ns;
	if (schedule->kind == SCHEDULE_OPEN)
		schedule->next_ns += gap_ns(schedule);
}

static bool has_place(const struct schedule *schedule)
{
	return schedule->given < schedule->requests && schedule->given - schedule->over < schedule->concurrency;
}

bool schedule_take(struct schedule *schedule, uint64_t now_ns, uint64_t *from_ns_out)
{
	if (!has_place(schedule))
		return false;
	*from_ns_out = now_ns;
	if (schedule->kind == SCHEDULE_OPEN) {
		if (schedule->next_ns > (double)now_ns)
			return false;
		*from_ns_out = (uint64_t)schedule->next_ns;
		schedule->next_ns += gap_ns(schedule);
	}
	schedule->given++;
	return true;
}

void schedule_end_one(struct schedule *schedule)
{
	schedule->over++;
}

void schedule_stop(struct schedule *schedule)
{
	schedule->requests = schedule->given;
}

uint64_t schedule_next_ns(const struct schedule *schedule)
{
	if (!has_place(schedule))
		return SCHEDULE_NEVER;
	return schedule->kind == SCHEDULE_OPEN ? (uint64_t)schedule->next_ns + 1 : 0;
}

bool schedule_is_over(const struct schedule *schedule)
{
	return schedule->over >= schedule->requests;
}
