/* One page, with all that it needs in it: charts, and the figures as a table. */
#include "compare/report.h"

#include "compare/advice.h"
#include "compare/private_web.h"
#include "compare/report_charts.h"

#include <inttypes.h>
#include <stdlib.h>

/* What a report's text function writes, as text of the page. */
struct text { char *chars; size_t len; FILE *out; };

static FILE *text_begin(struct text *text)
{
	*text = (struct text){ .chars = NULL };
	text->out = open_memstream(&text->chars, &text->len);
	return text->out;
}

/* Each line between `before` and `after`. */
static void text_end(struct text *text, const char *before, const char *after, FILE *out)
{
	if (text->out == NULL || fclose(text->out) != 0)
		return;
	for (char *line = text->chars, *end; *line != '\0'; line = end) {
		end = line;
		while (*end != '\n' && *end != '\0')
			end++;
		if (*end == '\n')
			*end++ = '\0';
		fputs(before, out);
		html_text(line, out);
		fputs(after, out);
	}
	free(text->chars);
}

static void put_pair(const char *name, const char *value, FILE *out)
{
	if (value == NULL || value[0] == '\0')
		return;
	fprintf(out, "<dt>%s</dt><dd>", name);
	html_text(value, out);
	fputs("</dd>\n", out);
}

static void put_facts(const struct report *report, FILE *out)
{
	const struct machine *machine = &report->machine;
	struct text text;
	char line[512];

	fputs("<dl>\n", out);
	snprintf(line, sizeof(line), "%u × %s, %s, %s; load was %s", machine->cpus, machine->cpu, machine->memory, machine->kernel, machine->load);
	put_pair("machine", line, out);
	snprintf(line, sizeof(line), PACKAGE_NAME " " PACKAGE_VERSION "%s%s", machine->web_server[0] == '\0' ? "" : ", ", machine->web_server);
	put_pair("versions", line, out);
	fputs("<dt>command</dt><dd><code>", out);
	html_text(report->command, out);
	fputs("</code></dd>\n", out);
	snprintf(line, sizeof(line), "%s, took %.0f s", report->began, report->elapsed_s);
	put_pair("began", line, out);
	if (text_begin(&text) != NULL)
		load_text(&report->plan->load, text.out);
	text_end(&text, "<dt>load</dt><dd>", "</dd>\n", out);
	put_pair("published", report->plan->published_note, out);
	fputs("</dl>\n", out);
}

static void put_comparison_facts(const struct comparison_result *comparison, FILE *out)
{
	char ratio[RATIO_BYTES], line[RATIO_BYTES + 256];
	struct text text;

	fputs("<dl>\n", out);
	put_pair("answers compared", comparison->compared, out);
	if (comparison->baseline != NO_WAY && comparison->noise.is_known) {
		if (text_begin(&text) != NULL)
			blocks_text(comparison, text.out);
		text_end(&text, "<dt>blocks</dt><dd>", "</dd>\n", out);
		snprintf(line, sizeof(line), "%s against itself: %s", comparison->ways[comparison->baseline].way->name, ratio_text(&comparison->noise, ratio));
		put_pair("noise", line, out);
	}
	fputs("</dl>\n", out);
}

static void put_warnings(const struct report *report, const struct comparison_result *comparison, FILE *out)
{
	struct text text;

	if (text_begin(&text) != NULL)
		warnings_text(report, comparison, text.out);
	fflush(text.out);
	if (text.len > 0)
		fputs("<div class=\"warnings\" role=\"note\">\n", out);
	bool is_open = text.len > 0;
	text_end(&text, "<p>", "</p>\n", out);
	if (is_open)
		fputs("</div>\n", out);
}

static void put_advice(const struct report *report, const struct comparison_result *comparison, FILE *out)
{
	struct text text;

	if (text_begin(&text) != NULL)
		advice_print(comparison, &report->machine, report->rate_per_s, text.out);
	text_end(&text, "<p class=\"advice\">", "</p>\n", out);
}

/* The table. */

static const char *const columns[] = { "requests/s", "min", "mean", "sd", "median", "90&nbsp;%", "95&nbsp;%", "99&nbsp;%", "max", "CPU", "page faults",
	"context switches", "idle MiB", "failed" };
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static void put_cell(bool is_known, double value, FILE *out)
{
	char text[FIGURE_BYTES];

	fprintf(out, "<td>%s</td>", is_known ? figure(value, text) : "–");
}

static void put_ratio(const struct comparison_result *comparison, size_t index, FILE *out)
{
	char ratio[RATIO_BYTES];

	fprintf(out, "<td class=\"ratio\">%s</td>", index == comparison->baseline ? "1 (baseline)" :
		comparison->baseline == NO_WAY ? "no baseline" : ratio_text(&comparison->ways[index].ratio, ratio));
}

static void put_figures(const struct way_result *way, FILE *out)
{
	static const double percents[] = { 50, 90, 95, 99 };
	const struct latencies *latencies = way->series.latencies;

	put_cell(true, way_requests_per_s(way), out);
	put_cell(true, (double)latencies->min_ns / 1e6, out);
	put_cell(true, latencies_mean_ns(latencies) / 1e6, out);
	put_cell(true, latencies_deviation_ns(latencies) / 1e6, out);
	for (int i = 0; i < 4; i++)
		put_cell(true, (double)latencies_percentile_ns(latencies, percents[i]) / 1e6, out);
	put_cell(true, (double)latencies->max_ns / 1e6, out);
	put_cell(way->has_usage, way_cpu_ms_all(way), out);
	put_cell(way->has_usage, way_faults(way), out);
	put_cell(way->has_usage, way_switches(way), out);
	put_cell(way->has_idle, way_idle_mib(way, USAGE_HANDLERS), out);
	fprintf(out, "<td>%" PRIu64 "</td>", way->series.failed);
}

static bool has_published(const struct comparison_result *comparison)
{
	for (size_t i = 0; i < comparison->comparison->ways_count; i++)
		if (published_ratio(comparison, &comparison->ways[i]) > 0)
			return true;
	return false;
}

static void put_way(const struct comparison_result *comparison, size_t index, bool with_published, FILE *out)
{
	const struct way_result *way = &comparison->ways[index];
	double published = published_ratio(comparison, way);

	fputs("<tr><th scope=\"row\"", out);
	if (way->way->title != NULL) {
		fputs(" title=\"", out);
		html_text(way->way->title, out);
		fputc('"', out);
	}
	fputc('>', out);
	html_text(way->way->name, out);
	fputs("</th>", out);
	if (way_has_figures(way))
		put_ratio(comparison, index, out);
	else
		fputs("<td class=\"ratio\">–</td>", out);
	if (with_published)
		put_cell(published > 0, published, out);
	if (way_has_figures(way)) {
		put_figures(way, out);
	} else {
		fprintf(out, "<td class=\"note\" colspan=\"%d\">%s", COLUMNS,
			way->state == WAY_NOT_RUN ? "not run: " : way->state == WAY_WRONG ? "no figures: " : "not finished");
		html_text(way->reason, out);
		fputs("</td>", out);
	}
	fputs("</tr>\n", out);
}

static void put_table(const struct comparison_result *comparison, FILE *out)
{
	bool with_published = has_published(comparison);

	fputs("<h3>All figures</h3>\n<p class=\"soft\">Times and CPU in ms; CPU, page faults and context switches of a request, handler and host together; idle: the memory "
		"of the handler’s processes after the last request; ratio: how many times the time of the baseline, with its 95 % interval.</p>\n"
		"<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"All figures\"><table>\n<thead><tr><th scope=\"col\">way</th>"
		"<th scope=\"col\" class=\"ratio\">ratio</th>", out);
	fputs(with_published ? "<th scope=\"col\">published ratio</th>" : "", out);
	for (int i = 0; i < COLUMNS; i++)
		fprintf(out, "<th scope=\"col\">%s</th>", columns[i]);
	fputs("</tr></thead>\n<tbody>\n", out);
	for (size_t i = 0; i < comparison->comparison->ways_count; i++)
		put_way(comparison, i, with_published, out);
	fputs("</tbody></table></div>\n", out);
}

static bool has_spawns(const struct way_result *way)
{
	return way_has_figures(way) && way->spawn_count > 0;
}

static void put_spawns(const struct comparison_result *comparison, FILE *out)
{
	bool is_begun = false;

	for (size_t i = 0; i < comparison->comparison->ways_count; i++) {
		const struct way_result *way = &comparison->ways[i];

		if (!has_spawns(way))
			continue;
		if (!is_begun)
			fputs("<h3>Parts of a spawn</h3>\n<p class=\"soft\">A process that is started for a request: the mean of its parts in ms.</p>\n"
				"<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Parts of a spawn\"><table>\n<thead><tr><th scope=\"col\">way</th><th scope=\"col\">start (fork to exec)</th><th scope=\"col\">exec to first byte</th>"
				"<th scope=\"col\">first byte to end</th><th scope=\"col\">exit</th></tr></thead>\n<tbody>\n", out);
		is_begun = true;
		fputs("<tr><th scope=\"row\">", out);
		html_text(way->way->name, out);
		fputs("</th>", out);
		for (int part = 0; part < 4; part++)
			put_cell(true, (double)way->spawn_ns[part] / (double)way->spawn_count / 1e6, out);
		fputs("</tr>\n", out);
	}
	if (is_begun)
		fputs("</tbody></table></div>\n", out);
}

static void put_comparison(const struct report *report, const struct comparison_result *comparison, FILE *out)
{
	fputs("<section>\n<h2>", out);
	html_text(comparison->comparison->name != NULL ? comparison->comparison->name : "Side by side", out);
	fputs("</h2>\n", out);
	put_comparison_facts(comparison, out);
	put_warnings(report, comparison, out);
	put_advice(report, comparison, out);
	fputs("<div class=\"charts\">\n", out);
	chart_curves(comparison, out);
	chart_cpu(comparison, out);
	chart_percentiles(comparison, out);
	chart_memory(comparison, out);
	fputs("</div>\n", out);
	put_table(comparison, out);
	put_spawns(comparison, out);
	fputs("</section>\n", out);
}

void report_html(const struct report *report, FILE *out)
{
	const struct plan *plan = report->plan;
	const char *style = shipped_text("fcgi-host/compare/report.css");

	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<title>fcgi-host compare</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n", out);
	fputs(style == NULL ? "" : style, out);
	fputs("</style>\n</head>\n<body>\n<main>\n<h1>", out);
	html_text(plan->title != NULL ? plan->title : "What the ways of running a handler cost", out);
	fputs("</h1>\n", out);
	if (plan->question != NULL) {
		fputs("<p>", out);
		html_text(plan->question, out);
		fputs("</p>\n", out);
	}
	put_facts(report, out);
	for (size_t i = 0; i < report->count; i++)
		if (report->comparisons[i].ways != NULL)
			put_comparison(report, &report->comparisons[i], out);
	if (report->is_partial && report->count < plan->comparisons_count)
		fprintf(out, "<div class=\"warnings\" role=\"note\"><p>PARTIAL: interrupted; %zu of %zu comparisons were not begun.</p></div>\n",
			plan->comparisons_count - report->count, plan->comparisons_count);
	fputs("</main>\n</body>\n</html>\n", out);
}
