#include "serve/figures.h"

#include <stdlib.h>

struct figures *figures_new(void)
{
	struct figures *figures = calloc(1, sizeof(*figures));

	if (figures != NULL)
		figures->refs = 1;
	return figures;
}

struct figures *figures_ref(struct figures *figures)
{
	figures->refs++;
	return figures;
}

void figures_unref(struct figures **figures_ptr)
{
	struct figures *figures = *figures_ptr;

	*figures_ptr = NULL;
	if (figures == NULL || --figures->refs > 0)
		return;
	free(figures->spans);
	free(figures);
}

/* A handler may answer 503 by itself: only our own are refusals. */
static void count_failure(struct totals *totals, unsigned status)
{
	totals->timeouts += status == 504;
	totals->refused += status == 503;
	totals->bad_gateway += status == 502;
}

static void count(struct totals *totals, const struct outcome *outcome)
{
	unsigned class = outcome->status / 100;

	totals->requests++;
	if (class >= 2 && class <= 5)
		totals->classes[class - 2]++;
	if (outcome->end == REQUEST_END_FAILED)
		count_failure(totals, outcome->status);
	totals->client_gone += outcome->end == REQUEST_END_CLIENT_GONE;
	totals->broken += outcome->end == REQUEST_END_BROKEN;
	totals->retried += outcome->was_retried;
}

static void add_span(struct histogram *histogram, uint64_t us)
{
	if (us != FIGURES_NO_SPAN)
		histogram_add(histogram, us);
}

void figures_add(struct figures *figures, const struct outcome *outcome)
{
	count(&figures->totals, outcome);
	figures->starts[outcome->start]++;
	/* 24 KiB that only handlers with requests need. */
	if (figures->spans == NULL)
		figures->spans = calloc(1, sizeof(*figures->spans));
	if (figures->spans == NULL)
		return;
	add_span(&figures->spans->queue, outcome->queue_us);
	add_span(&figures->spans->first_byte, outcome->first_byte_us);
	add_span(&figures->spans->total, outcome->total_us);
}

void figures_add_ended(struct figures *figures, const struct process *process)
{
	struct ended *ended = &figures->ended;
	const struct process_usage *usage = &process->usage, *start = &process->start_usage;

	ended->count++;
	ended->cpu_us += usage->cpu_us;
	ended->faults += usage->minor_faults + usage->major_faults;
	if (usage->max_rss_kib > ended->max_rss_kib)
		ended->max_rss_kib = usage->max_rss_kib;
	if (!process->was_ahead)
		return;
	ended->ahead_count++;
	ended->start_cpu_us += start->cpu_us;
	ended->start_faults += start->minor_faults + start->major_faults;
}
