/*
 * park_rehearse.c - page faults that a request would otherwise wait for.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "park.h"

/* Since Linux 5.14; older kernels refuse it, and nothing is lost but time. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

enum {
	STACK_SIZE = 64 * 1024,
	WRITTEN_MAX = 4 * 1024 * 1024,     /* in one mapping, of pages that become our own copies */
	READ_MAX = 16 * 1024 * 1024
};

static void rehearse_mapping(const char *line)
{
	unsigned long start, end;
	char mode[5] = "";

	if (sscanf(line, "%lx-%lx %4s", &start, &end, mode) != 3 || strstr(line, "[v"))
		return;
	size_t size = end - start;
	if (mode[0] == 'r' && mode[1] == 'w' && mode[3] == 'p') {
		if (size <= WRITTEN_MAX)
			madvise((void *)start, size, MADV_POPULATE_WRITE);
	} else if (mode[0] == 'r' && size <= READ_MAX) {
		madvise((void *)start, size, MADV_POPULATE_READ);
	}
}

static void rehearse_stack(void)
{
	volatile char room[STACK_SIZE];

	for (size_t i = 0; i < sizeof room; i += 4096)
		room[i] = 0;
}

void park_rehearse(void)
{
	static char text[64 * 1024];
	size_t length = 0;
	ssize_t got;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	rehearse_stack();
	while (length < sizeof text - 1 && (got = read(fd, text + length, sizeof text - 1 - length)) > 0)
		length += (size_t)got;
	close(fd);
	text[length] = '\0';
	for (char *line = text, *next; (next = strchr(line, '\n')); line = next + 1) {
		*next = '\0';
		rehearse_mapping(line);
	}
}
