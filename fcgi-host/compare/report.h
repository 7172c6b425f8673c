/*
 * report.h - what was measured, as text for a terminal, JSON, CSV and a page.
 */
#ifndef FCGI_HOST_COMPARE_REPORT_H
#define FCGI_HOST_COMPARE_REPORT_H

#include "compare/result.h"

#include <stdio.h>

void report_text(const struct report *report, FILE *out);
void report_json(const struct report *report, FILE *out);
void report_csv(const struct report *report, FILE *out);
void report_html(const struct report *report, FILE *out);

/* Shared by them. */
enum { FIGURE_BYTES = 40 };
/* Three digits or a few more: "0.042", "12.3", "1240". */
const char *figure(double value, char out[FIGURE_BYTES]);
/* "1.02 (1.01 to 1.04)", with "no difference shown" where that is so. */
enum { RATIO_BYTES = 160 };
const char *ratio_text(const struct estimate *ratio, char out[RATIO_BYTES]);
/* "closed loop, 4 at a time, GET /hello" */
void load_text(const struct load_plan *load, FILE *out);
/* "40 of each way, in turn, there and back, of 100 requests each" */
void blocks_text(const struct comparison_result *comparison, FILE *out);
/* Words between line ends, broken into lines that a terminal can take. */
void paragraph_text(const char *text, FILE *out);
/* What a reader must know before the figures: noise, failures, an interrupt; a line each. */
void warnings_text(const struct report *report, const struct comparison_result *comparison, FILE *out);

#endif
