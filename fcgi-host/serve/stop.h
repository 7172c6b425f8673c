/*
 * stop.h - how the host ends: nobody new, an answer for whoever is there, the
 * end of every process, within the longest timeout.kill.
 */
#ifndef FCGI_HOST_SERVE_STOP_H
#define FCGI_HOST_SERVE_STOP_H

#include "serve/host.h"

/* TERM.  host_check_stop() ends the loop when nothing is left. */
void stop_drain(struct host *host);
/* The second TERM: everything is killed. */
void stop_now(struct host *host);
/* Of host->stop_timer, which stop_drain() sets. */
void stop_on_time(void *ctx);

void stop_close_listeners(struct host *host);

#endif
