#include "compare/exchange.h"

#include "base/clock.h"

#include <errno.h>
#include <fastcgi.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE_BYTES = 32768 };

void exchange_init(struct exchange *exchange, const struct target *target)
{
	*exchange = (struct exchange){ .is_http = target->is_http };
	reply_init(&exchange->reply, target->is_http, target->is_head_request);
}

void exchange_fini(struct exchange *exchange)
{
	reply_fini(&exchange->reply);
}

void exchange_reset(struct exchange *exchange)
{
	exchange->decoder = (struct fcgi_decoder){ 0 };
	exchange->end.len = 0;
	reply_reset(&exchange->reply);
}

static enum exchange_progress on_end_request(struct exchange *exchange)
{
	struct fcgi_end end;

	fcgi_get_end(exchange->end.bytes, &end);
	if (end.protocol_status == FCGI_REQUEST_COMPLETE)
		return reply_end(&exchange->reply) == REPLY_DONE ? EXCHANGE_ANSWERED : EXCHANGE_BROKEN;
	exchange->reply.reason = "the server refused the request (protocolStatus)";
	return EXCHANGE_BROKEN;
}

static enum exchange_progress take_fastcgi(struct exchange *exchange, struct slice input)
{
	struct slice content;

	for (;;) {
		switch (fcgi_decode(&exchange->decoder, &input, &content)) {
		case FCGI_MORE:
			return EXCHANGE_WAITING;
		case FCGI_BAD:
			exchange->reply.reason = "it is no FastCGI, or was broken off";
			return EXCHANGE_BROKEN;
		case FCGI_START:
			break;
		case FCGI_CONTENT:
			if (exchange->decoder.type == FCGI_STDOUT && reply_take(&exchange->reply, &content) == REPLY_BAD)
				return EXCHANGE_BROKEN;
			if (exchange->decoder.type == FCGI_END_REQUEST)
				fcgi_fixed_put(&exchange->end, content);
			break;
		case FCGI_END:
			if (exchange->decoder.type == FCGI_END_REQUEST)
				return on_end_request(exchange);
			break;
		}
	}
}

enum exchange_progress exchange_take(struct exchange *exchange, struct slice input)
{
	if (!exchange->is_http)
		return take_fastcgi(exchange, input);
	switch (reply_take(&exchange->reply, &input)) {
	case REPLY_DONE: return EXCHANGE_ANSWERED;
	case REPLY_BAD: return EXCHANGE_BROKEN;
	default: return EXCHANGE_WAITING;
	}
}

enum exchange_progress exchange_close(struct exchange *exchange)
{
	if (exchange->is_http && reply_end(&exchange->reply) == REPLY_DONE)
		return EXCHANGE_ANSWERED;
	if (exchange->reply.reason == NULL)
		exchange->reply.reason = "the connection was closed before its end";
	return EXCHANGE_BROKEN;
}

/* One by itself. */

struct asking {
	const char *name;               /* of the target */
	int fd;
	uint64_t end_ns;
	const struct bytes *request;
	size_t sent;
};

static int wait_for(struct asking *asking, struct err *err)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct pollfd watched = { .fd = asking->fd, .events = POLLIN };
	int rc;

	if (now_ns >= asking->end_ns)
		return err_set(err, "no answer in time");
	if (asking->sent < asking->request->len)
		watched.events |= POLLOUT;
	rc = poll(&watched, 1, (int)((asking->end_ns - now_ns) / 1000000) + 1);
	if (rc < 0)
		return errno == EINTR ? err_set(err, "interrupted") : err_set_errno(err, errno, "poll");
	return rc == 0 ? err_set(err, "no answer in time") : watched.revents;
}

static int send_some(struct asking *asking, struct err *err)
{
	ssize_t n = send(asking->fd, bytes_data(asking->request) + asking->sent, asking->request->len - asking->sent,
		MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n > 0)
		asking->sent += (size_t)n;
	else if (n < 0 && asking->sent == 0 && errno != EAGAIN && errno != EINTR && errno != EPIPE && errno != ECONNRESET)
		return err_set(err, "cannot connect to %s: %s", asking->name, strerror(errno));
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		asking->sent = asking->request->len;    /* it takes no more: its answer says why */
	return 0;
}

static int exchange_all(struct exchange *exchange, struct asking *asking, struct err *err)
{
	char piece[PIECE_BYTES];
	enum exchange_progress progress = EXCHANGE_WAITING;

	while (progress == EXCHANGE_WAITING) {
		int events = wait_for(asking, err);
		ssize_t n;

		if (events < 0)
			return -1;
		if ((events & POLLOUT) != 0 && send_some(asking, err) < 0)
			return -1;
		if ((events & ~POLLOUT) == 0)
			continue;
		n = recv(asking->fd, piece, sizeof(piece), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n < 0)
			return err_set(err, "%s", strerror(errno));
		progress = n == 0 ? exchange_close(exchange) : exchange_take(exchange, (struct slice){ piece, (size_t)n });
	}
	return progress == EXCHANGE_ANSWERED ? 0 : err_set(err, "the answer is broken: %s", exchange->reply.reason);
}

int exchange_ask(struct exchange *exchange, const struct target *target, size_t variant, uint64_t timeout_ms,
	struct bytes *body, struct err *err)
{
	struct asking asking = { .name = target->name, .fd = target_connect(target), .end_ns = clock_monotonic_ns() + timeout_ms * 1000000,
		.request = &target->requests[variant] };
	int status;

	exchange_init(exchange, target);
	exchange->reply.kept = body;
	if (asking.fd < 0)
		return err_set(err, "cannot connect to %s: %s", target->name, strerror(errno));
	status = exchange_all(exchange, &asking, err);
	close(asking.fd);
	return status;
}
