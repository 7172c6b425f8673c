/*
 * cgi_request.h - what a web server's variables say, in one form whoever sent
 * them; and the variables that the handler gets (RFC 3875, section 4.1).
 */
#ifndef FCGI_HOST_WIRE_CGI_REQUEST_H
#define FCGI_HOST_WIRE_CGI_REQUEST_H

#include "base/err.h"
#include "base/text.h"
#include "wire/vars.h"

#include <stdbool.h>
#include <stdint.h>

struct cgi_request {
	const char *method;     /* "GET" when none was sent; borrowed from the variables */
	char *path;             /* decoded, begins with '/', as sent ("//", "." and ".." too), never climbs; ours */
	const char *query;      /* "" when there is none; borrowed, or points into REQUEST_URI */
	char *host;             /* HTTP_HOST else SERVER_NAME, lower case, without port and final dot; "" when unknown; ours */
	bool has_length;        /* CONTENT_LENGTH was sent and is a number (0 too) */
	uint64_t content_length;
};

/* Reads path, query, host and length from `front` (DESIGN: "Route path").
 * 0; or -1 with err, where the answer is 400: path not decodable, NUL, climbs
 * above its top; CONTENT_LENGTH no number. */
int cgi_request_read(const struct vars *front, struct cgi_request *out, struct err *err);
void cgi_request_fini(struct cgi_request *request);     /* after a -1 too */

/* "example.org", "example.org:80", "[::1]:80" cut in two; port_out is empty when
 * there is none.  Borrowed from `text`, which may be NULL. */
struct slice cgi_host_split(const char *text, struct slice *port_out);

/* The path of a local "Location: /path?query" or of a REQUEST_URI (absolute form
 * too), up to '?' or '#', decoded once; "/" when there is none.  Ours to free.
 * -1 as above. */
int cgi_path_decode(struct slice raw, char **path_out, struct err *err);

/* Does a '..' segment lead above the top?  cgi_request_read() has asked this of
 * the whole path; ask it of PATH_INFO too once a route has split the path, since
 * "/a/../b" does not climb and its PATH_INFO below "/a" does (400). */
bool cgi_path_climbs(const char *path);

/* One operator's variable, `env:` in the configuration. */
struct cgi_pair { const char *name; const char *value; };

struct cgi_environment {
	const char *method, *query;
	const char *script_name;        /* "" or begins with '/' */
	const char *path_info;          /* "" or begins with '/' */
	const char *script_filename;    /* the file really run; NULL leaves the front's (connect:) */
	const char *request_id;
	bool has_body;                  /* false leaves CONTENT_LENGTH unset */
	bool has_length;                /* with has_body: set CONTENT_LENGTH, unless it is 0 (mod_fcgid sends 0 for none) */
	uint64_t content_length;
	bool is_process;                /* becomes a process's environment: env_name_is_safe() rules */
	bool pass_authorization;
	const struct cgi_pair *params;  /* PARAM_… from the route, names complete */
	size_t params_count;
	const struct cgi_pair *env;     /* the operator's: wins, never filtered */
	size_t env_count;
};

/*
 * Builds the handler's variables from the front's, the same whichever web server
 * is in front: the standard ones in one form, HTTP_… but for connection-level
 * fields, and what the operator added there.  Variables that only one web server
 * has of its own accord (DOCUMENT_URI, CONTEXT_PREFIX, UNIQUE_ID, REDIRECT_…) and
 * names that are no variable names are left out.  `out` should be empty.
 * 0, or -1 when it is full.
 */
int cgi_environment_build(const struct vars *front, const struct cgi_environment *how, struct vars *out);

#endif
