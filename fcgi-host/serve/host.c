#include "serve/host.h"

#include "base/clock.h"
#include "base/log.h"
#include "process/socket_folder.h"
#include "serve/client.h"
#include "serve/control.h"
#include "serve/identity.h"
#include "serve/listener.h"
#include "serve/notify.h"
#include "serve/reload.h"
#include "serve/request.h"
#include "serve/site.h"
#include "serve/stop.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

enum {
	LOG_RETRY_MS = 20,
	SIGNALS = 4,
	KEPT_MEMORY_BYTES = 1024 * 1024,        /* kept from one request for the next */
};

struct signals {
	uv_signal_t handles[SIGNALS];
};

/* Log. */

static void flush_log(void *ctx)
{
	struct host *host = ctx;

	if (!log_flush())
		timer_set(host->log_timer, LOG_RETRY_MS);
}

static void on_log_waiting(void *ctx)
{
	struct host *host = ctx;

	defer_call(host->loop, &host->log_call, flush_log, host);
}

/* Pools. */

static void free_entry(struct pool_entry *entry)
{
	struct host *host = entry->host;

	if (entry->prev != NULL)
		entry->prev->next = entry->next;
	else
		host->pools = entry->next;
	if (entry->next != NULL)
		entry->next->prev = entry->prev;
	pool_free(&entry->pool);
	site_unref(&entry->site);
	figures_unref(&entry->figures);
	free(entry);
}

int host_add_pool(struct host *host, struct pool *pool, struct site *site)
{
	struct pool_entry *entry = calloc(1, sizeof(*entry));
	struct figures *figures = figures_new();

	if (entry == NULL || figures == NULL) {
		free(entry);
		figures_unref(&figures);
		pool_free(&pool);
		site_unref(&site);
		return -1;
	}
	entry->host = host;
	entry->pool = pool;
	entry->site = site;
	entry->figures = figures;
	entry->next = host->pools;
	if (entry->next != NULL)
		entry->next->prev = entry;
	host->pools = entry;
	pool_set_owner(pool, entry);
	return 0;
}

static void on_retired(void *ctx)
{
	struct pool_entry *entry = ctx;
	struct host *host = entry->host;

	free_entry(entry);
	host_check_stop(host);
}

void host_retire_pool(struct pool *pool)
{
	pool_retire(pool, on_retired, pool_owner(pool));
}

void host_descriptor_freed(struct host *host)
{
	for (size_t i = 0; i < host->listeners_count; i++)
		listener_descriptor_freed(host->listeners[i]);
}

/* Signals. */

static void on_signal(uv_signal_t *handle, int signal)
{
	struct host *host = handle->data;
	struct err err;

	if (signal == SIGUSR1) {
		if (log_reopen(&err) < 0)
			log_message(LOG_LEVEL_ERROR, "log", "%s", err.text);
	} else if (signal == SIGHUP) {
		if (host->state == HOST_RUNNING)
			reload_request(host, NULL, NULL);
	} else if (host->state == HOST_RUNNING) {
		stop_drain(host);
	} else {
		stop_now(host);
	}
}

static void on_spawner_lost(void *ctx)
{
	struct host *host = ctx;

	log_message(LOG_LEVEL_ERROR, "spawner", "a spawner process has ended: no handler can be started any more; stopping");
	host->is_failed = true;
	if (host->state == HOST_RUNNING)
		stop_drain(host);
}

/* Starting: the steps in order. */

static void keep_memory(void)
{
	/* Memory that every request needs again is neither mapped anew nor given
	 * back each time: that would be most of a request's page faults. */
	mallopt(M_MMAP_THRESHOLD, KEPT_MEMORY_BYTES);
	mallopt(M_TRIM_THRESHOLD, KEPT_MEMORY_BYTES);
}

static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int make_boot(struct host *host, struct err *err)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return err_set_errno(err, errno, "random numbers");
	snprintf(host->boot, sizeof(host->boot), "%016llx", (unsigned long long)random);
	return 0;
}

static int open_loop(struct host *host, struct err *err)
{
	host->loop = loop_new(err);
	if (host->loop == NULL)
		return -1;
	host->log_timer = timer_new(host->loop, flush_log, host);
	host->stop_timer = timer_new(host->loop, stop_on_time, host);
	if (host->log_timer == NULL || host->stop_timer == NULL)
		return err_set(err, "no memory");
	log_on_waiting(on_log_waiting, host);
	return spawner_attach(host->spawner, host->loop, on_spawner_lost, host, err);
}

static int open_listeners(struct host *host, const struct inherited *inherited, struct err *err)
{
	const struct config *config = host->site->config;
	size_t count = inherited->count > 0 ? inherited->count : config->listen_count;

	host->is_inherited = inherited->count > 0;
	host->listeners = calloc(count, sizeof(struct listener *));
	if (host->listeners == NULL)
		return err_set(err, "no memory");
	for (size_t i = 0; i < count; i++) {
		struct listener *listener = inherited->count > 0 ?
			listener_adopt(host, inherited->fds[i], err) :
			listener_open(host, &config->listen[i], err);

		if (listener == NULL)
			return -1;
		host->listeners[host->listeners_count++] = listener;
	}
	return 0;
}

static int open_pools(struct host *host, struct err *err)
{
	for (unsigned i = 0; i < host->site->config->handlers_count; i++)
		if (site_make_pool(host->site, i, err) < 0)
			return -1;
	return 0;
}

static int open_signals(struct host *host, struct err *err)
{
	static const int numbers[SIGNALS] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1 };

	host->signals = calloc(1, sizeof(*host->signals));
	if (host->signals == NULL)
		return err_set(err, "no memory");
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < SIGNALS; i++) {
		uv_signal_init(loop_uv(host->loop), &host->signals->handles[i]);
		host->signals->handles[i].data = host;
		uv_signal_start(&host->signals->handles[i], on_signal, numbers[i]);
	}
	return 0;
}

/* Several hosts may share a configuration where their socket is handed to them:
 * the first of them answers. */
static void open_control(struct host *host)
{
	struct err err;

	host->control = control_open(host, &err);
	if (host->control == NULL)
		log_message(LOG_LEVEL_WARNING, "control", "status and reload by command will not work: %s", err.text);
}

static int open_host(struct host *host, struct config *config, const struct inherited *inherited, struct err *err)
{
	keep_memory();
	raise_descriptor_limit();
	host->begun_ns = clock_monotonic_ns();
	host->unrouted = figures_new();
	host->builtin = figures_new();
	host->has_root = geteuid() == 0;
	host->site = site_new(host, config, 0, err);
	host->budget.max = host->site == NULL ? 0 : host->site->config->max_processes;
	if (host->site == NULL || host->unrouted == NULL || host->builtin == NULL || make_boot(host, err) < 0 || open_loop(host, err) < 0)
		return -1;
	if (open_listeners(host, inherited, err) < 0)
		return -1;
	host->notify = notify_open(host->loop);
	open_control(host);     /* while we are root: who asks sees that, and no stranger in our place */
	if (identity_assume(&host->site->config->user, err) < 0)
		return -1;
	return open_pools(host, err) < 0 || open_signals(host, err) < 0 ? -1 : 0;
}

/* One more TERM may not end us in the middle of the clean-up. */
static void block_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
}

static void close_host(struct host *host)
{
	block_signals();
	stop_close_listeners(host);
	while (host->clients != NULL) {
		struct client *client = host->clients;

		client_free(&client);
	}
	while (host->requests != NULL) {
		struct request *request = host->requests;

		request_log(request);
		request_free(&request);
	}
	control_free(&host->control);
	notify_free(&host->notify);
	reload_end(host);
	while (host->pools != NULL)
		free_entry(host->pools);
	for (int i = 0; host->signals != NULL && i < SIGNALS; i++)
		uv_close((uv_handle_t *)&host->signals->handles[i], NULL);
	log_on_waiting(NULL, NULL);
	defer_cancel(&host->log_call);
	defer_cancel(&host->stop_check);
	timer_free(&host->log_timer);
	timer_free(&host->stop_timer);
	spawner_free(&host->spawner);
	socket_folder_remove(host->folder);     /* the first spawner has, unless it died before */
	site_unref(&host->site);
	figures_unref(&host->unrouted);
	figures_unref(&host->builtin);
	loop_free(&host->loop);
	free(host->signals);
	free(host->listeners);
	log_close();
	free(host);
}

int host_run(struct config *config, struct spawner *spawner, const char *folder, const struct inherited *inherited)
{
	struct host *host = calloc(1, sizeof(*host));
	struct err err = { "no memory" };
	int status = 1;

	if (host == NULL) {
		spawner_free(&spawner);
		config_free(&config);
		return 1;
	}
	host->spawner = spawner;
	host->folder = folder;
	if (open_host(host, config, inherited, &err) < 0) {
		fprintf(stderr, "fcgi-host: %s\n", err.text);
	} else {
		for (const struct pool_entry *entry = host->pools; entry != NULL; entry = entry->next)
			pool_open(entry->pool);
		for (size_t i = 0; i < host->listeners_count; i++)
			listener_start(host->listeners[i]);
		log_message(LOG_LEVEL_INFO, "ready", "serving %zu routes, %zu handlers", config->routes_count, config->handlers_count);
		notify_ready(host->notify);
		loop_run(host->loop);
		log_message(LOG_LEVEL_INFO, "stopped", "bye");
		status = host->is_failed ? 1 : 0;
	}
	close_host(host);
	return status;
}
