/*
 * worker.c - a libfcgi program for the tests; does what the query says, in
 * order: sleep=MS exit=N raise=SIG header body=N partial=N env name=VALUE
 * stderr=N echo read.  Without any of those it prints one line about itself.
 */
#include <fcgi_stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int served;
static int has_header;

static void header(void)
{
	if (!has_header)
		printf("Content-Type: text/plain\r\n\r\n");
	has_header = 1;
}

static void pause_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static long read_all(int is_echo)
{
	char buf[65536];
	size_t n;
	long sum = 0;

	while ((n = fread(buf, 1, sizeof buf, stdin)) > 0) {
		sum += (long)n;
		if (is_echo)
			fwrite(buf, 1, n, stdout);
	}
	return sum;
}

static void run(const char *word, long value)
{
	if (strcmp(word, "sleep") == 0) {
		pause_ms(value);
	} else if (strcmp(word, "exit") == 0) {
		_exit((int)value);
	} else if (strcmp(word, "raise") == 0) {
		raise((int)value);
	} else if (strcmp(word, "header") == 0) {
		header();
		fflush(stdout);
	} else if (strcmp(word, "body") == 0) {
		header();
		for (long i = 0; i < value; i++)
			putchar('x');
	} else if (strcmp(word, "partial") == 0) {
		printf("Content-Type: text/plain\r\nContent-Length: %ld\r\n\r\nhalf", value);
		fflush(stdout);
		has_header = 1;
	} else if (strcmp(word, "env") == 0) {
		header();
		for (char **e = environ; *e != NULL; e++)
			printf("%s\n", *e);
	} else if (strcmp(word, "stderr") == 0) {
		for (long i = 0; i < value; i++)
			fputc(i % 100 == 99 ? '\n' : 'e', stderr);
	} else if (strcmp(word, "echo") == 0) {
		header();
		read_all(1);
	} else if (strcmp(word, "count") == 0) {
		long n = read_all(0);

		header();
		printf("%ld\n", n);
	}
}

int main(void)
{
	while (FCGI_Accept() >= 0) {
		const char *query = getenv("QUERY_STRING");
		char *copy = strdup(query != NULL ? query : ""), *rest = copy, *word;

		served++;
		has_header = 0;
		while ((word = strsep(&rest, "&")) != NULL) {
			char *value = strchr(word, '=');

			if (value != NULL)
				*value++ = '\0';
			run(word, value != NULL ? atol(value) : 0);
		}
		free(copy);
		if (!has_header) {
			header();
			printf("pid=%d served=%d\n", (int)getpid(), served);
		}
	}
	return 0;
}
