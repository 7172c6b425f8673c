#include "compare/blocks.h"

#include <stdlib.h>

/* Which way stands at a position, 0 <= position < ways * blocks. */
static size_t way_at(size_t position, size_t ways)
{
	size_t round = position / ways, at = position % ways;

	return round % 2 == 0 ? at : ways - 1 - at;
}

static int allocate(struct series *series, size_t ways, size_t blocks)
{
	for (size_t i = 0; i < ways; i++) {
		series[i] = (struct series){ .latencies = calloc(1, sizeof(struct latencies)),
			.blocks = calloc(blocks + 1, sizeof(struct block)) };
		if (series[i].latencies == NULL || series[i].blocks == NULL) {
			for (size_t j = 0; j <= i; j++)
				series_fini(&series[j]);
			return -1;
		}
	}
	return 0;
}

static void add(struct series *series, const struct block *block, const struct latencies *latencies)
{
	series->blocks[series->count++] = *block;
	series->elapsed_ns += block->elapsed_ns;
	series->answered += block->answered;
	series->failed += block->failed;
	latencies_merge(series->latencies, latencies);
}

/* One round: a block of each way.  They count when all of them were run. */
static int run_round(struct series *series, size_t ways, size_t round, block_run_fn *run, void *ctx)
{
	struct latencies *latencies = calloc(ways, sizeof(*latencies));
	struct block *blocks = calloc(ways, sizeof(*blocks));
	int status = latencies == NULL || blocks == NULL ? -1 : 0;

	for (size_t i = 0; i < ways && status == 0; i++) {
		size_t way = way_at(round * ways + i, ways);

		status = run(ctx, way, round, &blocks[way], &latencies[way]);
	}
	for (size_t i = 0; i < ways && status == 0; i++)
		add(&series[i], &blocks[i], &latencies[i]);
	free(latencies);
	free(blocks);
	return status;
}

int blocks_run(struct series *series, size_t ways, size_t blocks, block_run_fn *run, void *ctx)
{
	int status = allocate(series, ways, blocks);

	for (size_t round = 0; round < blocks && status == 0; round++)
		status = run_round(series, ways, round, run, ctx);
	return status;
}

void series_fini(struct series *series)
{
	free(series->latencies);
	free(series->blocks);
	*series = (struct series){ 0 };
}

/* What a request took in pair number `pair`; 0 where none was answered. */
static double pair_ns(const struct series *series, size_t pair)
{
	const struct block *first = &series->blocks[2 * pair], *second = first + 1;
	uint64_t answered = first->answered + second->answered;

	return answered == 0 ? 0 : (first->sum_ns + second->sum_ns) / (double)answered;
}

typedef struct estimate estimate_fn(const double *way, const double *base, size_t count, struct random *random);

static struct estimate estimate(const struct series *way, const struct series *base, struct random *random, estimate_fn *of)
{
	size_t pairs = (way->count < base->count ? way->count : base->count) / 2, count = 0;
	double *values = malloc((2 * pairs + 1) * sizeof(*values)), *others = values + pairs;
	struct estimate result = { 0 };

	for (size_t i = 0; values != NULL && i < pairs; i++) {
		values[count] = pair_ns(way, i);
		others[count] = pair_ns(base, i);
		count += values[count] > 0 && others[count] > 0;
	}
	if (values != NULL)
		result = of(values, others, count, random);
	free(values);
	return result;
}

struct estimate series_ratio(const struct series *way, const struct series *base, struct random *random)
{
	return estimate(way, base, random, statistics_ratio);
}

struct estimate series_difference_ns(const struct series *way, const struct series *base, struct random *random)
{
	return estimate(way, base, random, statistics_difference);
}
