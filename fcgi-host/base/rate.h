/*
 * rate.h - how many in each of the last sixty seconds, in fixed memory.
 *
 * Nothing has to run while nothing happens: seconds that nobody counted in are
 * cleared by the next one who counts, and are nothing to who reads.
 */
#ifndef FCGI_HOST_BASE_RATE_H
#define FCGI_HOST_BASE_RATE_H

#include <stdint.h>

enum { RATE_SECONDS = 60 };

/* Zero it first. */
struct rate {
	uint64_t newest_s;                      /* of a clock that never goes back */
	uint32_t counts[RATE_SECONDS + 1];      /* by second modulo their number */
};

void rate_add(struct rate *rate, uint64_t now_s);

/* The sixty whole seconds before this one, the oldest first. */
void rate_read(const struct rate *rate, uint64_t now_s, uint32_t counts_out[RATE_SECONDS]);

#endif
