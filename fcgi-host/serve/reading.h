/*
 * reading.h - what the host is doing at one moment, for those who write it down:
 * status_json.c and status_metrics.c.
 *
 * A reading is of the moment in which it was begun, and good only until control
 * goes back to the event loop: pools and requests are borrowed.
 */
#ifndef FCGI_HOST_SERVE_READING_H
#define FCGI_HOST_SERVE_READING_H

#include "process/look.h"
#include "process/pool.h"
#include "serve/figures.h"
#include "serve/host.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request;

/* A pool, and its requests that are with a process. */
struct place {
	struct pool_entry *entry;
	struct request **requests;
	size_t requests_count;
	bool is_in_use;                 /* of the configuration in use, not one before */
};

/* More than there are ways of running, `enum process_mode`. */
enum { PROCESS_MODES_MAX = 8 };

struct reading {
	struct host *host;
	struct place *places;           /* in the order of the file, then those not in use */
	size_t places_count;
	struct request **requests;      /* grouped by place */
	uint64_t now_ns;
	unsigned looks;                 /* at processes, so far */
};

/* One process, or one that is being started. */
struct process_reading {
	pid_t pid;                      /* 0: none yet */
	enum worker_state state;
	bool is_zygote;                 /* forks the others, and serves nothing itself */
	uint64_t age_us;
	unsigned requests;              /* answered whole */
	const struct request *request;  /* NULL: idle */
	uint64_t request_age_us;
	bool is_seen;                   /* `look` is of now */
	struct look look;
};

/* What a handler's processes have used, those that have ended too. */
struct usage_reading {
	unsigned alive;
	bool is_known;                  /* false: more run than are looked at */
	uint64_t cpu_us, max_rss_kib;
	uint64_t started, restarts;     /* processes; those in the place of one that had ended */
};

/* All handlers that are run in one way, together.  Percentiles are those of the
 * merged histograms. */
struct way_reading {
	unsigned handlers;
	struct totals totals;
	uint64_t starts[STARTS_COUNT];
	struct ended ended;             /* without the memory, which is below */
	uint64_t cpu_us, cpu_requests;  /* of handlers whose use is known */
	uint64_t max_rss_kib;
	uint32_t rates[RATE_SECONDS];
	struct spans *spans;            /* NULL without requests; ours */
};

/* -1 without memory; end it in any case. */
int reading_begin(struct reading *reading, struct host *host);
void reading_end(struct reading *reading);

uint64_t reading_age_us(const struct reading *reading, uint64_t from_ns);
uint64_t reading_now_s(const struct reading *reading);

/* How many processes do what, and who waits. */
void reading_pool(const struct place *place, struct pool_reading *out);

/* Calls on_process for each process of the place; NULL is fine.  At most some
 * hundred processes are looked at in one reading. */
typedef void reading_process_fn(void *ctx, const struct process_reading *process);
void reading_processes(struct reading *reading, const struct place *place, reading_process_fn *on_process, void *ctx,
	struct usage_reading *out);

/* Does a process of ours serve it?  Of others the use is not known. */
bool reading_is_ours(const struct place *place);

/* Adds a handler's figures to those of its way of running.  -1 without memory. */
int reading_add_to_way(const struct reading *reading, const struct place *place, const struct usage_reading *usage, struct way_reading *way);

#endif
