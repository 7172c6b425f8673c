/*
 * park_zygote.c - a fork server: an initialised process that forks children,
 * each for one request, and reports how they ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "park.h"

static struct {
	int control;
	int ended;              /* signalfd of SIGCHLD */
	pid_t (*fork_child)(void);
	sigset_t mask;          /* as it was, for the children */
	pid_t *children;        /* those not reaped yet */
	size_t count, room;
	bool is_closing;        /* no more forks */
} zygote;

static void fail(const char *what, const char *why)
{
	char text[300];
	int length = snprintf(text, sizeof text, "%s%s", what, why);

	park_send(zygote.control, 'F', text, strnlen(text, (size_t)length));
}

/* --- children */

static size_t find_child(pid_t pid)
{
	size_t i = 0;

	while (i < zygote.count && zygote.children[i] != pid)
		i++;
	return i;
}

static bool has_room(void)
{
	if (zygote.count < zygote.room)
		return true;
	size_t room = zygote.room ? 2 * zygote.room : 32;
	pid_t *children = realloc(zygote.children, room * sizeof *children);
	if (!children)
		return false;
	zygote.children = children;
	zygote.room = room;
	return true;
}

static size_t put(unsigned char *at, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		at[i] = (unsigned char)(value >> 8 * (size - 1 - i));
	return size;
}

static uint64_t in_us(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

static void report(pid_t pid, int status, const struct rusage *used)
{
	const uint64_t figures[] = {in_us(used->ru_utime), in_us(used->ru_stime), (uint64_t)used->ru_maxrss,
		(uint64_t)used->ru_minflt, (uint64_t)used->ru_majflt, (uint64_t)used->ru_nvcsw, (uint64_t)used->ru_nivcsw};
	unsigned char payload[8 + sizeof figures];
	size_t length = put(payload, (uint32_t)pid, 4);

	length += put(payload + length, (uint32_t)status, 4);
	for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
		length += put(payload + length, figures[i], 8);
	park_send(zygote.control, 'X', payload, length);
}

static void reap(void)
{
	struct signalfd_siginfo info;
	struct rusage used;
	int status;
	pid_t pid;

	while (read(zygote.ended, &info, sizeof info) > 0)
		continue;
	while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
		size_t i = find_child(pid);
		if (i == zygote.count)
			continue;
		zygote.children[i] = zygote.children[--zygote.count];
		report(pid, status, &used);
	}
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

static int become_child(const int *descriptors, pid_t parent)
{
	close(zygote.control);
	close(zygote.ended);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	for (int i = 0; i < 3; i++) {
		dup2(descriptors[i], i);
		close(descriptors[i]);
	}
	reopen_files();
	sigprocmask(SIG_SETMASK, &zygote.mask, NULL);
	park_rehearse();
	return descriptors[3];
}

/* --- messages */

static bool has_threads(void)
{
	struct stat tasks;

	return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 3;
}

static bool can_fork(const struct park_message *message)
{
	const char *changed = park_files_changed();

	if (message->descriptor_count != PARK_DESCRIPTORS_MAX)
		fail("four descriptors are needed to start a child", "");
	else if (has_threads())
		fail("more than one thread: a fork would lose the others", "");
	else if (changed)
		fail("changed: ", changed);
	else if (zygote.is_closing || !has_room())
		fail("no more children", "");
	else
		return true;
	return false;
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

/* True in the child. */
static bool on_fork(struct park_message *message)
{
	pid_t pid = -1;

	if (can_fork(message)) {
		move_above_standard(message);
		pid = zygote.fork_child();
		if (pid == 0)
			return true;
		if (pid < 0)
			fail("fork: ", strerror(errno));
	}
	for (int i = 0; i < message->descriptor_count; i++)
		close(message->descriptors[i]);
	if (pid > 0) {
		unsigned char payload[4];
		/* Both do it: neither a signal from here nor the child may come before it. */
		setpgid(pid, pid);
		zygote.children[zygote.count++] = pid;
		put(payload, (uint32_t)pid, sizeof payload);
		park_send(zygote.control, 'P', payload, sizeof payload);
	}
	return false;
}

static uint32_t get(const char *at)
{
	const unsigned char *byte = (const unsigned char *)at;

	return (uint32_t)byte[0] << 24 | (uint32_t)byte[1] << 16 | (uint32_t)byte[2] << 8 | byte[3];
}

static void on_signal(const struct park_message *message)
{
	if (message->length != 8)
		return;
	pid_t pid = (pid_t)get(message->text);
	if (find_child(pid) < zygote.count)
		kill(-pid, (int)get(message->text + 4));
}

static void on_host_gone(void)
{
	for (size_t i = 0; i < zygote.count; i++)
		kill(-zygote.children[i], SIGKILL);
	_exit(0);
}

int park_zygote(int control, pid_t (*fork_child)(void))
{
	sigset_t child_ended;
	pid_t self = getpid();
	struct park_message message;

	sigemptyset(&child_ended);
	sigaddset(&child_ended, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child_ended, &zygote.mask);
	zygote.control = control;
	zygote.fork_child = fork_child;
	zygote.ended = signalfd(-1, &child_ended, SFD_CLOEXEC | SFD_NONBLOCK);
	if (zygote.ended < 0 || has_threads()) {
		fail(zygote.ended < 0 ? "signalfd: " : "more than one thread: a fork would lose the others",
			zygote.ended < 0 ? strerror(errno) : "");
		_exit(0);
	}
	park_send(control, 'R', NULL, 0);
	for (;;) {
		struct pollfd waiting[2] = {{.fd = control, .events = POLLIN}, {.fd = zygote.ended, .events = POLLIN}};
		if (zygote.is_closing && zygote.count == 0)
			_exit(0);
		if (poll(waiting, 2, -1) < 0)
			continue;
		if (waiting[1].revents)
			reap();
		if (!waiting[0].revents)
			continue;
		park_receive(control, &message);
		if (message.type == 'K' && on_fork(&message))
			return become_child(message.descriptors, self);
		else if (message.type == 'S')
			on_signal(&message);
		else if (message.type == 'Q')
			zygote.is_closing = true;
		else if (message.type == 0)
			on_host_gone();
	}
}
