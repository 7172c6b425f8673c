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

const char *failure_name(enum failure failure)
{
	switch (failure) {
	case FAILURE_TIMEOUTS: return "timeouts";
	case FAILURE_REFUSED: return "refused";
	case FAILURE_BAD_GATEWAY: return "bad_gateway";
	case FAILURE_HANDLER_ERRORS: return "handler_errors";
	case FAILURE_BROKEN: return "broken";
	case FAILURE_CLIENT_GONE: return "client_gone";
	case FAILURE_NONE: break;
	}
	return NULL;
}

static enum failure failure_of_ours(unsigned status)
{
	switch (status) {
	case 502: return FAILURE_BAD_GATEWAY;
	case 503: return FAILURE_REFUSED;
	case 504: return FAILURE_TIMEOUTS;
	default: return FAILURE_NONE;
	}
}

/* A handler may answer 503 by itself: only our own are refusals. */
enum failure outcome_failure(const struct outcome *outcome)
{
	switch (outcome->end) {
	case REQUEST_END_NONE: break;
	case REQUEST_END_WHOLE: return outcome->status >= 500 ? FAILURE_HANDLER_ERRORS : FAILURE_NONE;
	case REQUEST_END_FAILED: return failure_of_ours(outcome->status);
	case REQUEST_END_BROKEN: return FAILURE_BROKEN;
	case REQUEST_END_CLIENT_GONE: return FAILURE_CLIENT_GONE;
	}
	return FAILURE_NONE;
}

static void count(struct totals *totals, const struct outcome *outcome)
{
	unsigned class = outcome->status / 100;
	enum failure failure = outcome_failure(outcome);

	totals->requests++;
	if (class >= 2 && class <= 5)
		totals->classes[class - 2]++;
	if (failure != FAILURE_NONE)
		totals->failures[failure]++;
	totals->retried += outcome->was_retried;
	totals->bytes_in += outcome->bytes_in;
	totals->bytes_out += outcome->bytes_out;
}

static void add_span(struct histogram *histogram, uint64_t us)
{
	if (us != FIGURES_NO_SPAN)
		histogram_add(histogram, us);
}

static void add_spawn(struct spawn_sums *sums, const uint64_t us[SPAWN_PARTS_COUNT])
{
	if (us[0] == FIGURES_NO_SPAN)
		return;
	sums->count++;
	for (int i = 0; i < SPAWN_PARTS_COUNT; i++)
		sums->us[i] += us[i];
}

void figures_add(struct figures *figures, const struct outcome *outcome)
{
	count(&figures->totals, outcome);
	figures->starts[outcome->start]++;
	add_spawn(&figures->spawn, outcome->spawn_us);
	/* 33 KiB that only handlers with requests need. */
	if (figures->spans == NULL)
		figures->spans = calloc(1, sizeof(*figures->spans));
	if (figures->spans == NULL)
		return;
	add_span(&figures->spans->queue, outcome->queue_us);
	add_span(&figures->spans->start, outcome->start_us);
	add_span(&figures->spans->first_byte, outcome->first_byte_us);
	add_span(&figures->spans->total, outcome->total_us);
	rate_add(&figures->spans->rate, outcome->at_s);
}

void figures_add_ended(struct figures *figures, const struct process *process)
{
	struct ended *ended = &figures->ended;
	const struct process_usage *usage = &process->usage, *start = &process->start_usage;

	ended->count++;
	ended->cpu_us += usage->cpu_us;
	ended->faults += usage->minor_faults + usage->major_faults;
	ended->context_switches += usage->context_switches;
	if (usage->max_rss_kib > ended->max_rss_kib)
		ended->max_rss_kib = usage->max_rss_kib;
	if (!process->was_ahead)
		return;
	ended->ahead_count++;
	ended->start_cpu_us += start->cpu_us;
	ended->start_faults += start->minor_faults + start->major_faults;
}
