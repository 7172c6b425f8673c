#include "compare/latencies.h"

#include <math.h>
#include <stddef.h>

enum { PARTS = 1 << LATENCIES_PART_BITS };

static size_t bucket_of(uint64_t ns)
{
	unsigned shift;

	if (ns < PARTS)
		return (size_t)ns;
	if (ns >> LATENCIES_VALUE_BITS != 0)
		return LATENCIES_BUCKETS - 1;
	shift = 63u - (unsigned)__builtin_clzll(ns) - LATENCIES_PART_BITS;
	return ((size_t)shift << LATENCIES_PART_BITS) + (size_t)(ns >> shift);
}

static uint64_t middle_of(size_t bucket)
{
	unsigned shift;

	if (bucket < 2 * PARTS)
		return bucket;
	shift = (unsigned)(bucket >> LATENCIES_PART_BITS) - 1;
	return ((uint64_t)(PARTS + bucket % PARTS) << shift) + ((uint64_t)1 << shift) / 2;
}

static void widen(struct latencies *latencies, uint64_t min_ns, uint64_t max_ns)
{
	if (latencies->count == 0 || min_ns < latencies->min_ns)
		latencies->min_ns = min_ns;
	if (latencies->count == 0 || max_ns > latencies->max_ns)
		latencies->max_ns = max_ns;
}

void latencies_add(struct latencies *latencies, uint64_t ns)
{
	widen(latencies, ns, ns);
	latencies->count++;
	latencies->sum_ns += (double)ns;
	latencies->sum_of_squares += (double)ns * (double)ns;
	latencies->counts[bucket_of(ns)]++;
}

void latencies_merge(struct latencies *into, const struct latencies *from)
{
	if (from->count == 0)
		return;
	widen(into, from->min_ns, from->max_ns);
	into->count += from->count;
	into->sum_ns += from->sum_ns;
	into->sum_of_squares += from->sum_of_squares;
	for (size_t i = 0; i < LATENCIES_BUCKETS; i++)
		into->counts[i] += from->counts[i];
}

double latencies_mean_ns(const struct latencies *latencies)
{
	return latencies->count == 0 ? 0 : latencies->sum_ns / (double)latencies->count;
}

double latencies_deviation_ns(const struct latencies *latencies)
{
	double count = (double)latencies->count, mean = latencies_mean_ns(latencies), variance;

	if (latencies->count < 2)
		return 0;
	variance = (latencies->sum_of_squares - count * mean * mean) / (count - 1);
	return variance > 0 ? sqrt(variance) : 0;
}

/* How many, counted from the least, a percentile stands at: 1 to count. */
static uint64_t rank_of(double percent, uint64_t count)
{
	double exact = percent / 100 * (double)count;
	uint64_t rank = exact <= 1 ? 1 : (uint64_t)exact;

	/* 99 per cent of 1000 is 990, also where that is not exact. */
	if ((double)rank < exact - 1e-9 * (double)count)
		rank++;
	return rank > count ? count : rank;
}

uint64_t latencies_percentile_ns(const struct latencies *latencies, double percent)
{
	uint64_t rank = rank_of(percent, latencies->count), passed = 0, ns;
	size_t bucket = 0;

	if (latencies->count == 0)
		return 0;
	if (rank == latencies->count)
		return latencies->max_ns;
	if (rank == 1)
		return latencies->min_ns;
	while (bucket < LATENCIES_BUCKETS && (passed += latencies->counts[bucket]) < rank)
		bucket++;
	ns = middle_of(bucket);
	if (ns < latencies->min_ns)
		return latencies->min_ns;
	return ns > latencies->max_ns ? latencies->max_ns : ns;
}
