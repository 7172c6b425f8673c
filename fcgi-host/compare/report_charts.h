/*
 * report_charts.h - the charts of the page, as SVG that is as wide as the page lets it be, with text that
 * stays as large as the page's.
 */
#ifndef FCGI_HOST_COMPARE_REPORT_CHARTS_H
#define FCGI_HOST_COMPARE_REPORT_CHARTS_H

#include "compare/result.h"

#include <stdio.h>

/* Text between tags, or in an attribute in double quotes. */
void html_text(const char *text, FILE *out);

/* Each a <figure>; nothing where no way has such figures. */
void chart_curves(const struct comparison_result *comparison, FILE *out);       /* the share of requests that were answered within a time */
void chart_percentiles(const struct comparison_result *comparison, FILE *out);
void chart_cpu(const struct comparison_result *comparison, FILE *out);          /* of a request, by part */
void chart_memory(const struct comparison_result *comparison, FILE *out);       /* while idle, by part */

#endif
