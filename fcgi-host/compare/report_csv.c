/* One line for each way; lines that begin with '#' say what the figures are of. */
#include "compare/report.h"

#include <inttypes.h>
#include <string.h>

static void put_text(const char *text, FILE *out)
{
	if (text == NULL)
		return;
	if (strpbrk(text, ",\"\r\n") == NULL) {
		fputs(text, out);
		return;
	}
	fputc('"', out);
	for (; *text != '\0'; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static void put_latencies(const struct latencies *latencies, FILE *out)
{
	static const double percents[] = { 50, 90, 95, 99 };

	fprintf(out, ",%.6f,%.6f,%.6f", (double)latencies->min_ns / 1e6, latencies_mean_ns(latencies) / 1e6,
		latencies_deviation_ns(latencies) / 1e6);
	for (int i = 0; i < 4; i++)
		fprintf(out, ",%.6f", (double)latencies_percentile_ns(latencies, percents[i]) / 1e6);
	fprintf(out, ",%.6f", (double)latencies->max_ns / 1e6);
}

static void put_figures(const struct way_result *way, FILE *out)
{
	fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%.3f", way->series.answered, way->series.failed, way_requests_per_s(way));
	put_latencies(way->series.latencies, out);
	if (way->has_usage)
		fprintf(out, ",%.6f,%.3f,%.3f", way_cpu_ms_all(way), way_faults(way), way_switches(way));
	else
		fputs(",,,", out);
	if (way->has_idle)
		fprintf(out, ",%.3f", way_idle_mib(way, USAGE_HANDLERS));
	else
		fputs(",", out);
	if (way->ratio.is_known)
		fprintf(out, ",%.6f,%.6f,%.6f,%s", way->ratio.value, way->ratio.low, way->ratio.high, way->ratio.is_shown ? "yes" : "no");
	else
		fputs(",,,,", out);
}

static void put_way(const struct comparison_result *comparison, const struct way_result *way, FILE *out)
{
	double published = published_ratio(comparison, way);

	put_text(comparison->comparison->name, out);
	fputc(',', out);
	put_text(way->way->name, out);
	fprintf(out, ",%s,", way_has_figures(way) ? "measured" : way->state == WAY_NOT_RUN ? "not run" : way->state == WAY_WRONG ? "wrong" : "unfinished");
	put_text(way->reason, out);
	if (way_has_figures(way))
		put_figures(way, out);
	else
		fputs(",,,,,,,,,,,,,,,,,,,", out);
	if (published > 0)
		fprintf(out, ",%.6g\n", published);
	else
		fputs(",\n", out);
}

void report_csv(const struct report *report, FILE *out)
{
	fprintf(out, "# fcgi-host %s, %s, %u x %s, %s, %s\n# %s\n# ", PACKAGE_VERSION, report->began, report->machine.cpus, report->machine.cpu,
		report->machine.memory, report->machine.kernel, report->command);
	load_text(&report->plan->load, out);
	fputc('\n', out);
	for (size_t i = 0; i < report->count; i++)
		if (report->comparisons[i].is_partial || report->comparisons[i].is_noisy)
			fprintf(out, "# %s%s%s%s\n", report->comparisons[i].comparison->name == NULL ? "" : report->comparisons[i].comparison->name,
				report->comparisons[i].comparison->name == NULL ? "" : ": ",
				report->comparisons[i].is_partial ? "PARTIAL: interrupted " : "", report->comparisons[i].is_noisy ? "the machine is too noisy" : "");
	fputs("comparison,way,state,reason,requests,failed,requests_per_s,min_ms,mean_ms,sd_ms,p50_ms,p90_ms,p95_ms,p99_ms,max_ms,"
		"cpu_ms,page_faults,context_switches,idle_mib,ratio,ratio_low,ratio_high,difference_shown,published_ratio\n", out);
	for (size_t i = 0; i < report->count; i++)
		for (size_t j = 0; report->comparisons[i].ways != NULL && j < report->comparisons[i].comparison->ways_count; j++)
			put_way(&report->comparisons[i], &report->comparisons[i].ways[j], out);
}
