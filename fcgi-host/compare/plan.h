/*
 * plan.h - what is to be compared: comparisons of ways of running one function, and the
 * load that all of them get.  Made from the command line (ways.h) or from a suite
 * (suite.h); only read after that.
 */
#ifndef FCGI_HOST_COMPARE_PLAN_H
#define FCGI_HOST_COMPARE_PLAN_H

#include "base/bytes.h"
#include "compare/schedule.h"
#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { PLAN_BLOCKS_MIN = 4, PLAN_BLOCKS_DEFAULT = 40, PLAN_BLOCKS_MAX = 10000, PLAN_CONCURRENCY_MAX = 10000 };

enum via { VIA_NONE, VIA_NGINX, VIA_APACHE, VIA_AS_LOAD };
const char *via_name(enum via via);             /* "nginx" */
int via_from(const char *text, enum via *out);  /* -1: no such word */

struct load_plan {
	enum schedule_kind kind;
	uint64_t requests;              /* of each way, over all blocks; 0: as many as fit into a few seconds */
	size_t blocks;                  /* even; fewer are run where these would be too short */
	size_t concurrency;
	double rate_per_s;
	char *method, *path, *route;    /* route: NULL where the configuration has its own */
	char **headers;                 /* "Name: value", NULL-terminated, or NULL */
	char *body;                     /* NULL: none */
	size_t body_len;
	bool keep;
	enum via via;
	unsigned status;                /* that answers must have */
	char *contains;                 /* that bodies must contain; NULL: anything */
	uint64_t timeout_ms;
};

/* What was published of a way; 0 and NULL: nothing. */
struct published { double requests_per_s, mean_ms, p99_ms, ratio; char *note; };

struct need { char *program, *package; };

struct way_place;

struct way {
	char *name, *title;             /* title may be NULL */
	/* One of: a handler in a private host; an HTTP server; a FastCGI server. */
	int (*write_config)(const struct way *way, const struct way_place *place, FILE *out);  /* NULL: none */
	const void *config_data;        /* for write_config; borrowed */
	unsigned config_number;
	enum process_mode process;
	const struct address *behind;   /* of the server that its handler passes requests to; NULL: none; borrowed */
	char *url, *connect;

	char **server;                  /* argv of a program that listens at url or connect; NULL: it runs already */
	char *server_directory;         /* may be NULL */
	struct pair *server_env;
	size_t server_env_count;

	enum via via;
	uint64_t requests;              /* 0: as the load says */
	char *refusal;                  /* why it cannot run here, known before it is tried; NULL: nothing is known */
	struct published published;
	struct need *needs;
	size_t needs_count;
};

/* Where a private host listens and logs, and what its handlers get beside their own variables. */
struct way_place {
	const char *socket, *log;
	const char *group;              /* of the socket; NULL: ours */
	const struct pair *env;
	size_t env_count;
};

struct comparison {
	char *name;                     /* NULL: there is only one */
	struct way *ways;
	size_t ways_count;
	char *baseline;                 /* the name of a way; NULL: the best that there is, see run.h */
	bool may_differ;                /* the ways' answers */
};

struct plan {
	char *suite, *title, *question, *published_note;       /* of a suite; else NULL */
	char **setup;                   /* argv; NULL: none */
	bool is_strict;                 /* a server given by its address must be there, or nothing is measured */
	struct load_plan load;
	struct comparison *comparisons;
	size_t comparisons_count;
};

/* Each array grows by one, zeroed; NULL without memory. */
struct comparison *plan_add_comparison(struct plan *plan);
struct way *comparison_add_way(struct comparison *comparison);
void plan_fini(struct plan *plan);

/* A path or a name for PATH, as a program that can be run; NULL without one.  Ours to free. */
char *plan_find_program(const char *name);
/* $TMPDIR where that is absolute, else /tmp. */
const char *plan_temporary_folder(void);

/* A double-quoted YAML scalar. */
void plan_put_quoted(FILE *out, const char *text);
void texts_free(char **texts);          /* NULL-terminated; NULL is fine */

#endif
