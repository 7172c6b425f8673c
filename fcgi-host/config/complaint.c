/*
 * complaint.c - gathers and orders what is wrong with a configuration file.
 */
#include "config/complaint.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

enum { REPORT_MAX_BYTES = 4 * 1024 * 1024, WHAT_MAX_BYTES = 1024 };

struct complaint {
	enum severity severity;
	struct mark mark;
	size_t order;           /* of remembering: decides between equal positions */
	char *text;
};

void complaints_init(struct complaints *complaints, const char *file)
{
	*complaints = (struct complaints){ .file = file };
}

void complaints_fini(struct complaints *complaints)
{
	for (size_t i = 0; i < complaints->count; i++)
		free(complaints->list[i].text);
	free(complaints->list);
	*complaints = (struct complaints){ 0 };
}

bool complaints_has_errors(const struct complaints *complaints)
{
	return complaints->errors_count > 0 || complaints->is_out_of_memory;
}

/* Values from the file appear in messages: each stays one line. */
static void hide_control_bytes(char *text)
{
	for (char *c = text; *c != '\0'; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
}

static int make_room(struct complaints *complaints)
{
	if (complaints->count < complaints->cap)
		return 0;
	size_t cap = complaints->cap == 0 ? 16 : complaints->cap * 2;
	struct complaint *list = realloc(complaints->list, cap * sizeof(*list));
	if (list == NULL)
		return -1;
	complaints->list = list;
	complaints->cap = cap;
	return 0;
}

void complain(struct complaints *complaints, enum severity severity, struct mark mark, const char *where,
	const char *format, ...)
{
	char what[WHAT_MAX_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (severity == COMPLAINT_ERROR)
		complaints->errors_count++;

	struct complaint new = { .severity = severity, .mark = mark, .order = complaints->count };
	bool has_where = where != NULL && where[0] != '\0';
	if (make_room(complaints) != 0
		|| asprintf(&new.text, "%s%s%s", has_where ? where : "", has_where ? ": " : "", what) < 0) {
		complaints->is_out_of_memory = true;
		return;
	}
	hide_control_bytes(new.text);
	complaints->list[complaints->count++] = new;
}

static int compare(const void *left, const void *right)
{
	const struct complaint *a = left, *b = right;

	if (a->mark.line != b->mark.line)
		return a->mark.line < b->mark.line ? -1 : 1;
	if (a->mark.column != b->mark.column)
		return a->mark.column < b->mark.column ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static void write_one(const char *file, const struct complaint *complaint, struct bytes *out)
{
	const char *label = complaint->severity == COMPLAINT_WARNING ? "warning: " : "";

	if (complaint->mark.line == 0)
		bytes_printf(out, "%s: %s%s\n", file, label, complaint->text);
	else
		bytes_printf(out, "%s:%u:%u: %s%s\n", file, complaint->mark.line, complaint->mark.column, label, complaint->text);
}

void complaints_write(struct complaints *complaints, struct config_report *report)
{
	if (complaints->count > 0)
		qsort(complaints->list, complaints->count, sizeof(complaints->list[0]), compare);
	if (complaints->is_out_of_memory) {
		bytes_printf(&report->errors, "%s: there is not enough memory to read it\n", complaints->file);
		report->errors_count++;
	}
	for (size_t i = 0; i < complaints->count; i++) {
		bool is_error = complaints->list[i].severity == COMPLAINT_ERROR;
		write_one(complaints->file, &complaints->list[i], is_error ? &report->errors : &report->warnings);
		if (is_error)
			report->errors_count++;
		else
			report->warnings_count++;
	}
}

void config_report_init(struct config_report *report)
{
	*report = (struct config_report){ .is_for_root = geteuid() == 0 };
	bytes_init(&report->errors, REPORT_MAX_BYTES);
	bytes_init(&report->warnings, REPORT_MAX_BYTES);
}

void config_report_fini(struct config_report *report)
{
	bytes_fini(&report->errors);
	bytes_fini(&report->warnings);
}
