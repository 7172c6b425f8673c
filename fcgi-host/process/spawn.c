#include "process/spawn_private.h"

#include "base/clock.h"
#include "process/spawn_proto.h"
#include "process/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SPAWNERS_AUTO = 4,              /* see tests/bench/README.md */
	FIRST_BUCKETS = 64,
	END_TIMEOUT_MS = 1000,
};

struct spawn_link *spawner_link_of(struct spawner *spawner, uint64_t id)
{
	return &spawner->links[id % spawner->links_count];
}

static struct process **bucket_of(struct spawner *spawner, uint64_t id)
{
	return &spawner->buckets[id & (spawner->buckets_count - 1)];
}

static struct process **find(struct spawner *spawner, uint64_t id)
{
	struct process **link = bucket_of(spawner, id);

	while (*link != NULL && (*link)->id != id)
		link = &(*link)->next;
	return link;
}

static void insert(struct spawner *spawner, struct process *process)
{
	struct process **bucket = bucket_of(spawner, process->id);

	process->next = *bucket;
	*bucket = process;
}

static int grow(struct spawner *spawner)
{
	struct process **old = spawner->buckets;
	size_t old_count = spawner->buckets_count;
	size_t count = old_count == 0 ? FIRST_BUCKETS : old_count * 2;
	struct process **buckets = calloc(count, sizeof(*buckets));

	if (buckets == NULL)
		return old_count == 0 ? -1 : 0;         /* longer chains work too */
	spawner->buckets = buckets;
	spawner->buckets_count = count;
	for (size_t i = 0; i < old_count; i++) {
		for (struct process *process = old[i], *next; process != NULL; process = next) {
			next = process->next;
			insert(spawner, process);
		}
	}
	free(old);
	return 0;
}

static struct process *take_out(struct spawner *spawner, struct process **link)
{
	struct process *process = *link;

	*link = process->next;
	process->next = NULL;
	spawner->processes_count--;
	return process;
}

static void release(struct spawner *spawner)
{
	free(spawner->buckets);
	free(spawner->links);
	free(spawner);
}

static void release_if_free(void *ctx)
{
	struct spawner *spawner = ctx;

	if (spawner->is_free)
		release(spawner);
}

/* A callback may do anything, even free the spawner: its memory stays until
 * release_if_free(), when nobody uses it any more. */
static void call(struct spawner *spawner, void (*callback)(void *ctx), void *ctx)
{
	spawner->is_calling = true;
	if (callback != NULL)
		callback(ctx);
	spawner->is_calling = false;
}

static void tell_gone(struct spawner *spawner, struct process *process)
{
	process->state = PROCESS_GONE;
	process->spawner = NULL;
	call(spawner, process->on_gone, process->ctx);
}

static void run_gone(void *ctx)
{
	struct spawner *spawner = ctx;
	struct process *process;

	while (!spawner->is_free && (process = spawner->gone) != NULL) {
		spawner->gone = process->next;
		process->next = NULL;
		tell_gone(spawner, process);
	}
	if (!spawner->is_free && spawner->is_lost && !spawner->is_lost_told) {
		spawner->is_lost_told = true;
		call(spawner, spawner->on_lost, spawner->ctx);
	}
	release_if_free(spawner);
}

/* on_gone of this one comes from the loop. */
static void fail_later(struct spawner *spawner, struct process *process, enum spawn_step step, int errnum)
{
	process->failed_step = step;
	process->failed_errno = errnum;
	process->next = spawner->gone;
	spawner->gone = process;
	defer_call(spawner->loop, &spawner->defer, run_gone, spawner);
}

static void take_loaded(struct spawner *spawner, const struct spawn_report *report)
{
	struct spawner_load *load = &spawner->load;

	if (report->id != load->generation)
		return;                 /* of one that was given up */
	if (report->errnum != 0 || (load->answers > 0 && load->digest != report->digest))
		load->is_fine = false;
	load->digest = report->digest;
	if (++load->answers < spawner->links_count || load->on_loaded == NULL)
		return;
	spawner->is_calling = true;
	load->on_loaded(load->ctx, load->is_fine, load->digest);
	spawner->is_calling = false;
}

static void take_changed_rights(struct spawner *spawner, const struct spawn_report *report)
{
	struct spawner_rights *rights = &spawner->rights;

	if (report->id != rights->generation || rights->on_changed == NULL)
		return;
	spawner->is_calling = true;
	rights->on_changed(rights->ctx, report->errnum, (size_t)report->step);
	spawner->is_calling = false;
}

static void on_report(void *ctx, const struct spawn_report *report)
{
	struct spawner *spawner = ctx;
	struct process **link;
	struct process *process;

	if (report->kind == SPAWN_REPORT_LOADED) {
		take_loaded(spawner, report);
		return;
	}
	if (report->kind == SPAWN_REPORT_RIGHTS) {
		take_changed_rights(spawner, report);
		return;
	}
	link = find(spawner, report->id);
	process = *link;
	if (process == NULL)            /* forgotten */
		return;
	if (report->kind == SPAWN_REPORT_STARTED) {
		process->state = PROCESS_RUNNING;
		process->pid = report->pid;
		process->started_ns = report->at_ns;
		call(spawner, process->on_started, process->ctx);
		return;
	}
	take_out(spawner, link);
	process->exited_ns = report->at_ns;
	if (report->kind == SPAWN_REPORT_FAILED) {
		process->failed_step = (enum spawn_step)report->step;
		process->failed_errno = report->errnum;
	} else {
		process->wait_status = report->wait_status;
		process->usage = report->usage;
		process->start_usage = report->start_usage;
	}
	tell_gone(spawner, process);
}

static void on_unsent(void *ctx, uint64_t id, int errnum)
{
	struct spawner *spawner = ctx;
	struct process **link = find(spawner, id);

	if (*link != NULL)
		fail_later(spawner, take_out(spawner, link), SPAWN_STEP_FORK, errnum);
}

static void on_link_lost(void *ctx, struct spawn_link *lost)
{
	struct spawner *spawner = ctx;

	spawner->is_lost = true;
	waitpid(lost->pid, NULL, WNOHANG);
	for (size_t i = 0; i < spawner->buckets_count; i++) {
		for (struct process **link = &spawner->buckets[i]; *link != NULL; ) {
			if (spawner_link_of(spawner, (*link)->id) != lost) {
				link = &(*link)->next;
				continue;
			}
			(*link)->wait_status = SIGKILL;
			fail_later(spawner, take_out(spawner, link), SPAWN_STEP_LOST, EPIPE);
		}
	}
	defer_call(spawner->loop, &spawner->defer, run_gone, spawner);
}

/* A socket of ours must never become 0, 1 or 2. */
static int open_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd < 3 && fcntl(fd, F_SETFD, 0) == 0);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

static int fork_one(struct spawner *spawner, const struct spawn_cleanup *cleanup, struct err *err)
{
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		return err_set_errno(err, errno, "spawner: socketpair");
	pid = fork();
	if (pid == 0)
		spawner_main(fds[1], spawner->config, cleanup);
	close(fds[1]);
	if (pid < 0) {
		err_set_errno(err, errno, "spawner: fork");
		close(fds[0]);
		return -1;
	}
	spawn_link_init(&spawner->links[spawner->links_count++], fds[0], pid);
	return 0;
}

struct spawner *spawner_fork(const struct config *config, const struct spawn_cleanup *cleanup, struct err *err)
{
	size_t count = config->spawners > 0 ? config->spawners : SPAWNERS_AUTO;
	struct spawner *spawner = calloc(1, sizeof(*spawner));

	if (spawner == NULL || grow(spawner) != 0 || (spawner->links = calloc(count, sizeof(*spawner->links))) == NULL) {
		err_set(err, "spawner: no memory");
		if (spawner != NULL)
			release(spawner);
		return NULL;
	}
	spawner->config = config;
	spawner->owner = (struct spawn_link_owner){ on_report, on_unsent, on_link_lost, release_if_free, spawner };
	if (open_standard_descriptors() != 0) {
		err_set_errno(err, errno, "/dev/null");
		spawner_free(&spawner);
	}
	while (spawner != NULL && spawner->links_count < count)
		if (fork_one(spawner, spawner->links_count == 0 ? cleanup : NULL, err) != 0)
			spawner_free(&spawner);
	return spawner;
}

int spawner_attach(struct spawner *spawner, struct loop *loop, void (*on_lost)(void *ctx), void *ctx, struct err *err)
{
	spawner->loop = loop;
	spawner->on_lost = on_lost;
	spawner->ctx = ctx;
	for (size_t i = 0; i < spawner->links_count; i++)
		if (spawn_link_attach(&spawner->links[i], loop, &spawner->owner, err) != 0)
			return -1;
	return 0;
}

void spawner_free(struct spawner **spawner)
{
	struct spawner *s = *spawner;

	if (s == NULL)
		return;
	*spawner = NULL;
	for (size_t i = 0; i < s->links_count; i++)
		if (s->links[i].fd >= 0)
			shutdown(s->links[i].fd, SHUT_WR);      /* all end at the same time */
	for (size_t i = 0; i < s->links_count; i++)
		spawn_link_end(&s->links[i], END_TIMEOUT_MS);
	for (size_t i = 0; i < s->buckets_count; i++)
		for (struct process *process = s->buckets[i]; process != NULL; process = process->next)
			process->spawner = NULL;
	for (struct process *process = s->gone; process != NULL; process = process->next)
		process->spawner = NULL;
	defer_cancel(&s->defer);
	s->is_free = true;
	if (!s->is_calling)
		release(s);
}

unsigned spawner_starting_count(const struct spawner *spawner)
{
	unsigned count = 0;

	for (size_t i = 0; i < spawner->links_count; i++)
		count += spawner->links[i].starting;
	return count;
}

/* The first of equals: one that worked a moment ago is warm. */
static size_t least_busy(const struct spawner *spawner)
{
	size_t best = 0;

	for (size_t i = 1; i < spawner->links_count; i++)
		if (spawner->links[i].starting < spawner->links[best].starting)
			best = i;
	return best;
}

static int check_request(const struct spawner *spawner, const struct spawn_request *request, struct err *err)
{
	const struct handler_config *handler;

	if (spawner->loop == NULL || spawner->is_lost)
		return err_set(err, "the spawner is gone: no process can be started");
	if (request->generation > 0)
		return 0;               /* the spawners know it; this end does not */
	if (request->handler >= spawner->config->handlers_count)
		return err_set(err, "no handler has number %u", request->handler);
	handler = &spawner->config->handlers[request->handler];
	if (handler->command == NULL && handler->scripts == NULL)
		return err_set(err, "handler %s: nothing to start", handler->name);
	if ((request->script != NULL) != (handler->scripts != NULL))
		return err_set(err, "handler %s: a script is asked for with 'scripts', and only then", handler->name);
	return 0;
}

static struct spawn_message message_of(const struct spawn_request *request)
{
	const struct bytes *block = request->ahead != SPAWN_FOR_REQUEST ? request->preload : request->environ;
	struct spawn_message message = {
		.ask = {
			.kind = SPAWN_ASK_START, .handler = request->handler, .generation = request->generation, .is_prompt = request->is_prompt,
			.ahead = request->ahead,
			.script_len = request->script == NULL ? 0 : (uint32_t)strlen(request->script) + 1,
			.environ_len = block == NULL ? 0 : (uint32_t)block->len,
		},
		.script = request->script,
		.environ = block == NULL ? NULL : bytes_data(block),
	};
	unsigned count = 0;

	for (unsigned i = 0; i < 3; i++) {
		if (request->fds[i] >= 0) {
			message.ask.fds |= 1u << i;
			message.fds[count++] = request->fds[i];
		}
	}
	if (request->ahead != SPAWN_FOR_REQUEST) {
		message.ask.fds |= 1u << SPAWN_FD_CONTROL;
		message.fds[count++] = request->control_fd;
	}
	return message;
}

/* Why the kernel will not start this whatever the spawner does, or 0. */
static int hopeless(const struct spawn_request *request, enum spawn_step *step_out)
{
	*step_out = SPAWN_STEP_EXEC;
	if (request->environ != NULL && request->environ->len > SPAWN_ENVIRON_MAX_BYTES)
		return E2BIG;
	*step_out = SPAWN_STEP_PROGRAM;
	if (request->script != NULL && strlen(request->script) >= SPAWN_SCRIPT_MAX_BYTES)
		return ENOENT;
	return 0;
}

int spawner_begin(struct spawner *spawner, struct process *process, size_t link, struct spawn_message *message, struct err *err)
{
	int errnum;

	if (spawner->processes_count >= spawner->buckets_count)
		grow(spawner);
	process->id = message->ask.id = spawner->asked_count++ * spawner->links_count + link;
	process->asked_ns = clock_monotonic_ns();
	process->failed_step = SPAWN_STEP_NONE;
	process->was_ahead = message->ask.ahead != SPAWN_FOR_REQUEST;
	errnum = spawn_link_send(&spawner->links[link], message);
	if (errnum != 0)
		return err_set_errno(err, errnum, "cannot ask the spawner for a process");
	spawner->processes_count++;
	insert(spawner, process);
	process->state = PROCESS_STARTING;
	process->spawner = spawner;
	return 0;
}

int process_start(struct spawner *spawner, struct process *process, const struct spawn_request *request, struct err *err)
{
	struct spawn_message message;
	enum spawn_step step;
	int errnum;

	if (check_request(spawner, request, err) != 0)
		return -1;
	errnum = hopeless(request, &step);
	if (errnum == 0) {
		message = message_of(request);
		return spawner_begin(spawner, process, least_busy(spawner), &message, err);
	}
	process->asked_ns = clock_monotonic_ns();
	fail_later(spawner, process, step, errnum);
	process->state = PROCESS_STARTING;
	process->spawner = spawner;
	return 0;
}

static int send_all(struct spawner *spawner, const struct spawn_message *message)
{
	int errnum = 0;

	for (size_t i = 0; i < spawner->links_count && errnum == 0; i++)
		errnum = spawn_link_send(&spawner->links[i], message);
	return errnum;
}

int spawner_load(struct spawner *spawner, uint32_t generation,
	void (*on_loaded)(void *ctx, bool is_fine, uint64_t digest), void *ctx, struct err *err)
{
	struct spawn_message message = { .ask = { .kind = SPAWN_ASK_LOAD, .generation = generation } };
	int errnum;

	spawner->load = (struct spawner_load){ .generation = generation, .is_fine = true, .on_loaded = on_loaded, .ctx = ctx };
	errnum = spawner->is_lost ? EPIPE : send_all(spawner, &message);
	return errnum == 0 ? 0 : err_set_errno(err, errnum, "cannot ask the spawners to read the configuration");
}

void spawner_forget(struct spawner *spawner, uint32_t generation)
{
	struct spawn_message message = { .ask = { .kind = SPAWN_ASK_FORGET, .generation = generation } };

	if (spawner != NULL && !spawner->is_lost && generation > 0)
		send_all(spawner, &message);
}

int spawner_change_rights(struct spawner *spawner, uint32_t from, uint32_t to,
	void (*on_changed)(void *ctx, int errnum, size_t failed), void *ctx, struct err *err)
{
	struct spawn_message message = { .ask = { .id = from, .kind = SPAWN_ASK_RIGHTS, .generation = to } };
	int errnum;

	spawner->rights = (struct spawner_rights){ .generation = to, .on_changed = on_changed, .ctx = ctx };
	errnum = spawn_link_send(&spawner->links[0], &message);
	return errnum == 0 ? 0 : err_set_errno(err, errnum, "cannot ask the spawner for the sockets' owner and mode");
}

void spawner_cancel(struct spawner *spawner)
{
	if (spawner == NULL)
		return;
	spawner->load.on_loaded = NULL;
	spawner->rights.on_changed = NULL;
}

bool spawner_has(struct spawner *spawner, const struct process *process)
{
	return spawner != NULL && *find(spawner, process->id) == process;
}

void process_signal(struct process *process, int signal)
{
	struct spawn_message message = {
		.ask = { .id = process->id, .kind = SPAWN_ASK_SIGNAL, .signal = (uint32_t)signal } };

	if (process->spawner != NULL && *find(process->spawner, process->id) == process)
		spawn_link_send(spawner_link_of(process->spawner, process->id), &message);
}

void process_forget(struct process *process)
{
	struct spawner *spawner = process->spawner;
	struct process **link;

	if (spawner == NULL)
		return;
	process->spawner = NULL;
	link = find(spawner, process->id);
	if (*link == process) {
		take_out(spawner, link);
		return;
	}
	for (link = &spawner->gone; *link != NULL; link = &(*link)->next) {
		if (*link == process) {
			*link = process->next;
			return;
		}
	}
}
