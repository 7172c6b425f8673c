/*
 * buckets.h - log-linear buckets, for histogram.c and compare/latencies.c: every
 * power of two is cut into 2^part_bits parts of equal width.
 *
 * Bucket i below 2^part_bits is the value i; above, i >> part_bits says how far the
 * value was shifted (plus one), and the rest are its bits behind the leading one.
 */
#ifndef FCGI_HOST_BASE_BUCKETS_H
#define FCGI_HOST_BASE_BUCKETS_H

#include <stddef.h>
#include <stdint.h>

/* Where values below 2^value_bits go; what is greater goes with the greatest. */
static inline size_t buckets_of(uint64_t value, unsigned part_bits, unsigned value_bits)
{
	unsigned shift;

	if (value >> part_bits == 0)
		return (size_t)value;
	if (value >> value_bits != 0)
		return ((size_t)(value_bits - part_bits + 1) << part_bits) - 1;
	shift = 63u - (unsigned)__builtin_clzll(value) - part_bits;
	return ((size_t)shift << part_bits) + (size_t)(value >> shift);
}

static inline uint64_t buckets_middle(size_t bucket, unsigned part_bits)
{
	size_t parts = (size_t)1 << part_bits;
	unsigned shift;

	if (bucket < 2 * parts)
		return bucket;
	shift = (unsigned)(bucket >> part_bits) - 1;
	return ((uint64_t)(parts + bucket % parts) << shift) + ((uint64_t)1 << shift) / 2;
}

/* How many of `count`, counted from the least, a percentile stands at: 1 to count. */
static inline uint64_t buckets_rank(double percent, uint64_t count)
{
	double exact = percent / 100 * (double)count;
	uint64_t rank = exact <= 1 ? 1 : (uint64_t)exact;

	/* 99 per cent of 1000 is 990, also where that is not exact. */
	if ((double)rank < exact - 1e-9 * (double)count)
		rank++;
	return rank > count ? count : rank;
}

#endif
