/*
 * spawn_link.h - the socket between the relay and one spawner process, seen
 * from the relay.  Never blocks: what the spawner does not take yet waits here.
 */
#ifndef FCGI_HOST_PROCESS_SPAWN_LINK_H
#define FCGI_HOST_PROCESS_SPAWN_LINK_H

#include "base/loop.h"
#include "process/spawn_proto.h"

#include <stdbool.h>
#include <sys/types.h>

struct spawn_link;
struct waiting;         /* a message not sent yet, see spawn_link.c */

/* Callbacks come from the loop, on_done last.  Only that is called after
 * spawn_link_close(). */
struct spawn_link_owner {
	void (*on_report)(void *ctx, const struct spawn_report *report);
	void (*on_unsent)(void *ctx, uint64_t id, int errnum);  /* a START that waited cannot be sent */
	void (*on_lost)(void *ctx, struct spawn_link *link);    /* once; the link is closed then */
	void (*on_done)(void *ctx);     /* no more for now; the link may be freed here */
	void *ctx;
};

struct spawn_link {
	pid_t pid;
	int fd;                         /* -1 when closed */
	unsigned starting;              /* STARTs asked and not answered */
	struct watch *watch;
	const struct spawn_link_owner *owner;
	struct waiting *first, **last;
	size_t in_len;                  /* bytes of a report that is not whole */
	char in[16 * sizeof(struct spawn_report)];
};

void spawn_link_init(struct spawn_link *link, int fd, pid_t pid);
int spawn_link_attach(struct spawn_link *link, struct loop *loop, const struct spawn_link_owner *owner, struct err *err);
void spawn_link_close(struct spawn_link *link);         /* a closed one is fine */

/* Tells the spawner to go and waits until it has, or timeout_ms. */
void spawn_link_end(struct spawn_link *link, int timeout_ms);

struct spawn_message {
	struct spawn_ask ask;
	const char *script;             /* ask.script_len bytes */
	const void *environ;            /* ask.environ_len bytes */
	int fds[SPAWN_FDS];             /* those that ask.fds tells of, first ones first */
};

/* 0: sent, or waiting to be (all is copied, descriptors too).  Else an errno. */
int spawn_link_send(struct spawn_link *link, const struct spawn_message *message);

#endif
