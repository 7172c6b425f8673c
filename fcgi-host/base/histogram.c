#include "base/histogram.h"

enum { PARTS = 1 << HISTOGRAM_PART_BITS };

/* Bucket i below 32 is the value i; above, i / 32 says how far the value was
 * shifted (plus one) and i % 32 its five bits behind the leading one. */

static size_t bucket_of(uint64_t us)
{
	unsigned shift;

	if (us < PARTS)
		return (size_t)us;
	if (us >> HISTOGRAM_VALUE_BITS != 0)
		return HISTOGRAM_BUCKETS - 1;
	shift = 63u - (unsigned)__builtin_clzll(us) - HISTOGRAM_PART_BITS;
	return ((size_t)shift << HISTOGRAM_PART_BITS) + (size_t)(us >> shift);
}

static uint64_t middle_of(size_t bucket)
{
	unsigned shift;

	if (bucket < 2 * PARTS)
		return bucket;
	shift = (unsigned)(bucket >> HISTOGRAM_PART_BITS) - 1;
	return ((uint64_t)(PARTS + bucket % PARTS) << shift) + ((uint64_t)1 << shift) / 2;
}

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
	histogram->counts[bucket_of(us)]++;
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

/* How many, counted from the least, a percentile stands at: 1 to count. */
static uint64_t rank_of(double percent, uint64_t count)
{
	double exact = percent / 100 * (double)count;
	uint64_t rank = exact <= 1 ? 1 : (uint64_t)exact;

	if ((double)rank < exact)
		rank++;
	return rank > count ? count : rank;
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
		uint64_t rank = rank_of(percents[i], histogram->count);

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
			us_out[i] = clamp(histogram, middle_of(bucket));
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
		size_t end = bucket_of((uint64_t)1 << (first_bits + i));

		for (; bucket < end; bucket++)
			passed += histogram->counts[bucket];
		below_out[i] = passed;
	}
}
