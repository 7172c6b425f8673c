/*
 * bench_hello.c - the smallest CGI program in C: what starting it costs is all
 * that it costs.
 */
#include <unistd.h>

int main(void)
{
	static const char answer[] = "Content-Type: text/plain\n\nhello\n";

	return write(STDOUT_FILENO, answer, sizeof(answer) - 1) < 0;
}
