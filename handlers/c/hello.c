/*
 * hello.c - the smallest libfcgi program.
 *
 * Started with a listening socket on descriptor 0 it serves requests until it
 * is told to end; started without one it is a CGI program and FCGI_Accept()
 * succeeds once.  So the word `process` alone switches it between persistent
 * and per-request.
 *
 * On its own: cc -o hello hello.c -lfcgi
 */
#include <fcgi_stdio.h>         /* instead of stdio.h: printf() goes to the request */

#include <stdlib.h>
#include <unistd.h>

static const char *
variable(const char *name)
{
	const char *value = getenv(name);

	return value != NULL ? value : "";
}

int
main(void)
{
	while (FCGI_Accept() >= 0) {
		printf("Content-Type: text/plain; charset=utf-8\n\n");
		printf("Hello from C\n");
		printf("pid: %ld\n", (long)getpid());
		printf("method: %s\n", variable("REQUEST_METHOD"));
		printf("uri: %s\n", variable("REQUEST_URI"));
	}
	return 0;
}
