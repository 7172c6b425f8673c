#include "compare/report_charts.h"

#include "compare/report.h"

#include <math.h>
#include <string.h>

enum {
	COLOURS = 8, DASHES = 4,
	CURVES_HEIGHT = 260, CURVES_UNITS = 1000,       /* a curve's own coordinates, stretched to the plot */
	BAR = 14, BAR_STEP = 18, HEAD_STEP = 22,
	NAME_LETTERS = 17,              /* that stand to the left of a bar */
};

void html_text(const char *text, FILE *out)
{
	for (; *text != '\0'; text++)
		switch (*text) {
		case '&': fputs("&amp;", out); break;
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '"': fputs("&quot;", out); break;
		default: fputc((unsigned char)*text < 0x20 && *text != '\n' && *text != '\t' ? ' ' : *text, out);
		}
}

/* Axes. */

struct axis { double low, high; bool is_log; };

/* 0 to 100, from left to right. */
static double percent_on(const struct axis *axis, double value)
{
	double share;

	if (axis->is_log)
		share = value <= axis->low ? 0 : log(value / axis->low) / log(axis->high / axis->low);
	else
		share = (value - axis->low) / (axis->high - axis->low);
	return 100 * (share < 0 ? 0 : share > 1 ? 1 : share);
}

/* The next of 1, 2, 5, 10, 20, … that is not below (up) or not above. */
static double round_to_tick(double value, bool is_up)
{
	static const double steps[] = { 1, 2, 5, 10 };
	double decade = pow(10, floor(log10(value) + 1e-9)), found = decade;

	for (int i = 0; i < 4; i++) {
		if (steps[i] * decade <= value * (1 + 1e-9))
			found = steps[i] * decade;
		if (is_up && steps[i] * decade >= value * (1 - 1e-9))
			return steps[i] * decade;
	}
	return found;
}

static struct axis log_axis(double least, double most)
{
	struct axis axis = { .low = round_to_tick(least > 0 ? least : 1e-3, false), .is_log = true };

	axis.high = round_to_tick(most > axis.low ? most : axis.low * 1.01, true);
	return axis;
}

static struct axis linear_axis(double most)
{
	return (struct axis){ .low = 0, .high = most > 0 ? most : 1 };
}

static void put_tick(const struct axis *axis, double value, int height, FILE *out)
{
	double at = percent_on(axis, value);

	fprintf(out, "<line class=\"grid\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"%d\"/><text class=\"tick\" x=\"%.2f%%\" y=\"%d\" text-anchor=\"middle\">%g</text>\n",
		at, at, height, at, height + 14, value);
}

/* Decades; where these are few, 2 and 5 between them. */
static void put_log_ticks(const struct axis *axis, int height, FILE *out)
{
	double decades = log10(axis->high / axis->low);
	static const double steps[] = { 1, 2, 5 };

	for (double decade = pow(10, floor(log10(axis->low) + 1e-9)); decade <= axis->high * 1.001; decade *= 10)
		for (int i = 0; i < (decades < 2.2 ? 3 : 1); i++)
			if (steps[i] * decade >= axis->low * 0.999 && steps[i] * decade <= axis->high * 1.001)
				put_tick(axis, steps[i] * decade, height, out);
}

static void put_linear_ticks(const struct axis *axis, int height, FILE *out)
{
	double step = round_to_tick(axis->high / 4, true);

	for (int i = 0; i * step <= axis->high * 1.001; i++)
		put_tick(axis, i * step, height, out);
}

static void begin_figure(const char *class, const char *title, const char *explanation, FILE *out)
{
	fprintf(out, "<figure class=\"%s\">\n<figcaption><h3>%s</h3><p>%s</p></figcaption>\n", class, title, explanation);
}

static void begin_plot(const char *label, const struct axis *axis, int height, FILE *out)
{
	fprintf(out, "<div class=\"plot\"><svg width=\"100%%\" height=\"%d\" role=\"img\" aria-label=\"%s; the table below has the figures\">\n", height, label);
	if (axis->is_log)
		put_log_ticks(axis, height, out);
	else
		put_linear_ticks(axis, height, out);
}

static void end_figure(FILE *out)
{
	fputs("</svg></div>\n</figure>\n", out);
}

/* Ways. */

static size_t measured(const struct comparison_result *comparison)
{
	size_t count = 0;

	for (size_t i = 0; i < comparison->comparison->ways_count; i++)
		count += way_has_figures(&comparison->ways[i]);
	return count;
}

/* No two of the first 32 have both the colour and the dashes of another. */
static size_t dash_of(size_t index)
{
	return (index + index / COLOURS) % DASHES;
}

/* To the left of its bar; a long one is cut, and whole where a pointer rests. */
static void put_name(const char *name, double y, FILE *out)
{
	size_t letters = 0, len = 0;
	char shown[4 * NAME_LETTERS + 8];

	for (; name[len] != '\0' && letters <= NAME_LETTERS; len++)
		letters += ((unsigned char)name[len] & 0xc0) != 0x80;
	snprintf(shown, sizeof(shown), "%.*s%s", (int)(letters > NAME_LETTERS ? len - 2 : len), name, letters > NAME_LETTERS ? "…" : "");
	fprintf(out, "<text x=\"-8\" y=\"%.1f\" text-anchor=\"end\">", y);
	html_text(shown, out);
	fputs("<title>", out);
	html_text(name, out);
	fputs("</title></text>\n", out);
}

static void put_legend(const struct comparison_result *comparison, FILE *out)
{
	fputs("<ul class=\"legend\">", out);
	for (size_t i = 0; i < comparison->comparison->ways_count; i++) {
		if (!way_has_figures(&comparison->ways[i]))
			continue;
		fprintf(out, "<li><svg width=\"28\" height=\"10\" aria-hidden=\"true\"><path class=\"curve c%zu d%zu\" d=\"M0 5H28\"/></svg>", i % COLOURS, dash_of(i));
		html_text(comparison->ways[i].way->name, out);
		fputs("</li>", out);
	}
	fputs("</ul>\n", out);
}

static struct axis latency_axis(const struct comparison_result *comparison)
{
	double least = INFINITY, most = 0;

	for (size_t i = 0; i < comparison->comparison->ways_count; i++) {
		const struct way_result *way = &comparison->ways[i];

		if (!way_has_figures(way))
			continue;
		least = fmin(least, (double)way->series.latencies->min_ns / 1e6);
		most = fmax(most, (double)way->series.latencies->max_ns / 1e6);
	}
	return log_axis(least, most);
}

/* Curves. */

/* A step for each bucket that can be told from the one before. */
static void put_curve(const struct axis *axis, const struct latencies *latencies, size_t index, FILE *out)
{
	double x = percent_on(axis, (double)latencies->min_ns / 1e6) * CURVES_UNITS / 100, y = CURVES_UNITS;

	fprintf(out, "<path class=\"curve c%zu d%zu\" d=\"M%.0f %.0f", index % COLOURS, dash_of(index), x, y);
	for (int permille = 1; permille <= 1000; permille++) {
		double at = percent_on(axis, (double)latencies_percentile_ns(latencies, permille / 10.0) / 1e6) * CURVES_UNITS / 100;

		if (permille < 1000 && at - x < 1)
			continue;
		fprintf(out, "V%.0fH%.1f", y, at);
		x = at;
		y = CURVES_UNITS - permille;
	}
	fprintf(out, "V0H%d\"/>\n", CURVES_UNITS);
}

void chart_curves(const struct comparison_result *comparison, FILE *out)
{
	struct axis axis = latency_axis(comparison);

	if (measured(comparison) == 0)
		return;
	begin_figure("curves", "How long requests took", "The share of requests that were answered within a time (ms, log axis). Further left is faster; a flat tail to the right is what a few requests had to wait for.", out);
	put_legend(comparison, out);
	begin_plot("The distribution of latencies, one curve a way", &axis, CURVES_HEIGHT, out);
	for (int percent = 0; percent <= 100; percent += 25) {
		double y = CURVES_HEIGHT * (100 - percent) / 100.0;

		fprintf(out, "<line class=\"grid\" x1=\"0\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/><text class=\"tick\" x=\"-6\" y=\"%.1f\" text-anchor=\"end\">%d%%</text>\n", y, y, y, percent);
	}
	fprintf(out, "<svg width=\"100%%\" height=\"%d\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\">\n", CURVES_HEIGHT, CURVES_UNITS, CURVES_UNITS);
	for (size_t i = 0; i < comparison->comparison->ways_count; i++)
		if (way_has_figures(&comparison->ways[i]))
			put_curve(&axis, comparison->ways[i].series.latencies, i, out);
	fputs("</svg>\n", out);
	end_figure(out);
}

/* Bars. */

static void put_bar(const struct axis *axis, const char *name, size_t index, double value, double y, FILE *out)
{
	double width = percent_on(axis, value);
	char text[FIGURE_BYTES];

	put_name(name, y + BAR / 2.0, out);
	fprintf(out, "<rect class=\"bar c%zu\" x=\"0\" y=\"%.0f\" width=\"%.2f%%\" height=\"%d\" rx=\"2\"/><text x=\"%.2f%%\" dx=\"6\" y=\"%.1f\">%s</text>\n",
		index % COLOURS, y, width, BAR, width, y + BAR / 2.0, figure(value, text));
}

void chart_percentiles(const struct comparison_result *comparison, FILE *out)
{
	static const double percents[] = { 50, 90, 95, 99, 100 };
	static const char *const heads[] = { "median", "90 %", "95 %", "99 %", "longest" };
	struct axis axis = latency_axis(comparison);
	size_t count = measured(comparison);
	double y = 0;

	if (count == 0)
		return;
	begin_figure("bars", "Percentiles", "Within so many ms were that many requests answered (log axis: it does not begin at 0).", out);
	begin_plot("Percentiles of latencies, a bar for each way", &axis, (int)(5 * (HEAD_STEP + count * BAR_STEP)), out);
	for (int p = 0; p < 5; p++) {
		fprintf(out, "<text class=\"head\" x=\"-8\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", y + HEAD_STEP / 2.0, heads[p]);
		y += HEAD_STEP;
		for (size_t i = 0; i < comparison->comparison->ways_count; i++) {
			const struct way_result *way = &comparison->ways[i];

			if (!way_has_figures(way))
				continue;
			put_bar(&axis, way->way->name, i, (double)latencies_percentile_ns(way->series.latencies, percents[p]) / 1e6, y, out);
			y += BAR_STEP;
		}
	}
	end_figure(out);
}

/* Stacked by part. */

typedef double part_value_fn(const struct way_result *way, enum usage_part part);

struct stack { part_value_fn *value_of; bool (*has)(const struct way_result *way); };

static double total_of(const struct stack *stack, const struct way_result *way)
{
	double total = 0;

	for (int part = 0; part < USAGE_PARTS; part++)
		total += stack->value_of(way, (enum usage_part)part);
	return total;
}

static bool is_stacked(const struct stack *stack, const struct way_result *way)
{
	return way_has_figures(way) && stack->has(way);
}

static void put_parts_legend(const struct stack *stack, const struct comparison_result *comparison, FILE *out)
{
	fputs("<ul class=\"legend\">", out);
	for (int part = 0; part < USAGE_PARTS; part++) {
		double sum = 0;

		for (size_t i = 0; i < comparison->comparison->ways_count; i++)
			if (is_stacked(stack, &comparison->ways[i]))
				sum += stack->value_of(&comparison->ways[i], (enum usage_part)part);
		if (sum > 0)
			fprintf(out, "<li><svg width=\"14\" height=\"14\" aria-hidden=\"true\"><rect class=\"bar p%d\" width=\"14\" height=\"14\" rx=\"2\"/></svg>%s</li>",
				part, usage_part_name((enum usage_part)part));
	}
	fputs("</ul>\n", out);
}

static void put_stack(const struct stack *stack, const struct axis *axis, const struct way_result *way, double y, FILE *out)
{
	char text[FIGURE_BYTES];
	double x = 0;

	put_name(way->way->name, y + BAR / 2.0, out);
	for (int part = 0; part < USAGE_PARTS; part++) {
		double value = stack->value_of(way, (enum usage_part)part), width = percent_on(axis, value);

		if (width <= 0)
			continue;
		fprintf(out, "<rect class=\"bar part p%d\" x=\"%.2f%%\" y=\"%.0f\" width=\"%.2f%%\" height=\"%d\"><title>%s: %s</title></rect>\n",
			part, x, y, width, BAR, usage_part_name((enum usage_part)part), figure(value, text));
		x += width;
	}
	fprintf(out, "<text x=\"%.2f%%\" dx=\"6\" y=\"%.1f\">%s</text>\n", x, y + BAR / 2.0, figure(total_of(stack, way), text));
}

static void put_stacks(const struct stack *stack, const struct comparison_result *comparison, const char *label, FILE *out)
{
	struct axis axis;
	double most = 0, y = 4;
	int rows = 0;

	for (size_t i = 0; i < comparison->comparison->ways_count; i++)
		if (is_stacked(stack, &comparison->ways[i])) {
			most = fmax(most, total_of(stack, &comparison->ways[i]));
			rows++;
		}
	axis = linear_axis(most);
	put_parts_legend(stack, comparison, out);
	begin_plot(label, &axis, rows * (BAR_STEP + 6) + 4, out);
	for (size_t i = 0; i < comparison->comparison->ways_count; i++)
		if (is_stacked(stack, &comparison->ways[i])) {
			put_stack(stack, &axis, &comparison->ways[i], y, out);
			y += BAR_STEP + 6;
		}
	end_figure(out);
}

static bool has_usage(const struct way_result *way)
{
	return way->has_usage;
}

static bool has_idle(const struct way_result *way)
{
	return way->has_idle;
}

static bool has_any(const struct stack *stack, const struct comparison_result *comparison)
{
	for (size_t i = 0; i < comparison->comparison->ways_count; i++)
		if (is_stacked(stack, &comparison->ways[i]))
			return true;
	return false;
}

void chart_cpu(const struct comparison_result *comparison, FILE *out)
{
	static const struct stack stack = { way_cpu_ms, has_usage };

	if (!has_any(&stack, comparison))
		return;
	begin_figure("bars", "CPU for a request", "In ms, by who used it.", out);
	put_stacks(&stack, comparison, "CPU for a request, by part", out);
}

void chart_memory(const struct comparison_result *comparison, FILE *out)
{
	static const struct stack stack = { way_idle_mib, has_idle };

	if (!has_any(&stack, comparison))
		return;
	begin_figure("bars", "Memory held while idle", "In MiB, after the last request, by who holds it. A host has one relay and its spawners, however many handlers it runs.", out);
	put_stacks(&stack, comparison, "Memory held while idle, by part", out);
}
