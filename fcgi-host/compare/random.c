#include "compare/random.h"

#include <math.h>

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t next(struct random *random)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

double random_unit(struct random *random)
{
	return (double)(next(random) >> 11) * 0x1p-53;
}

size_t random_below(struct random *random, size_t n)
{
	return (size_t)(random_unit(random) * (double)n);
}

double random_exponential(struct random *random)
{
	return -log1p(-random_unit(random));
}

/* Box and Muller. */
