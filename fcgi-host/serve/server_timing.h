/*
 * server_timing.h - what a request has waited for, as a field of the answer
 * (W3C Server Timing) that browsers show.
 */
#ifndef FCGI_HOST_SERVE_SERVER_TIMING_H
#define FCGI_HOST_SERVE_SERVER_TIMING_H

struct request;

enum { SERVER_TIMING_BYTES = 160 };

/* "queue;dur=0.021, start;dur=1.300, handler;dur=24.917", in milliseconds until
 * now, as far as it has come.  Returns `out`. */
const char *server_timing(const struct request *request, char out[SERVER_TIMING_BYTES]);

#endif
