#include "compare/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RESAMPLES = 10000 };

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void sort(double *values, size_t count)
{
	/* Most are short: qsort's calls would take most of the time. */
	if (count > 64) {
		qsort(values, count, sizeof(*values), by_value);
		return;
	}
	for (size_t i = 1; i < count; i++) {
		double value = values[i];
		size_t at = i;

		for (; at > 0 && values[at - 1] > value; at--)
			values[at] = values[at - 1];
		values[at] = value;
	}
}

/* Sorts them. */
static double middle_mean(double *values, size_t count)
{
	size_t cut = count / 4;
	double sum = 0;

	sort(values, count);
	for (size_t i = cut; i < count - cut; i++)
		sum += values[i];
	return sum / (double)(count - 2 * cut);
}

/* The tails of a normal distribution that the two sides of a Student interval
 * would have: wider, for a few pairs. */
static double tail_of(double z, size_t count)
{
	double v = (double)count - 1, z2 = z * z;
	double t = z * (1 + (z2 + 1) / (4 * v) + ((5 * z2 + 16) * z2 + 3) / (96 * v * v) +
		(((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * v * v * v));

	return erfc(t * sqrt((v + 1) / v) / sqrt(2)) / 2;
}

struct interval { double low, high; };

static struct interval interval_of(const double *sorted, double tail)
{
	double at = tail * (RESAMPLES - 1);
	size_t low = (size_t)floor(at), high = RESAMPLES - 1 - low;

	return (struct interval){ sorted[low], sorted[high] };
}

static bool leaves_out(struct interval interval, double nothing)
{
	return interval.low > nothing || interval.high < nothing;
}

/* Of values that are 0 where there is no difference. */
static struct estimate estimate(const double *values, size_t count, struct random *random)
{
	static const double z95 = 1.959964, z99 = 2.575829;
	double *sample = malloc(count * sizeof(*sample)), *means = malloc(RESAMPLES * sizeof(*means));
	struct estimate result = { 0 };
	struct interval narrow, wide;

	if (sample == NULL || means == NULL || count < STATISTICS_PAIRS_MIN) {
		free(sample);
		free(means);
		return result;
	}
	for (size_t i = 0; i < RESAMPLES; i++) {
		for (size_t j = 0; j < count; j++)
			sample[j] = values[random_below(random, count)];
		means[i] = middle_mean(sample, count);
	}
	qsort(means, RESAMPLES, sizeof(*means), by_value);
	narrow = interval_of(means, tail_of(z95, count));
	wide = interval_of(means, tail_of(z99, count));
	memcpy(sample, values, count * sizeof(*sample));
	result = (struct estimate){ .value = middle_mean(sample, count), .low = narrow.low, .high = narrow.high,
		.is_known = true, .is_shown = leaves_out(narrow, 0) && leaves_out(wide, 0) };
	free(sample);
	free(means);
	return result;
}

struct estimate statistics_ratio(const double *way, const double *base, size_t count, struct random *random)
{
	double *logs = malloc((count + 1) * sizeof(*logs));
	struct estimate result = { 0 };

	for (size_t i = 0; logs != NULL && i < count; i++)
		logs[i] = log(way[i] / base[i]);
	if (logs != NULL)
		result = estimate(logs, count, random);
	free(logs);
	if (result.is_known) {
		result.value = exp(result.value);
		result.low = exp(result.low);
		result.high = exp(result.high);
	}
	return result;
}

struct estimate statistics_difference(const double *way, const double *base, size_t count, struct random *random)
{
	double *differences = malloc((count + 1) * sizeof(*differences));
	struct estimate result = { 0 };

	for (size_t i = 0; differences != NULL && i < count; i++)
		differences[i] = way[i] - base[i];
	if (differences != NULL)
		result = estimate(differences, count, random);
	free(differences);
	return result;
}
