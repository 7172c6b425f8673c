/*
 * suite.h - a suite of comparisons, read from its file (conf/suites/README.md).
 */
#ifndef FCGI_HOST_COMPARE_SUITE_H
#define FCGI_HOST_COMPARE_SUITE_H

#include "compare/plan.h"

struct suite;           /* the file as a tree; what a plan made of it points into */

/* NULL when there is at least one mistake; the report then has all of them.  The plan is filled as far as it
 * was read; give it back before the suite. */
struct suite *suite_load(const char *file, struct plan *plan, struct config_report *report);
void suite_free(struct suite **suite);

#endif
