/* A CGI program that prints all that it can see of its process. */
#define _GNU_SOURCE
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <unistd.h>

extern char **environ;
static const char *in_constructor;

__attribute__((constructor)) static void before_main(void)
{
	const char *method = getenv("REQUEST_METHOD");

	in_constructor = method ? method : "none";
}

__attribute__((destructor)) static void after_main(void)
{
	puts("the destructor");
}

static void at_the_end(void)
{
	puts("at exit");
}

static void *thread(void *unused)
{
	(void)unused;
	puts("a thread");
	return NULL;
}

static void show_signals(void)
{
	struct sigaction action;
	sigset_t mask;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (int i = 1; i < 65; i++)
		if (sigaction(i, NULL, &action) == 0)
			printf("signal %d %p %d %d\n", i, (void *)action.sa_handler, action.sa_flags, sigismember(&mask, i));
	for (int i = 0; i < 3; i++) {
		struct itimerval timer;
		getitimer(i, &timer);
		printf("timer %d %ld %ld\n", i, (long)timer.it_value.tv_sec, (long)timer.it_interval.tv_sec);
	}
}

int main(int argc, char **argv, char **envp)
{
	char text[200];
	size_t length;
	pthread_t other;
	int dies_with_parent = -1;

	setvbuf(stdout, NULL, _IOLBF, 65536);
	puts("Content-Type: text/plain\n");
	printf("errno %d\nconstructor %s\n", errno, in_constructor);
	for (int i = 0; i < argc; i++)
		printf("argv %s\n", argv[i]);
	for (char **at = envp; *at; at++)
		printf("envp %s\n", *at);
	printf("environ is envp %d\n", environ == envp);
	printf("names %s %s %s\n", program_invocation_name, program_invocation_short_name, (char *)getauxval(AT_EXECFN));
	printf("locale %s\n", setlocale(LC_ALL, NULL));
	prctl(PR_GET_PDEATHSIG, &dies_with_parent);
	printf("prctl %d %d %d\n", dies_with_parent, prctl(PR_GET_DUMPABLE), prctl(PR_GET_CHILD_SUBREAPER, &dies_with_parent));
	show_signals();
	fflush(stdout);
	if (system("/bin/sh ./process.sh") != 0)
		puts("system failed");
	length = fread(text, 1, sizeof text, stdin);
	printf("stdin %zu %.*s\n", length, (int)length, text);
	atexit(at_the_end);
	fputs("stderr says so\n", stderr);
	if (pthread_create(&other, NULL, thread, NULL) == 0)
		pthread_join(other, NULL);
	const char *end = getenv("QUERY_STRING");
	if (strcmp(end, "exit") == 0)
		exit(7);
	if (strcmp(end, "_exit") == 0)
		_exit(5);
	if (strcmp(end, "abort") == 0)
		abort();
	if (strcmp(end, "signal") == 0)
		raise(SIGUSR1);
	printf("no end of line at the end");
	return 0;
}
