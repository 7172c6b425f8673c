/*
 * raw_loop.c - the yardstick: vfork, exec, read to the end of output, wait, in
 * a loop and with nothing else.
 *
 *   raw_loop ROUNDS AT_ONCE PROGRAM [ARGUMENT...]
 *
 * AT_ONCE processes run the loop side by side, each its share of the rounds.
 */
#include "bench_figures.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_once(char **argv)
{
	char buf[4096];
	int fds[2], wait_status;
	struct rusage rusage;
	pid_t pid;

	if (pipe(fds) != 0)
		err(1, "pipe");
	pid = vfork();
	if (pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		execv(argv[0], argv);
		_exit(127);
	}
	close(fds[1]);
	while (read(fds[0], buf, sizeof(buf)) > 0)
		;
	close(fds[0]);
	if (pid < 0 || wait4(pid, &wait_status, 0, &rusage) != pid || wait_status != 0)
		errx(1, "%s: failed", argv[0]);
}

static void run(unsigned rounds, char **argv)
{
	while (rounds-- > 0)
		run_once(argv);
}

static void run_side_by_side(unsigned rounds, unsigned at_once, char **argv)
{
	int wait_status;

	for (unsigned i = 0; i < at_once; i++) {
		if (fork() == 0) {
			run(rounds / at_once, argv);
			_exit(0);
		}
	}
	while (wait(&wait_status) > 0)
		if (wait_status != 0)
			exit(1);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 3 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	unsigned at_once = argc > 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	struct figures before, after;

	if (rounds == 0 || at_once == 0) {
		fprintf(stderr, "usage: raw_loop ROUNDS AT_ONCE PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	figures_take(&before);
	if (at_once == 1)
		run(rounds, argv + 3);
	else
		run_side_by_side(rounds, at_once, argv + 3);
	figures_take(&after);
	figures_print("raw_loop", &before, &after, rounds, at_once);
	return 0;
}
