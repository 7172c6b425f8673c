/*
 * fastcgi_answer.c - the least that answers FastCGI: the same few bytes to each request,
 * on the unix socket or port that it is told, until it is ended.  It is what load
 * generators are measured with: whatever it looks at, it does not check.  It may spin
 * for some microseconds before each answer, a difference whose size is known.
 */
#include <arpa/inet.h>
#include <fastcgi.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 65536, BUFFER_BYTES = 65536, EVENTS_MAX = 256, ID = 1 };

/* Where in a record a connection's input stands. */
struct connection { unsigned left, have; uint8_t header[FCGI_HEADER_LEN]; };

static struct connection connections[CONNECTIONS_MAX];
static uint8_t answer[512];
static size_t answer_len;
static uint64_t spin_ns;

static void make_answer(void)
{
	static const char text[] = "Content-Type: text/plain\r\nContent-Length: 6\r\n\r\nhello\n";
	size_t len = sizeof(text) - 1;
	FCGI_Header out = { FCGI_VERSION_1, FCGI_STDOUT, 0, ID, 0, (unsigned char)len, 0, 0 };
	FCGI_EndRequestRecord end = { { FCGI_VERSION_1, FCGI_END_REQUEST, 0, ID, 0, sizeof(end.body), 0, 0 }, { .appStatusB0 = 0 } };

	memcpy(answer, &out, sizeof(out));
	memcpy(answer + sizeof(out), text, len);
	memcpy(answer + sizeof(out) + len, &end, sizeof(end));
	answer_len = sizeof(out) + len + sizeof(end);
}

/* How many requests end in this piece. */
static unsigned take(struct connection *connection, const uint8_t *data, size_t len)
{
	unsigned ended = 0;

	while (len > 0) {
		size_t part = connection->left < len ? connection->left : len;

		connection->left -= (unsigned)part;
		data += part;
		len -= part;
		if (connection->left > 0 || len == 0)
			continue;
		connection->header[connection->have++] = *data++;
		len--;
		if (connection->have < FCGI_HEADER_LEN)
			continue;
		connection->have = 0;
		connection->left = (unsigned)connection->header[4] << 8 | connection->header[5];
		ended += connection->header[1] == FCGI_STDIN && connection->left == 0;
		connection->left += connection->header[6];
	}
	return ended;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void spin(void)
{
	for (uint64_t end_ns = now_ns() + spin_ns; spin_ns > 0 && now_ns() < end_ns;)
		;
}

static void serve(int fd)
{
	static uint8_t buffer[BUFFER_BYTES];
	ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
	unsigned ended = n > 0 ? take(&connections[fd], buffer, (size_t)n) : 0;

	for (unsigned i = 0; i < ended; i++) {
		spin();
		if (send(fd, answer, answer_len, MSG_NOSIGNAL) != (ssize_t)answer_len)
			n = 0;
	}
	if (n <= 0)
		close(fd);
}

static int listen_at(const char *where)
{
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	struct sockaddr_in inet = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)atoi(where)) };
	int is_local = where[0] == '/', fd = socket(is_local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	snprintf(local.sun_path, sizeof(local.sun_path), "%s", where);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if ((is_local ? bind(fd, (struct sockaddr *)&local, sizeof(local)) : bind(fd, (struct sockaddr *)&inet, sizeof(inet))) != 0 ||
	    listen(fd, 4096) != 0) {
		perror(where);
		exit(1);
	}
	return fd;
}

static void greet(int listener, int epoll_fd)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), one = 1;
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (fd < 0 || fd >= CONNECTIONS_MAX)
		return;
	connections[fd] = (struct connection){ 0 };
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

int main(int argc, char **argv)
{
	struct epoll_event events[EVENTS_MAX], event = { .events = EPOLLIN };
	int listener, epoll_fd = epoll_create1(EPOLL_CLOEXEC);

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: %s PATH|PORT [MICROSECONDS]\n", argv[0]);
		return 2;
	}
	spin_ns = argc == 3 ? strtoull(argv[2], NULL, 10) * 1000 : 0;
	make_answer();
	event.data.fd = listener = listen_at(argv[1]);
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event);
	for (;;) {
		int count = epoll_wait(epoll_fd, events, EVENTS_MAX, -1);

		for (int i = 0; i < count; i++)
			if (events[i].data.fd == listener)
				greet(listener, epoll_fd);
			else
				serve(events[i].data.fd);
	}
}
