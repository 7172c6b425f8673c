/* What the ways answer, before they are measured: the same, or they have no figures. */
#include "compare/run_private.h"

#include "base/clock.h"
#include "compare/answers.h"
#include "compare/exchange.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { ASKED_VARIANTS = 3, ASKED_TIMES = 2, BODY_MAX_BYTES = 64 << 20, LOG_PATIENCE_MS = 500 };

struct asked {
	struct answer answers[ASKED_VARIANTS][ASKED_TIMES];
	bool is_whole;
};

static size_t variants_of(const struct subject *subject)
{
	return subject->target.requests_count < ASKED_VARIANTS ? subject->target.requests_count : ASKED_VARIANTS;
}

static int ask_once(struct subject *subject, size_t variant, struct answer *answer, struct err *err)
{
	struct exchange exchange;
	int status;

	bytes_init(&answer->body, BODY_MAX_BYTES);
	status = subject_ask(subject, variant, &exchange, &answer->body, err);
	answer->status = exchange.reply.status;
	exchange_fini(&exchange);
	return status;
}

static int check_expected(const struct load_plan *load, const struct answer *answer, struct err *err)
{
	if (answer->status != load->status)
		return err_set(err, "it answers with status %u instead of %u", answer->status, load->status);
	if (load->contains != NULL && (answer->body.len == 0 ||
	    memmem(bytes_data(&answer->body), answer->body.len, load->contains, strlen(load->contains)) == NULL))
		return err_set(err, "its answer does not contain '%.100s'", load->contains);
	return 0;
}

static int ask_all(const struct run *run, struct subject *subject, struct asked *asked, struct err *err)
{
	for (size_t i = 0; i < variants_of(subject); i++)
		for (int j = 0; j < ASKED_TIMES; j++)
			if (ask_once(subject, i, &asked->answers[i][j], err) < 0 ||
			    check_expected(&run->report->plan->load, &asked->answers[i][j], err) < 0)
				return -1;
	asked->is_whole = true;
	return 0;
}

static void asked_fini(struct asked *asked, size_t count)
{
	for (size_t way = 0; asked != NULL && way < count; way++)
		for (int i = 0; i < ASKED_VARIANTS; i++)
			for (int j = 0; j < ASKED_TIMES; j++)
				bytes_fini(&asked[way].answers[i][j].body);
	free(asked);
}

/* A host's log says why it is a 502; the line comes after the answer. */
static const char *reason_in_log(const struct subject *subject, char *line, size_t line_size)
{
	uint64_t end_ns = clock_monotonic_ns() + LOG_PATIENCE_MS * UINT64_C(1000000);
	const char *found;

	do {
		subject_last_log_line(subject, line, line_size);
		found = strstr(line, "reason=");
	} while (found == NULL && subject->host.log != NULL && clock_monotonic_ns() < end_ns && poll(NULL, 0, 5) == 0);
	return found;
}

static void drop_silent(struct run *run, size_t at, const struct asked *asked, struct err *err)
{
	const struct subject *subject = &run->subjects[run->running[at]];
	unsigned status = asked->answers[0][0].status;
	char line[1024], reason[2048];
	const char *found = status >= 500 || status == 0 ? reason_in_log(subject, line, sizeof(line)) : NULL;

	snprintf(reason, sizeof(reason), "%s%s%s", err->text, found == NULL ? "" : "; the log of its host: ", found == NULL ? "" : found);
	run_drop(run, at, status >= 500 || status == 0 ? WAY_NOT_RUN : WAY_WRONG, reason);
}

/* A load may only look whether a body is the right one where it is always the same. */
static void set_expected(struct run *run, const struct asked *asked, const struct left_out *left_out)
{
	for (size_t i = 0; i < run->running_count; i++) {
		struct subject *subject = &run->subjects[run->running[i]];
		const struct bytes *body = &asked[run->running[i]].answers[0][0].body;

		if (left_out->is_everything || left_out->count > 0 || subject->target.requests_count > 1 || run->result->comparison->may_differ)
			continue;
		if (body->len == 0 || bytes_append(&subject->expected, bytes_data(body), body->len) == 0)
			loader_rules(subject->loader)->expected = &subject->expected;
	}
}

static void drop_those_that_differ(struct run *run, const struct asked *asked, const struct left_out *left_out)
{
	size_t reference = run->result->baseline != NO_WAY ? run->result->baseline : run->running_count > 0 ? run->running[0] : 0;

	for (size_t at = 0; at < run->running_count;) {
		size_t index = run->running[at];
		struct err why = { "" };
		char reason[1400];
		int status = 0;

		for (size_t i = 0; i < variants_of(&run->subjects[index]) && status == 0; i++)
			status = answers_compare(left_out, &asked[index].answers[i][0], &asked[reference].answers[i][0], &why);
		snprintf(reason, sizeof(reason), "it answers otherwise than %s: %s", run->result->comparison->ways[reference].name, why.text);
		if (status < 0)
			run_drop(run, at, WAY_WRONG, reason);
		else
			at++;
	}
}

void run_compare_answers(struct run *run)
{
	size_t count = run->result->comparison->ways_count;
	struct asked *asked = calloc(count, sizeof(*asked));
	struct left_out *left_out = calloc(1, sizeof(*left_out));

	for (size_t at = 0; asked != NULL && left_out != NULL && at < run->running_count && !run_is_interrupted(run);) {
		size_t index = run->running[at];
		struct err err = { "" };

		progress_stage(&run->progress, "Asking %s", run->result->comparison->ways[index].name);
		if (ask_all(run, &run->subjects[index], &asked[index], &err) < 0) {
			drop_silent(run, at, &asked[index], &err);
			continue;
		}
		for (size_t i = 0; i < variants_of(&run->subjects[index]); i++)
			answers_leave_out(left_out, &asked[index].answers[i][0], &asked[index].answers[i][1]);
		at++;
	}
	run->result->baseline = run_find_baseline(run);
	if (asked != NULL && left_out != NULL && !run_is_interrupted(run)) {
		if (!run->result->comparison->may_differ)
			drop_those_that_differ(run, asked, left_out);
		set_expected(run, asked, left_out);
		if (run->running_count == 0)
			run->result->compared[0] = '\0';
		else if (run->result->comparison->may_differ)
			snprintf(run->result->compared, sizeof(run->result->compared), "may differ");
		else
			answers_describe(left_out, run->result->compared, sizeof(run->result->compared));
	}
	asked_fini(asked, count);
	free(left_out);
}
