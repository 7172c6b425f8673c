/*
 * edition.h - the configurations that a spawner knows, by the relay's number.
 *
 * Number 0 is the one that the host was started with.  Later ones are read from
 * the same file when the relay asks for it: the relay chooses when, never what.
 */
#ifndef FCGI_HOST_PROCESS_EDITION_H
#define FCGI_HOST_PROCESS_EDITION_H

#include "config/config.h"
#include "process/program.h"

#include <stdint.h>

struct edition {
	uint32_t generation;
	struct config *config;          /* owned, but for number 0 */
	struct program *programs;
	struct edition *next;
};

/* The first, borrowing `config`; NULL without memory. */
struct edition *edition_first(const struct config *config);

/* Reads the file of `editions` again.  NULL when it is no configuration. */
struct edition *edition_load(struct edition **editions, uint32_t generation);
struct edition *edition_find(struct edition *editions, uint32_t generation);
void edition_forget(struct edition **editions, uint32_t generation);

#endif
