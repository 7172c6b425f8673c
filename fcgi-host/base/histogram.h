/*
 * histogram.h - how often which duration occurred, in fixed memory.
 *
 * Log-linear: every power of two is cut into 32 parts of equal width, so that a
 * percentile is off by at most 1/64 of its value, below 64 by nothing.
 * Histograms of parts, merged, are the histogram of the whole: percentiles are
 * never averaged.  Durations are microseconds.
 */
#ifndef FCGI_HOST_BASE_HISTOGRAM_H
#define FCGI_HOST_BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum {
	HISTOGRAM_PART_BITS = 5,        /* 32 parts */
	HISTOGRAM_VALUE_BITS = 36,      /* 19 hours; what is longer counts as that long */
	HISTOGRAM_BUCKETS = (HISTOGRAM_VALUE_BITS - HISTOGRAM_PART_BITS + 1) << HISTOGRAM_PART_BITS,
};

/* Zero it first. */
struct histogram {
	uint64_t count;
	uint64_t min_us, max_us;        /* exact; of nothing while count is 0 */
	uint64_t sum_us;                /* exact */
	uint64_t counts[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint64_t us);
void histogram_merge(struct histogram *into, const struct histogram *from);

/* The smallest duration that `percents[i]` per cent of all do not pass; the
 * least for 0, the greatest for 100, and 0 when there is none.  `percents`
 * ascends. */
void histogram_percentiles(const struct histogram *histogram, const double *percents, size_t count, uint64_t *us_out);
uint64_t histogram_percentile(const struct histogram *histogram, double percent);

/* How many are below 2^first_bits, 2^(first_bits + 1), … microseconds: exact,
 * since powers of two are where the parts begin.  Up to HISTOGRAM_VALUE_BITS. */
void histogram_below_powers(const struct histogram *histogram, unsigned first_bits, size_t count, uint64_t *below_out);

#endif
