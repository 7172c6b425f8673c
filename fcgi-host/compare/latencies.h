/*
 * latencies.h - how long the requests of a way took, in fixed memory.
 *
 * Log-linear like base/histogram.h, but finer and in nanoseconds: 256 parts to a
 * power of two, so that a percentile is off by at most 1/512 of its value.  Parts
 * of a whole are merged; percentiles are never averaged.  Count, sum, least and
 * greatest are exact.
 */
#ifndef FCGI_HOST_COMPARE_LATENCIES_H
#define FCGI_HOST_COMPARE_LATENCIES_H

#include <stdint.h>

enum {
	LATENCIES_PART_BITS = 8,
	LATENCIES_VALUE_BITS = 42,      /* 73 minutes; what is longer counts as that long */
	LATENCIES_BUCKETS = (LATENCIES_VALUE_BITS - LATENCIES_PART_BITS + 1) << LATENCIES_PART_BITS,
};

/* Zero it first. */
struct latencies {
	uint64_t count, min_ns, max_ns;         /* of nothing while count is 0 */
	double sum_ns, sum_of_squares;
	uint64_t counts[LATENCIES_BUCKETS];
};

void latencies_add(struct latencies *latencies, uint64_t ns);
void latencies_merge(struct latencies *into, const struct latencies *from);

/* 0 where there is none. */
double latencies_mean_ns(const struct latencies *latencies);
double latencies_deviation_ns(const struct latencies *latencies);       /* standard deviation of the sample */

/* The smallest duration that `percent` per cent of all do not pass: the least for 0,
 * the greatest for 100. */
uint64_t latencies_percentile_ns(const struct latencies *latencies, double percent);

#endif
