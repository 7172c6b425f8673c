/*
 * notify.h - tells systemd, or whoever set NOTIFY_SOCKET, what the host is doing:
 * the datagrams of sd_notify(3), sent by the relay, which is the unit's main
 * process.
 *
 * Without NOTIFY_SOCKET there is nothing to tell: every function takes NULL and
 * does nothing.  A message that cannot be sent is lost; the host goes on.
 */
#ifndef FCGI_HOST_SERVE_NOTIFY_H
#define FCGI_HOST_SERVE_NOTIFY_H

#include "base/loop.h"

#include <stdint.h>

struct notify;          /* opaque, see notify.c */

/* Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment.
 * To be called while the process may still reach the socket.  NULL when nobody
 * wants to know, or with a line in the log. */
struct notify *notify_open(struct loop *loop);

/* Serving, by the configuration that was read last: at the start, and at the end
 * of every reload, good or bad.  From the first time on the watchdog is told
 * twice in its time that the loop still turns; without one, no timer runs. */
void notify_ready(struct notify *notify);

void notify_reloading(struct notify *notify);   /* until notify_ready() */

/* No new requests; the end may take up to grace_ms. */
void notify_stopping(struct notify *notify, uint64_t grace_ms);

void notify_free(struct notify **notify);       /* NULL inside is fine */

#endif
