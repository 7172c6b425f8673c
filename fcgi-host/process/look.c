#include "process/look.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The name, which may contain anything, ends with the last parenthesis. */
static int read_stat(const char *text, struct look *out)
{
	const char *after_name = strrchr(text, ')');
	uint64_t user, system;
	int64_t pages;

	if (after_name == NULL ||
	    sscanf(after_name + 1, " %*c %*d %*d %*d %*d %*d %*u %" SCNu64 " %*u %" SCNu64 " %*u %" SCNu64 " %" SCNu64
		" %*d %*d %*d %*d %*d %*d %*u %*u %" SCNd64, &out->minor_faults, &out->major_faults, &user, &system, &pages) != 5)
		return -1;
	out->cpu_us = (user + system) * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	out->rss_kib = pages < 0 ? 0 : (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
	return 0;
}

/* Where the kernel has it, in more than ticks. */
static void read_clock(pid_t pid, struct look *out)
{
	struct timespec spent;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &spent) == 0)
		out->cpu_us = (uint64_t)spent.tv_sec * 1000000 + (uint64_t)spent.tv_nsec / 1000;
}

int look_at(pid_t pid, struct look *out)
{
	char path[64], text[1024];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return -1;
	text[len] = '\0';
	if (read_stat(text, out) < 0)
		return -1;
	read_clock(pid, out);
	return 0;
}
