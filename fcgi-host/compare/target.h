/*
 * target.h - what is asked: an address, how to speak to it, and the requests as the
 * bytes that go over the wire, made once.
 */
#ifndef FCGI_HOST_COMPARE_TARGET_H
#define FCGI_HOST_COMPARE_TARGET_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* "{1..1000}" in a path stands for a number; more than this many are not made. */
enum { TARGET_VARIANTS_MAX = 4096 };

struct request_spec {
	const char *method;
	const char *path;               /* with query */
	const char *const *headers;     /* "Name: value", NULL-terminated; NULL for none */
	const char *body;               /* NULL for none */
	size_t body_len;
	bool keep;                      /* connections, from request to request */
};

struct target {
	char *name;                     /* for messages */
	bool is_http, keep, is_head_request;
	struct sockaddr_storage address;
	socklen_t address_len;
	struct bytes *requests;         /* one for each number, the lowest first */
	size_t requests_count;
};

/* The address of a FastCGI server, "unix:/path" or "127.0.0.1:9000".  0, or -1 with err;
 * target_fini() after both. */
int target_init_fastcgi(struct target *target, const char *address, const struct request_spec *spec, struct err *err);
/* "http://host:port/path?query"; without a path the spec's is taken. */
int target_init_http(struct target *target, const char *url, const struct request_spec *spec, struct err *err);
void target_fini(struct target *target);

/* A connection that does not block; it may still be under way.  -1 with errno, EAGAIN when
 * the line at a unix socket is full. */
int target_connect(const struct target *target);

#endif
