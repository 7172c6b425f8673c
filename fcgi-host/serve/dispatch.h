/*
 * dispatch.h - from a request's path to a handler and a place in its line.
 */
#ifndef FCGI_HOST_SERVE_DISPATCH_H
#define FCGI_HOST_SERVE_DISPATCH_H

#include <stdbool.h>

struct request;

/* Each either puts the request in line or answers it. */
void dispatch_first(struct request *request);           /* all variables are there */
void dispatch_spooled(struct request *request);         /* and now all of the body */
void dispatch_again(struct request *request);           /* after a retry */
void dispatch_redirect(struct request *request);        /* to the local path of its answer */

/* Does the local redirect lead to one of our routes? */
bool dispatch_can_redirect(const struct request *request);

void dispatch_fini(struct request *request);            /* what it kept in the request */

#endif
