#include "process/edition.h"

#include <stdlib.h>

static struct edition *edition_new(struct config *config, uint32_t generation)
{
	struct edition *edition = calloc(1, sizeof(*edition));

	if (edition == NULL)
		return NULL;
	edition->generation = generation;
	edition->config = config;
	edition->programs = programs_new(config);
	if (edition->programs == NULL) {
		free(edition);
		return NULL;
	}
	return edition;
}

struct edition *edition_first(const struct config *config)
{
	return edition_new((struct config *)config, 0);         /* never freed, see edition_forget() */
}

struct edition *edition_load(struct edition **editions, uint32_t generation)
{
	struct config_report report;
	struct config *config;
	struct edition *edition = NULL;

	config_report_init(&report);
	config = config_load((*editions)->config->file, &report);
	config_report_fini(&report);
	if (config != NULL && edition_find(*editions, generation) == NULL)
		edition = edition_new(config, generation);
	if (edition == NULL) {
		config_free(&config);
		return NULL;
	}
	edition->next = *editions;
	*editions = edition;
	return edition;
}

struct edition *edition_find(struct edition *editions, uint32_t generation)
{
	while (editions != NULL && editions->generation != generation)
		editions = editions->next;
	return editions;
}

/* The first stays: it knows the file, and whoever forked us owns it. */
void edition_forget(struct edition **editions, uint32_t generation)
{
	for (struct edition **link = editions; *link != NULL; link = &(*link)->next) {
		struct edition *edition = *link;

		if (edition->generation != generation || generation == 0)
			continue;
		*link = edition->next;
		programs_free(&edition->programs, edition->config->handlers_count);
		config_free(&edition->config);
		free(edition);
		return;
	}
}
