/*
 * shim_link.h - what a waiting process or a zygote tells the relay, over its
 * control socket.  The layout of messages: handlers/shims/README.md.
 *
 * The other end is the handler's: whatever it sends ends its own link at most.
 */
#ifndef FCGI_HOST_PROCESS_SHIM_LINK_H
#define FCGI_HOST_PROCESS_SHIM_LINK_H

#include "base/bytes.h"
#include "base/loop.h"
#include "base/text.h"

#include <stdbool.h>

enum { SHIM_MESSAGE_MAX_BYTES = 64 * 1024 };

struct shim_link {
	int fd;                         /* -1: closed */
	struct watch *watch;
	struct bytes in;
	bool was_reset;                 /* the other end closed with something of ours unread */
	void (*on_message)(void *ctx, char type, struct slice payload); /* may close the link */
	void (*on_end)(void *ctx);      /* EOF, or nonsense: no message comes any more */
	void *ctx;
};

/* A pair: ours, watched, into `link`; the other for the process, which the
 * caller closes.  0, or -1 with err. */
int shim_link_open(struct shim_link *link, struct loop *loop, int *theirs_out, struct err *err);
void shim_link_close(struct shim_link *link);   /* a closed one is fine */
/* Nothing is expected: what comes all the same is left to shim_link_read_last(). */
void shim_link_pause(struct shim_link *link);
/* What has come but was not looked at yet. */
void shim_link_read_last(struct shim_link *link);
/* Descriptors along with a message of no payload.  0, or -1 with errno: nothing was sent. */
int shim_link_send_fds(struct shim_link *link, char type, const int *fds, unsigned fds_count);

#endif
