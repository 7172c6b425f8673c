#include "compare/advice.h"

#include "compare/result.h"

#include <math.h>
#include <stdint.h>

struct line { double fixed, per_rate; };        /* of the whole machine; at 1 request a second */

static struct line line_of(const struct advice_way *way, unsigned cpus, double memory_mib)
{
	return (struct line){ way->idle_mib / memory_mib, way->cpu_ms / 1000 / cpus };
}

static double cost(struct line line, double rate)
{
	return line.fixed + line.per_rate * rate;
}

/* The first way to become cheaper than `from`, as the rate grows beyond `rate`. */
static bool next_step(const struct advice_way *ways, size_t count, size_t from, double rate, unsigned cpus, double memory_mib,
	struct advice_step *out)
{
	struct line base = line_of(&ways[from], cpus, memory_mib);
	double best = INFINITY, best_slope = 0;

	for (size_t i = 0; i < count; i++) {
		struct line line = line_of(&ways[i], cpus, memory_mib);
		double meets = (line.fixed - base.fixed) / (base.per_rate - line.per_rate);

		if (line.per_rate >= base.per_rate || meets < rate)
			continue;
		if (meets < best || (meets <= best && line.per_rate < best_slope)) {
			best = meets;
			best_slope = line.per_rate;
			*out = (struct advice_step){ i, meets };
		}
	}
	return isfinite(best);
}

void advice_make(struct advice *advice, const struct advice_way *ways, size_t count, unsigned cpus, double memory_mib)
{
	size_t first = 0;

	advice->count = 0;
	if (count == 0 || cpus == 0 || memory_mib <= 0)
		return;
	for (size_t i = 1; i < count; i++) {
		struct line line = line_of(&ways[i], cpus, memory_mib), best = line_of(&ways[first], cpus, memory_mib);

		if (line.fixed < best.fixed || (line.fixed <= best.fixed && cost(line, 1) < cost(best, 1)))
			first = i;
	}
	advice->steps[advice->count++] = (struct advice_step){ first, 0 };
	while (advice->count < ADVICE_STEPS_MAX) {
		const struct advice_step *last = &advice->steps[advice->count - 1];
		struct advice_step next;

		if (!next_step(ways, count, last->way, last->from_per_s, cpus, memory_mib, &next))
			break;
		advice->steps[advice->count++] = next;
	}
}

const char *advice_rate(double per_s, char *out)
{
	if (per_s >= 1)
		snprintf(out, ADVICE_RATE_BYTES, "%.*f requests a second", per_s < 10 ? 1 : 0, per_s);
	else if (per_s >= 1.0 / 120)
		snprintf(out, ADVICE_RATE_BYTES, "one request per %.*f s", per_s > 0.1 ? 1 : 0, 1 / per_s);
	else if (per_s >= 1.0 / 7200)
		snprintf(out, ADVICE_RATE_BYTES, "one request per %.0f minutes", 1 / per_s / 60);
	else
		snprintf(out, ADVICE_RATE_BYTES, "one request per %.0f hours", 1 / per_s / 3600);
	return out;
}

/* Words. */

static void print_numbers(const struct advice_way *way, FILE *out)
{
	fprintf(out, "%s takes %.3g ms of CPU for a request and holds ", way->name, way->cpu_ms);
	if (way->idle_mib > 0)
		fprintf(out, "%.3g MiB all the time", way->idle_mib);
	else
		fputs("nothing between requests", out);
}

static size_t step_at(const struct advice *advice, double rate_per_s)
{
	size_t at = 0;

	while (at + 1 < advice->count && advice->steps[at + 1].from_per_s <= rate_per_s)
		at++;
	return at;
}

static void print_steps(const struct advice *advice, const struct advice_way *ways, double rate_per_s, FILE *out)
{
	char rate[ADVICE_RATE_BYTES];

	if (advice->count == 1) {
		fprintf(out, "At any rate %s costs least", ways[advice->steps[0].way].name);
	} else {
		fprintf(out, "Up to %s %s costs least", advice_rate(advice->steps[1].from_per_s, rate), ways[advice->steps[0].way].name);
		for (size_t i = 1; i < advice->count; i++)
			fprintf(out, ", above %s %s", advice_rate(advice->steps[i].from_per_s, rate), ways[advice->steps[i].way].name);
	}
	if (rate_per_s > 0)
		fprintf(out, "; you now get %s, where that is %s", advice_rate(rate_per_s, rate),
			ways[advice->steps[step_at(advice, rate_per_s)].way].name);
	fputs(".\n", out);
}

/* Cost is not all that counts. */
static void print_quickest(const struct comparison_result *comparison, FILE *out)
{
	const struct way_result *best = NULL;
	uint64_t best_ns = 0;

	for (size_t i = 0; i < comparison->comparison->ways_count; i++) {
		const struct way_result *way = &comparison->ways[i];
		uint64_t ns = way_has_figures(way) ? latencies_percentile_ns(way->series.latencies, 50) : 0;

		if (ns == 0 || way->way->write_config == NULL || (best != NULL && ns >= best_ns))
			continue;
		best = way;
		best_ns = ns;
	}
	if (best != NULL)
		fprintf(out, "Cost is CPU and memory alone; the quickest is %s: half of its answers come within %.3g ms.\n", best->way->name, (double)best_ns / 1e6);
}

void advice_print(const struct comparison_result *comparison, const struct machine *machine, double rate_per_s, FILE *out)
{
	struct advice_way ways[ADVICE_STEPS_MAX];
	struct advice advice;
	size_t count = 0;

	for (size_t i = 0; i < comparison->comparison->ways_count && count < ADVICE_STEPS_MAX; i++) {
		const struct way_result *way = &comparison->ways[i];

		if (way->way->write_config != NULL && way_has_figures(way) && way->has_usage && way->has_idle)
			ways[count++] = (struct advice_way){ way->way->name, way_cpu_ms_all(way), way_idle_mib(way, USAGE_HANDLERS) };
	}
	if (count < 2)
		return;
	advice_make(&advice, ways, count, machine->cpus, (double)machine->memory_kib / 1024);
	if (advice.count == 0)
		return;
	print_steps(&advice, ways, rate_per_s, out);
	for (size_t i = 0; i < count; i++) {
		fputs(i == 0 ? "That is since " : i + 1 < count ? ", " : " and ", out);
		print_numbers(&ways[i], out);
	}
	fprintf(out, "; a share of the memory (%.1f GiB) is taken to be worth the same share of the %u CPUs.\n",
		(double)machine->memory_kib / 1048576, machine->cpus);
	print_quickest(comparison, out);
}
