#include "compare/progress.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { REWRITE_MS = 100 };

void progress_init(struct progress *progress)
{
	*progress = (struct progress){ .is_shown = isatty(STDERR_FILENO) };
}

static void write_line(struct progress *progress)
{
	uint64_t now_ns = clock_monotonic_ns();
	double elapsed_s = (double)(now_ns - progress->begun_ns) / 1e9, left_s = progress->total_s - progress->done_s;

	if (!progress->is_shown)
		return;
	progress->shown_ns = now_ns;
	if (progress->total_s <= 0) {
		fprintf(stderr, "\r\033[K%s", progress->stage);
		return;
	}
	/* What was done tells how good the estimate is. */
	if (progress->done_s > 0.1 * progress->total_s)
		left_s *= elapsed_s / progress->done_s;
	fprintf(stderr, "\r\033[K%s: %.0f %%, %.0f s left", progress->stage, 100 * progress->done_s / progress->total_s, left_s < 0 ? 0 : left_s);
}

void progress_stage(struct progress *progress, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(progress->stage, sizeof(progress->stage), format, args);
	va_end(args);
	write_line(progress);
}

void progress_done(struct progress *progress, double estimated_s)
{
	progress->done_s += estimated_s;
	if (clock_monotonic_ns() - progress->shown_ns >= REWRITE_MS * UINT64_C(1000000))
		write_line(progress);
}

void progress_clear(struct progress *progress)
{
	if (progress->is_shown)
		fputs("\r\033[K", stderr);
}
