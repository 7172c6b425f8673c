#include "serve/site.h"

#include "serve/host.h"

#include <stdlib.h>

struct site *site_new(struct host *host, struct config *config, uint32_t generation, struct err *err)
{
	struct site *site = calloc(1, sizeof(*site));

	if (site == NULL) {
		config_free(&config);
		err_set(err, "no memory for a configuration");
		return NULL;
	}
	site->refs = 1;
	site->host = host;
	site->config = config;
	site->generation = generation;
	site->routes = route_table_new(config, err);
	site->notices = calloc(config->routes_count + 1, 1);
	site->pools = calloc(config->handlers_count + 1, sizeof(struct pool *));
	if (site->routes == NULL || site->notices == NULL || site->pools == NULL) {
		if (site->routes != NULL)
			err_set(err, "no memory for a configuration");
		site_unref(&site);
	}
	return site;
}

int site_make_pool(struct site *site, unsigned number, struct err *err)
{
	struct host *host = site->host;
	struct pool *pool = pool_new(&site->config->handlers[number], site->generation, &host->budget, host->loop, host->spawner, host->folder, err);

	if (pool == NULL)
		return -1;
	if (host_add_pool(host, pool, site_ref(site)) < 0)
		return err_set(err, "no memory for a pool");
	site->pools[number] = pool;
	return 0;
}

struct site *site_ref(struct site *site)
{
	site->refs++;
	return site;
}

void site_unref(struct site **site_ptr)
{
	struct site *site = *site_ptr;

	*site_ptr = NULL;
	if (site == NULL || --site->refs > 0)
		return;
	spawner_forget(site->host->spawner, site->generation);
	route_table_free(&site->routes);
	free(site->notices);
	free(site->pools);
	config_free(&site->config);
	free(site);
}

bool site_notice(struct site *site, const struct route_config *route, enum route_notice notice)
{
	uint8_t *said = &site->notices[route - site->config->routes];

	if (*said & notice)
		return false;
	*said |= (uint8_t)notice;
	return true;
}
