/*
 * body_bench.c - what web_bench.py moves bodies with, and the yardstick for it:
 * a loop that reads and writes, and nothing else.
 *
 *   body_bench source BYTES           CGI program: an answer of so many bytes
 *   body_bench sink                   CGI program: reads a body to its end
 *   body_bench loop down|up BYTES     the yardstick; prints what its CPU was
 *   body_bench call SOCKET PATH down|up BYTES    one FastCGI request
 *
 * The loop has the same descriptors on either side as the host has: a pipe to
 * the program and a unix socket to the web server, both as large as the kernel
 * makes them.
 */
#include <err.h>
#include <fastcgi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECE_BYTES = 64 * 1024, RECORD_BYTES = 32 * 1024 };     /* nginx sends records of this size */

static char piece[PIECE_BYTES];

static void write_all(int fd, const void *data, size_t len)
{
	const char *from = data;

	while (len > 0) {
		ssize_t n = write(fd, from, len);

		if (n < 0)
			err(1, "write");
		from += n;
		len -= (size_t)n;
	}
}

static void produce(int fd, unsigned long long bytes)
{
	while (bytes > 0) {
		size_t len = bytes < sizeof(piece) ? (size_t)bytes : sizeof(piece);

		write_all(fd, piece, len);
		bytes -= len;
	}
}

static unsigned long long consume(int fd)
{
	unsigned long long bytes = 0;
	ssize_t n;

	while ((n = read(fd, piece, sizeof(piece))) > 0)
		bytes += (unsigned long long)n;
	if (n < 0)
		err(1, "read");
	return bytes;
}

/* CGI programs. */

static int source(unsigned long long bytes)
{
	static const char header[] = "Content-Type: application/octet-stream\n\n";

	write_all(STDOUT_FILENO, header, sizeof(header) - 1);
	produce(STDOUT_FILENO, bytes);
	return 0;
}

static int sink(void)
{
	printf("Content-Type: text/plain\n\n%llu bytes\n", consume(STDIN_FILENO));
	return 0;
}

/* The yardstick. */

static void pass_on(int from, int to, bool has_header)
{
	FCGI_Header header = { .version = FCGI_VERSION_1, .type = FCGI_STDOUT };
	ssize_t n;

	while ((n = read(from, piece, sizeof(piece))) > 0) {
		struct iovec parts[2] = { { &header, sizeof(header) }, { piece, (size_t)n } };
		ssize_t done = has_header ? writev(to, parts, 2) : 0;
		ssize_t before = has_header ? (ssize_t)sizeof(header) : 0;

		if (done < before)
			err(1, "writev");
		write_all(to, piece + (done - before), (size_t)(n - (done - before)));
	}
	if (n < 0)
		err(1, "read");
}

static double cpu_us(void)
{
	struct rusage rusage;

	getrusage(RUSAGE_SELF, &rusage);
	return (double)(rusage.ru_utime.tv_sec + rusage.ru_stime.tv_sec) * 1e6 +
		(double)(rusage.ru_utime.tv_usec + rusage.ru_stime.tv_usec);
}

/* A process that fills or empties one end of `fds`; the other end is returned. */
static int start_peer(int fds[2], int its_end, unsigned long long bytes)
{
	pid_t pid = fork();

	if (pid < 0)
		err(1, "fork");
	if (pid == 0) {
		close(fds[1 - its_end]);
		if (bytes > 0)
			produce(fds[its_end], bytes);
		else
			consume(fds[its_end]);
		_exit(0);
	}
	close(fds[its_end]);
	return fds[1 - its_end];
}

static int loop(bool is_down, unsigned long long bytes)
{
	int pipe_fds[2], socket_fds[2], from, to, status, result = 0;
	double before;

	if (pipe(pipe_fds) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, socket_fds) != 0)
		err(1, "pipe and socket");
	if (is_down) {
		from = start_peer(pipe_fds, 1, bytes);
		to = start_peer(socket_fds, 1, 0);
	} else {
		from = start_peer(socket_fds, 1, bytes);
		to = start_peer(pipe_fds, 0, 0);
	}
	before = cpu_us();
	pass_on(from, to, is_down);
	printf("loop: %.0f us CPU\n", cpu_us() - before);
	close(from);
	close(to);
	while (wait(&status) > 0)
		result |= status;
	return result != 0;
}

/* One request to a FastCGI server. */

static void put_record(int fd, unsigned char type, const void *content, size_t len)
{
	struct {
		FCGI_Header header;
		char content[RECORD_BYTES];
	} record = { .header = {
		.version = FCGI_VERSION_1, .type = type, .requestIdB0 = 1,
		.contentLengthB1 = (unsigned char)(len >> 8), .contentLengthB0 = (unsigned char)(len & 255) } };

	if (len > 0)
		memcpy(record.content, content, len);
	write_all(fd, &record, sizeof(record.header) + len);
}

/* Short ones only: one byte holds each length. */
static size_t put_pair(char *out, const char *name, const char *value)
{
	return (size_t)sprintf(out, "%c%c%s%s", (char)strlen(name), (char)strlen(value), name, value);
}

static void send_start(int fd, const char *path, const char *method, unsigned long long body_bytes)
{
	static const char begin[FCGI_HEADER_LEN] = { 0, FCGI_RESPONDER };
	char pairs[4 * 256], length[32];
	size_t len;

	snprintf(length, sizeof(length), "%llu", body_bytes);
	len = put_pair(pairs, "REQUEST_METHOD", method);
	len += put_pair(pairs + len, "SCRIPT_NAME", path);
	len += put_pair(pairs + len, "CONTENT_LENGTH", length);
	put_record(fd, FCGI_BEGIN_REQUEST, begin, sizeof(begin));
	put_record(fd, FCGI_PARAMS, pairs, len);
	put_record(fd, FCGI_PARAMS, NULL, 0);
}

static void send_body(int fd, unsigned long long bytes)
{
	while (bytes > 0) {
		size_t len = bytes < RECORD_BYTES ? (size_t)bytes : RECORD_BYTES;

		put_record(fd, FCGI_STDIN, piece, len);
		bytes -= len;
	}
	put_record(fd, FCGI_STDIN, NULL, 0);
}

static int call(const char *socket_path, const char *path, bool is_down, unsigned long long bytes)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	unsigned long long got;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		err(1, "%s", socket_path);
	send_start(fd, path, is_down ? "GET" : "POST", is_down ? 0 : bytes);
	send_body(fd, is_down ? 0 : bytes);
	got = consume(fd);
	if (got < (is_down ? bytes : 20) || (!is_down && memmem(piece, sizeof(piece), " bytes\n", 7) == NULL))
		errx(1, "%s: the answer has %llu bytes", path, got);
	return 0;
}

static bool is_direction(const char *word)
{
	return strcmp(word, "down") == 0 || strcmp(word, "up") == 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned long long bytes = argc > 2 ? strtoull(argv[argc - 1], NULL, 10) : 0;

	if (strcmp(what, "sink") == 0 && argc == 2)
		return sink();
	if (strcmp(what, "source") == 0 && argc == 3)
		return source(bytes);
	if (strcmp(what, "loop") == 0 && argc == 4 && is_direction(argv[2]) && bytes > 0)
		return loop(argv[2][0] == 'd', bytes);
	if (strcmp(what, "call") == 0 && argc == 6 && is_direction(argv[4]) && bytes > 0)
		return call(argv[2], argv[3], argv[4][0] == 'd', bytes);
	fprintf(stderr, "usage: body_bench source BYTES | sink | loop down|up BYTES | call SOCKET PATH down|up BYTES\n");
	return 2;
}
