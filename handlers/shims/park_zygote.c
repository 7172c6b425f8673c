/*
 * park_zygote.c - a fork server: an initialised process that forks others,
 * each for one request.
 *
 * They become children of the zygote's parent, the spawner, which knows them
 * from then on as it knows those that it started itself.  So nothing here reaps
 * them, signals them, or tells how they ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "park.h"

static struct {
	int control;
	pid_t parent;           /* the spawner */
	pid_t between;          /* the process between the zygote and the child, as the child knows it */
	pid_t (*fork_child)(void);
	rlim_t cpu_s;           /* of processor time for each child; 0: no limit of its own */
} zygote;

_Noreturn static void refuse(const char *what, const char *why)
{
	char text[300];
	int length = snprintf(text, sizeof text, "%s%s", what, why);

	park_send(zygote.control, 'F', text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
	_exit(0);
}

/* --- in a child */

/* A file opened before the fork has one position for all siblings: the script of an interpreter that has it open
 * would be read by the first.  So it is opened once more. */
static void reopen(int fd)
{
	char path[32];
	struct stat state;
	int flags = fcntl(fd, F_GETFL), is_kept = !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	off_t position;

	if (flags < 0 || (flags & O_ACCMODE) != O_RDONLY || fstat(fd, &state) != 0 || !S_ISREG(state.st_mode))
		return;
	position = lseek(fd, 0, SEEK_CUR);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int again = open(path, O_RDONLY | O_CLOEXEC);
	if (again < 0)
		return;
	lseek(again, position, SEEK_SET);
	dup3(again, fd, is_kept ? 0 : O_CLOEXEC);
	close(again);
}

static void reopen_files(void)
{
	/* What a runtime has open at its start has small numbers. */
	for (int fd = 3; fd < 64; fd++)
		reopen(fd);
}

/* Only when the spawner is the parent does its end mean ours. */
static void end_with_parent(void)
{
	while (getppid() == zygote.between)
		sched_yield();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != zygote.parent)
		_exit(0);
}

/* The zygote has none, since what it uses is no request's. */
static void limit_processor_time(void)
{
	struct rlimit limit;

	if (zygote.cpu_s == 0 || getrlimit(RLIMIT_CPU, &limit) != 0 ||
	    (limit.rlim_max != RLIM_INFINITY && zygote.cpu_s >= limit.rlim_max))
		return;
	limit.rlim_cur = zygote.cpu_s;
	limit.rlim_max = zygote.cpu_s + 1;
	if (setrlimit(RLIMIT_CPU, &limit) != 0)
		_exit(0);
}

static int become_child(const int *descriptors)
{
	close(zygote.control);
	setpgid(0, 0);
	end_with_parent();
	limit_processor_time();
	for (int i = 0; i < 3; i++) {
		dup2(descriptors[i], i);
		close(descriptors[i]);
	}
	reopen_files();
	return descriptors[3];
}

/* --- in the zygote */

static bool has_threads(void)
{
	struct stat tasks;

	return stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink > 3;
}

static void check(void)
{
	const char *changed;

	if (has_threads())
		refuse("more than one thread: a fork would lose the others", "");
	changed = park_files_changed();
	if (changed)
		refuse("changed: ", changed);
}

/* A fork whose parent ends at once, so that the child gets another.  The one
 * between borrows our memory: the child's is copied once.  0 in the child. */
static int fork_away(void)
{
	int status = 0;
	pid_t pid = vfork();

	if (pid == 0) {
		zygote.between = getpid();
		if (zygote.fork_child() == 0)
			return 0;
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return 1;
}

static void move_above_standard(struct park_message *message)
{
	for (int i = 0; i < message->descriptor_count; i++) {
		int fd = fcntl(message->descriptors[i], F_DUPFD_CLOEXEC, 10);
		if (fd < 0)
			continue;
		close(message->descriptors[i]);
		message->descriptors[i] = fd;
	}
}

/* True in the child.  One that cannot be had is seen by the end of its control. */
static bool on_fork(struct park_message *message)
{
	if (message->descriptor_count == PARK_DESCRIPTORS_MAX) {
		check();
		move_above_standard(message);
		if (fork_away() == 0)
			return true;
	}
	for (int i = 0; i < message->descriptor_count; i++)
		close(message->descriptors[i]);
	return false;
}

int park_zygote(int control, unsigned long cpu_s, pid_t (*fork_child)(void))
{
	struct park_message message;

	zygote.control = control;
	zygote.parent = getppid();
	zygote.fork_child = fork_child;
	zygote.cpu_s = cpu_s;
	check();
	park_send(control, 'R', NULL, 0);
	for (;;) {
		park_receive(control, &message);
		if (message.type == 'K' && on_fork(&message))
			return become_child(message.descriptors);
		else if (message.type == 0)
			_exit(0);
	}
}
