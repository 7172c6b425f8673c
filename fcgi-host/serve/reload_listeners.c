#include "serve/reload_listeners.h"

#include "serve/host.h"
#include "serve/listener.h"

#include <stdlib.h>

static bool is_in_use(const struct host *host, const struct listener *listener)
{
	for (size_t i = 0; i < host->listeners_count; i++)
		if (host->listeners[i] == listener)
			return true;
	return false;
}

static struct listener *find(const struct host *host, const struct listen_config *config)
{
	for (size_t i = 0; i < host->listeners_count; i++)
		if (listener_is_at(host->listeners[i], config) && listener_has_file(host->listeners[i]))
			return host->listeners[i];
	return NULL;
}

int reload_listeners_open(struct reload_listeners *listeners, struct host *host, const struct config *config, struct err *err)
{
	listeners->host = host;
	if (host->is_inherited)
		return 0;
	listeners->list = calloc(config->listen_count + 1, sizeof(struct listener *));
	if (listeners->list == NULL)
		return err_set(err, "no memory");
	for (size_t i = 0; i < config->listen_count; i++) {
		struct listener *listener = find(host, &config->listen[i]);

		if (listener == NULL)
			listener = listener_open(host, &config->listen[i], err);
		if (listener == NULL)
			return -1;
		listeners->list[listeners->count++] = listener;
	}
	return 0;
}

static void forget(struct reload_listeners *listeners)
{
	listeners->list = NULL;
	listeners->count = 0;
}

void reload_listeners_drop(struct reload_listeners *listeners)
{
	for (size_t i = 0; i < listeners->count; i++)
		if (!is_in_use(listeners->host, listeners->list[i]))
			listener_close(&listeners->list[i]);
	free(listeners->list);
	forget(listeners);
}

void reload_listeners_swap(struct reload_listeners *listeners, const struct config *config)
{
	struct host *host = listeners->host;
	struct listener **old = host->listeners;
	size_t old_count = host->listeners_count;

	if (host->is_inherited)
		return;
	for (size_t i = 0; i < listeners->count; i++) {
		listener_update(listeners->list[i], &config->listen[i]);
		if (!is_in_use(host, listeners->list[i]))
			listener_start(listeners->list[i]);
	}
	host->listeners = listeners->list;
	host->listeners_count = listeners->count;
	forget(listeners);
	for (size_t i = 0; i < old_count; i++) {
		if (!is_in_use(host, old[i])) {
			listener_drain(old[i]);
			listener_close(&old[i]);
		}
	}
	free(old);
}
