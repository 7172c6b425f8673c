/*
 * spawn_text.c - why a process did not start, in words.
 */
#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const step_names[] = {
	[SPAWN_STEP_NONE] = "none",
	[SPAWN_STEP_FORK] = "fork",
	[SPAWN_STEP_GROUP] = "process-group",
	[SPAWN_STEP_USER] = "user",
	[SPAWN_STEP_LIMITS] = "limits",
	[SPAWN_STEP_DIRECTORY] = "directory",
	[SPAWN_STEP_DESCRIPTORS] = "descriptors",
	[SPAWN_STEP_PROGRAM] = "program",
	[SPAWN_STEP_EXEC] = "exec",
	[SPAWN_STEP_WAIT] = "wait",
	[SPAWN_STEP_LOST] = "spawner-lost",
};

const char *spawn_step_name(enum spawn_step step)
{
	return (size_t)step < sizeof(step_names) / sizeof(step_names[0]) ? step_names[step] : "unknown";
}

/* The interpreter's line without "#!" and its newline, in one printable line;
 * false when there is none. */
static bool read_interpreter(const char *program, char *line, size_t size, bool *has_cr_out)
{
	int fd = open(program, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : read(fd, line, size - 1);
	size_t len;

	if (fd >= 0)
		close(fd);
	if (n < 2 || line[0] != '#' || line[1] != '!')
		return false;
	line[n] = '\0';
	len = strcspn(line + 2, "\n");
	memmove(line, line + 2, len);
	line[len] = '\0';
	*has_cr_out = len > 0 && line[len - 1] == '\r';
	if (*has_cr_out)
		line[--len] = '\0';
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)line[i] < ' ' || (unsigned char)line[i] >= 0x7f)
			line[i] = '?';
	return true;
}

static void hint_missing(const char *program, char *out, size_t size)
{
	char line[128];
	bool has_cr = false;
	struct stat st;

	if (stat(program, &st) != 0)
		snprintf(out, size, "there is no such file");
	else if (!read_interpreter(program, line, sizeof(line), &has_cr))
		snprintf(out, size, "the file is there, the loader or interpreter that it names is not");
	else
		snprintf(out, size, "bad interpreter: its first line names '%s'%s", line,
			has_cr ? " followed by a carriage return: the file has DOS line ends" : ", which is not there");
}

static void hint_refused(const char *program, char *out, size_t size)
{
	struct stat st;

	if (stat(program, &st) != 0)
		snprintf(out, size, "a folder on the way to it cannot be searched");
	else if (!S_ISREG(st.st_mode))
		snprintf(out, size, "it is not a regular file");
	else if ((st.st_mode & 0111) == 0)
		snprintf(out, size, "it is not executable: chmod +x");
	else
		snprintf(out, size, "its user may not execute it, its interpreter or search its folder, or it is on a noexec mount");
}

static void hint_exec(int errnum, const char *program, char *out, size_t size)
{
	char line[128];
	bool has_cr = false;

	if (errnum == ENOENT || errnum == ELIBBAD)
		hint_missing(program, out, size);
	else if (errnum == EACCES)
		hint_refused(program, out, size);
	else if (errnum == ENOEXEC)
		snprintf(out, size, read_interpreter(program, line, sizeof(line), &has_cr) ?
			"its '#!' line names no interpreter" :
			"no '#!' line? A script's first line must begin with '#!' and its interpreter");
	else if (errnum == E2BIG)
		snprintf(out, size, "too many or too large variables");
	else if (errnum == ETXTBSY)
		snprintf(out, size, "it is being written");
}

void spawn_failure_text(enum spawn_step step, int errnum, const char *program, struct err *out)
{
	char hint[256] = "";

	switch (step) {
	case SPAWN_STEP_EXEC:
		hint_exec(errnum, program, hint, sizeof(hint));
		break;
	case SPAWN_STEP_PROGRAM:
		snprintf(hint, sizeof(hint), errnum == EACCES ? "it is not a file below the folder of scripts" : "");
		break;
	case SPAWN_STEP_DIRECTORY:
		snprintf(hint, sizeof(hint), "look at 'directory'");
		break;
	case SPAWN_STEP_USER:
		snprintf(hint, sizeof(hint), "only root can start processes of another user");
		break;
	case SPAWN_STEP_FORK:
		snprintf(hint, sizeof(hint), errnum == EAGAIN ? "the limit of processes is reached" : "");
		break;
	default:
		break;
	}
	err_set(out, "step %s: %s: %s%s%s", spawn_step_name(step), program, strerror(errnum), hint[0] != '\0' ? "; " : "", hint);
}
