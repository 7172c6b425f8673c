/*
 * status.h - what the host is doing, as JSON.
 */
#ifndef FCGI_HOST_SERVE_STATUS_H
#define FCGI_HOST_SERVE_STATUS_H

#include "base/bytes.h"

struct host;

/* Appends one JSON object and a newline; see doc/fcgi-host.8 for its members.
 * In every reading idle + busy + starting + stopping = total. */
void status_json(struct host *host, struct bytes *out);

#endif
