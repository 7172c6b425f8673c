/*
 * request_private.h - what the parts of a request share: request.c,
 * request_params.c, request_body.c and request_answer.c.  For them only.
 */
#ifndef FCGI_HOST_SERVE_REQUEST_PRIVATE_H
#define FCGI_HOST_SERVE_REQUEST_PRIVATE_H

#include "serve/request.h"

/* The backend has it and its process has not been told to end. */
bool request_is_with_handler(const struct request *request);

/* The client has all that it will get. */
void request_leave_client(struct request *request, enum request_end end);

/* "NAME (123 bytes)": the operator's first question about variables that are
 * too large.  Returns `out`. */
const char *request_describe_largest(const struct vars *vars, char *out, size_t out_size);

#endif
