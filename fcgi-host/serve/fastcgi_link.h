/*
 * fastcgi_link.h - a connection to a persistent worker of ours, or to a server
 * that somebody else runs (`connect:`).  Knows no FastCGI and no request.
 *
 * It belongs to whoever opened or took it, or, kept between two requests, to
 * the idle worker: the worker closes it before it stops, and it closes itself
 * when the worker closes its end.
 */
#ifndef FCGI_HOST_SERVE_FASTCGI_LINK_H
#define FCGI_HOST_SERVE_FASTCGI_LINK_H

#include "base/err.h"
#include "base/loop.h"
#include "config/config.h"
#include "process/worker.h"

#include <stdbool.h>
#include <stddef.h>

struct fastcgi_link {
	int fd;
	struct watch *watch;            /* for its owner to set; nothing is watched at first */
	struct worker *worker;          /* NULL with connect: */
	watch_fn *on_event;             /* the owner's; set both */
	void *owner;                    /* NULL while it is kept */
	bool is_connecting;             /* until fastcgi_link_connected() */
	bool has_leftover;              /* kept though the program had not read the end of an empty body */
};

/* To `worker`, or with NULL to `address`.  NULL with err; is_full: the other
 * side's backlog is full. */
struct fastcgi_link *fastcgi_link_open(struct loop *loop, struct worker *worker, const struct address *address,
	bool *is_full_out, struct err *err);
void fastcgi_link_close(struct fastcgi_link **link);

/* When it was connecting and has an event: 0, or why there is no connection. */
int fastcgi_link_connected(struct fastcgi_link *link);

/* The kept one, if there is one that its worker has not closed meanwhile. */
struct fastcgi_link *fastcgi_link_take(struct worker *worker);
/* Leaves it with its worker. */
void fastcgi_link_keep(struct fastcgi_link **link);

/* Everything the worker was sent has been read by it. */
bool fastcgi_link_is_all_taken(const struct fastcgi_link *link);
/* What can be read. */
size_t fastcgi_link_unread_bytes(const struct fastcgi_link *link);

#endif
