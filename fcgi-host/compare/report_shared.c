#include "compare/report.h"

#include "compare/plan.h"

#include <inttypes.h>

const char *figure(double value, char out[FIGURE_BYTES])
{
	double size = value < 0 ? -value : value;
	int digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;

	snprintf(out, FIGURE_BYTES, "%.*f", digits, value);
	return out;
}

const char *ratio_text(const struct estimate *ratio, char out[RATIO_BYTES])
{
	char value[FIGURE_BYTES], low[FIGURE_BYTES], high[FIGURE_BYTES];

	if (!ratio->is_known)
		snprintf(out, RATIO_BYTES, "too few blocks");
	else
		snprintf(out, RATIO_BYTES, "%s (%s to %s)%s", figure(ratio->value, value), figure(ratio->low, low), figure(ratio->high, high),
			ratio->is_shown ? "" : ", no difference shown");
	return out;
}

void load_text(const struct load_plan *load, FILE *out)
{
	if (load->kind == SCHEDULE_OPEN)
		fprintf(out, "open loop, %g requests a second at random moments, at most %zu at a time; latency from the intended moment; ",
			load->rate_per_s, load->concurrency);
	else
		fprintf(out, "closed loop, %zu at a time; ", load->concurrency);
	if (load->requests > 0)
		fprintf(out, "%" PRIu64 " requests a way in %zu blocks; ", load->requests, load->blocks);
	else
		fprintf(out, "%zu blocks a way; ", load->blocks);
	fprintf(out, "%s %s", load->method, load->path);
	if (load->body != NULL)
		fprintf(out, ", %zu bytes of body", load->body_len);
	fprintf(out, "; connections %s", load->keep ? "kept" : "not kept");
	if (load->via != VIA_NONE)
		fprintf(out, "; through %s", via_name(load->via));
}

static void warn_of_failures(const struct way_result *way, FILE *out)
{
	if (way->state == WAY_MEASURED && way->series.failed > 0)
		fprintf(out, "%s: %" PRIu64 " of %" PRIu64 " requests failed: %s. Their times are in no figure.\n", way->way->name,
			way->series.failed, way->series.failed + way->series.answered, way->trouble);
}

void warnings_text(const struct report *report, const struct comparison_result *comparison, FILE *out)
{
	char ratio[RATIO_BYTES];
	const struct way_result *base = comparison->baseline == NO_WAY ? NULL : &comparison->ways[comparison->baseline];

	if (comparison->is_partial)
		fputs("PARTIAL: interrupted before the end; the figures are of the blocks run until then.\n", out);
	if (comparison->is_noisy && base != NULL)
		fprintf(out, "THIS MACHINE IS TOO NOISY NOW: %s against itself gives %s. Small differences below mean nothing.\n",
			base->way->name, ratio_text(&comparison->noise, ratio));
	if (report->generator_share > 0.9)
		fprintf(out, "The load generator used up to %.0f %% of a CPU in a block: it may have been what limits.\n", 100 * report->generator_share);
	for (size_t i = 0; i < comparison->comparison->ways_count; i++)
		warn_of_failures(&comparison->ways[i], out);
}
