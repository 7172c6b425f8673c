#include "compare/run_private.h"

#include "base/clock.h"
#include "compare/setup.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	AUTO_SECONDS = 4,               /* of load for each way, where no number of requests is given */
	AUTO_REQUESTS_MAX = 20000,
	WARM_REQUESTS = 10,             /* at least, before it is timed how many fit */
	GENERATOR_NS_MIN = 20000000,    /* a shorter block says nothing of the CPU's share */
	FEW_BLOCKS = 12,                /* enough for an interval */
	NOISE_SHARE = 2,                /* a block of the run of a way against itself has 1/2 of the requests */
};

bool run_is_interrupted(const struct run *run)
{
	return *run->stage.is_interrupted != 0;
}

/* The folder. */

static int make_folder(char out[4096], struct err *err)
{
	snprintf(out, 4096, "%s/fcgi-host-compare.XXXXXX", plan_temporary_folder());
	if (mkdtemp(out) == NULL)
		return err_set_errno(err, errno, "%s", out);
	/* A host's and a web server's own user must come through. */
	return chmod(out, 0711) == 0 ? 0 : err_set_errno(err, errno, "%s", out);
}

static void remove_folder(const char *path)
{
	DIR *folder = opendir(path);

	for (struct dirent *each; folder != NULL && (each = readdir(folder)) != NULL;) {
		char inner[4096 + 256];

		if (strcmp(each->d_name, ".") == 0 || strcmp(each->d_name, "..") == 0)
			continue;
		snprintf(inner, sizeof(inner), "%s/%s", path, each->d_name);
		if (unlink(inner) != 0 && errno == EISDIR)
			remove_folder(inner);
	}
	if (folder != NULL)
		closedir(folder);
	rmdir(path);
}

/* Ways that do not run, or run wrongly. */

static void set_state(struct way_result *way, enum way_state state, const char *reason)
{
	way->state = state;
	snprintf(way->reason, sizeof(way->reason), "%s", reason);
}

void run_drop(struct run *run, size_t at, enum way_state state, const char *reason)
{
	size_t index = run->running[at];

	set_state(&run->result->ways[index], state, reason);
	subject_stop(&run->subjects[index]);
	memmove(&run->running[at], &run->running[at + 1], (run->running_count - at - 1) * sizeof(*run->running));
	run->running_count--;
}

size_t run_find_baseline(const struct run *run)
{
	const struct comparison *comparison = run->result->comparison;
	size_t persistent = NO_WAY;

	for (size_t i = 0; i < run->running_count; i++) {
		const struct way *way = &comparison->ways[run->running[i]];

		if (comparison->baseline != NULL && strcmp(way->name, comparison->baseline) == 0)
			return run->running[i];
		if (comparison->baseline == NULL && way->write_config == NULL)
			return run->running[i];
		if (way->write_config != NULL && strcmp(way->name, "persistent") == 0)
			persistent = run->running[i];
	}
	if (comparison->baseline != NULL || run->running_count == 0)
		return NO_WAY;
	return persistent != NO_WAY ? persistent : run->running[0];
}

static void start_ways(struct run *run)
{
	const struct comparison *comparison = run->result->comparison;

	for (size_t i = 0; i < comparison->ways_count && !run_is_interrupted(run); i++) {
		struct err err = { "" };

		progress_stage(&run->progress, "Starting %s", comparison->ways[i].name);
		if (subject_start(&run->subjects[i], &run->stage, &comparison->ways[i], run->subjects_begun++, &err) == 0) {
			run->running[run->running_count++] = i;
			continue;
		}
		set_state(&run->result->ways[i], WAY_NOT_RUN, err.text);
		subject_stop(&run->subjects[i]);
	}
}

/* How many requests, in how many blocks. */

/* A block that is short against the number of requests at a time would be a rush and its end, no load. */
static size_t blocks_for(const struct load_plan *load, const struct comparison *comparison)
{
	uint64_t least = load->requests, fit;

	for (size_t i = 0; i < comparison->ways_count; i++)
		if (comparison->ways[i].requests > 0 && (least == 0 || comparison->ways[i].requests < least))
			least = comparison->ways[i].requests;
	fit = least / (2 * load->concurrency);
	fit -= fit % 2;
	if (load->kind == SCHEDULE_OPEN || least == 0 || fit >= load->blocks)
		return load->blocks;
	if (fit >= FEW_BLOCKS)
		return fit;
	return load->blocks < FEW_BLOCKS ? load->blocks : FEW_BLOCKS;
}

static uint64_t block_requests(const struct run *run, const struct way *way, double each_ns)
{
	const struct load_plan *load = &run->report->plan->load;
	double total = (double)(way->requests > 0 ? way->requests : load->requests);

	if (total == 0)
		total = load->kind == SCHEDULE_OPEN ? load->rate_per_s * AUTO_SECONDS : AUTO_SECONDS * 1e9 / (each_ns > 1 ? each_ns : 1);
	if (way->requests == 0 && load->requests == 0 && total > AUTO_REQUESTS_MAX)
		total = AUTO_REQUESTS_MAX;
	total /= (double)run->result->blocks;
	if (load->kind == SCHEDULE_CLOSED && total < (double)load->concurrency)
		return load->concurrency;
	return total < 1 ? 1 : (uint64_t)(total + 0.5);
}

static double block_s(const struct run *run, size_t index, uint64_t requests)
{
	const struct load_plan *load = &run->report->plan->load;

	if (load->kind == SCHEDULE_OPEN)
		return (double)requests / load->rate_per_s;
	return (double)requests * run->each_ns[index] / 1e9;
}

/* Each block would wait as long again. */
static void drop_those_that_do_not_answer(struct run *run)
{
	for (size_t at = 0; at < run->running_count;) {
		const struct subject *subject = &run->subjects[run->running[at]];
		char reason[512];

		if (loader_unanswered(subject->loader) == 0) {
			at++;
			continue;
		}
		snprintf(reason, sizeof(reason), "%s, with %zu at a time%s", loader_trouble(subject->loader), run->report->plan->load.concurrency,
			subject->target.keep ? "; a server with fewer processes than connections needs --no-keep" : "");
		run_drop(run, at, WAY_NOT_RUN, reason);
	}
}

/* In an open loop the places are many more than requests are on their way. */
static uint64_t warm_requests(const struct load_plan *load)
{
	return load->kind == SCHEDULE_OPEN ? WARM_REQUESTS : load->concurrency;
}

static bool waits(const struct way *way)
{
	return way->write_config != NULL && (way->process == PROCESS_PARKED || way->process == PROCESS_ZYGOTE);
}

/* Its host would start a process for each request: the figures would be those of another way. */
static void drop_those_that_cannot_wait(struct run *run)
{
	for (size_t at = 0; at < run->running_count;) {
		const struct subject *subject = &run->subjects[run->running[at]];
		char why[600], reason[700];

		if (!waits(subject->way) || !private_host_has_given_up_waiting(&subject->host, why, sizeof(why))) {
			at++;
			continue;
		}
		snprintf(reason, sizeof(reason), "it cannot be %s", why);
		run_drop(run, at, WAY_NOT_RUN, reason);
	}
	run->result->baseline = run_find_baseline(run);
}

static int warm_up(struct run *run)
{
	const struct load_plan *load = &run->report->plan->load;
	uint64_t requests = warm_requests(load) > WARM_REQUESTS ? warm_requests(load) : WARM_REQUESTS;

	for (size_t at = 0; at < run->running_count; at++) {
		progress_stage(&run->progress, "Warming up %s", run->result->ways[run->running[at]].way->name);
		if (subject_warm(&run->subjects[run->running[at]], warm_requests(load), NULL, &run->err) < 0)
			return -1;
	}
	drop_those_that_do_not_answer(run);
	for (size_t at = 0; at < run->running_count; at++) {
		size_t index = run->running[at];
		struct way_result *way = &run->result->ways[index];

		if (subject_warm(&run->subjects[index], requests, &run->each_ns[index], &run->err) < 0)
			return -1;
		way->block_requests = block_requests(run, way->way, run->each_ns[index]);
	}
	drop_those_that_cannot_wait(run);
	return 0;
}

/* Blocks. */

static void note_generator(struct generator *generator, const struct block *block)
{
	double share = block->elapsed_ns < GENERATOR_NS_MIN ? 0 : (double)block->generator_cpu_ns / (double)block->elapsed_ns;

	if (share > generator->share)
		generator->share = share;
	generator->cpu_ns += block->generator_cpu_ns;
	generator->requests += block->answered + block->failed;
}

static int run_block(void *ctx, size_t way, size_t index, struct block *block, struct latencies *latencies)
{
	struct run *run = ctx;
	size_t at = run->is_noise_run ? run->result->baseline : run->running[way];
	struct way_result *result = &run->result->ways[at];
	struct subject *subject = &run->subjects[at];
	uint64_t requests = run->is_noise_run ? (result->block_requests + NOISE_SHARE - 1) / NOISE_SHARE : result->block_requests;

	(void)index;
	if (run_is_interrupted(run))
		return -1;
	progress_stage(&run->progress, run->is_noise_run ? "Measuring %s against itself" : "Measuring %s", result->way->name);
	/* Another way ran before: its traces in the caches are not this one's cost. */
	if (subject_warm(subject, warm_requests(&run->report->plan->load), NULL, &run->err) < 0)
		return -1;
	if (subject_run_block(subject, requests, block, latencies, run->is_noise_run ? NULL : result, &run->err) < 0)
		return -1;
	note_generator(&run->report->generator, block);
	progress_done(&run->progress, block_s(run, at, requests));
	return 0;
}

static void plan_progress(struct run *run)
{
	double total_s = 0;

	for (size_t at = 0; at < run->running_count; at++) {
		size_t index = run->running[at];
		double one_s = block_s(run, index, run->result->ways[index].block_requests);

		total_s += one_s;
		if (index == run->result->baseline)
			total_s += 2 * one_s / NOISE_SHARE;
	}
	run->progress.total_s = total_s * (double)run->result->blocks;
	run->progress.done_s = 0;
	run->progress.begun_ns = clock_monotonic_ns();
}

static int measure_noise(struct run *run)
{
	struct series series[2];
	int status;

	if (run->result->baseline == NO_WAY)
		return 0;
	run->is_noise_run = true;
	status = blocks_run(series, 2, run->result->blocks, run_block, run);
	run->is_noise_run = false;
	run->result->noise = series_ratio(&series[1], &series[0], &run->stage.random);
	run->result->is_noisy = run->result->noise.is_shown;
	series_fini(&series[0]);
	series_fini(&series[1]);
	return status;
}

static void keep_series(struct run *run, const struct series *series)
{
	for (size_t at = 0; at < run->running_count; at++) {
		struct way_result *way = &run->result->ways[run->running[at]];
		const struct subject *subject = &run->subjects[run->running[at]];

		way->series = series[at];
		if (way->series.count > 0)
			way->state = WAY_MEASURED;
		snprintf(way->trouble, sizeof(way->trouble), "%s", loader_trouble(subject->loader));
		if (way->starts_ahead > 0)
			way->spawn_count = 0;   /* those few that were not ahead say nothing of it */
		if (waits(way->way) && way->series.count > 0 && way->starts_ahead == 0)
			set_state(way, WAY_NOT_RUN, "none of its processes waited for a request");
		else if (loader_wrong(subject->loader) > 0)
			set_state(way, WAY_WRONG, way->trouble);
		else if (way->series.count > 0 && way->series.answered == 0)
			set_state(way, WAY_WRONG, way->trouble);
	}
}

static void estimate(struct run *run)
{
	const struct way_result *base = run->result->baseline == NO_WAY ? NULL : &run->result->ways[run->result->baseline];

	for (size_t at = 0; base != NULL && way_has_figures(base) && at < run->running_count; at++) {
		struct way_result *way = &run->result->ways[run->running[at]];

		if (way == base || !way_has_figures(way))
			continue;
		way->ratio = series_ratio(&way->series, &base->series, &run->stage.random);
		way->difference_ns = series_difference_ns(&way->series, &base->series, &run->stage.random);
	}
}

static int measure(struct run *run)
{
	struct series *series = calloc(run->running_count + 1, sizeof(*series));
	int status = series == NULL ? err_set(&run->err, "no memory") : 0;

	if (status == 0)
		status = blocks_run(series, run->running_count, run->result->blocks, run_block, run);
	if (series != NULL)
		keep_series(run, series);
	for (size_t at = 0; at < run->running_count; at++)
		subject_read_idle(&run->subjects[run->running[at]], &run->result->ways[run->running[at]]);
	estimate(run);
	free(series);
	return status;
}

/* A comparison. */

/* Whoever names a server wants to know that it is not there, not wait for the rest. */
static int check_servers(struct run *run)
{
	for (size_t i = 0; i < run->result->comparison->ways_count; i++) {
		const struct way_result *way = &run->result->ways[i];

		if (way->way->write_config == NULL && way->state == WAY_NOT_RUN)
			return err_set(&run->err, "%s: %s", way->way->name, way->reason);
	}
	return 0;
}

static int run_stages(struct run *run)
{
	start_ways(run);
	if (!run_is_interrupted(run))
		run_compare_answers(run);
	if (run_is_interrupted(run) || (run->report->plan->is_strict && check_servers(run) < 0))
		return -1;
	if (run->running_count == 0)
		return 0;
	if (warm_up(run) < 0)
		return -1;
	if (run->running_count == 0)
		return 0;
	plan_progress(run);
	return measure_noise(run) < 0 ? -1 : measure(run);
}

static int run_comparison(struct run *run, const struct comparison *comparison, struct comparison_result *result)
{
	size_t count = comparison->ways_count;
	int status;

	*result = (struct comparison_result){ .comparison = comparison, .baseline = NO_WAY, .ways = calloc(count + 1, sizeof(*result->ways)) };
	result->blocks = blocks_for(&run->report->plan->load, comparison);
	run->result = result;
	run->running_count = 0;
	run->subjects = calloc(count + 1, sizeof(*run->subjects));
	run->running = calloc(count + 1, sizeof(*run->running));
	run->each_ns = calloc(count + 1, sizeof(*run->each_ns));
	run->progress.total_s = 0;
	status = result->ways == NULL || run->subjects == NULL || run->running == NULL || run->each_ns == NULL ?
		err_set(&run->err, "no memory") : 0;
	for (size_t i = 0; result->ways != NULL && i < count; i++)
		result->ways[i].way = &comparison->ways[i];
	if (status == 0)
		status = run_stages(run);
	for (size_t at = 0; at < run->running_count; at++)
		subject_stop(&run->subjects[run->running[at]]);
	result->is_partial = status < 0;
	free(run->subjects);
	free(run->running);
	free(run->each_ns);
	return status;
}

static int run_comparisons(struct run *run)
{
	const struct plan *plan = run->report->plan;
	int status = 0;

	run->report->comparisons = calloc(plan->comparisons_count + 1, sizeof(*run->report->comparisons));
	if (run->report->comparisons == NULL)
		return err_set(&run->err, "no memory");
	for (size_t i = 0; i < plan->comparisons_count && status == 0; i++) {
		run->report->count++;
		status = run_comparison(run, &plan->comparisons[i], &run->report->comparisons[i]);
	}
	return status;
}

int compare_run(struct report *report, const volatile sig_atomic_t *interrupted, struct err *err)
{
	struct run run = { .report = report, .stage = { .plan = report->plan, .is_interrupted = interrupted,
		.random = { clock_monotonic_ns() } } };
	struct setup setup = { .stdin_fd = -1 };
	uint64_t begun_ns = clock_monotonic_ns();
	char folder[4096];
	int status = make_folder(folder, err);

	if (status < 0)
		return status;
	run.stage.folder = folder;
	progress_init(&run.progress);
	clock_stamp(report->began, sizeof(report->began));
	machine_describe(&report->machine, report->plan->load.via);
	if (report->plan->setup != NULL) {
		progress_stage(&run.progress, "Setting up");
		status = setup_start(&setup, report->plan->setup, folder, interrupted, &run.err);
	}
	run.stage.env = setup.env;
	run.stage.env_count = setup.env_count;
	if (status == 0)
		status = run_comparisons(&run);
	setup_stop(&setup);
	remove_folder(folder);
	progress_clear(&run.progress);
	report->elapsed_s = (double)(clock_monotonic_ns() - begun_ns) / 1e9;
	report->is_partial = *interrupted != 0;
	return status == 0 || report->is_partial ? 0 : err_set(err, "%s", run.err.text);
}
