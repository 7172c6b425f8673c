#include "base/rate.h"

#include <stdbool.h>
#include <string.h>

enum { SLOTS = RATE_SECONDS + 1 };

void rate_add(struct rate *rate, uint64_t now_s)
{
	if (now_s >= rate->newest_s + SLOTS)
		memset(rate->counts, 0, sizeof(rate->counts));
	else
		for (uint64_t s = rate->newest_s + 1; s <= now_s; s++)
			rate->counts[s % SLOTS] = 0;
	if (now_s > rate->newest_s)
		rate->newest_s = now_s;
	rate->counts[now_s % SLOTS]++;
}

void rate_read(const struct rate *rate, uint64_t now_s, uint32_t counts_out[RATE_SECONDS])
{
	for (uint64_t i = 0; i < RATE_SECONDS; i++) {
		uint64_t s = now_s + i - RATE_SECONDS;
		bool is_kept = now_s + i >= RATE_SECONDS && s <= rate->newest_s && s + SLOTS > rate->newest_s;

		counts_out[i] = is_kept ? rate->counts[s % SLOTS] : 0;
	}
}
