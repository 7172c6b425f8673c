/*
 * progress.h - one line on a terminal: what is being done, and how long it still takes.
 * Nothing at all where stderr is no terminal.
 */
#ifndef FCGI_HOST_COMPARE_PROGRESS_H
#define FCGI_HOST_COMPARE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
	bool is_shown;                  /* set by progress_init() */
	uint64_t shown_ns;              /* when it was last written */
	double total_s, done_s;         /* as estimated of all that is planned so far; kept by the caller */
	uint64_t begun_ns;
	char stage[160];
};

void progress_init(struct progress *progress);
void progress_stage(struct progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The estimate of something done is added to done_s. */
void progress_done(struct progress *progress, double estimated_s);
void progress_clear(struct progress *progress);

#endif
