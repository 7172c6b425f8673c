#include "compare/load.h"

#include "base/clock.h"
#include "compare/exchange.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
	EVENTS_MAX = 256,
	BUFFER_BYTES = 128 * 1024,
	LOOK_AROUND_MS = 200,           /* for time limits and an interrupt */
	REFUSED_WAIT_MS = 1,            /* before a full line is tried again */
	TROUBLE_BYTES = 256,
};
#define TIMER_EVENT UINT32_MAX

enum place_state {
	PLACE_FREE,             /* its connection, if any, is idle */
	PLACE_REFUSED,          /* the line of the server was full: again later */
	PLACE_SENDING, PLACE_RECEIVING,
};

/* A connection, and the request that is on it. */
struct place {
	enum place_state state;
	int fd;                         /* -1: none */
	bool is_reused;                 /* it has answered before */
	bool is_writing;                /* EPOLLOUT is asked for */
	size_t variant;
	size_t sent;                    /* bytes of the request */
	uint64_t from_ns, sent_ns;
	struct exchange exchange;
};

struct loader {
	const struct target *target;
	struct load_rules rules;
	int epoll_fd, timer_fd;
	struct place *places;
	uint32_t *free_places;          /* a stack */
	size_t free_count, refused_count;
	uint64_t timer_at_ns;           /* that the timer is set to */
	uint64_t sent, wrong, unanswered;
	char trouble[TROUBLE_BYTES];
	/* Of the run. */
	struct schedule *schedule;
	struct block *block;
	struct latencies *latencies;
	char buffer[BUFFER_BYTES];
};

static void note(struct loader *loader, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(struct loader *loader, const char *format, ...)
{
	va_list args;

	if (loader->trouble[0] != '\0')
		return;
	va_start(args, format);
	vsnprintf(loader->trouble, sizeof(loader->trouble), format, args);
	va_end(args);
}

static void disconnect(struct place *place)
{
	if (place->fd >= 0)
		close(place->fd);
	place->fd = -1;
	place->is_reused = place->is_writing = false;
}

/* The end of a request. */

static void give_back(struct loader *loader, struct place *place)
{
	place->state = PLACE_FREE;
	loader->free_places[loader->free_count++] = (uint32_t)(place - loader->places);
	schedule_end_one(loader->schedule);
}

static void fail(struct loader *loader, struct place *place)
{
	disconnect(place);
	loader->block->failed++;
	give_back(loader, place);
}

/* A server that says that it cannot answer has failed; one that answers something else is wrong. */
static void on_unwanted(struct loader *loader, const struct reply *reply)
{
	if (reply->status == loader->rules.status)
		note(loader, "an answer had another body than the first ones");
	else
		note(loader, "an answer had status %u instead of %u%s", reply->status, loader->rules.status,
			reply->status == 503 ? ": these were too many at a time for it" : "");
	loader->wrong += reply->status == loader->rules.status || reply->status < 500;
	loader->block->failed++;
}

static void succeed(struct loader *loader, struct place *place, uint64_t now_ns)
{
	uint64_t ns = now_ns > place->from_ns ? now_ns - place->from_ns : 0;

	if (place->exchange.reply.status != loader->rules.status || place->exchange.reply.is_wrong) {
		on_unwanted(loader, &place->exchange.reply);
	} else {
		loader->block->answered++;
		loader->block->sum_ns += (double)ns;
		latencies_add(loader->latencies, ns);
	}
	if (place->exchange.reply.must_close || !loader->target->keep)
		disconnect(place);
	else
		place->is_reused = true;
	give_back(loader, place);
}

/* Sending. */

static int watch(struct loader *loader, struct place *place, bool with_write, bool is_new)
{
	struct epoll_event event = { .events = EPOLLIN | (with_write ? EPOLLOUT : 0),
		.data.u32 = (uint32_t)(place - loader->places) };

	place->is_writing = with_write;
	return epoll_ctl(loader->epoll_fd, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, place->fd, &event);
}

/* 0; -1 when there is none, and the place has failed or waits. */
static int ensure_connection(struct loader *loader, struct place *place)
{
	if (place->fd >= 0)
		return 0;
	place->is_reused = false;
	place->fd = target_connect(loader->target);
	if (place->fd >= 0 && watch(loader, place, false, true) == 0)
		return 0;
	if (place->fd < 0 && errno == EAGAIN) {
		place->state = PLACE_REFUSED;
		loader->refused_count++;
		return -1;
	}
	note(loader, "cannot connect to %s: %s", loader->target->name, strerror(errno));
	fail(loader, place);
	return -1;
}

static void restart(struct loader *loader, struct place *place);

/* A kept connection that was closed before it took the request is no failure of the server. */
static void on_lost(struct loader *loader, struct place *place, const char *how)
{
	if (place->is_reused && place->exchange.reply.state == REPLY_HEAD && place->exchange.reply.head.len == 0) {
		disconnect(place);
		restart(loader, place);
		return;
	}
	note(loader, "%s", how);
	fail(loader, place);
}

static void send_more(struct loader *loader, struct place *place)
{
	const struct bytes *request = &loader->target->requests[place->variant];

	while (place->sent < request->len) {
		ssize_t n = send(place->fd, bytes_data(request) + place->sent, request->len - place->sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == ENOTCONN)) {
			if (!place->is_writing && watch(loader, place, true, false) < 0)
				fail(loader, place);
			return;
		}
		if (n < 0 && (errno == EPIPE || errno == ECONNRESET) && !place->is_reused)
			break;          /* what it answers early may still come */
		if (n < 0) {
			on_lost(loader, place, strerror(errno));
			return;
		}
		place->sent += (size_t)n;
	}
	place->state = PLACE_RECEIVING;
	if (place->is_writing)
		watch(loader, place, false, false);
}

static void restart(struct loader *loader, struct place *place)
{
	place->state = PLACE_SENDING;
	place->sent = 0;
	exchange_reset(&place->exchange);
	place->exchange.reply.expected = loader->rules.expected;
	if (ensure_connection(loader, place) < 0)
		return;
	loader->sent++;
	send_more(loader, place);
}

/* Sends what is due. */
static void pump(struct loader *loader, uint64_t now_ns)
{
	uint64_t from_ns;

	while (loader->free_count > 0 && schedule_take(loader->schedule, now_ns, &from_ns)) {
		struct place *place = &loader->places[loader->free_places[--loader->free_count]];

		place->from_ns = from_ns;
		place->sent_ns = now_ns;
		place->variant = loader->target->requests_count == 1 ? 0 : random_below(loader->rules.random, loader->target->requests_count);
		restart(loader, place);
	}
}

/* Receiving. */

static void on_closed(struct loader *loader, struct place *place, int errnum)
{
	bool is_untouched = place->exchange.reply.state == REPLY_HEAD && place->exchange.reply.head.len == 0;

	if (is_untouched) {
		on_lost(loader, place, errnum != 0 ? strerror(errnum) : "the connection was closed without an answer");
		return;
	}
	if (errnum == 0 && exchange_close(&place->exchange) == EXCHANGE_ANSWERED) {
		place->exchange.reply.must_close = true;
		succeed(loader, place, clock_monotonic_ns());
		return;
	}
	note(loader, "an answer was cut%s%s", place->exchange.reply.reason == NULL ? "" : ": ", place->exchange.reply.reason == NULL ? "" : place->exchange.reply.reason);
	fail(loader, place);
}

static void receive(struct loader *loader, struct place *place)
{
	ssize_t n = recv(place->fd, loader->buffer, sizeof(loader->buffer), 0);
	uint64_t now_ns;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (place->state == PLACE_FREE) {       /* closed while idle, or bytes that nobody asked for */
		disconnect(place);
		return;
	}
	if (n <= 0) {
		on_closed(loader, place, n < 0 ? errno : 0);
		return;
	}
	switch (exchange_take(&place->exchange, (struct slice){ loader->buffer, (size_t)n })) {
	case EXCHANGE_WAITING:
		return;
	case EXCHANGE_ANSWERED:
		now_ns = clock_monotonic_ns();
		succeed(loader, place, now_ns);
		pump(loader, now_ns);
		return;
	case EXCHANGE_BROKEN:
		note(loader, "an answer is broken: %s", place->exchange.reply.reason);
		fail(loader, place);
		return;
	}
}

static void on_event(struct loader *loader, const struct epoll_event *event)
{
	struct place *place;
	uint64_t times;

	if (event->data.u32 == TIMER_EVENT) {
		if (read(loader->timer_fd, &times, sizeof(times)) > 0)
			loader->timer_at_ns = 0;
		return;
	}
	place = &loader->places[event->data.u32];
	if (place->fd < 0)
		return;
	if ((event->events & EPOLLOUT) != 0 && place->state == PLACE_SENDING)
		send_more(loader, place);
	if (place->fd >= 0 && (event->events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
		receive(loader, place);
}

/* Waiting. */

static void set_timer(struct loader *loader)
{
	uint64_t at_ns = loader->free_count == 0 ? SCHEDULE_NEVER : schedule_next_ns(loader->schedule);
	struct itimerspec spec = { .it_value = { (time_t)(at_ns / 1000000000), (long)(at_ns % 1000000000) } };

	if (at_ns == SCHEDULE_NEVER || at_ns == 0 || at_ns == loader->timer_at_ns)
		return;
	timerfd_settime(loader->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
	loader->timer_at_ns = at_ns;
}

static void look_around(struct loader *loader, uint64_t now_ns)
{
	uint64_t limit_ns = loader->rules.timeout_ms * 1000000;

	for (size_t i = 0; i < loader->rules.places; i++) {
		struct place *place = &loader->places[i];

		if (place->state == PLACE_FREE || now_ns - place->sent_ns < limit_ns)
			continue;
		loader->refused_count -= place->state == PLACE_REFUSED;
		note(loader, "no answer within %llu s", (unsigned long long)loader->rules.timeout_ms / 1000);
		loader->unanswered++;
		fail(loader, place);
	}
}

static void retry_refused(struct loader *loader)
{
	loader->refused_count = 0;
	for (size_t i = 0; i < loader->rules.places; i++)
		if (loader->places[i].state == PLACE_REFUSED)
			restart(loader, &loader->places[i]);
}

static bool is_interrupted(const struct loader *loader)
{
	return loader->rules.is_interrupted != NULL && *loader->rules.is_interrupted;
}

static void abandon(struct loader *loader)
{
	for (size_t i = 0; i < loader->rules.places; i++)
		if (loader->places[i].state != PLACE_FREE) {
			disconnect(&loader->places[i]);
			give_back(loader, &loader->places[i]);
		}
	loader->refused_count = 0;
}

static int run(struct loader *loader, uint64_t now_ns, struct err *err)
{
	struct epoll_event events[EVENTS_MAX];
	uint64_t looked_ns = now_ns;

	for (;;) {
		pump(loader, now_ns);
		if (schedule_is_over(loader->schedule))
			return 0;
		set_timer(loader);
		int count = epoll_wait(loader->epoll_fd, events, EVENTS_MAX, loader->refused_count > 0 ? REFUSED_WAIT_MS : LOOK_AROUND_MS);
		if (count < 0 && errno != EINTR)
			return err_set_errno(err, errno, "epoll_wait");
		if (is_interrupted(loader)) {
			abandon(loader);
			return err_set(err, "interrupted");
		}
		for (int i = 0; i < count; i++)
			on_event(loader, &events[i]);
		if (loader->refused_count > 0)
			retry_refused(loader);
		now_ns = clock_monotonic_ns();
		if (now_ns - looked_ns > LOOK_AROUND_MS * UINT64_C(1000000)) {
			look_around(loader, now_ns);
			looked_ns = now_ns;
		}
	}
}

static uint64_t cpu_ns_of_ours(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int loader_run(struct loader *loader, struct schedule *schedule, struct block *block, struct latencies *latencies, struct err *err)
{
	struct latencies *unused = latencies == NULL ? calloc(1, sizeof(*unused)) : NULL;
	struct block own = { 0 };
	uint64_t begun_ns, cpu_ns = cpu_ns_of_ours();
	int status;

	if (latencies == NULL && unused == NULL)
		return err_set(err, "no memory");
	loader->schedule = schedule;
	loader->block = &own;
	loader->latencies = latencies == NULL ? unused : latencies;
	begun_ns = clock_monotonic_ns();
	schedule_begin(schedule, begun_ns);
	status = run(loader, begun_ns, err);
	own.elapsed_ns = clock_monotonic_ns() - begun_ns;
	own.generator_cpu_ns = cpu_ns_of_ours() - cpu_ns;
	if (block != NULL)
		*block = own;
	free(unused);
	return status;
}

struct loader *loader_new(const struct target *target, const struct load_rules *rules, struct err *err)
{
	struct loader *loader = calloc(1, sizeof(*loader));
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = TIMER_EVENT };

	if (loader == NULL || (loader->places = calloc(rules->places, sizeof(*loader->places))) == NULL ||
	    (loader->free_places = calloc(rules->places, sizeof(*loader->free_places))) == NULL) {
		if (loader != NULL)
			free(loader->places);
		free(loader);
		err_set(err, "no memory for %zu connections", rules->places);
		return NULL;
	}
	loader->target = target;
	loader->rules = *rules;
	loader->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loader->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	for (size_t i = 0; i < rules->places; i++) {
		loader->places[i].fd = -1;
		exchange_init(&loader->places[i].exchange, target);
		loader->free_places[loader->free_count++] = (uint32_t)(rules->places - 1 - i);
	}
	if (loader->epoll_fd < 0 || loader->timer_fd < 0 ||
	    epoll_ctl(loader->epoll_fd, EPOLL_CTL_ADD, loader->timer_fd, &event) < 0) {
		err_set_errno(err, errno, "epoll");
		loader_free(&loader);
	}
	return loader;
}

void loader_free(struct loader **loader_ptr)
{
	struct loader *loader = *loader_ptr;

	*loader_ptr = NULL;
	if (loader == NULL)
		return;
	for (size_t i = 0; i < loader->rules.places; i++) {
		disconnect(&loader->places[i]);
		exchange_fini(&loader->places[i].exchange);
	}
	if (loader->epoll_fd >= 0)
		close(loader->epoll_fd);
	if (loader->timer_fd >= 0)
		close(loader->timer_fd);
	free(loader->places);
	free(loader->free_places);
	free(loader);
}

struct load_rules *loader_rules(struct loader *loader)
{
	return &loader->rules;
}

uint64_t loader_sent(const struct loader *loader)
{
	return loader->sent;
}

uint64_t loader_wrong(const struct loader *loader)
{
	return loader->wrong;
}

uint64_t loader_unanswered(const struct loader *loader)
{
	return loader->unanswered;
}

const char *loader_trouble(const struct loader *loader)
{
	return loader->trouble;
}
