/*
 * fcgi-host-park.c - preloaded into a handler's process, stops it before the
 * program's own code until a request is there.
 *
 * FCGI_HOST_AT says where: `main` (also if it is absent) is before the
 * program's own constructors and main(), when everything is linked;
 * `getenv:NAME` is where the program first asks for that variable; `fork` is
 * for an interpreter whose start-up module calls fork() to become a zygote.
 *
 * The request's environment becomes the process's, the only one that the
 * program ever sees.  What ran before saw that of the start: the constructors
 * of shared libraries, and of the program up to the place where it waits.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/single_threaded.h>
#include <time.h>
#include <unistd.h>

#include "park.h"

extern char **environ;

enum place { NOWHERE, AT_MAIN, AT_GETENV, AT_FORK };

static struct {
	enum place place;       /* where it still has to wait */
	bool is_zygote;
	bool is_serving;        /* a request, from here on */
	int control;
	const char *variable;   /* AT_GETENV: its name */
	int argc;
	char **argv;
	const ElfW(auxv_t) *auxiliary;
	char *room;             /* where the kernel has put the environment, and reads it for /proc/PID/environ */
	size_t room_size;
	int64_t start_ns;
	unsigned long cpu_s;    /* that each child of a zygote may use */
	char *(*getenv)(const char *);
	pid_t (*fork)(void);
} park = {.control = -1};

typedef int main_fn(int, char **, char **);
typedef int start_fn(main_fn *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

#define EXPORTED __attribute__((visibility("default")))
EXPORTED start_fn __libc_start_main;

/* --- the environment that it was started with */

static const char *started_with(const char *name)
{
	size_t length = strlen(name);

	for (char **at = environ; at && *at; at++)
		if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
			return *at + length + 1;
	return NULL;
}

/* What the spawner added for us.  Programs that are started meanwhile must not get it. */
static void forget_start(void)
{
	char **to = environ;

	for (char **from = environ; *from; from++)
		if (strncmp(*from, "FCGI_HOST_", 10) != 0 && strncmp(*from, "LD_PRELOAD=", 11) != 0)
			*to++ = *from;
	*to = NULL;
}

/* All of it in one piece, one string after the other. */
static void note_room(void)
{
	park.room = environ[0];
	for (char **at = environ; *at && *at == park.room + park.room_size; at++)
		park.room_size += strlen(*at) + 1;
}

static void note_vector(int argc, char **argv)
{
	char **at = argv + argc + 1;

	while (*at)
		at++;
	park.argc = argc;
	park.argv = argv;
	park.auxiliary = (const ElfW(auxv_t) *)(at + 1);
}

static void choose_place(const char *at)
{
	if (!at || strcmp(at, "main") == 0)
		park.place = AT_MAIN;
	else if (strcmp(at, "fork") == 0)
		park.place = AT_FORK;
	else if (strncmp(at, "getenv:", 7) == 0) {
		park.variable = at + 7;
		park.place = AT_GETENV;
	}
}

__attribute__((constructor)) static void on_load(void)
{
	const char *parked = started_with("FCGI_HOST_PARK"), *zygote = started_with("FCGI_HOST_ZYGOTE");
	const char *control = zygote ? zygote : parked, *cpu = started_with("FCGI_HOST_CPU");
	struct timespec now;

	/* Looked up now: dlsym() must not be called in a child of a program with threads. */
	park.getenv = (char *(*)(const char *))dlsym(RTLD_NEXT, "getenv");
	park.fork = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
	/* env(1) only looks for the interpreter; that is where to wait. */
	if (!control || strcmp(program_invocation_short_name, "env") == 0)
		return;
	/* Files bear the coarse time.  The program was opened a little earlier than this is reached. */
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	park.start_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - 20000000;
	note_room();
	park.control = atoi(control);
	park.is_zygote = zygote != NULL;
	park.cpu_s = cpu ? strtoul(cpu, NULL, 10) : 0;
	choose_place(started_with("FCGI_HOST_AT"));
}

/* --- handing over */

/* The program as the kernel was asked for it.  For a script that is the interpreter, which
 * the kernel has put into argv[0] as a path. */
static const char *program_path(void)
{
	const char *path = (const char *)getauxval(AT_EXECFN);
	char start[2] = "";
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd >= 0 && read(fd, start, sizeof start) < 0)
		start[0] = '\0';
	if (fd >= 0)
		close(fd);
	if (path && memcmp(start, "#!", 2) != 0)
		return path;
	return park.argv ? park.argv[0] : path;
}

/* Into the place of the one that it was started with, as far as there is room. */
static char *put_in_room(char *text, size_t length)
{
	bool fits = length <= park.room_size;
	size_t used = fits ? length : 0;

	memcpy(park.room, text, used);
	memset(park.room + used, 0, park.room_size - used);
	return fits ? park.room : text;
}

/* Its entries with the one that ends it. */
static size_t auxiliary_count(void)
{
	size_t count = 1;

	for (const ElfW(auxv_t) *at = park.auxiliary; at->a_type != AT_NULL; at++)
		count++;
	return count;
}

/* Arguments, variables and the auxiliary vector, one after the other as the kernel
 * has put them: Go, for one, finds all of them from the arguments on. */
static void make_vector(char *text, size_t length)
{
	size_t auxiliary_bytes = auxiliary_count() * sizeof *park.auxiliary, count = 0;
	size_t arguments = (size_t)park.argc + 1;
	char **vector;

	text = put_in_room(text, length);
	for (size_t i = 0; i < length; i++)
		count += text[i] == '\0';
	vector = malloc((arguments + count + 1) * sizeof *vector + auxiliary_bytes);
	if (!vector)
		_exit(126);
	memcpy(vector, park.argv, arguments * sizeof *vector);
	park.argv = vector;
	environ = vector + arguments;
	count = 0;
	for (char *at = text; at < text + length; at += strlen(at) + 1)
		environ[count++] = at;
	environ[count] = NULL;
	memcpy(environ + count + 1, park.auxiliary, auxiliary_bytes);
}

static void start_anew(const char *program, char **environment)
{
	if (park.argv)
		execve(program, park.argv, environment);
	dprintf(2, "fcgi-host: %s: %s\n", program, strerror(errno));
	_exit(126);
}

/* Of a child that a zygote has forked nobody knows yet. */
static void say_ready(void)
{
	uint32_t pid = htonl((uint32_t)getpid());

	park_send(park.control, 'R', &pid, park.is_zygote ? sizeof pid : 0);
}

/* Returns when the program is to run. */
static void wait_for_request(const char *program)
{
	struct park_message message;

	say_ready();
	do
		park_receive(park.control, &message);
	while (message.type != 'E' && message.type != 0);
	if (message.type == 0)
		_exit(0);
	make_vector(message.text, message.length);
	close(park.control);
	park.control = -1;
	park.is_serving = true;
	if (park_files_changed())
		start_anew(program, environ);
}

/* What is opened while we wait should get the numbers of a usual start. */
static void move_control(void)
{
	fcntl(park.control, F_SETFD, FD_CLOEXEC);
	if (park.control >= 10)
		return;
	for (int lowest = 250; lowest >= 10; lowest /= 5) {
		int fd = fcntl(park.control, F_DUPFD_CLOEXEC, lowest);
		if (fd >= 0) {
			close(park.control);
			park.control = fd;
			return;
		}
	}
}

static void load_ahead(void)
{
	const char *list = started_with("FCGI_HOST_PRELOAD");
	char *names = list ? strdup(list) : NULL, *rest = names, *name;

	while ((name = strsep(&rest, ":")))
		if (*name)
			dlopen(name, RTLD_NOW);
	free(names);
}

static void wait_here(void)
{
	int errno_then = errno;
	const char *program;

	park.place = NOWHERE;
	move_control();
	load_ahead();
	program = strdup(program_path());
	park_files_note(program, park.start_ns);
	park_message_prepare();
	forget_start();
	if (park.is_zygote)
		park.control = park_zygote(park.control, park.cpu_s, park.fork);
	if (park.is_zygote)
		park_rehearse(true);
	wait_for_request(program);
	errno = errno_then;
}

/* --- the end of the request */

/* Runs after everything else that exit() runs.  The answer ends here, and nobody waits
 * while the kernel takes the process apart.  Not where the exit status is worth telling,
 * and not beside threads, which may hold what is to be flushed. */
static void end_answer(int status, void *ctx)
{
	(void)ctx;
	if (!park.is_serving || status != 0 || !__libc_single_threaded)
		return;
	fflush(NULL);
	close(1);
}

/* --- the places */

int __libc_start_main(main_fn *program_main, int argc, char **argv, void (*init)(void), void (*fini)(void),
	void (*rtld_fini)(void), void *stack_end)
{
	start_fn *next = (start_fn *)dlsym(RTLD_NEXT, "__libc_start_main");

	note_vector(argc, argv);
	if (park.place != NOWHERE)
		on_exit(end_answer, NULL);
	if (park.place == AT_MAIN)
		wait_here();
	/* It passes on `environ` as it is now. */
	return next(program_main, argc, park.argv, init, fini, rtld_fini, stack_end);
}

EXPORTED char *getenv(const char *name)
{
	if (park.place == AT_GETENV && park.argv && strcmp(name, park.variable) == 0)
		wait_here();
	/* Others' constructors may come before ours. */
	return park.getenv ? park.getenv(name) : (char *)started_with(name);
}

/* An interpreter's start-up module has set FCGI_HOST_FORK to the files that it has loaded, and calls its language's fork, so that the runtime does what it does in a new child.  It returns in children only, with their control
 * in the place of the zygote's. */
EXPORTED pid_t fork(void)
{
	const char *files = park.place == AT_FORK ? started_with("FCGI_HOST_FORK") : NULL;

	if (files) {
		park.place = NOWHERE;
		park_files_note(program_path(), park.start_ns);
		park_files_note_list(files);
		park_message_prepare();
		int control = park_zygote(park.control, park.cpu_s, park.fork);
		park_rehearse(false);
		park.is_serving = true;
		dup3(control, park.control, O_CLOEXEC);
		close(control);
		return 0;
	}
	return park.fork ? park.fork() : -1;
}
