#include "compare/child.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LAST_WORDS_BYTES = 4096 };

static void take_descriptors(const struct child_spec *spec)
{
	int null_fd = open("/dev/null", O_RDWR), out_fd = open(spec->output, O_WRONLY | O_CREAT | O_APPEND, 0600);

	dup2(spec->stdin_fd >= 0 ? spec->stdin_fd : null_fd, STDIN_FILENO);
	dup2(spec->stdout_fd >= 0 ? spec->stdout_fd : out_fd, STDOUT_FILENO);
	dup2(out_fd, STDERR_FILENO);
	if (null_fd > STDERR_FILENO)
		close(null_fd);
	if (out_fd > STDERR_FILENO)
		close(out_fd);
}

static _Noreturn void become(const struct child_spec *spec, pid_t parent, int report_fd)
{
	sigset_t none;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(127);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	take_descriptors(spec);
	for (size_t i = 0; i < spec->env_count; i++)
		setenv(spec->env[i].name, spec->env[i].value, 1);
	if (spec->directory == NULL || chdir(spec->directory) == 0)
		execvp(spec->program, spec->argv);
	int errnum = errno;
	if (write(report_fd, &errnum, sizeof(errnum)) < 0)
		_exit(126);
	_exit(127);
}

int child_start(struct child *child, const struct child_spec *spec, struct err *err)
{
	int report[2], errnum = 0;
	pid_t parent = getpid();

	*child = (struct child){ .output = strdup(spec->output) };
	if (pipe2(report, O_CLOEXEC) < 0)
		return err_set_errno(err, errno, "pipe");
	child->pid = fork();
	if (child->pid == 0)
		become(spec, parent, report[1]);
	errnum = child->pid < 0 ? errno : 0;
	close(report[1]);
	if (child->pid > 0) {
		setpgid(child->pid, child->pid);
		while (read(report[0], &errnum, sizeof(errnum)) < 0 && errno == EINTR)
			;
	}
	close(report[0]);
	if (errnum == 0)
		return 0;
	if (child->pid > 0)
		waitpid(child->pid, NULL, 0);
	child->pid = 0;
	return err_set_errno(err, errnum, "%s cannot be started", spec->argv[0]);
}

bool child_runs(struct child *child)
{
	if (child->pid > 0 && waitpid(child->pid, &child->wait_status, WNOHANG) == child->pid) {
		kill(-child->pid, SIGKILL);
		child->pid = 0;
	}
	return child->pid > 0;
}

/* Without its line end; "" when it wrote nothing. */
static void last_line(const char *path, char out[LAST_WORDS_BYTES])
{
	int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	off_t from = size > LAST_WORDS_BYTES - 1 ? size - (LAST_WORDS_BYTES - 1) : 0;
	ssize_t len = fd < 0 ? 0 : pread(fd, out, LAST_WORDS_BYTES - 1, from);
	char *line;

	if (fd >= 0)
		close(fd);
	out[len < 0 ? 0 : len] = '\0';
	for (len = (ssize_t)strlen(out); len > 0 && (out[len - 1] == '\n' || out[len - 1] == ' '); len--)
		out[len - 1] = '\0';
	line = strrchr(out, '\n');
	if (line != NULL)
		memmove(out, line + 1, strlen(line + 1) + 1);
}

int child_tell(const struct child *child, const char *what, struct err *err)
{
	char line[LAST_WORDS_BYTES], how[64] = "does not answer";

	if (child->pid == 0 && WIFEXITED(child->wait_status))
		snprintf(how, sizeof(how), "ended with exit status %d", WEXITSTATUS(child->wait_status));
	else if (child->pid == 0)
		snprintf(how, sizeof(how), "ended by signal %d", WTERMSIG(child->wait_status));
	last_line(child->output, line);
	return err_set(err, "%s %s%s%.600s", what, how, line[0] == '\0' ? "" : ": ", line);
}

static bool has_ended(struct child *child, uint64_t patience_ms)
{
	uint64_t end_ns = clock_monotonic_ns() + patience_ms * 1000000;
	struct timespec pause = { .tv_nsec = 2000000 };

	for (;;) {
		if (waitpid(child->pid, &child->wait_status, WNOHANG) != 0)
			return true;
		if (clock_monotonic_ns() >= end_ns)
			return false;
		nanosleep(&pause, NULL);
	}
}

void child_stop(struct child *child, uint64_t patience_ms)
{
	if (child->pid > 0) {
		kill(child->pid, SIGTERM);
		if (!has_ended(child, patience_ms)) {
			kill(-child->pid, SIGKILL);
			has_ended(child, 1000);
		}
		kill(-child->pid, SIGKILL);
	}
	child->pid = 0;
	free(child->output);
	child->output = NULL;
}
