/*
 * compare_plan.h - the command line of `fcgi-host compare`, and the plan that it stands for.
 */
#ifndef FCGI_HOST_CLI_COMPARE_PLAN_H
#define FCGI_HOST_CLI_COMPARE_PLAN_H

#include "base/err.h"
#include "compare/plan.h"

/* Texts are borrowed from argv. */
struct compare_options {
	const char *config_file, *handler;      /* handler may be NULL */
	const char *command, *protocol;         /* instead of a configured handler */
	const char *suite;
	const char *ways, *baseline, *native;
	const char **urls, **connects;          /* NULL-terminated; ours */
	const char **headers;                   /* NULL-terminated; ours */
	const char *method, *path, *data;
	uint64_t requests, blocks, concurrency, timeout_s;
	double rate_per_s;
	unsigned status;
	bool without_keep;
	enum via via;
	bool as_json, as_csv;
	const char *html;
};

/* -1, after saying what is wrong, where the usage should be shown. */
int compare_options_read(struct compare_options *options, int argc, char **argv);
void compare_options_fini(struct compare_options *options);

/* Loads the configuration that the ways need, which must outlive the plan; it may stay NULL.  Both are the
 * caller's in any case. */
int compare_plan_make(const struct compare_options *options, struct plan *plan, struct config **config, struct err *err);

#endif
