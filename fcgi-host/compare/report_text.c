#include "compare/report.h"

#include "compare/advice.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum { COLUMNS_MAX = 20, CELL_BYTES = 160, ROWS_MAX = 64 };

/* A table whose columns are as wide as they need. */
struct cells {
	char text[ROWS_MAX][COLUMNS_MAX][CELL_BYTES];
	char note[ROWS_MAX][1100];      /* instead of figures */
	size_t rows, columns;
};

static const char *const names[] = { "WAY", "REQ/S", "MIN", "MEAN", "SD", "P50", "P90", "P95", "P99", "MAX", "CPU", "FAULTS",
	"SWITCHES", "IDLE", "FAILED", "RATIO" };
enum { NAMES_COUNT = sizeof(names) / sizeof(names[0]) };

static void put(struct cells *cells, size_t column, const char *text)
{
	snprintf(cells->text[cells->rows][column], CELL_BYTES, "%s", text);
}

static void put_figure(struct cells *cells, size_t column, double value)
{
	figure(value, cells->text[cells->rows][column]);
}

static void put_latencies(struct cells *cells, const struct latencies *latencies)
{
	static const double percents[] = { 50, 90, 95, 99 };

	put_figure(cells, 2, (double)latencies->min_ns / 1e6);
	put_figure(cells, 3, latencies_mean_ns(latencies) / 1e6);
	put_figure(cells, 4, latencies_deviation_ns(latencies) / 1e6);
	for (size_t i = 0; i < 4; i++)
		put_figure(cells, 5 + i, (double)latencies_percentile_ns(latencies, percents[i]) / 1e6);
	put_figure(cells, 9, (double)latencies->max_ns / 1e6);
}

static void put_usage(struct cells *cells, const struct way_result *way)
{
	for (size_t column = 10; column <= 13; column++)
		put(cells, column, "-");
	if (way->has_usage) {
		put_figure(cells, 10, way_cpu_ms_all(way));
		put_figure(cells, 11, way_faults(way));
		put_figure(cells, 12, way_switches(way));
	}
	if (way->has_idle)
		put_figure(cells, 13, way_idle_mib(way, USAGE_HANDLERS));
}

static const char *title_of(const struct way *way)
{
	return way->title != NULL ? way->title : way->name;
}

static void put_way(struct cells *cells, const struct comparison_result *comparison, size_t index)
{
	const struct way_result *way = &comparison->ways[index];

	put(cells, 0, way->way->name);
	cells->note[cells->rows][0] = '\0';
	if (way_has_figures(way)) {
		put_figure(cells, 1, way_requests_per_s(way));
		put_latencies(cells, way->series.latencies);
		put_usage(cells, way);
		snprintf(cells->text[cells->rows][14], CELL_BYTES, "%" PRIu64, way->series.failed);
		if (index == comparison->baseline)
			put(cells, 15, "1 (baseline)");
		else if (comparison->baseline == NO_WAY)
			put(cells, 15, "no baseline");
		else
			ratio_text(&way->ratio, cells->text[cells->rows][15]);
	} else {
		snprintf(cells->note[cells->rows], sizeof(cells->note[0]), "%s%s",
			way->state == WAY_NOT_RUN ? "not run: " : way->state == WAY_WRONG ? "no figures: " : "not finished",
			way->state == WAY_UNFINISHED ? "" : way->reason);
	}
	cells->rows++;
}

static int columns_of(const char *text)
{
	int columns = 0;

	for (; *text != '\0'; text++)
		columns += (*text & 0xc0) != 0x80;
	return columns;
}

static void print_cells(const struct cells *cells, FILE *out)
{
	int widths[COLUMNS_MAX] = { 0 };

	for (size_t row = 0; row < cells->rows; row++)
		for (size_t column = 0; column < NAMES_COUNT; column++)
			if (columns_of(cells->text[row][column]) > widths[column])
				widths[column] = columns_of(cells->text[row][column]);
	for (size_t row = 0; row < cells->rows; row++) {
		fprintf(out, "%-*s", widths[0], cells->text[row][0]);
		for (size_t column = 1; cells->note[row][0] == '\0' && column < NAMES_COUNT - 1; column++)
			fprintf(out, "  %*s", widths[column], cells->text[row][column]);
		fprintf(out, "  %s\n", cells->note[row][0] != '\0' ? cells->note[row] : cells->text[row][NAMES_COUNT - 1]);
	}
}

static int width_of(const struct cells *cells)
{
	int width = 0;

	for (size_t column = 0; column < NAMES_COUNT; column++) {
		int widest = 0;

		for (size_t row = 0; row < cells->rows; row++)
			if (columns_of(cells->text[row][column]) > widest)
				widest = columns_of(cells->text[row][column]);
		width += widest + (column > 0 ? 2 : 0);
	}
	return width;
}

/* Figures below each other, ways side by side: for a terminal on which a line of all figures does not fit. */
static void print_turned(const struct cells *cells, FILE *out)
{
	for (size_t column = 0; column < NAMES_COUNT; column++) {
		fprintf(out, "%-8s", cells->text[0][column]);
		for (size_t row = 1; row < cells->rows; row++) {
			int width = columns_of(cells->text[row][0]), ratio = columns_of(cells->text[row][NAMES_COUNT - 1]);

			if (cells->note[row][0] == '\0')
				fprintf(out, "  %*s", width > ratio ? width : ratio, cells->text[row][column]);
		}
		fputc('\n', out);
	}
	for (size_t row = 1; row < cells->rows; row++)
		if (cells->note[row][0] != '\0')
			fprintf(out, "%s: %s\n", cells->text[row][0], cells->note[row]);
}

static bool fits(const struct cells *cells, FILE *out)
{
	struct winsize size;

	return ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || width_of(cells) <= size.ws_col;
}

static void print_table(const struct comparison_result *comparison, FILE *out)
{
	static struct cells cells;

	memset(&cells, 0, sizeof(cells));
	for (size_t i = 0; i < NAMES_COUNT; i++)
		put(&cells, i, names[i]);
	cells.rows = 1;
	for (size_t i = 0; i < comparison->comparison->ways_count && cells.rows < ROWS_MAX; i++)
		put_way(&cells, comparison, i);
	if (fits(&cells, out))
		print_cells(&cells, out);
	else
		print_turned(&cells, out);
	fputs("Times in ms; CPU in ms, page faults and context switches of a request, handler and host together; IDLE in MiB, held by the\n"
		"handler's processes after the last request; RATIO: how many times the time of the baseline, with its 95 % interval.\n", out);
}

static void print_titles(const struct comparison_result *comparison, FILE *out)
{
	for (size_t i = 0; i < comparison->comparison->ways_count; i++)
		if (comparison->ways[i].way->title != NULL)
			fprintf(out, "  %s: %s\n", comparison->ways[i].way->name, title_of(comparison->ways[i].way));
}

static bool has_published(const struct published *published)
{
	return published->mean_ms > 0 || published->requests_per_s > 0 || published->p99_ms > 0 || published->ratio > 0 || published->note != NULL;
}

static void print_published(const struct comparison_result *comparison, FILE *out)
{
	char text[FIGURE_BYTES];
	bool is_begun = false;

	for (size_t i = 0; i < comparison->comparison->ways_count; i++) {
		const struct way_result *way = &comparison->ways[i];
		const struct published *published = &way->way->published;
		double ratio = published_ratio(comparison, way);

		if (!has_published(published))
			continue;
		fprintf(out, "%s  %s:", is_begun ? "" : "Published, and ours:\n", way->way->name);
		is_begun = true;
		if (published->requests_per_s > 0)
			fprintf(out, " %.0f requests a second", published->requests_per_s);
		if (published->mean_ms > 0)
			fprintf(out, " mean %s ms", figure(published->mean_ms, text));
		if (published->p99_ms > 0)
			fprintf(out, " p99 %s ms", figure(published->p99_ms, text));
		if (ratio > 0 && i != comparison->baseline)
			fprintf(out, " ratio %s", figure(ratio, text));
		if (way_has_figures(way)) {
			fprintf(out, "; ours %.0f requests a second,", way_requests_per_s(way));
			fprintf(out, " mean %s ms,", figure(latencies_mean_ns(way->series.latencies) / 1e6, text));
			fprintf(out, " p99 %s ms", figure((double)latencies_percentile_ns(way->series.latencies, 99) / 1e6, text));
			if (way->ratio.is_known)
				fprintf(out, ", ratio %s", figure(way->ratio.value, text));
		}
		if (published->note != NULL)
			fprintf(out, " (%s)", published->note);
		fputc('\n', out);
	}
}

static double spawn_ms(const struct way_result *way, int part)
{
	return (double)way->spawn_ns[part] / (double)way->spawn_count / 1e6;
}

static void print_spawns(const struct comparison_result *comparison, FILE *out)
{
	char parts[4][FIGURE_BYTES];

	for (size_t i = 0; i < comparison->comparison->ways_count; i++) {
		const struct way_result *way = &comparison->ways[i];

		if (!way_has_figures(way) || way->spawn_count == 0)
			continue;
		for (int part = 0; part < 4; part++)
			figure(spawn_ms(way, part), parts[part]);
		fprintf(out, "A process of %s, mean in ms: start (fork to exec) %s, exec to first byte %s, first byte to end %s, exit %s.\n",
			way->way->name, parts[0], parts[1], parts[2], parts[3]);
	}
}

static void print_noise(const struct comparison_result *comparison, FILE *out)
{
	char ratio[RATIO_BYTES];

	if (comparison->baseline == NO_WAY || !comparison->noise.is_known)
		return;
	fprintf(out, "noise:    %s against itself: %s\n", comparison->ways[comparison->baseline].way->name, ratio_text(&comparison->noise, ratio));
}

static void print_advice(const struct report *report, const struct comparison_result *comparison, FILE *out)
{
	char *text = NULL;
	size_t len = 0;
	FILE *memory = open_memstream(&text, &len);

	if (memory == NULL)
		return;
	advice_print(comparison, &report->machine, report->rate_per_s, memory);
	if (fclose(memory) == 0)
		paragraph_text(text, out);
	free(text);
}

static void print_comparison(const struct report *report, const struct comparison_result *comparison, FILE *out)
{
	if (comparison->comparison->name != NULL)
		fprintf(out, "\n== %s\n", comparison->comparison->name);
	if (comparison->compared[0] != '\0')
		fprintf(out, "answers:  %s\n", comparison->compared);
	if (comparison->noise.is_known) {
		fputs("blocks:   ", out);
		blocks_text(comparison, out);
		fputc('\n', out);
	}
	print_noise(comparison, out);
	fputc('\n', out);
	warnings_text(report, comparison, out);
	print_table(comparison, out);
	print_titles(comparison, out);
	fputc('\n', out);
	print_spawns(comparison, out);
	print_advice(report, comparison, out);
	print_published(comparison, out);
}

void report_text(const struct report *report, FILE *out)
{
	const struct machine *machine = &report->machine;

	if (report->plan->suite != NULL)
		fprintf(out, "%s: %s\n%s\n\n", report->plan->suite, report->plan->title, report->plan->question);
	fprintf(out, "machine:  %u x %s, %s, %s; load was %s\n", machine->cpus, machine->cpu, machine->memory, machine->kernel, machine->load);
	fprintf(out, "versions: " PACKAGE_NAME " " PACKAGE_VERSION "%s%s\n", machine->web_server[0] == '\0' ? "" : ", ", machine->web_server);
	fprintf(out, "command:  %s\n", report->command);
	fprintf(out, "began:    %s, took %.0f s\n", report->began, report->elapsed_s);
	fputs("load:     ", out);
	load_text(&report->plan->load, out);
	fputc('\n', out);
	if (report->plan->published_note != NULL)
		fprintf(out, "published: %s\n", report->plan->published_note);
	for (size_t i = 0; i < report->count; i++)
		print_comparison(report, &report->comparisons[i], out);
	if (report->is_partial && report->count < report->plan->comparisons_count)
		fprintf(out, "\nPARTIAL: interrupted; %zu of %zu comparisons were not begun.\n", report->plan->comparisons_count - report->count,
			report->plan->comparisons_count);
}
