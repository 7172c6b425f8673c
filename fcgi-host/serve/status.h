/*
 * status.h - what the host is doing, in three forms of one reading.
 *
 * Each appends to `out`; -1 where that is full or there is no memory, and then
 * what it holds is no whole.
 */
#ifndef FCGI_HOST_SERVE_STATUS_H
#define FCGI_HOST_SERVE_STATUS_H

#include "base/bytes.h"

struct host;

/* One JSON object and a newline; see doc/fcgi-host.8 for its members.  In every
 * reading idle + busy + starting + stopping = total. */
int status_json(struct host *host, struct bytes *out);

/* OpenMetrics 1.0, text format: durations as histograms in seconds. */
int status_openmetrics(struct host *host, struct bytes *out);

/* The page that shows the JSON, and the headers that go with it: its nonce lets
 * its own script and style run and nothing else. */
enum { STATUS_NONCE_BYTES = 33 };
int status_page(const char nonce[STATUS_NONCE_BYTES], struct bytes *out);

#endif
