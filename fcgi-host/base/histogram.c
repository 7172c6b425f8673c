#include "base/histogram.h"

#include "base/buckets.h"

static void widen(struct histogram *histogram, uint64_t min_us, uint64_t max_us)
{
	if (histogram->count == 0 || min_us < histogram->min_us)
		histogram->min_us = min_us;
	if (histogram->count == 0 || max_us > histogram->max_us)
		histogram->max_us = max_us;
}

void histogram_add(struct histogram *histogram, uint64_t us)
{
	widen(histogram, us, us);
	histogram->count++;
	histogram->sum_us += us;
	histogram->counts[buckets_of(us, HISTOGRAM_PART_BITS, HISTOGRAM_VALUE_BITS)]++;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
	if (from->count == 0)
		return;
	widen(into, from->min_us, from->max_us);
	into->count += from->count;
	into->sum_us += from->sum_us;
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		into->counts[i] += from->counts[i];
}

static uint64_t clamp(const struct histogram *histogram, uint64_t us)
{
	if (us < histogram->min_us)
		return histogram->min_us;
	return us > histogram->max_us ? histogram->max_us : us;
}

void histogram_percentiles(const struct histogram *histogram, const double *percents, size_t count, uint64_t *us_out)
{
	size_t bucket = 0;
	uint64_t passed = histogram->counts[0];

	for (size_t i = 0; i < count; i++) {
		uint64_t rank = buckets_rank(percents[i], histogram->count);

		if (histogram->count == 0) {
			us_out[i] = 0;
			continue;
		}
		while (passed < rank && bucket + 1 < HISTOGRAM_BUCKETS)
			passed += histogram->counts[++bucket];
		/* The ends are known exactly. */
		if (rank == histogram->count)
			us_out[i] = histogram->max_us;
		else if (rank == 1)
			us_out[i] = histogram->min_us;
		else
			us_out[i] = clamp(histogram, buckets_middle(bucket, HISTOGRAM_PART_BITS));
	}
}

uint64_t histogram_percentile(const struct histogram *histogram, double percent)
{
	uint64_t us;

	histogram_percentiles(histogram, &percent, 1, &us);
	return us;
}

void histogram_below_powers(const struct histogram *histogram, unsigned first_bits, size_t count, uint64_t *below_out)
{
	size_t bucket = 0;
	uint64_t passed = 0;

	for (size_t i = 0; i < count; i++) {
		size_t end = buckets_of((uint64_t)1 << (first_bits + i), HISTOGRAM_PART_BITS, HISTOGRAM_VALUE_BITS);

		for (; bucket < end; bucket++)
			passed += histogram->counts[bucket];
		below_out[i] = passed;
	}
}
