#include "process/exiting.h"

#include <stdio.h>
#include <string.h>

enum { PF_EXITING = 0x4 };      /* flags in /proc/PID/stat, see linux/sched.h */

bool process_is_exiting(pid_t pid)
{
	char path[64], text[512];
	unsigned flags = 0;
	char *after_name;
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (file == NULL)
		return true;
	len = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[len] = '\0';
	after_name = strrchr(text, ')');
	if (after_name == NULL || sscanf(after_name + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) != 1)
		return true;
	return (flags & PF_EXITING) != 0;
}
