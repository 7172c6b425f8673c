/*
 * park_rehearse.c - page faults that a request would otherwise wait for.
 *
 * A child shares its parent's pages until it writes to them.  Of those that a
 * program has in use it will write to nearly all, so the child takes its own
 * copies of them while it has time.  An interpreter with its modules has far
 * more of them than a script comes to use: only its variables are copied, and
 * its own rehearsal does the rest.  Populating what is only read was found to
 * cost more than it saves.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "park.h"

/* Since Linux 5.14; older kernels refuse it, and nothing is lost but time. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum {
	STACK_SIZE = 64 * 1024,
	PAGES_AT_ONCE = 16 * 1024,
	PAGES_MAX = 16 * 1024       /* in all: a larger heap is hardly all used by a request */
};

/* Copies those of `count` pages that are in use, up to `*left_io` of them. */
static void copy_pages(char *start, size_t count, size_t page, size_t *left_io)
{
	static unsigned char is_used[PAGES_AT_ONCE];
	size_t i = 0;

	if (mincore(start, count * page, is_used) != 0)
		return;
	while (i < count && *left_io > 0) {
		size_t first = i;
		bool used = is_used[i] & 1;
		while (i < count && (is_used[i] & 1) == used && (!used || i - first < *left_io))
			i++;
		if (!used)
			continue;
		madvise(start + first * page, (i - first) * page, MADV_POPULATE_WRITE);
		*left_io -= i - first;
	}
}

static void rehearse_mapping(const char *line, bool is_program, size_t page, size_t *left_io)
{
	unsigned long start, end, inode = 0;
	char mode[5] = "";

	if (sscanf(line, "%lx-%lx %4s %*s %*s %lu", &start, &end, mode, &inode) != 4 || memcmp(mode, "rw", 2) != 0 || mode[3] != 'p')
		return;
	if (!is_program && inode == 0)
		return;
	while (start < end && *left_io > 0) {
		size_t count = (end - start) / page;
		if (count > PAGES_AT_ONCE)
			count = PAGES_AT_ONCE;
		copy_pages((char *)start, count, page, left_io);
		start += count * page;
	}
}

static void rehearse_stack(void)
{
	volatile char room[STACK_SIZE];

	for (size_t i = 0; i < sizeof room; i += 4096)
		room[i] = 0;
}

void park_rehearse(bool is_program)
{
	static char text[64 * 1024];
	size_t length = 0, page = (size_t)sysconf(_SC_PAGESIZE), left = PAGES_MAX;
	ssize_t got;
	int fd;

	rehearse_stack();
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while (length < sizeof text - 1 && (got = read(fd, text + length, sizeof text - 1 - length)) > 0)
		length += (size_t)got;
	close(fd);
	text[length] = '\0';
	for (char *line = text, *next; (next = strchr(line, '\n')); line = next + 1) {
		*next = '\0';
		rehearse_mapping(line, is_program, page, &left);
	}
}
