#include "compare/report.h"

#include "compare/plan.h"

#include <inttypes.h>
#include <string.h>

enum { PARAGRAPH_COLUMNS = 120 };

const char *figure(double value, char out[FIGURE_BYTES])
{
	double size = value < 0 ? -value : value;
	/* As it is after rounding: 0.9996 is 1.00. */
	int digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;

	snprintf(out, FIGURE_BYTES, "%.*f", size > 0 ? digits : 0, value);
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

static size_t columns_of(const char *text, size_t len)
{
	size_t columns = 0;

	for (size_t i = 0; i < len; i++)
		columns += ((unsigned char)text[i] & 0xc0) != 0x80;
	return columns;
}

void paragraph_text(const char *text, FILE *out)
{
	size_t at = 0;

	while (*text != '\0') {
		size_t len = strcspn(text, " \n"), columns = columns_of(text, len);

		if (at > 0 && at + 1 + columns > PARAGRAPH_COLUMNS) {
			fputc('\n', out);
			at = 0;
		}
		if (len > 0)
			fprintf(out, "%s%.*s", at > 0 ? " " : "", (int)len, text);
		at += columns + (at > 0);
		text += len;
		if (*text == '\n') {
			fputc('\n', out);
			at = 0;
		}
		text += *text != '\0';
	}
}

void load_text(const struct load_plan *load, FILE *out)
{
	if (load->kind == SCHEDULE_OPEN)
		fprintf(out, "open loop, %g requests a second at random moments, at most %zu at a time; latency from the intended moment; ",
			load->rate_per_s, load->concurrency);
	else
		fprintf(out, "closed loop, %zu at a time; ", load->concurrency);
	fprintf(out, "%s %s", load->method, load->path);
	if (load->body != NULL)
		fprintf(out, ", %zu bytes of body", load->body_len);
	fprintf(out, "; connections %s", load->keep ? "kept" : "not kept");
	if (load->via != VIA_NONE)
		fprintf(out, "; through %s", via_name(load->via));
}

void blocks_text(const struct comparison_result *comparison, FILE *out)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (size_t i = 0; i < comparison->comparison->ways_count; i++) {
		uint64_t requests = comparison->ways[i].block_requests;

		least = requests > 0 && requests < least ? requests : least;
		most = requests > most ? requests : most;
	}
	fprintf(out, "%zu of each way, in turn, there and back, of ", comparison->blocks);
	if (least < most)
		fprintf(out, "%" PRIu64 " to ", least);
	fprintf(out, "%" PRIu64 " request%s each", most, most == 1 ? "" : "s");
}

static void warn_of_failures(const struct way_result *way, FILE *out)
{
	if (way->state == WAY_MEASURED && way->series.failed > 0)
		fprintf(out, "%s: %" PRIu64 " of %" PRIu64 " requests failed: %s. Their times are in no figure.\n", way->way->name,
			way->series.failed, way->series.failed + way->series.answered, way->trouble);
}

static void warn_of_cold_starts(const struct way_result *way, FILE *out)
{
	uint64_t starts = way->starts_cold + way->starts_ahead;

	if (way_has_figures(way) && way->starts_ahead > 0 && way->starts_cold > 0)
		fprintf(out, "%s: for %.*f %% of the requests no process waited, and one was started for them.\n", way->way->name,
			way->starts_cold * 20 < starts ? 1 : 0, 100.0 * (double)way->starts_cold / (double)starts);
}

static bool has_starts_ahead(const struct comparison_result *comparison)
{
	for (size_t i = 0; i < comparison->comparison->ways_count; i++)
		if (way_has_figures(&comparison->ways[i]) && comparison->ways[i].starts_ahead > 0)
			return true;
	return false;
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
	if (report->generator.share > 0.9)
		fprintf(out, "The load generator used up to %.0f %% of a CPU in a block: it may have been what limits.\n", 100 * report->generator.share);
	for (size_t i = 0; i < comparison->comparison->ways_count; i++)
		warn_of_failures(&comparison->ways[i], out);
	for (size_t i = 0; i < comparison->comparison->ways_count; i++)
		warn_of_cold_starts(&comparison->ways[i], out);
	if (report->plan->load.kind == SCHEDULE_CLOSED && has_starts_ahead(comparison))
		fputs("A closed loop asks again at once, so that also what is started ahead is waited for; --rate shows what a request waits for at a rate of yours.\n", out);
}
