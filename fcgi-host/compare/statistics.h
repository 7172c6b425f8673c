/*
 * statistics.h - how two ways differ, and how sure that is.  Pure.
 *
 * The sample is a pair: what a request took in neighbouring blocks of the one and
 * of the other way.  Single requests are no sample, since neighbours share what the
 * machine did at that moment.  The estimate is the mean of the middle half of the
 * pairs, so that a disturbance which hits one block moves it little.  The interval
 * is a bootstrap over pairs, with tails widened for their small number
 * (T. Hesterberg, What Teachers Should Know About the Bootstrap, 2014: "expanded
 * percentile").
 */
#ifndef FCGI_HOST_COMPARE_STATISTICS_H
#define FCGI_HOST_COMPARE_STATISTICS_H

#include "compare/random.h"

#include <stdbool.h>
#include <stddef.h>

enum { STATISTICS_PAIRS_MIN = 4 };      /* fewer show nothing */

struct estimate {
	double value;
	double low, high;               /* 95 % */
	bool is_known;                  /* there were pairs; false: nothing else means anything */
	/* The 95 % interval, and the one of 99 %, leave out "no difference": a table
	 * has many ratios, and one of twenty would differ by chance. */
	bool is_shown;
};

/* way[i] / base[i]; all above 0.  Without a difference it is 1. */
struct estimate statistics_ratio(const double *way, const double *base, size_t count, struct random *random);
/* way[i] - base[i], in their unit.  Without a difference it is 0. */
struct estimate statistics_difference(const double *way, const double *base, size_t count, struct random *random);

#endif
