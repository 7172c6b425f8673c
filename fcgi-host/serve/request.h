/*
 * request.h - one request, from its first variable to its line in the log.
 */
#ifndef FCGI_HOST_SERVE_REQUEST_H
#define FCGI_HOST_SERVE_REQUEST_H

#include "base/bytes.h"
#include "base/lines.h"
#include "base/loop.h"
#include "process/pool.h"
#include "serve/answer.h"
#include "serve/backend.h"
#include "serve/body.h"
#include "serve/figures.h"
#include "serve/host.h"
#include "serve/site.h"
#include "wire/cgi_request.h"
#include "wire/vars.h"

#include <stdbool.h>
#include <stdint.h>

enum request_state {
	REQUEST_PARAMS,         /* variables are coming in */
	REQUEST_SPOOLING,       /* body.chunked: spool waits for the whole body */
	REQUEST_WAITING,        /* in line for a process */
	REQUEST_STARTING,       /* the process has been asked for */
	REQUEST_RUNNING,        /* the handler has it */
	REQUEST_ENDING,         /* its process has been told to end */
	REQUEST_OVER,           /* the backend has nothing left of it; its answer may still be on the way */
};

struct request {
	struct host *host;
	struct client *client;          /* NULL once the answer is over or the client gone */
	enum request_state state;
	uint16_t fcgi_id;
	bool keep_connection;

	struct bytes params;            /* PARAMS as they come */
	bool is_params_too_large;
	struct vars *front;             /* what the web server sent */
	struct cgi_request cgi;         /* the same, in one form */
	const char *method;             /* of this hop: GET after a local redirect */
	const char *query;
	char *path;                     /* of this hop; ours */
	unsigned hops;                  /* local redirects so far */
	char *own_query;                /* of a redirect; ours */
	bool is_redirecting;            /* goes on at answer.header.location once the process is gone */
	char *route_path;               /* of the first hop's route, NULL without one; ours */
	char id[40];                    /* REQUEST_ID */

	struct site *site;              /* whose route it is; counted */
	struct pool *pool;              /* of this hop; held */
	struct site *pool_site;         /* whose handler it is; counted */
	struct figures *figures;        /* the pool's, counted: it may outlive that */
	const struct handler_config *handler;   /* NULL without a route */
	struct route_match match;
	char *script_name, *path_info;  /* of this hop; ours */
	char *script;                   /* with scripts: the path below the folder; ours */
	char *script_filename;          /* what is run; ours, or NULL */

	struct body body;
	bool has_body;
	bool is_body_cut;               /* more body than CONTENT_LENGTH: said once */
	bool is_body_unwanted;          /* the handler takes no more of it */
	struct answer answer;

	struct pool_waiter waiter;
	const struct backend *backend;  /* NULL until start() */
	void *backend_data;             /* the backend's */
	bool was_retried;
	bool has_spare;                 /* of the pool, whose answer has not ended */
	enum request_start start;
	struct lines stderr_lines;

	struct timer *timer;            /* the next limit */
	bool is_said_slow;              /* log.slow has passed */
	uint64_t progress_ns;           /* the last byte that moved, either way */
	struct defer over;

	/* For the log. */
	uint64_t begun_ns, queued_ns, granted_ns, started_ns, body_end_ns, first_byte_ns, answered_ns, ending_ns;
	uint64_t output_end_ns, exited_ns;      /* of a per-request process: its stdout was closed; it was gone */
	pid_t pid;
	bool is_lost;                   /* the output ended in a death */
	bool has_exit;                  /* wait_status and usage are known */
	int wait_status;
	struct process_usage usage;     /* for the request alone, where the process waited for it */
	struct process_usage start_usage;       /* before; where it waited */
	bool has_usage;
	unsigned status;                /* as the client sees it; 499: it left before */
	enum request_end end;
	char reason[512];               /* "" when nothing went wrong */
	struct request *next, *prev;    /* host->requests */
};

struct request *request_new(struct client *client, uint16_t fcgi_id, bool keep_connection);

/* From the client, as records come. */
void request_params(struct request *request, struct slice data);
void request_params_end(struct request *request);
void request_stdin(struct request *request, struct slice data);
void request_stdin_end(struct request *request);
void request_abort(struct request *request);            /* ABORT_REQUEST */
void request_on_client_gone(struct request *request);   /* the connection is lost */
size_t request_stdin_room(const struct request *request);
void request_on_client_room(struct request *request);   /* some of the answer was written */

/* From the backend. */
void request_on_started(struct request *request, pid_t pid, uint64_t started_ns);
void request_on_start_failed(struct request *request, enum spawn_step step, int errnum);
void request_on_body_taken(struct request *request);    /* room in the body */
void request_on_body_refused(struct request *request);  /* the handler has closed its stdin */
void request_on_output(struct request *request);        /* bytes went into the answer */
void request_on_output_end(struct request *request, bool is_lost);      /* none will follow; lost: it died */
void request_on_exit(struct request *request, const struct process *process);
void request_on_over(struct request *request);          /* it has handed back all that it borrowed */
void request_retry(struct request *request);            /* the same, but in line once more */
void request_stderr(struct request *request, const void *data, size_t len);

/* Ends the request with an answer of our own, or, when something of an answer
 * is out, with a broken transfer.  `extra` is a header field with CRLF, or NULL.
 * The process, if there is one, is ended. */
void request_fail(struct request *request, unsigned status, const char *extra, const char *reason_format, ...)
	__attribute__((format(printf, 4, 5)));

/* The same with 503, for a backend whose start() could not do its part: nothing
 * is borrowed any more. */
void request_fail_to_start(struct request *request, const struct err *why);
void request_fail_to_connect(struct request *request, const struct err *why);   /* with 502 */

/* The reason for the log; the first one stays. */
void request_reason(struct request *request, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The program's variables: for execve (is_process) or as FastCGI params.  NULL
 * without memory or when they pass params.max. */
struct vars *request_variables(const struct request *request, bool is_process);

/* Its one line in the log, and its part in the figures of its handler:
 * access_log.c. */
void request_log(const struct request *request);

/* It runs for longer than log.slow: where it is now.  In access_log.c too. */
void request_log_slow(const struct request *request);

/* 502: the header is bad, however the process ends. */
void request_fail_header(struct request *request);

/* The limits: limits.c.  Moves the timer to the next one. */
void request_set_timer(struct request *request);
void request_on_timer(void *ctx);

void request_kill(struct request *request, int signal); /* the host ends */
void request_free(struct request **request);

#endif
