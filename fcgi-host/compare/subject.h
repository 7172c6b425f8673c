/*
 * subject.h - a way that runs: its private host, web server or program, and the
 * loader that asks it.
 */
#ifndef FCGI_HOST_COMPARE_SUBJECT_H
#define FCGI_HOST_COMPARE_SUBJECT_H

#include "compare/exchange.h"
#include "compare/load.h"
#include "compare/private_host.h"
#include "compare/private_web.h"
#include "compare/result.h"

/* What all subjects share. */
struct stage {
	const struct plan *plan;
	const char *folder;             /* for files and sockets of ours */
	const struct pair *env;         /* from the setup */
	size_t env_count;
	const volatile sig_atomic_t *is_interrupted;
	struct random random;
};

struct subject {
	struct stage *stage;
	const struct way *way;
	struct private_host host;
	struct private_web web;
	struct child server;
	bool has_outsider;              /* who answers is not ours: a server that runs already */
	pid_t outsider;                 /* who listens there; 0: not known */
	char *url, *connect;            /* with {port} and {socket} replaced */
	struct target target;
	struct loader *loader;
	uint64_t asked;                 /* single requests */
	uint64_t settled_asked, settled_requests;       /* what the host had counted when we had asked so many */
	struct bytes expected;          /* the body of every answer, where it is always the same */
};

/* -1 with err: it does not run, and why.  Stop it in any case. */
int subject_start(struct subject *subject, struct stage *stage, const struct way *way, unsigned number, struct err *err);
void subject_stop(struct subject *subject);

/* One request; see exchange_ask(). */
int subject_ask(struct subject *subject, size_t variant, struct exchange *exchange, struct bytes *body, struct err *err);

/* The end of what its host wrote into its log: "" where it has none. */
void subject_last_log_line(const struct subject *subject, char *out, size_t out_size);

/* Requests that do not count, so that it is warm.  -1: interrupted. */
int subject_warm(struct subject *subject, uint64_t requests, double *each_ns_out, struct err *err);

/* One block, and what it used into `result` (NULL: not wanted). */
int subject_run_block(struct subject *subject, uint64_t requests, struct block *block, struct latencies *latencies,
	struct way_result *result, struct err *err);

/* The memory that it holds without requests. */
void subject_read_idle(struct subject *subject, struct way_result *result);

#endif
