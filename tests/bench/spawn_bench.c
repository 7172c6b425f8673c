/*
 * spawn_bench.c - what a start costs through the spawner: process_start(),
 * read to the end of output, on_gone.  To be held against raw_loop.
 *
 *   spawn_bench ROUNDS AT_ONCE SPAWNERS PROGRAM
 *
 * The figures hold the relay's side, the spawners and the programs.
 */
#include "base/loop.h"
#include "bench_figures.h"
#include "process/spawn.h"

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct bench;

struct lane {
	struct bench *bench;
	struct process process;
	struct watch *watch;
	int out_fd;
	bool is_read, is_gone;
};

struct bench {
	struct loop *loop;
	struct spawner *spawner;
	struct bytes block;
	unsigned to_start, running;
};

static void begin(struct lane *lane);

static void finish(struct lane *lane)
{
	struct bench *bench = lane->bench;

	if (!lane->is_read || !lane->is_gone)
		return;
	if (lane->process.failed_step != SPAWN_STEP_NONE || lane->process.wait_status != 0)
		errx(1, "a process failed: step %s", spawn_step_name(lane->process.failed_step));
	bench->running--;
	if (bench->to_start > 0)
		begin(lane);
	else if (bench->running == 0)
		loop_stop(bench->loop);
}

static void on_output(void *ctx, int events)
{
	struct lane *lane = ctx;
	char buf[4096];
	ssize_t n;

	(void)events;
	while ((n = read(lane->out_fd, buf, sizeof(buf))) > 0)
		;
	if (n < 0)
		return;
	watch_free(&lane->watch);
	close(lane->out_fd);
	lane->is_read = true;
	finish(lane);
}

static void on_gone(void *ctx)
{
	struct lane *lane = ctx;

	lane->is_gone = true;
	finish(lane);
}

static void begin(struct lane *lane)
{
	struct bench *bench = lane->bench;
	struct spawn_request request = { .environ = &bench->block, .fds = { -1, -1, -1 } };
	struct err why;
	int fds[2];

	bench->to_start--;
	bench->running++;
	if (pipe2(fds, O_CLOEXEC) != 0)
		err(1, "pipe");
	*lane = (struct lane){ .bench = bench, .out_fd = fds[0], .process = { .on_gone = on_gone, .ctx = lane } };
	request.fds[1] = fds[1];
	lane->watch = watch_new(bench->loop, fds[0], on_output, lane, &why);
	if (lane->watch == NULL || process_start(bench->spawner, &lane->process, &request, &why) != 0)
		errx(1, "%s", why.text);
	close(fds[1]);
	watch_set(lane->watch, WATCH_READ);
}

static void on_lost(void *ctx)
{
	(void)ctx;
	errx(1, "the spawner died");
}

/* About as many variables as a request behind nginx has. */
static void fill_block(struct bytes *block)
{
	bytes_init(block, 4096);
	for (int i = 0; i < 25; i++) {
		bytes_printf(block, "VARIABLE_%d=a value of some length, number %d", i, i);
		bytes_append(block, "", 1);
	}
}

int main(int argc, char **argv)
{
	unsigned rounds = argc == 5 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	unsigned at_once = argc == 5 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	struct handler_config handler = { .name = (char *)"bench", .command = argv + 4 };
	struct config config = { .handlers = &handler, .handlers_count = 1 };
	struct bench bench = { .to_start = rounds };
	struct figures before, after;
	struct lane *lanes;
	struct err why;

	if (rounds == 0 || at_once == 0 || rounds < at_once) {
		fprintf(stderr, "usage: spawn_bench ROUNDS AT_ONCE SPAWNERS PROGRAM\n");
		return 2;
	}
	config.spawners = (unsigned)strtoul(argv[3], NULL, 10);
	figures_take(&before);
	fill_block(&bench.block);
	bench.spawner = spawner_fork(&config, &(struct spawn_cleanup){ .folder = "" }, &why);
	bench.loop = loop_new(&why);
	lanes = calloc(at_once, sizeof(*lanes));
	if (lanes == NULL || bench.spawner == NULL || bench.loop == NULL ||
	    spawner_attach(bench.spawner, bench.loop, on_lost, NULL, &why) != 0)
		errx(1, "%s", why.text);
	for (unsigned i = 0; i < at_once; i++) {
		lanes[i].bench = &bench;
		begin(&lanes[i]);
	}
	loop_run(bench.loop);
	spawner_free(&bench.spawner);
	loop_free(&bench.loop);
	figures_take(&after);
	figures_print("spawn_bench", &before, &after, rounds, at_once);
	bytes_fini(&bench.block);
	free(lanes);
	return 0;
}
