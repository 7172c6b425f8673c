/*
 * hello-world.c - the same few bytes for every request.
 *
 * Like hello.c it is persistent or per-request, as it is started.
 *
 * On its own: cc -o hello-world hello-world.c -lfcgi
 */
#include <fcgi_stdio.h>

int
main(void)
{
	while (FCGI_Accept() >= 0)
		printf("Content-Type: text/plain\nContent-Length: 14\n\nHello, World!\n");
	return 0;
}
