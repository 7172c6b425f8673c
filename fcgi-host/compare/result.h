/*
 * result.h - what was measured; made by run.c, read by the reports.
 */
#ifndef FCGI_HOST_COMPARE_RESULT_H
#define FCGI_HOST_COMPARE_RESULT_H

#include "compare/blocks.h"
#include "compare/plan.h"
#include "compare/private_host.h"
#include "compare/usage.h"

enum way_state {
	WAY_UNFINISHED,                 /* interrupted before it had any block */
	WAY_MEASURED,
	WAY_NOT_RUN,                    /* it is missing, not supported, or does not start */
	WAY_WRONG,                      /* it answers otherwise than it should: no figures */
};

#define NO_WAY SIZE_MAX

struct way_result {
	const struct way *way;
	enum way_state state;
	char reason[1024];              /* of NOT_RUN and WRONG */
	uint64_t block_requests;        /* of one block */
	struct series series;           /* its latencies are NULL until it has a block */
	bool has_usage;                 /* of all its parts */
	struct usage usage;             /* of all blocks */
	uint64_t usage_requests;        /* that the usage is of */
	uint64_t spawn_count, spawn_ns[4];      /* enum spawn_part; count 0: nothing was spawned */
	uint64_t starts_cold, starts_ahead;     /* as private_host.h has them */
	bool has_idle;
	struct holding idle;            /* after the last block */
	struct estimate ratio, difference_ns;   /* to the baseline */
	char trouble[256];              /* the first failure under load, or "" */
};

struct comparison_result {
	const struct comparison *comparison;
	struct way_result *ways;        /* as many as the comparison has */
	size_t blocks;                  /* of each way */
	size_t baseline;                /* index, or NO_WAY when it did not run */
	struct estimate noise;          /* of the baseline against itself */
	bool is_noisy;                  /* that shows a difference */
	char compared[512];             /* what of the answers was compared */
	bool is_partial;                /* interrupted */
};

/* As text, "" where it is not known. */
struct machine {
	char cpu[128], kernel[160], memory[64], load[64], web_server[128];
	unsigned cpus;
	uint64_t memory_kib;
};

/* What asking took, while it measured. */
struct generator {
	double share;                   /* of one CPU, 0 to 1: the greatest of a block */
	uint64_t cpu_ns, requests;      /* of all blocks */
};

struct report {
	const struct plan *plan;
	char *command;                  /* exact, as for a shell */
	char began[32];
	struct machine machine;
	struct comparison_result *comparisons;  /* as many as the plan has */
	size_t count;                   /* that were begun */
	bool is_partial;
	struct generator generator;
	double rate_per_s;              /* that the running host gets for this handler now; 0: not known */
	double elapsed_s;
};

void report_fini(struct report *report);
void machine_describe(struct machine *machine, enum via via);

/* What most reports need. */
double way_requests_per_s(const struct way_result *way);
double way_cpu_ms(const struct way_result *way, enum usage_part part);  /* of a request */
double way_cpu_ms_all(const struct way_result *way);
double way_faults(const struct way_result *way);
double way_switches(const struct way_result *way);
double way_idle_mib(const struct way_result *way, enum usage_part part);
bool way_has_figures(const struct way_result *way);
/* How many times slower than the baseline was published; 0: nothing was. */
double published_ratio(const struct comparison_result *comparison, const struct way_result *way);

#endif
