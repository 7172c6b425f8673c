#include "process/spawn_child.h"

#include "process/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where identities of 16 bits came first, the plain numbers still mean those. */
#ifdef SYS_setgroups32
enum { CALL_SETGROUPS = SYS_setgroups32, CALL_SETRESGID = SYS_setresgid32, CALL_SETRESUID = SYS_setresuid32 };
#else
enum { CALL_SETGROUPS = SYS_setgroups, CALL_SETRESGID = SYS_setresgid, CALL_SETRESUID = SYS_setresuid };
#endif

/* The child's functions run in the parent's memory: no instrumentation there. */
#define IN_CHILD __attribute__((noinline, no_sanitize("address", "undefined")))

IN_CHILD static bool is_already(const struct identity *identity)
{
	return geteuid() == identity->uid && getuid() == identity->uid &&
	       getegid() == identity->gid && getgid() == identity->gid;
}

/* Raw system calls: the library's would change the identity of every thread it
 * knows of.  Who is not root can only stay who he is. */
IN_CHILD static int become(const struct identity *identity)
{
	if (geteuid() != 0 && is_already(identity))
		return 0;
	if (syscall(CALL_SETGROUPS, identity->groups_count, identity->groups) != 0 ||
	    syscall(CALL_SETRESGID, identity->gid, identity->gid, identity->gid) != 0 ||
	    syscall(CALL_SETRESUID, identity->uid, identity->uid, identity->uid) != 0)
		return -1;
	if (!is_already(identity) || (identity->uid != 0 && syscall(CALL_SETRESUID, -1, 0, -1) == 0)) {
		errno = EPERM;
		return -1;
	}
	return 0;
}

IN_CHILD static int take_control(const struct spawn_child *child)
{
	if (child->control_fd == 0)
		return 0;
	/* dup2() to itself would leave it close-on-exec. */
	if (child->control_fd == child->control_number)
		return fcntl(child->control_fd, F_SETFD, 0);
	return dup2(child->control_fd, child->control_number) == child->control_number ? 0 : -1;
}

IN_CHILD static int take_descriptors(const struct spawn_child *child)
{
	for (int i = 0; i < 3; i++)
		if (dup2(child->fds[i], i) < 0)
			return -1;
	return take_control(child);
}

/* A limit above what the host itself may use stays at that. */
IN_CHILD static int set_limit(int what, uint64_t value)
{
	struct rlimit limit;

	if (value == 0)
		return 0;
	if (getrlimit(what, &limit) != 0)
		return -1;
	if (what == RLIMIT_CPU && limit.rlim_max != RLIM_INFINITY && value >= limit.rlim_max)
		return 0;
	if (limit.rlim_max == RLIM_INFINITY || value < limit.rlim_max)
		limit.rlim_max = value;
	limit.rlim_cur = limit.rlim_max;
	if (what == RLIMIT_CPU && limit.rlim_max != RLIM_INFINITY)
		limit.rlim_max++;       /* XCPU first, which says what it was */
	return setrlimit(what, &limit);
}

IN_CHILD static int set_limits(const struct program_limits *limits)
{
	if (set_limit(RLIMIT_DATA, limits->data_bytes) != 0 || set_limit(RLIMIT_CPU, limits->cpu_s) != 0 ||
	    set_limit(RLIMIT_NOFILE, limits->files) != 0 || set_limit(RLIMIT_NPROC, limits->processes) != 0)
		return -1;
	return 0;
}

IN_CHILD static enum spawn_step run_steps(const struct spawn_child *child, pid_t parent)
{
	sigset_t none;

	/* 1. Its own process group, so that it can be ended with all it starts. */
	if (setpgid(0, 0) != 0)
		return SPAWN_STEP_GROUP;

	/* 2. Its user. */
	if (child->identity != NULL && become(child->identity) != 0)
		return SPAWN_STEP_USER;

	/* 3. Behind those that work, where it has no request yet. */
	if (child->nice != 0)
		setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + child->nice);

	/* 4. Descriptors 0, 1 and 2, and its control where it waits; all others are
	 *    close-on-exec. */
	if (take_descriptors(child) != 0)
		return SPAWN_STEP_DESCRIPTORS;

	/* 5. What it may use.  After step 2: a limit on processes counts its user's. */
	if (set_limits(child->limits) != 0)
		return SPAWN_STEP_LIMITS;

	/* 6. It ends when the spawner is killed.  After step 2, which clears this;
	 *    and where that happened already, nobody will signal it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		return SPAWN_STEP_GROUP;

	/* 7. Its directory. */
	if (chdir(child->directory) != 0 && !child->is_directory_optional)
		return SPAWN_STEP_DIRECTORY;

	/* 8. An empty signal mask; no signal is ignored, so all get their default. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);

	/* 9. The program. */
	execve(child->path, child->argv, child->envp);
	return SPAWN_STEP_EXEC;
}

pid_t spawn_child_run(struct spawn_child *child)
{
	pid_t parent = getpid(), pid;

	child->failed_step = SPAWN_STEP_NONE;
	child->failed_errno = 0;
	pid = vfork();
	if (pid == 0) {
		child->failed_step = run_steps(child, parent);
		child->failed_errno = errno;
		_exit(127);
	}
	if (pid < 0) {
		child->failed_step = SPAWN_STEP_FORK;
		child->failed_errno = errno;
		return -1;
	}
	if (child->failed_step == SPAWN_STEP_NONE)
		return pid;
	waitpid(pid, NULL, 0);
	return -1;
}
