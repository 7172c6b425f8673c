/*
 * run.h - runs a plan: starts its ways, looks whether they answer alike, measures them
 * side by side, and stops them.
 */
#ifndef FCGI_HOST_COMPARE_RUN_H
#define FCGI_HOST_COMPARE_RUN_H

#include "compare/result.h"

#include <signal.h>

/* Fills `report`, whose plan is set; report_fini() in any case.  The baseline is the plan's, else
 * the first HTTP or FastCGI server that is given by address, else the persistent way, else the first that runs.
 *
 * 0, also when ways did not run or when it was interrupted (is_partial); -1 with err when nothing
 * could be measured for a reason of our own. */
int compare_run(struct report *report, const volatile sig_atomic_t *is_interrupted, struct err *err);

#endif
