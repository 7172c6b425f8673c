#include "process/brood.h"

#include "base/clock.h"
#include "process/look.h"
#include "process/priority.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A STARTED waits this long for company: a short process then costs the relay
 * one wake-up instead of two. */
#define STARTED_WAITS_NS 5000000u

/* At the end nobody waits longer for zombies. */
#define END_WAITS_NS 200000000u

/* The last of an ended group may be reaped by someone else, so look again. */
#define LEFT_CHECK_NS 50000000u

/* Whether the number still means the group that we started: the kernel gives
 * it to nobody else while one of the group is left, and to a process only
 * after; we ourselves reaped the process that had it. */
static bool is_group_left(const struct child *child)
{
	if (kill(-child->pid, 0) != 0 && errno == ESRCH)
		return false;
	return !child->is_left || (kill(child->pid, 0) != 0 && errno == ESRCH);
}

static void signal_group(const struct child *child, int signal)
{
	if (child->is_left) {
		if (is_group_left(child))
			kill(-child->pid, signal);
		return;
	}
	/* A process may have gone to another group; it is not reaped, so that its
	 * pid is its own. */
	if (kill(-child->pid, signal) != 0 || signal == SIGKILL)
		kill(child->pid, signal);
}

/* Reaps as long as it goes quickly, so that no zombie stays where nobody else
 * would reap it. */
_Noreturn void brood_end(struct brood *brood, int status)
{
	static const struct timespec patience = { .tv_nsec = 20 * 1000000 };
	uint64_t until = clock_monotonic_ns() + END_WAITS_NS;
	sigset_t chld;
	pid_t pid;

	for (size_t i = 0; i < brood->children.buckets_count; i++)
		for (struct child *child = brood->children.by_pid[i]; child != NULL; child = child->next_by_pid)
			signal_group(child, SIGKILL);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0 && clock_monotonic_ns() < until)
		if (pid == 0 && sigtimedwait(&chld, NULL, &patience) < 0 && errno == EAGAIN)
			break;
	_exit(status);
}

static void send_reports(struct brood *brood)
{
	const char *data = (const char *)brood->reports;
	size_t len = brood->reports_count * sizeof(brood->reports[0]);

	while (len > 0) {
		ssize_t n = send(brood->socket_fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			brood_end(brood, 0);
		data += n;
		len -= (size_t)n;
	}
	brood->reports_count = 0;
	brood->is_report_due = false;
}

static void add_report(struct brood *brood, const struct spawn_report *report)
{
	if (brood->reports_count == 0)
		brood->reports_since_ns = report->at_ns;
	brood->reports[brood->reports_count++] = *report;
	if (report->kind != SPAWN_REPORT_STARTED)
		brood->is_report_due = true;
	if (brood->reports_count == BROOD_REPORTS_MAX)
		send_reports(brood);
}

void brood_fail(struct brood *brood, uint64_t id, enum spawn_step step, int errnum)
{
	add_report(brood, &(struct spawn_report){
		.id = id, .at_ns = clock_monotonic_ns(), .kind = SPAWN_REPORT_FAILED, .step = step, .errnum = errnum });
}

void brood_loaded(struct brood *brood, uint32_t generation, uint64_t digest, bool is_fine)
{
	add_report(brood, &(struct spawn_report){
		.id = generation, .at_ns = clock_monotonic_ns(), .kind = SPAWN_REPORT_LOADED, .digest = digest,
		.errnum = is_fine ? 0 : EINVAL });
}

void brood_changed_rights(struct brood *brood, uint32_t generation, int errnum, size_t failed)
{
	add_report(brood, &(struct spawn_report){
		.id = generation, .at_ns = clock_monotonic_ns(), .kind = SPAWN_REPORT_RIGHTS, .errnum = errnum, .step = (int32_t)failed });
}

static struct process_usage usage_of(const struct rusage *rusage)
{
	return (struct process_usage){
		.cpu_us = (uint64_t)(rusage->ru_utime.tv_sec + rusage->ru_stime.tv_sec) * 1000000 +
		          (uint64_t)(rusage->ru_utime.tv_usec + rusage->ru_stime.tv_usec),
		.max_rss_kib = (uint64_t)rusage->ru_maxrss,
		.minor_faults = (uint64_t)rusage->ru_minflt,
		.major_faults = (uint64_t)rusage->ru_majflt,
		.context_switches = (uint64_t)(rusage->ru_nvcsw + rusage->ru_nivcsw),
	};
}

static void take_off_one(uint64_t *from, uint64_t what)
{
	*from = *from > what ? *from - what : 0;
}

static void take_off(struct process_usage *usage, const struct process_usage *start)
{
	take_off_one(&usage->cpu_us, start->cpu_us);
	take_off_one(&usage->minor_faults, start->minor_faults);
	take_off_one(&usage->major_faults, start->major_faults);
}

static void finish_left(struct brood *brood, struct child *child)
{
	add_report(brood, &child->exit);
	child_table_remove(&brood->children, child);
}

static void child_exited(struct brood *brood, struct child *child, int wait_status, const struct rusage *rusage)
{
	child->exit = (struct spawn_report){
		.id = child->id, .at_ns = clock_monotonic_ns(), .kind = SPAWN_REPORT_EXITED,
		.wait_status = wait_status, .usage = usage_of(rusage),
		.start_usage = child->start_usage };
	take_off(&child->exit.usage, &child->start_usage);
	/* A process that died leaves nobody of its group behind; one that ended by
	 * itself may. */
	if (WIFSIGNALED(wait_status) && !child->is_ended)
		kill(-child->pid, SIGKILL);
	if (child->is_ended && is_group_left(child)) {
		if (brood->children.left == NULL)
			brood->left_checked_ns = child->exit.at_ns;
		child_table_set_left(&brood->children, child);
		return;
	}
	add_report(brood, &child->exit);
	child_table_remove(&brood->children, child);
}

static void check_left(struct brood *brood)
{
	struct child *next;

	for (struct child *child = brood->children.left; child != NULL; child = next) {
		next = child->next_left;
		if (!is_group_left(child))
			finish_left(brood, child);
	}
	brood->left_checked_ns = clock_monotonic_ns();
}

static void reap(struct brood *brood)
{
	bool has_orphans = false;
	struct rusage rusage;
	int wait_status;
	pid_t pid;

	while ((pid = wait4(-1, &wait_status, WNOHANG, &rusage)) > 0) {
		struct child *child = child_table_by_pid(&brood->children, pid);

		if (child != NULL && !child->is_left)
			child_exited(brood, child, wait_status, &rusage);
		else
			has_orphans = true;
	}
	if (brood->children.left != NULL &&
	    (has_orphans || clock_monotonic_ns() - brood->left_checked_ns >= LEFT_CHECK_NS))
		check_left(brood);
}

static void add_child(struct brood *brood, const struct spawn_ask *ask, struct child *child)
{
	struct child *former = child_table_by_pid(&brood->children, child->pid);

	if (former != NULL)             /* its number was free again: its group is gone */
		finish_left(brood, former);
	child->id = ask->id;
	child->is_ahead = ask->ahead != SPAWN_FOR_REQUEST;
	child_table_add(&brood->children, child);
	add_report(brood, &(struct spawn_report){
		.id = ask->id, .at_ns = clock_monotonic_ns(), .kind = SPAWN_REPORT_STARTED, .pid = child->pid });
	if (ask->is_prompt)
		brood->is_report_due = true;
}

void brood_start(struct brood *brood, const struct spawn_ask *ask, struct spawn_child *how)
{
	struct child *child = child_table_take(&brood->children);

	if (child == NULL) {
		brood_fail(brood, ask->id, SPAWN_STEP_FORK, ENOMEM);
		return;
	}
	child->pid = spawn_child_run(how);
	if (child->pid < 0) {
		child_table_put_back(&brood->children, child);
		brood_fail(brood, ask->id, how->failed_step, how->failed_errno);
		return;
	}
	add_child(brood, ask, child);
}

/* Whatever the relay says: only a living child of ours, with a group of its own,
 * that nobody answers for yet. */
static bool may_adopt(const struct brood *brood, pid_t pid)
{
	siginfo_t info = { 0 };
	const struct child *child;

	if (pid <= 1 || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0 || getpgid(pid) != pid)
		return false;
	child = child_table_by_pid(&brood->children, pid);
	return child == NULL || child->is_left;
}

void brood_adopt(struct brood *brood, const struct spawn_ask *ask)
{
	struct child *child = may_adopt(brood, ask->pid) ? child_table_take(&brood->children) : NULL;

	if (child == NULL) {
		brood_fail(brood, ask->id, SPAWN_STEP_GROUP, ESRCH);
		return;
	}
	child->pid = ask->pid;
	add_child(brood, ask, child);
	brood_set_ready(child);
}

struct child *brood_waiting(const struct brood *brood, uint64_t id)
{
	struct child *child = child_table_by_id(&brood->children, id);

	return child == NULL || !child->is_ahead ? NULL : child;
}

void brood_set_ready(struct child *child)
{
	struct look look;

	if (look_at(child->pid, &look) == 0)
		child->start_usage = (struct process_usage){
			.cpu_us = look.cpu_us, .minor_faults = look.minor_faults, .major_faults = look.major_faults };
	priority_raise(child->pid);
}

void brood_tend(struct brood *brood)
{
	reap(brood);
	if (brood->is_report_due || (brood->reports_count > 0 &&
	    clock_monotonic_ns() - brood->reports_since_ns >= STARTED_WAITS_NS))
		send_reports(brood);
}

static bool ends_a_process(int signal)
{
	return signal == SIGTERM || signal == SIGKILL || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

void brood_signal(struct brood *brood, uint64_t id, int signal)
{
	struct child *child = child_table_by_id(&brood->children, id);

	if (child == NULL)
		return;
	signal_group(child, signal);
	if (ends_a_process(signal))
		child->is_ended = signal != SIGKILL;    /* after KILL nothing is waited for */
	if (signal == SIGKILL && child->is_left)
		finish_left(brood, child);
}

bool brood_has(const struct brood *brood, uint64_t id)
{
	return child_table_by_id(&brood->children, id) != NULL;
}

const struct timespec *brood_patience(const struct brood *brood, struct timespec *out)
{
	uint64_t due = UINT64_MAX, now;

	if (brood->reports_count > 0)
		due = brood->reports_since_ns + STARTED_WAITS_NS;
	if (brood->children.left != NULL && brood->left_checked_ns + LEFT_CHECK_NS < due)
		due = brood->left_checked_ns + LEFT_CHECK_NS;
	if (due == UINT64_MAX)
		return NULL;
	now = clock_monotonic_ns();
	due = due > now ? due - now : 0;
	*out = (struct timespec){ .tv_sec = (time_t)(due / 1000000000), .tv_nsec = (long)(due % 1000000000) };
	return out;
}
