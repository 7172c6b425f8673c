/*
 * bench_figures.h - wall time, CPU, page faults and context switches of the
 * calling process and of all its children that have ended.
 */
#ifndef TESTS_BENCH_FIGURES_H
#define TESTS_BENCH_FIGURES_H

struct figures {
	double wall_us, cpu_us, faults, switches;
};

void figures_take(struct figures *out);

/* One line: what each of `rounds` cost between the two. */
void figures_print(const char *name, const struct figures *before, const struct figures *after, unsigned rounds,
	unsigned at_once);

#endif
