#include "serve/stop.h"

#include "base/log.h"
#include "serve/client.h"
#include "serve/listener.h"
#include "serve/notify.h"
#include "serve/reload.h"
#include "serve/request.h"

#include <signal.h>

void stop_close_listeners(struct host *host)
{
	for (size_t i = 0; i < host->listeners_count; i++)
		listener_close(&host->listeners[i]);
	host->listeners_count = 0;
}

static bool has_client(const struct host *host)
{
	for (const struct client *client = host->clients; client != NULL; client = client->next)
		if (client->out.len > 0 || client_is_awaited(client))
			return true;
	return false;
}

static bool is_idle(const struct host *host)
{
	if (host->requests != NULL)
		return false;
	for (const struct pool_entry *entry = host->pools; entry != NULL; entry = entry->next)
		if (!pool_is_empty(entry->pool))
			return false;
	return host->state == HOST_KILLING || !has_client(host);
}

static void check_stop(void *ctx)
{
	struct host *host = ctx;

	if (host->state != HOST_RUNNING && is_idle(host))
		loop_stop(host->loop);
}

void host_check_stop(struct host *host)
{
	if (host->state != HOST_RUNNING)
		defer_call(host->loop, &host->stop_check, check_stop, host);
}

static void on_pool_empty(void *ctx)
{
	host_check_stop(ctx);
}

static void close_pools(struct host *host)
{
	for (struct pool_entry *entry = host->pools; entry != NULL; entry = entry->next)
		pool_close(entry->pool, on_pool_empty, host);
}

static uint64_t grace_ms(const struct host *host)
{
	uint64_t grace = 0;

	for (const struct pool_entry *entry = host->pools; entry != NULL; entry = entry->next)
		if (pool_handler(entry->pool)->timeout.kill_ms > grace)
			grace = pool_handler(entry->pool)->timeout.kill_ms;
	return grace;
}

static void signal_all(struct host *host, int signal)
{
	for (struct request *request = host->requests; request != NULL; request = request->next)
		request_kill(request, signal);
	for (const struct pool_entry *entry = host->pools; entry != NULL; entry = entry->next)
		pool_signal(entry->pool, signal);
}

static void say_killed(const struct host *host)
{
	for (const struct request *request = host->requests; request != NULL; request = request->next)
		if (request->pid > 0 && request->state != REQUEST_OVER)
			log_message(LOG_LEVEL_WARNING, "killed", "id %s, handler %s: pid %d still ran when the host stopped, killed",
				request->id, request->handler->name, (int)request->pid);
}

void stop_now(struct host *host)
{
	host->state = HOST_KILLING;
	timer_clear(host->stop_timer);
	close_pools(host);
	say_killed(host);
	signal_all(host, SIGKILL);
	host_check_stop(host);
}

/* TERM at half of the grace time, KILL near its end: when it is over, nothing
 * is left. */
void stop_on_time(void *ctx)
{
	struct host *host = ctx;

	if (host->state == HOST_DRAINING) {
		host->state = HOST_KILLING;
		close_pools(host);
		signal_all(host, SIGTERM);
		timer_set(host->stop_timer, grace_ms(host) * 4 / 10);
	} else {
		stop_now(host);
	}
}

/* A connection that waits to be accepted, and a request that waits to be read,
 * are ours: the web server believes them sent. */
static void take_what_has_come(struct host *host)
{
	struct client *client, *next;

	for (size_t i = 0; i < host->listeners_count; i++)
		listener_drain(host->listeners[i]);
	stop_close_listeners(host);
	for (client = host->clients; client != NULL; client = next) {
		next = client->next;
		client_stop(client);
	}
}

void stop_drain(struct host *host)
{
	log_message(LOG_LEVEL_INFO, "stopping", "no new requests; those that run may take %llu ms", (unsigned long long)grace_ms(host) / 2);
	host->state = HOST_DRAINING;
	notify_stopping(host->notify, grace_ms(host));
	reload_stop(host);
	take_what_has_come(host);
	for (struct pool_entry *entry = host->pools; entry != NULL; entry = entry->next)
		pool_retire(entry->pool, on_pool_empty, host);
	timer_set(host->stop_timer, grace_ms(host) / 2);
	host_check_stop(host);
}
