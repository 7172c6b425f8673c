/*
 * One reload at a time, in steps, each of which may be the end of it: read the
 * file, let the spawners read it, make what is new, try it, and only then swap.
 */
#include "serve/reload.h"

#include "base/log.h"
#include "process/socket_rights.h"
#include "serve/host.h"
#include "serve/identity.h"
#include "serve/notify.h"
#include "serve/reload_listeners.h"
#include "serve/site.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	TRIES = 5,              /* while the file changes under our eyes */
	TRIAL_MS = 1000,        /* beyond the longest timeout.start */
	TRIAL_LONGEST_MS = 60000,       /* where there is no timeout.start */
};

/* Who waits for the outcome. */
struct waiter {
	reload_done_fn *on_done;
	void *ctx;
	struct waiter *next;
};

enum reload_state { RELOAD_ASKED, RELOAD_SPAWNERS, RELOAD_TRIAL, RELOAD_RIGHTS };

struct reload {
	struct host *host;
	enum reload_state state;
	struct waiter *waiters;         /* for this one */
	struct waiter *later;           /* for the next one */
	struct defer begin;
	unsigned tries;
	struct config *config;          /* read by us */
	uint32_t generation;
	struct bytes notes;             /* warnings and errors, a line each */
	struct site *site;              /* the new one, from RELOAD_TRIAL on */
	struct reload_listeners listeners;      /* as they will be */
	unsigned trials;                /* pools that have not said yet whether they can start */
	struct timer *trial_timer;
};

static void begin(void *ctx);

static void note(struct reload *reload, const char *text)
{
	bytes_append_text(&reload->notes, text);
	bytes_append_text(&reload->notes, "\n");
}

/* Pools. */

static struct pool *unchanged_pool(const struct host *host, const struct config *config, unsigned number)
{
	const struct config *old = host->site->config;

	for (unsigned i = 0; i < old->handlers_count; i++)
		if (strcmp(old->handlers[i].name, config->handlers[number].name) == 0)
			return config_handler_is_same(old, i, config, number) ? host->site->pools[i] : NULL;
	return NULL;
}

static bool has_pool(const struct site *site, const struct pool *pool)
{
	for (unsigned i = 0; i < site->config->handlers_count; i++)
		if (site->pools[i] == pool)
			return true;
	return false;
}

static void retire_all_but(const struct site *from, const struct site *keep)
{
	for (unsigned i = 0; i < from->config->handlers_count; i++)
		if (from->pools[i] != NULL && !has_pool(keep, from->pools[i]))
			host_retire_pool(from->pools[i]);
}

static int make_pools(struct reload *reload, struct err *err)
{
	struct site *site = reload->site;

	for (unsigned i = 0; i < site->config->handlers_count; i++) {
		site->pools[i] = unchanged_pool(reload->host, site->config, i);
		if (site->pools[i] == NULL && site_make_pool(site, i, err) < 0)
			return -1;
	}
	return 0;
}

/* The end, good or bad. */

static void tell(struct reload *reload, bool is_fine)
{
	struct waiter *waiter;
	const char *text = bytes_append(&reload->notes, "", 1) < 0 ? "no memory for the reasons\n" : (const char *)bytes_data(&reload->notes);

	while ((waiter = reload->waiters) != NULL) {
		reload->waiters = waiter->next;
		if (waiter->on_done != NULL)
			waiter->on_done(waiter->ctx, is_fine, text);
		free(waiter);
	}
}

static void log_notes(struct reload *reload, enum log_level level)
{
	const char *line = (const char *)bytes_data(&reload->notes);
	const char *end = line == NULL ? NULL : line + reload->notes.len;

	while (line != NULL && line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		size_t len = newline == NULL ? (size_t)(end - line) : (size_t)(newline - line);

		log_message(level, "reload", "%.*s", (int)len, line);
		line = newline == NULL ? NULL : newline + 1;
	}
}

static void finish(struct reload *reload, bool is_fine)
{
	struct host *host = reload->host;

	log_notes(reload, is_fine ? LOG_LEVEL_WARNING : LOG_LEVEL_ERROR);
	if (is_fine)
		log_message(LOG_LEVEL_INFO, "reloaded", "serving %zu routes, %zu handlers",
			host->site->config->routes_count, host->site->config->handlers_count);
	else
		log_message(LOG_LEVEL_ERROR, "reload", "the old configuration stays in use");
	tell(reload, is_fine);
	bytes_fini(&reload->notes);
	timer_free(&reload->trial_timer);
	if (reload->later != NULL) {
		reload->waiters = reload->later;
		reload->later = NULL;
		reload->state = RELOAD_ASKED;
		reload->tries = 0;
		reload->generation = 0;
		defer_call(host->loop, &reload->begin, begin, reload);
	} else {
		host->reload = NULL;
		free(reload);
		if (host->state == HOST_RUNNING)
			notify_ready(host->notify);
	}
}

static void forget_trials(struct reload *reload)
{
	for (unsigned i = 0; reload->site != NULL && i < reload->site->config->handlers_count; i++)
		if (reload->site->pools[i] != NULL)
			pool_forget_trial(reload->site->pools[i]);
}

static void abandon(struct reload *reload, const char *why)
{
	if (why != NULL)
		note(reload, why);
	forget_trials(reload);
	reload_listeners_drop(&reload->listeners);
	config_free(&reload->config);
	if (reload->site != NULL) {
		retire_all_but(reload->site, reload->host->site);
		site_unref(&reload->site);
	} else {
		spawner_forget(reload->host->spawner, reload->generation);
	}
	finish(reload, false);
}

static int reopen_log(const struct config *old, const struct config *new, struct err *err)
{
	struct log_options options = { .file = new->log.file, .format = new->log.format, .level = new->log.level };

	if (strcmp(old->log.file, new->log.file) == 0 && old->log.format == new->log.format && old->log.level == new->log.level)
		return 0;
	return log_open(&options, err);
}

static void note_what_stays(struct reload *reload, const struct config *old, const struct config *new)
{
	if (old->spawners != new->spawners)
		note(reload, "'spawners' changes only with a restart");
	if ((old->user.user == NULL) != (new->user.user == NULL) ||
	    (old->user.user != NULL && strcmp(old->user.user, new->user.user) != 0))
		note(reload, "'user' changes only with a restart");
}

static void commit(struct reload *reload)
{
	struct host *host = reload->host;
	struct site *old = host->site;

	note_what_stays(reload, old->config, reload->site->config);
	reload_listeners_swap(&reload->listeners, reload->site->config);
	host->site = reload->site;
	host->reloads++;
	host->budget.max = host->site->config->max_processes;
	reload->site = NULL;
	retire_all_but(old, host->site);
	site_unref(&old);
	finish(reload, true);
}

/* The steps. */

static void on_rights(void *ctx, int errnum, size_t failed)
{
	struct reload *reload = ctx;
	const struct config *config = reload->site->config;

	if (errnum == 0) {
		commit(reload);
		return;
	}
	bytes_printf(&reload->notes, "%s: owner and mode: %s\n",
		failed < config->listen_count ? config->listen[failed].address.text : "a socket", strerror(errnum));
	reopen_log(config, reload->host->site->config, NULL);
	abandon(reload, NULL);
}

static bool has_given_up_root(const struct host *host)
{
	return host->has_root && host->site->config->user.is_set;
}

/* What may fail at the very end: the log, and the rights of the sockets. */
static void make_ready(struct reload *reload)
{
	struct host *host = reload->host;
	const struct config *from = host->site->config, *to = reload->site->config;
	size_t failed = 0;
	struct err err;

	timer_clear(reload->trial_timer);
	reload->state = RELOAD_RIGHTS;
	if (reopen_log(from, to, &err) < 0) {
		abandon(reload, err.text);
	} else if (host->is_inherited || !socket_rights_differ(from, to)) {
		commit(reload);
	} else if (!has_given_up_root(host)) {
		on_rights(reload, socket_rights_change(from, to, &failed), failed);
	} else if (spawner_change_rights(host->spawner, host->site->generation, reload->generation, on_rights, reload, &err) < 0) {
		reopen_log(to, from, NULL);
		abandon(reload, err.text);
	}
}

static void on_trial(void *ctx, const struct err *why)
{
	struct reload *reload = ctx;

	if (why != NULL)
		abandon(reload, why->text);
	else if (--reload->trials == 0)
		make_ready(reload);
}

/* A full house is no mistake in the file: what max_processes has no room for
 * starts when the old workers have gone. */
static void on_trial_time(void *ctx)
{
	struct reload *reload = ctx;
	struct site *site = reload->site;
	unsigned without_room = 0;

	for (unsigned i = 0; i < site->config->handlers_count; i++) {
		if (has_pool(reload->host->site, site->pools[i]) || !pool_has_no_room(site->pools[i]))
			continue;
		without_room++;
		bytes_printf(&reload->notes, "handler %s: max_processes has no room to try it: taken without\n", site->config->handlers[i].name);
	}
	if (without_room < reload->trials) {
		abandon(reload, "the new workers are not ready in time");
		return;
	}
	forget_trials(reload);
	make_ready(reload);
}

static uint64_t trial_ms(const struct reload *reload)
{
	const struct config *config = reload->site->config;
	uint64_t longest = 0;

	for (unsigned i = 0; i < config->handlers_count; i++) {
		uint64_t start_ms = config->handlers[i].timeout.start_ms;

		if (start_ms == 0)
			start_ms = TRIAL_LONGEST_MS;
		if (start_ms > longest)
			longest = start_ms;
	}
	return longest + TRIAL_MS;
}

static void try_pools(struct reload *reload)
{
	struct site *site = reload->site;

	reload->trial_timer = timer_new(reload->host->loop, on_trial_time, reload);
	if (reload->trial_timer == NULL) {
		abandon(reload, "no memory");
		return;
	}
	timer_set(reload->trial_timer, trial_ms(reload));
	reload->state = RELOAD_TRIAL;
	reload->trials = 1;
	for (unsigned i = 0; i < site->config->handlers_count; i++) {
		if (has_pool(reload->host->site, site->pools[i]))
			continue;
		reload->trials++;
		pool_try(site->pools[i], on_trial, reload);
	}
	on_trial(reload, NULL);
}

static void on_loaded(void *ctx, bool is_fine, uint64_t digest)
{
	struct reload *reload = ctx;
	struct host *host = reload->host;
	struct err err;

	if (!is_fine || digest != reload->config->digest) {
		config_free(&reload->config);
		spawner_forget(host->spawner, reload->generation);
		if (++reload->tries < TRIES)
			defer_call(host->loop, &reload->begin, begin, reload);
		else
			abandon(reload, "the file changes while it is read, or is no configuration for root");
		return;
	}
	reload->site = site_new(host, reload->config, reload->generation, &err);
	reload->config = NULL;
	if (reload->site == NULL || make_pools(reload, &err) < 0 || reload_listeners_open(&reload->listeners, host, reload->site->config, &err) < 0)
		abandon(reload, err.text);
	else
		try_pools(reload);
}

static void note_rights(struct reload *reload)
{
	const struct config *config = reload->host->site->config;

	if (config->user.is_set && access(config->file, R_OK) < 0 && errno == EACCES)
		bytes_printf(&reload->notes, "the host reads it as %s, since it has given up root: chgrp %u and chmod g+r on the file, "
			"and g+x on its folders, let it\n", config->user.user, (unsigned)config->user.gid);
}

static void begin(void *ctx)
{
	struct reload *reload = ctx;
	struct host *host = reload->host;
	struct config_report report;
	struct err err;

	if (host->state != HOST_RUNNING) {
		abandon(reload, "the host is stopping");
		return;
	}
	reload->state = RELOAD_SPAWNERS;
	reload->generation = ++host->generation;
	bytes_clear(&reload->notes);
	config_report_init(&report);
	report.is_for_root = host->has_root;
	reload->config = config_load(host->site->config->file, &report);
	bytes_append(&reload->notes, bytes_data(&report.warnings), report.warnings.len);
	bytes_append(&reload->notes, bytes_data(&report.errors), report.errors.len);
	config_report_fini(&report);
	if (reload->config == NULL) {
		note_rights(reload);
		abandon(reload, NULL);
	} else if (!host->has_root && identity_check_handlers(reload->config, &err) < 0) {
		abandon(reload, err.text);
	} else if (spawner_load(host->spawner, reload->generation, on_loaded, reload, &err) < 0) {
		abandon(reload, err.text);
	}
}

/* For others. */

static struct reload *reload_of(struct host *host)
{
	if (host->reload == NULL) {
		host->reload = calloc(1, sizeof(*host->reload));
		if (host->reload == NULL)
			return NULL;
		host->reload->host = host;
		bytes_init(&host->reload->notes, 1024 * 1024);
		defer_call(host->loop, &host->reload->begin, begin, host->reload);
		notify_reloading(host->notify);
	}
	return host->reload;
}

void reload_request(struct host *host, reload_done_fn *on_done, void *ctx)
{
	struct waiter *waiter = calloc(1, sizeof(*waiter));
	struct reload *reload = waiter == NULL ? NULL : reload_of(host);

	if (reload == NULL) {
		free(waiter);
		log_message(LOG_LEVEL_ERROR, "reload", "no memory to reload");
		return;
	}
	waiter->on_done = on_done;
	waiter->ctx = ctx;
	/* The one that runs may have read the file before it was changed. */
	if (reload->state == RELOAD_ASKED) {
		waiter->next = reload->waiters;
		reload->waiters = waiter;
	} else {
		waiter->next = reload->later;
		reload->later = waiter;
	}
}

static void forget_waiter(struct waiter *first, const void *ctx)
{
	for (struct waiter *waiter = first; waiter != NULL; waiter = waiter->next)
		if (waiter->ctx == ctx)
			waiter->on_done = NULL;
}

void reload_forget(struct host *host, const void *ctx)
{
	if (host->reload == NULL)
		return;
	forget_waiter(host->reload->waiters, ctx);
	forget_waiter(host->reload->later, ctx);
}

static void free_waiters(struct waiter *waiter)
{
	while (waiter != NULL) {
		struct waiter *next = waiter->next;

		free(waiter);
		waiter = next;
	}
}

void reload_stop(struct host *host)
{
	struct reload *reload = host->reload;

	if (reload == NULL)
		return;
	defer_cancel(&reload->begin);
	spawner_cancel(host->spawner);
	abandon(reload, "the host is stopping");
}

void reload_end(struct host *host)
{
	struct reload *reload = host->reload;

	if (reload == NULL)
		return;
	host->reload = NULL;
	defer_cancel(&reload->begin);
	free_waiters(reload->waiters);
	free_waiters(reload->later);
	config_free(&reload->config);
	bytes_fini(&reload->notes);
	free(reload);
}
