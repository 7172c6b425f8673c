/*
 * noise.h - the noise of a simulated machine.
 */
#ifndef FCGI_HOST_TESTS_NOISE_H
#define FCGI_HOST_TESTS_NOISE_H

#include "compare/random.h"

#include <math.h>

/* Mean 0, deviation 1. */
static inline double noise_normal(struct random *random)
{
	double radius = sqrt(2 * random_exponential(random));

	return radius * cos(6.283185307179586 * random_unit(random));
}

#endif
