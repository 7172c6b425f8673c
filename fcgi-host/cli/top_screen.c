#include "cli/top_screen.h"

#include "cli/members.h"

#include <ctype.h>
#include <curses.h>
#include <inttypes.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_BYTES = 160, SECONDS_SHOWN = 20, FAILURES_SHOWN = 8, HEAD_LINES = 4, NAME_MIN_WIDTH = 10 };
enum { PLAIN, ALARM, CARE };            /* pairs of colours */

struct cell {
	char text[CELL_BYTES];
	int look;
};

/* Handlers: a row of columns.  What stands further left matters more, since a
 * narrow terminal shows only so many. */

struct column {
	const char *title;
	int width;                      /* negative: from the left */
	void (*text)(struct json_object *handler, struct cell *out);
	double (*value)(struct json_object *handler);   /* to sort by, the greatest first; NULL: by text */
};

static struct json_object *workers(struct json_object *handler)
{
	return member(member(handler, "configured"), "workers");
}

static void put_member(struct json_object *of, const char *name, struct cell *out)
{
	snprintf(out->text, sizeof(out->text), "%s", member_text(of, name));
}

static void put_name(struct json_object *handler, struct cell *out)
{
	put_member(handler, "name", out);
}

static void put_process(struct json_object *handler, struct cell *out)
{
	const char *process = member_text(handler, "process");

	if (json_object_get_boolean(member(handler, "retired")))
		process = "retired";
	else if (member(handler, "connect") != NULL)
		process = "connect";
	snprintf(out->text, sizeof(out->text), "%s", process);
}

static void put_busy(struct json_object *handler, struct cell *out)
{
	put_member(member(handler, "processes"), "busy", out);
}

static double busy(struct json_object *handler)
{
	return member_double(member(handler, "processes"), "busy");
}

static double idle(struct json_object *handler)
{
	return member_double(member(handler, "processes"), "idle");
}

static void put_idle(struct json_object *handler, struct cell *out)
{
	put_member(member(handler, "processes"), "idle", out);
}

/* "3+1": a zygote is none of the others. */
static void put_total(struct json_object *handler, struct cell *out)
{
	put_member(member(handler, "processes"), "total", out);
	if (member_number(handler, "zygotes") > 0) {
		size_t len = strlen(out->text);

		snprintf(out->text + len, sizeof(out->text) - len, "+%s", member_text(handler, "zygotes"));
	}
}

static double total(struct json_object *handler)
{
	return member_double(member(handler, "processes"), "total");
}

static void put_max(struct json_object *handler, struct cell *out)
{
	put_member(workers(handler), "max", out);
}

static double max(struct json_object *handler)
{
	return member_double(workers(handler), "max");
}

static void put_waiting(struct json_object *handler, struct cell *out)
{
	put_member(handler, "waiting", out);
	out->look = member_number(handler, "waiting") > 0 ? CARE : PLAIN;
}

static double waiting(struct json_object *handler)
{
	return member_double(handler, "waiting");
}

static double per_second(struct json_object *handler)
{
	return member_double(handler, "requests_per_second");
}

static void put_rate(struct json_object *handler, struct cell *out)
{
	snprintf(out->text, sizeof(out->text), "%.1f", per_second(handler));
}

static double failed(struct json_object *handler)
{
	return (double)members_failed(member(handler, "totals"));
}

static void put_failed(struct json_object *handler, struct cell *out)
{
	uint64_t n = members_failed(member(handler, "totals"));

	snprintf(out->text, sizeof(out->text), "%" PRIu64, n);
	out->look = n > 0 ? ALARM : PLAIN;
}

static double requests(struct json_object *handler)
{
	return member_double(member(handler, "totals"), "requests");
}

static void put_requests(struct json_object *handler, struct cell *out)
{
	put_member(member(handler, "totals"), "requests", out);
}

static void put_span(struct json_object *of, const char *name, struct cell *out)
{
	char text[MEMBER_TEXT_BYTES];

	snprintf(out->text, sizeof(out->text), "%s", member_span(of, name, text));
}

#define SPAN(function, group, percentile) \
	static void put_##function(struct json_object *handler, struct cell *out) \
	{ \
		put_span(member(handler, group), percentile, out); \
	} \
	static double function(struct json_object *handler) \
	{ \
		return member_double(member(handler, group), percentile); \
	}
SPAN(total_p50, "latency_ms", "p50")
SPAN(total_p95, "latency_ms", "p95")
SPAN(total_p99, "latency_ms", "p99")
SPAN(queue_p95, "queue_ms", "p95")
SPAN(start_p95, "start_ms", "p95")
SPAN(first_p95, "first_byte_ms", "p95")

static void put_cpu(struct json_object *handler, struct cell *out)
{
	put_span(handler, "cpu_per_request_ms", out);
}

static double cpu(struct json_object *handler)
{
	return member_double(handler, "cpu_per_request_ms");
}

/* Processes that waited for their request. */

static double cold(struct json_object *handler)
{
	return member_double(member(handler, "starts"), "cold");
}

static double ahead(struct json_object *handler)
{
	return member_double(member(handler, "starts"), "parked") + member_double(member(handler, "starts"), "forked");
}

static void put_cold(struct json_object *handler, struct cell *out)
{
	put_member(member(handler, "starts"), "cold", out);
}

static void put_ahead(struct json_object *handler, struct cell *out)
{
	snprintf(out->text, sizeof(out->text), "%.0f", ahead(handler));
}

static double cpu_before(struct json_object *handler)
{
	struct json_object *ended = member(handler, "ended");

	return member_number(ended, "waited") > 0 ? member_double(ended, "start_cpu_ms") / member_double(ended, "waited") : -1;
}

static void put_cpu_before(struct json_object *handler, struct cell *out)
{
	char text[MEMBER_TEXT_BYTES];

	snprintf(out->text, sizeof(out->text), "%s", cpu_before(handler) < 0 ? "-" : members_span(cpu_before(handler), text));
}

static uint64_t second(struct json_object *counts, size_t back)
{
	return (uint64_t)json_object_get_int64(json_object_array_get_idx(counts, members_count(counts) - back));
}

/* The last seconds as a row of bars, each as high as it was busy. */
static void put_bars(struct json_object *handler, struct cell *out)
{
	static const char *const fine[] = { " ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588" };
	static const char *const coarse[] = { " ", ".", ".", ":", ":", "+", "+", "#", "#" };
	const char *const *bars = strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? fine : coarse;
	struct json_object *counts = member(handler, "per_second");
	size_t used = 0;
	uint64_t most = 1;

	out->text[0] = '\0';
	if (members_count(counts) < SECONDS_SHOWN)
		return;
	for (size_t back = SECONDS_SHOWN; back > 0; back--)
		most = second(counts, back) > most ? second(counts, back) : most;
	for (size_t back = SECONDS_SHOWN; back > 0; back--)
		used += (size_t)snprintf(out->text + used, sizeof(out->text) - used, "%s", bars[(second(counts, back) * 8 + most - 1) / most]);
}

static const struct column columns[] = {
	{ "HANDLER", -NAME_MIN_WIDTH, put_name, NULL },
	{ "PROCESS", -11, put_process, NULL },
	{ "BUSY", 5, put_busy, busy },
	{ "IDLE", 5, put_idle, idle },
	{ "ALL", 5, put_total, total },
	{ "MAX", 5, put_max, max },
	{ "WAIT", 5, put_waiting, waiting },
	{ "REQ/S", 8, put_rate, per_second },
	{ "FAILED", 8, put_failed, failed },
	{ "P50", 8, put_total_p50, total_p50 },
	{ "P95", 8, put_total_p95, total_p95 },
	{ "P99", 8, put_total_p99, total_p99 },
	{ "CPU/REQ", 8, put_cpu, cpu },
	{ "STARTCPU", 8, put_cpu_before, cpu_before },
	{ "QUEUE95", 8, put_queue_p95, queue_p95 },
	{ "START95", 8, put_start_p95, start_p95 },
	{ "FIRST95", 8, put_first_p95, first_p95 },
	{ "COLD", 8, put_cold, cold },
	{ "AHEAD", 8, put_ahead, ahead },
	{ "REQUESTS", 10, put_requests, requests },
	{ "LAST SECONDS", -SECONDS_SHOWN, put_bars, NULL },
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]), LAST_SORTED = COLUMNS - 2 };

/* Sorting. */

static const struct screen *sorted_for;         /* qsort() passes nothing on */

static int compare(const void *left, const void *right)
{
	const struct column *column = &columns[sorted_for->sort];
	struct json_object *a = *(struct json_object *const *)left, *b = *(struct json_object *const *)right;
	struct cell a_cell = { "", PLAIN }, b_cell = { "", PLAIN };
	int order = 0;

	if (column->value != NULL) {
		order = (column->value(a) < column->value(b)) - (column->value(a) > column->value(b));
	} else {
		column->text(a, &a_cell);
		column->text(b, &b_cell);
		order = strcmp(a_cell.text, b_cell.text);
	}
	if (order == 0)
		return strcmp(member_text(a, "name"), member_text(b, "name"));
	return sorted_for->is_reversed ? -order : order;
}

void screen_sort(struct screen *screen, int step)
{
	size_t count = LAST_SORTED + 1;

	if (screen->is_as_configured)
		screen->sort = step > 0 ? 0 : count - 1;
	else
		screen->sort = (screen->sort + count + (size_t)(step + (int)count)) % count;
	screen->is_as_configured = false;
}

void screen_scroll(struct screen *screen, long rows)
{
	size_t count = members_count(member(screen->host, "handlers"));
	size_t most = count > screen->rows ? count - screen->rows : 0;
	long first = (long)screen->first + rows;

	screen->first = first < 0 ? 0 : (size_t)first > most ? most : (size_t)first;
}

static struct json_object **sorted_handlers(const struct screen *screen, size_t *count_out)
{
	struct json_object *handlers = member(screen->host, "handlers");
	size_t count = members_count(handlers);
	struct json_object **rows = calloc(count + 1, sizeof(*rows));

	*count_out = rows == NULL ? 0 : count;
	for (size_t i = 0; i < *count_out; i++)
		rows[i] = json_object_array_get_idx(handlers, i);
	sorted_for = screen;
	if (rows != NULL && !screen->is_as_configured)
		qsort(rows, count, sizeof(*rows), compare);
	return rows;
}

/* Drawing: what is beyond the right edge is left away. */

static attr_t look_of(int look)
{
	return look == PLAIN ? A_NORMAL : has_colors() ? COLOR_PAIR(look) | A_BOLD : A_BOLD;
}

static void draw_text(int y, int x, const char *text)
{
	if (y < LINES && x < COLS)
		mvaddnstr(y, x, text, COLS - x);
}

/* A line end in a path would go on in the next row, over what stands there. */
static void flatten(char *text)
{
	for (; *text != '\0'; text++)
		if (iscntrl((unsigned char)*text) && (unsigned char)*text < 0x80)
			*text = '?';
}

static void draw_host(const struct screen *screen)
{
	struct json_object *host = screen->host;
	char uptime[MEMBER_TEXT_BYTES], line[512];
	const char *limit = member_number(host, "max_processes") > 0 ? member_text(host, "max_processes") : NULL;

	snprintf(line, sizeof(line), "fcgi-host %s  %s for %s  pid %s  %s", member_text(host, "version"), member_text(host, "state"),
		member_span(host, "uptime_ms", uptime), member_text(host, "pid"), member_text(host, "config"));
	attron(A_BOLD);
	draw_text(0, 0, line);
	attroff(A_BOLD);
	snprintf(line, sizeof(line), "%s connections  %s%s%s processes  %s reloads  %s unrouted  %s log lines dropped",
		member_text(host, "connections"), member_text(host, "processes"), limit != NULL ? " of " : "", limit != NULL ? limit : "",
		member_text(host, "reloads"), member_text(member(host, "unrouted"), "requests"), member_text(host, "log_lines_dropped"));
	draw_text(1, 0, line);
	if (screen->trouble == NULL)
		return;
	attr_on(look_of(ALARM), NULL);
	draw_text(2, 0, screen->trouble);
	attr_off(look_of(ALARM), NULL);
}

static void draw_cell(int y, int x, int width, const struct column *column, const struct cell *cell)
{
	if (column->width >= 0)
		mvprintw(y, x, "%*s", width, cell->text);
	else
		/* The bars have more bytes than columns. */
		mvaddnstr(y, x, cell->text, column->text == put_bars ? CELL_BYTES : width);
	if (column->text == put_name && strlen(cell->text) > (size_t)width)
		mvaddch(y, x + width - 1, '~');
}

static void draw_row(const struct screen *screen, int y, struct json_object *handler)
{
	int x = 0;

	for (size_t i = 0; i < COLUMNS; i++) {
		const struct column *column = &columns[i];
		struct cell cell = { "", PLAIN };
		int width = i == 0 ? screen->name_width : abs(column->width);
		bool is_sorted = !screen->is_as_configured && screen->sort == i;
		attr_t look;

		if (i > 0 && x + width > COLS)
			return;
		if (handler == NULL)
			snprintf(cell.text, sizeof(cell.text), "%s", column->title);
		else
			column->text(handler, &cell);
		look = handler == NULL ? (is_sorted ? A_REVERSE | A_BOLD : A_REVERSE) : look_of(cell.look);
		attr_on(look, NULL);
		draw_cell(y, x, width, column, &cell);
		attr_off(look, NULL);
		if (handler == NULL && is_sorted)
			mvaddch(y, x + (column->width < 0 ? (int)strlen(column->title) : width - (int)strlen(column->title) - 1),
				(chtype)(screen->is_reversed ? '^' : 'v') | A_REVERSE | A_BOLD);
		x += width + 1;
	}
}

static int draw_failures(const struct screen *screen)
{
	struct json_object *failures = member(screen->host, "failures");
	int count = (int)members_count(failures), lines = LINES / 4 < FAILURES_SHOWN ? LINES / 4 : FAILURES_SHOWN;
	char line[512], took[MEMBER_TEXT_BYTES];
	int y;

	lines = count < lines ? count : lines;
	if (lines == 0)
		return LINES - 1;
	y = LINES - 1 - lines;
	attron(A_REVERSE);
	snprintf(line, sizeof(line), "%-*s", COLS < 500 ? COLS : 500, "RECENT FAILURES");
	draw_text(y - 1, 0, line);
	attroff(A_REVERSE);
	for (int i = 0; i < lines; i++) {
		struct json_object *failed_request = json_object_array_get_idx(failures, (size_t)i);

		snprintf(line, sizeof(line), "%.8s %-14s %3s %-12.12s %8s %s %s %s", member_text(failed_request, "time") + 11, member_text(failed_request, "kind"),
			member_text(failed_request, "status"), member_text(failed_request, "handler"), member_span(failed_request, "total_ms", took),
			member_text(failed_request, "id"), member_text(failed_request, "path"), member_text(failed_request, "reason"));
		flatten(line);
		draw_text(y + i, 0, line);
	}
	return y - 1;
}

/* A long name may have what is left beside the other columns, or a quarter. */
static int name_room(void)
{
	int others = 0;

	for (size_t i = 1; i < COLUMNS; i++)
		others += abs(columns[i].width) + 1;
	if (COLS - others > COLS / 4)
		return COLS - others;
	return COLS / 4 > NAME_MIN_WIDTH ? COLS / 4 : NAME_MIN_WIDTH;
}

static int name_width(struct json_object **rows, size_t count)
{
	size_t width = NAME_MIN_WIDTH;

	for (size_t i = 0; i < count; i++) {
		size_t len = strlen(member_text(rows[i], "name"));

		width = len > width ? len : width;
	}
	return (int)width < name_room() ? (int)width : name_room();
}

void screen_draw(struct screen *screen)
{
	size_t count;
	struct json_object **rows = sorted_handlers(screen, &count);
	int end;

	screen->name_width = name_width(rows, count);
	erase();
	draw_host(screen);
	end = draw_failures(screen);
	screen->rows = end > HEAD_LINES ? (size_t)(end - HEAD_LINES) : 0;
	screen_scroll(screen, 0);
	if (LINES > HEAD_LINES)
		draw_row(screen, HEAD_LINES - 1, NULL);
	for (size_t i = 0; i < screen->rows && screen->first + i < count; i++)
		draw_row(screen, HEAD_LINES + (int)i, rows[screen->first + i]);
	attron(A_DIM);
	draw_text(LINES - 1, 0, "q quit   < > sort by another column   r reverse   f as in the file   up, down, page up, page down");
	attroff(A_DIM);
	refresh();
	free(rows);
}
