#include "compare/latencies.h"

#include "base/buckets.h"

#include <math.h>
#include <stddef.h>

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
	latencies->counts[buckets_of(ns, LATENCIES_PART_BITS, LATENCIES_VALUE_BITS)]++;
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

uint64_t latencies_percentile_ns(const struct latencies *latencies, double percent)
{
	uint64_t rank = buckets_rank(percent, latencies->count), passed = 0, ns;
	size_t bucket = 0;

	if (latencies->count == 0)
		return 0;
	if (rank == latencies->count)
		return latencies->max_ns;
	if (rank == 1)
		return latencies->min_ns;
	while (bucket < LATENCIES_BUCKETS && (passed += latencies->counts[bucket]) < rank)
		bucket++;
	ns = buckets_middle(bucket, LATENCIES_PART_BITS);
	if (ns < latencies->min_ns)
		return latencies->min_ns;
	return ns > latencies->max_ns ? latencies->max_ns : ns;
}
