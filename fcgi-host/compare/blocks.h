/*
 * blocks.h - several ways measured side by side: in short blocks, one way after
 * the other, then back (A B C, C B A, A B C, …), so that whatever drifts on the
 * machine meets all of them alike.
 *
 * A block is one sample.  Knows nothing of what a block does: it is run by a
 * function, which may be simulated.
 */
#ifndef FCGI_HOST_COMPARE_BLOCKS_H
#define FCGI_HOST_COMPARE_BLOCKS_H

#include "compare/latencies.h"
#include "compare/statistics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One block of one way. */
struct block {
	uint64_t elapsed_ns;
	uint64_t answered, failed;      /* failed ones have no latency */
	double sum_ns;                  /* of the latencies of the answered ones */
	uint64_t generator_cpu_ns;      /* that asking took, on our side */
};

/* All blocks of one way. */
struct series {
	struct latencies *latencies;
	struct block *blocks;           /* those that were run to their end */
	size_t count;
	uint64_t elapsed_ns, answered, failed;  /* of these together */
};

/* Runs one block: fills `block`, adds to `latencies`.  -1 ends everything: the block does
 * not count, nor do those without a counterpart in every other way. */
typedef int block_run_fn(void *ctx, size_t way, size_t index, struct block *block, struct latencies *latencies);


/* `series` has `ways` of them, zeroed or as series_init() leaves them; `blocks` is of
 * each way.  0; -1 when it was ended before, or without memory. */
int blocks_run(struct series *series, size_t ways, size_t blocks, block_run_fn *run, void *ctx);

void series_fini(struct series *series);

/* The two ways' pairs: both blocks of A B B A together are one.  The random is for
 * resampling. */
struct estimate series_ratio(const struct series *way, const struct series *base, struct random *random);
struct estimate series_difference_ns(const struct series *way, const struct series *base, struct random *random);

#endif
