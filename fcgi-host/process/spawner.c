#include "process/spawner.h"

#include "process/brood.h"
#include "process/edition.h"
#include "process/hook.h"
#include "process/priority.h"
#include "process/program.h"
#include "process/socket_folder.h"
#include "process/socket_path.h"
#include "process/socket_rights.h"
#include "process/spawn_proto.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	SOCKET_FD = 3, NULL_FD = 4, FIRST_OTHER_FD = 5,
	INPUT_MAX_BYTES = sizeof(struct spawn_ask) + SPAWN_SCRIPT_MAX_BYTES + SPAWN_ENVIRON_MAX_BYTES,
	INPUT_KEEP_BYTES = 256 * 1024,          /* touched memory beyond it is given back */
	ENVP_MAX = SPAWN_ENVIRON_MAX_BYTES / sizeof(char *),
};

struct spawner_state {
	const struct config *config;            /* that we were started with */
	struct edition *editions;
	const struct spawn_cleanup *cleanup;    /* NULL when we are not the first spawner */
	struct brood brood;
	char *input;                            /* INPUT_MAX_BYTES, touched as needed */
	size_t input_len;
	char **envp;                            /* ENVP_MAX, touched as needed */
	int fds[SPAWN_FDS];                     /* received, for the START being read */
	unsigned fds_count;
	bool is_short_of_fds;                   /* the kernel could not hand some over */
	sigset_t wait_mask;                     /* all but CHLD blocked */
};

_Noreturn static void end_for_bad_message(struct spawner_state *state, const char *what)
{
	fprintf(stderr, "fcgi-host: spawner: bad message from the relay (%s); ending\n", what);
	brood_end(&state->brood, 1);
}

/* The variables of a process that waits for its request. */
static int set_hooks(struct spawner_state *state, const struct spawn_ask *ask, const struct program *program, const char *learnt)
{
	struct err why;

	if (hook_environ(program, (enum spawn_ahead)ask->ahead, learnt, ask->environ_len, state->envp, ENVP_MAX, &why) == 0)
		return 0;
	brood_fail(&state->brood, ask->id, SPAWN_STEP_WAIT, ENOEXEC);
	return -1;
}

static int set_variables(struct spawner_state *state, const struct spawn_ask *ask, const struct program *program, char *block)
{
	int errnum;

	if (ask->ahead != SPAWN_FOR_REQUEST)
		return set_hooks(state, ask, program, block);
	errnum = program_environ(program, block, ask->environ_len, state->envp, ENVP_MAX);
	if (errnum != 0)
		brood_fail(&state->brood, ask->id, SPAWN_STEP_EXEC, errnum);
	return errnum;
}

/* The time that a zygote needs for all that it forks is no request's: they get the
 * limit from it, see hook.c. */
static struct program_limits limits_for(const struct program *program, enum spawn_ahead ahead)
{
	struct program_limits limits = program->limits;

	if (ahead == SPAWN_ZYGOTE)
		limits.cpu_s = 0;
	return limits;
}

/* `script` (or NULL) and `block` lie in the input. */
static void start_program(struct spawner_state *state, const struct spawn_ask *ask, const char *script, char *block,
	const int fds[SPAWN_FDS])
{
	const struct program *program = &edition_find(state->editions, ask->generation)->programs[ask->handler];
	struct program_limits limits = limits_for(program, (enum spawn_ahead)ask->ahead);
	bool is_ahead = ask->ahead != SPAWN_FOR_REQUEST;
	char path[PATH_MAX], directory[PATH_MAX];
	char *script_argv[] = { path, NULL };
	struct spawn_child how = {
		.argv = program->argv, .envp = state->envp, .directory = program->directory,
		.is_directory_optional = program->is_own_directory, .identity = program->identity,
		.limits = &limits,
		.control_fd = is_ahead ? fds[SPAWN_FD_CONTROL] : 0, .control_number = is_ahead ? hook_control_number(program) : 0,
		.nice = is_ahead ? priority_ahead() : 0,
		.fds = { fds[0], fds[1], fds[2] } };
	int errnum = script == NULL ? 0 : program_resolve(program, script, path);

	if (errnum != 0) {
		brood_fail(&state->brood, ask->id, SPAWN_STEP_PROGRAM, errnum);
		return;
	}
	if (script != NULL)
		how.argv = script_argv;
	how.path = how.argv[0];
	if (how.directory == NULL) {
		program_folder(path, directory);
		how.directory = directory;
	}
	if (set_variables(state, ask, program, block) == 0)
		brood_start(&state->brood, ask, &how);
}

static void check_handler(struct spawner_state *state, const struct spawn_ask *ask)
{
	const struct edition *edition = edition_find(state->editions, ask->generation);

	if (edition == NULL || ask->handler >= edition->config->handlers_count)
		end_for_bad_message(state, "no such handler");
	if (brood_has(&state->brood, ask->id))
		end_for_bad_message(state, "id in use");
}

static void check_start(struct spawner_state *state, const struct spawn_ask *ask, const char *script, const char *block)
{
	const struct program *program;

	check_handler(state, ask);
	program = &edition_find(state->editions, ask->generation)->programs[ask->handler];
	if (program->argv == NULL && program->scripts == NULL)
		end_for_bad_message(state, "a handler that is not started");
	if ((program->scripts != NULL) != (ask->script_len > 0))
		end_for_bad_message(state, "script");
	if (ask->script_len > 0 && strnlen(script, ask->script_len) != ask->script_len - 1)
		end_for_bad_message(state, "text of script");
	if (ask->environ_len > 0 && block[ask->environ_len - 1] != '\0')
		end_for_bad_message(state, "variables");
	if (ask->ahead > SPAWN_ZYGOTE || (ask->ahead != SPAWN_FOR_REQUEST && program->argv == NULL))
		end_for_bad_message(state, "a process that waits");
	if (ask->fds >> SPAWN_FD_CONTROL != (ask->ahead == SPAWN_FOR_REQUEST ? 0 : 1))
		end_for_bad_message(state, "descriptors");
}

/* Which descriptor is which: `fds` has room for all.  0, or -1 where the kernel
 * could not hand over all of them. */
static int sort_descriptors(struct spawner_state *state, const struct spawn_ask *ask, int fds[SPAWN_FDS])
{
	unsigned used = 0;

	for (unsigned i = 0; i < SPAWN_FDS; i++) {
		fds[i] = i < SPAWN_FD_CONTROL ? NULL_FD : 0;
		if ((ask->fds & 1u << i) != 0 && used < state->fds_count)
			fds[i] = state->fds[used++];
	}
	if (used < state->fds_count || (used < (unsigned)__builtin_popcount(ask->fds) && !state->is_short_of_fds))
		end_for_bad_message(state, "number of descriptors");
	return state->is_short_of_fds ? -1 : 0;
}

static void drop_descriptors(struct spawner_state *state)
{
	for (unsigned i = 0; i < state->fds_count; i++)
		close(state->fds[i]);
	state->fds_count = 0;
	state->is_short_of_fds = false;
}

static void take_start(struct spawner_state *state, const struct spawn_ask *ask, char *payload)
{
	char *block = payload + ask->script_len;
	int fds[SPAWN_FDS];

	check_start(state, ask, payload, block);
	if (sort_descriptors(state, ask, fds) != 0)
		brood_fail(&state->brood, ask->id, SPAWN_STEP_DESCRIPTORS, EMFILE);
	else
		start_program(state, ask, ask->script_len > 0 ? payload : NULL, block, fds);
	drop_descriptors(state);
}

static void take_adopt(struct spawner_state *state, const struct spawn_ask *ask)
{
	check_handler(state, ask);
	if (ask->fds != 0)
		end_for_bad_message(state, "descriptors");
	brood_adopt(&state->brood, ask);
}

static void take_ready(struct spawner_state *state, const struct spawn_ask *ask)
{
	struct child *child = brood_waiting(&state->brood, ask->id);

	if (child == NULL)
		return;
	brood_set_ready(child);
	state->brood.is_report_due = state->brood.reports_count > 0;    /* of its start, among others */
}

static void take_signal(struct spawner_state *state, const struct spawn_ask *ask)
{
	static const uint32_t allowed[] = { SIGTERM, SIGKILL, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT };

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		if (ask->signal == allowed[i]) {
			brood_signal(&state->brood, ask->id, (int)ask->signal);
			return;
		}
	}
	end_for_bad_message(state, "signal");
}

static void take_load(struct spawner_state *state, const struct spawn_ask *ask)
{
	const struct edition *edition = edition_load(&state->editions, ask->generation);

	brood_loaded(&state->brood, ask->generation, edition == NULL ? 0 : edition->config->digest, edition != NULL);
}

/* Of root's business, the one thing beside starting: the relay chooses when, the
 * rights are those of the files that we have read. */
static void take_rights(struct spawner_state *state, const struct spawn_ask *ask)
{
	const struct edition *from = edition_find(state->editions, (uint32_t)ask->id);
	const struct edition *to = edition_find(state->editions, ask->generation);
	size_t failed = 0;
	int errnum;

	if (from == NULL || to == NULL || state->cleanup == NULL)
		end_for_bad_message(state, "generation");
	errnum = socket_rights_change(from->config, to->config, &failed);
	brood_changed_rights(&state->brood, ask->generation, errnum, failed);
}

/* Length of the first message in the input, or 0 when it is not whole yet. */
static size_t message_len(struct spawner_state *state, const char *input, size_t len, struct spawn_ask *ask_out)
{
	size_t whole;

	if (len < sizeof(*ask_out))
		return 0;
	memcpy(ask_out, input, sizeof(*ask_out));
	if (ask_out->kind < SPAWN_ASK_START || ask_out->kind > SPAWN_ASK_READY)
		end_for_bad_message(state, "kind");
	if (ask_out->script_len > SPAWN_SCRIPT_MAX_BYTES || ask_out->environ_len > SPAWN_ENVIRON_MAX_BYTES ||
	    (ask_out->kind != SPAWN_ASK_START && ask_out->script_len > 0) ||
	    (ask_out->kind != SPAWN_ASK_START && ask_out->environ_len > 0))
		end_for_bad_message(state, "length");
	whole = sizeof(*ask_out) + ask_out->script_len + ask_out->environ_len;
	return len < whole ? 0 : whole;
}

static void take_messages(struct spawner_state *state)
{
	struct spawn_ask ask;
	size_t done = 0, len;

	while ((len = message_len(state, state->input + done, state->input_len - done, &ask)) > 0) {
		switch ((enum spawn_ask_kind)ask.kind) {
		case SPAWN_ASK_START: take_start(state, &ask, state->input + done + sizeof(ask)); break;
		case SPAWN_ASK_SIGNAL: take_signal(state, &ask); break;
		case SPAWN_ASK_LOAD: take_load(state, &ask); break;
		case SPAWN_ASK_FORGET: edition_forget(&state->editions, ask.generation); break;
		case SPAWN_ASK_RIGHTS: take_rights(state, &ask); break;
		case SPAWN_ASK_ADOPT: take_adopt(state, &ask); break;
		case SPAWN_ASK_READY: take_ready(state, &ask); break;
		}
		done += len;
	}
	state->input_len -= done;
	if (state->input_len > 0 && done > 0)
		memmove(state->input, state->input + done, state->input_len);
	if (done > INPUT_KEEP_BYTES && state->input_len < INPUT_KEEP_BYTES)
		madvise(state->input + INPUT_KEEP_BYTES, INPUT_MAX_BYTES - INPUT_KEEP_BYTES, MADV_DONTNEED);
}

/* A stream gives no more than the descriptors of one message at a time, with
 * its first byte: those of the message before are used up by then. */
static void take_descriptors(struct spawner_state *state, struct msghdr *msg)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);

	if (cmsg == NULL)
		return;
	if (state->fds_count > 0 || cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
		end_for_bad_message(state, "descriptors out of place");
	state->fds_count = (unsigned)((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(state->fds, CMSG_DATA(cmsg), state->fds_count * sizeof(int));
}

/* A relay that has given up root may not remove its own sockets, and one that was
 * killed removed nothing. */
_Noreturn static void end_with_relay(struct spawner_state *state)
{
	if (state->cleanup != NULL)
		socket_folder_remove(state->cleanup->folder);
	if (state->cleanup != NULL && state->cleanup->has_sockets && state->config->user.is_set && geteuid() == 0)
		socket_path_remove_dead(state->config);
	brood_end(&state->brood, 0);
}

static void receive(struct spawner_state *state)
{
	union { struct cmsghdr align; char bytes[CMSG_LEN(SPAWN_FDS * sizeof(int))]; } control;
	struct iovec iov = { state->input + state->input_len, INPUT_MAX_BYTES - state->input_len };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control.bytes, .msg_controllen = sizeof(control.bytes) };
	ssize_t n = recvmsg(SOCKET_FD, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0)
		end_with_relay(state);
	if ((msg.msg_flags & MSG_CTRUNC) != 0)
		state->is_short_of_fds = true;
	take_descriptors(state, &msg);
	state->input_len += (size_t)n;
	take_messages(state);
}

_Noreturn static void loop(struct spawner_state *state)
{
	struct pollfd pfd = { .fd = SOCKET_FD, .events = POLLIN };
	struct timespec wait;

	for (;;) {
		if (ppoll(&pfd, 1, brood_patience(&state->brood, &wait), &state->wait_mask) > 0)
			receive(state);
		brood_tend(&state->brood);
	}
}

static void on_chld(int signal)
{
	(void)signal;           /* only there to interrupt ppoll() */
}

/* Blocked in the loop and pending at most, so that nothing but the end of the
 * socket ends the spawner in an orderly way. */
static void set_signals(struct spawner_state *state)
{
	static const struct sigaction plain;            /* all zero is the default for the kernel too */
	struct sigaction chld = { .sa_handler = on_chld };
	sigset_t all;

	/* Not by the library: it hides two signals, which may be ignored as well. */
	for (int i = 1; i < NSIG; i++)
		syscall(SYS_rt_sigaction, i, &plain, NULL, (NSIG - 1) / 8);
	sigaction(SIGCHLD, &chld, NULL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	state->wait_mask = all;
	sigdelset(&state->wait_mask, SIGCHLD);
}

static int set_descriptors(int socket_fd)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int high_fd = fcntl(null_fd, F_DUPFD_CLOEXEC, FIRST_OTHER_FD);

	socket_fd = fcntl(socket_fd, F_DUPFD_CLOEXEC, FIRST_OTHER_FD);
	if (null_fd < 0 || high_fd < 0 || socket_fd < 0)
		return -1;
	if (dup3(socket_fd, SOCKET_FD, O_CLOEXEC) < 0 || dup3(high_fd, NULL_FD, O_CLOEXEC) < 0 ||
	    dup2(NULL_FD, 0) < 0 || dup2(NULL_FD, 1) < 0)
		return -1;
	if (fcntl(2, F_GETFD) < 0 && dup2(NULL_FD, 2) < 0)
		return -1;
	if (close_range(FIRST_OTHER_FD, ~0U, 0) != 0)
		for (long i = FIRST_OTHER_FD, end = sysconf(_SC_OPEN_MAX); i < end; i++)
			close((int)i);
	return 0;
}

static void *reserve(size_t len)
{
	void *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

_Noreturn static void cannot_begin(const char *what)
{
	fprintf(stderr, "fcgi-host: spawner: %s: %s\n", what, strerror(errno));
	_exit(1);
}

_Noreturn void spawner_main(int socket_fd, const struct config *config, const struct spawn_cleanup *cleanup)
{
	static struct spawner_state state;

	state.config = config;
	state.cleanup = cleanup;
	state.brood.socket_fd = SOCKET_FD;
	set_signals(&state);
	if (set_descriptors(socket_fd) != 0)
		cannot_begin("descriptors");
	setsid();               /* a terminal's Ctrl-C is for the relay */
	prctl(PR_SET_NAME, "fcgi-host-spawn");
	prctl(PR_SET_DUMPABLE, 0);      /* a child that became its user shares our memory until it execs */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
		cannot_begin("subreaper");
	state.editions = edition_first(config);
	state.input = reserve(INPUT_MAX_BYTES);
	state.envp = reserve(ENVP_MAX * sizeof(char *));
	if (state.editions == NULL || state.input == NULL || state.envp == NULL)
		cannot_begin("memory");
	loop(&state);
}
