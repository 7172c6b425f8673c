/*
 * run_private.h - what the parts of a run share: run.c and run_answers.c.  For
 * them only.
 */
#ifndef FCGI_HOST_COMPARE_RUN_PRIVATE_H
#define FCGI_HOST_COMPARE_RUN_PRIVATE_H

#include "compare/progress.h"
#include "compare/run.h"
#include "compare/subject.h"

struct run {
	struct report *report;
	struct stage stage;
	struct subject *subjects;       /* of the comparison that runs */
	struct comparison_result *result;
	size_t *running;                /* indices of the ways that run, in the order of the plan */
	size_t running_count;
	double *each_ns;                /* what a request of each way takes, roughly */
	struct progress progress;
	unsigned subjects_begun;
	bool is_noise_run;
	struct err err;                 /* why a block ended everything */
};

bool run_is_interrupted(const struct run *run);
/* Ends the way at this place of `running`, which those behind it move up to. */
void run_drop(struct run *run, size_t at, enum way_state state, const char *reason);
size_t run_find_baseline(const struct run *run);

/* Asks every way that runs, and drops those that do not answer, or otherwise than the baseline. */
void run_compare_answers(struct run *run);

#endif
