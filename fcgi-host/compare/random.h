/*
 * random.h - numbers that look random, the same ones for the same seed: for the
 * times of an open loop and for resampling, not for secrets.
 */
#ifndef FCGI_HOST_COMPARE_RANDOM_H
#define FCGI_HOST_COMPARE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random { uint64_t state; };      /* any value is a seed */

double random_unit(struct random *random);              /* 0 <= x < 1 */
size_t random_below(struct random *random, size_t n);   /* n > 0 */
double random_exponential(struct random *random);       /* mean 1 */

#endif
