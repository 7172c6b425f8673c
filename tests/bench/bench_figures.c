#include "bench_figures.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

static double us(struct timeval time)
{
	return (double)time.tv_sec * 1e6 + (double)time.tv_usec;
}

void figures_take(struct figures *out)
{
	static const int whose[] = { RUSAGE_SELF, RUSAGE_CHILDREN };
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	*out = (struct figures){ .wall_us = (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3 };
	for (int i = 0; i < 2; i++) {
		struct rusage rusage;

		getrusage(whose[i], &rusage);
		out->cpu_us += us(rusage.ru_utime) + us(rusage.ru_stime);
		out->faults += (double)(rusage.ru_minflt + rusage.ru_majflt);
		out->switches += (double)(rusage.ru_nvcsw + rusage.ru_nivcsw);
	}
}

void figures_print(const char *name, const struct figures *before, const struct figures *after, unsigned rounds,
	unsigned at_once)
{
	double n = rounds;

	printf("%s: %u rounds, %u at once: %.1f us wall, %.1f us CPU, %.2f page faults, %.2f context switches a round\n",
		name, rounds, at_once, (after->wall_us - before->wall_us) / n, (after->cpu_us - before->cpu_us) / n,
		(after->faults - before->faults) / n, (after->switches - before->switches) / n);
}
