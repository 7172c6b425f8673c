/*
 * suite_private.h - what the files that read a suite share; for them alone.
 */
#ifndef FCGI_HOST_COMPARE_SUITE_PRIVATE_H
#define FCGI_HOST_COMPARE_SUITE_PRIVATE_H

#include "compare/suite.h"
#include "compare/suite_keys.h"

/* A handler of a way, and what its private host's configuration needs beside it. */
struct suite_handler {
	struct handler_config config;
	const struct config *top;       /* every key at its default */
	const struct load_plan *load;
	struct suite_handler *next;
};

struct suite {
	struct config *top;
	struct suite_handler *handlers;
};

/* The reader of a suite: a site's reader is its first member. */
struct suite_reader {
	struct reader reader;
	struct suite *suite;
	struct plan *plan;
};

extern const struct key_kind kind_suite_load;           /* [struct load_plan] */
extern const struct key_kind kind_suite_groups;         /* [struct plan] */
extern const struct key_kind kind_suite_handler;        /* [struct way] */

extern const struct word suite_via_words[];

#endif
