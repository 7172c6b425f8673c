/*
 * advice.h - which way costs least at which rate of requests.  Pure.
 *
 * A way costs CPU for each request and memory all the time.  To weigh the two, a share
 * of the machine's memory is taken to be worth the same share of its CPUs.
 */
#ifndef FCGI_HOST_COMPARE_ADVICE_H
#define FCGI_HOST_COMPARE_ADVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { ADVICE_STEPS_MAX = 16 };

struct advice_way { const char *name; double cpu_ms, idle_mib; };

/* The way that costs least from this rate on, up to the next step's. */
struct advice_step { size_t way; double from_per_s; };

struct advice {
	struct advice_step steps[ADVICE_STEPS_MAX];
	size_t count;                   /* 0: nothing can be said */
};

void advice_make(struct advice *advice, const struct advice_way *ways, size_t count, unsigned cpus, double memory_mib);

/* "one request per 21 s", "3.5 requests a second"; out has ADVICE_RATE_BYTES. */
enum { ADVICE_RATE_BYTES = 64 };
const char *advice_rate(double per_s, char *out);

struct comparison_result;
struct machine;

/* The advice in plain words, with the numbers that it comes from; nothing when there is none.
 * `rate_per_s` is what the handler gets now, 0 when it is not known. */
void advice_print(const struct comparison_result *comparison, const struct machine *machine, double rate_per_s, FILE *out);

#endif
