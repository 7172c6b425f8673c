/*
 * cgi_start.h - how a request gets a process of its own: one is started for it, or
 * one that has waited takes it.  For backend_cgi.c only.
 *
 * cgi_choose_process(), cgi_open_pipes(), and when those are watched, cgi_start().
 */
#ifndef FCGI_HOST_SERVE_CGI_START_H
#define FCGI_HOST_SERVE_CGI_START_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/loop.h"
#include "process/spare.h"

struct request;

struct cgi {
	struct request *request;
	struct process started;                 /* for this request */
	struct spare *spare;                    /* that waited for it, or NULL */
	struct process *process;                /* the one of the two */
	uint64_t taken_bytes;                   /* of the request's body, by its stdin */
	int in_fd, out_fd, err_fd;              /* our ends; -1 when closed */
	struct watch *in_watch, *out_watch, *err_watch;
	struct timer *exit_timer;
	struct defer drain;
	bool is_gone;                           /* the process, and those of its group that had to go */
	size_t left_bytes;                      /* of output in the pipe when it went */
	bool has_ended_output;                  /* told to the request */
};

/* What the process is to have: "NAME=value\0"…  `out` needs bytes_fini() in any case. */
int cgi_make_environ(const struct request *request, struct bytes *out, struct err *err);

/* Sets `process`, and what the request says of it; `spare`, when it cannot take this request, is let go. */
void cgi_choose_process(struct cgi *cgi, const struct bytes *environment);

/* Opens our ends.  The process's, which the caller closes, are -1 where it has
 * them already. */
int cgi_open_pipes(struct cgi *cgi, int child_fds[3], struct err *err);

/* -1: nothing has seen the request. */
int cgi_start(struct cgi *cgi, const struct bytes *environment, const int child_fds[3], struct err *err);

#endif
