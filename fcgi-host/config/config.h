/*
 * config.h - the configuration as the rest of the program reads it.
 *
 * Made by config_load() from the YAML file by way of the one table of keys
 * (keys.c).  Immutable after that; everything in it is owned by it, and a
 * struct config * is all that anyone frees.
 */
#ifndef FCGI_HOST_CONFIG_CONFIG_H
#define FCGI_HOST_CONFIG_CONFIG_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>

enum protocol { PROTOCOL_CGI, PROTOCOL_FASTCGI, PROTOCOL_STDIO };
enum process_mode { PROCESS_PER_REQUEST, PROCESS_PARKED, PROCESS_ZYGOTE, PROCESS_PERSISTENT };
enum chunked_mode { CHUNKED_STREAM, CHUNKED_SPOOL, CHUNKED_REJECT };
enum abort_mode { ABORT_KILL, ABORT_FINISH };
enum builtin { BUILTIN_NONE, BUILTIN_STATUS };

/* An address prefix, for `allow:`. */
struct prefix {
	int family;                     /* AF_INET or AF_INET6 */
	uint8_t address[16];
	unsigned bits;
};

struct prefixes {
	struct prefix *list;
	size_t count;
};

/* A place to listen on or to connect to. */
struct address {
	char *text;                     /* as configured, "unix:/run/x.sock", "127.0.0.1:9000" */
	struct sockaddr_storage sockaddr;
	socklen_t sockaddr_len;
};

struct listen_config {
	struct address address;
	unsigned mode;                  /* of a unix socket, 0660 by default; 0 for TCP */
	uid_t owner;                    /* (uid_t)-1: leave as it is */
	gid_t group;                    /* (gid_t)-1: leave as it is */
	unsigned backlog;
	struct prefixes allow;          /* TCP; empty means everyone on loopback */
};

/* Who a process runs as.  Resolved at load; groups are the user's own. */
struct identity {
	bool is_set;
	char *user;                     /* name, for messages */
	char *group;                    /* name; NULL: the user's own */
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	size_t groups_count;
};

struct pair { char *name; char *value; };

struct handler_config {
	unsigned number;                /* index in config->handlers: how the spawner is asked */
	char *name;
	enum protocol protocol;
	enum process_mode process;

	/* Exactly one of these three. */
	char **command;                 /* argv, NULL-terminated; argv[0] is absolute */
	char *scripts;                  /* absolute path of a folder */
	struct address connect;         /* connect.text is NULL when unused */

	char *directory;                /* NULL: where the program is */
	struct identity identity;
	struct pair *env;               /* defaults.env merged in */
	size_t env_count;

	struct {
		unsigned min, max, max_requests;        /* max_requests: 0 = no limit */
		uint64_t idle_timeout_ms;               /* 0 = never ended for being idle */
		unsigned spare;                         /* kept ready: while others work, or, before their request, always */
		unsigned reserved;                      /* of max_processes, for this handler alone */
		unsigned jitter_percent;                /* of max_requests and max_age */
		uint64_t max_age_ms;                    /* 0 = none */
	} workers;
	struct { unsigned max; uint64_t timeout_ms; } queue;
	struct { uint64_t start_ms, response_ms, idle_ms, total_ms, kill_ms; } timeout;  /* 0 = none */
	struct { uint64_t max_bytes; enum chunked_mode chunked; } body;
	struct { uint64_t max_bytes; } header;
	char *content_type;             /* of a stdio function's answer */
	uint64_t hold_bytes;            /* of it, kept back until the exit status is known */
	bool server_timing;             /* the answer says what it waited for */
	bool pass_authorization;
	enum abort_mode on_abort;
	struct { uint64_t memory_bytes, cpu_ms; unsigned files, processes; } limits;    /* 0 = none */
	char **preload;                 /* NULL-terminated: "auto", "none", or modules */
	/* Where it stands in the file, for messages. */
	unsigned line, column;
};

struct route_config {
	char *path;                     /* "/hello", "/users/{id}", or a prefix that ends with a star */
	char *host;                     /* lower case, or NULL */
	char **methods;                 /* NULL-terminated, or NULL for all */
	unsigned handler;               /* index in config->handlers */
	enum builtin builtin;           /* other than NONE: there is no handler */
	struct prefixes allow;          /* with builtin; empty means private addresses */
	unsigned line, column;
};

struct config {
	char *file;                     /* absolute path of the YAML file */
	uint64_t digest;                /* of its text: equal text, equal digest */
	struct listen_config *listen;
	size_t listen_count;
	unsigned spawners;              /* 0 = auto */
	unsigned max_processes;         /* of all handlers together; 0 = no limit */
	struct identity user;           /* is_set only for root: others cannot become it */
	uint64_t params_max_bytes;
	struct { char *file; enum log_format format; enum log_level level; uint64_t slow_ms; /* 0 = none */ } log;
	struct handler_config *handlers;
	size_t handlers_count;
	struct route_config *routes;
	size_t routes_count;
};

/* Every complaint about a file: errors (nothing may start) and warnings. */
struct config_report {
	bool is_for_root;               /* a host that is root, or has given that up, is to serve it; to be set between
	                                 * init, which sets whether we are root, and load */
	struct bytes errors;            /* lines "FILE:LINE:COLUMN: where: what" */
	struct bytes warnings;          /* lines "FILE:LINE:COLUMN: warning: where: what" */
	unsigned errors_count, warnings_count;
};
void config_report_init(struct config_report *report);
void config_report_fini(struct config_report *report);

/* The file in use when no -c is given. */
const char *config_default_file(void);

/* NULL when there is at least one error; the report then says all of them.
 * Warnings are reported either way. */
struct config *config_load(const char *file, struct config_report *report);
void config_free(struct config **config);

/* The whole configuration as YAML with every default written out, in a form
 * that config_load() takes again and that prints the same. */
void config_print(const struct config *config, FILE *out);

/* The reference manual of all keys as plain text, from the one table. */
void config_reference(FILE *out);

/* The words of the file for a value, NULL for none. */
const char *config_protocol_name(enum protocol protocol);
const char *config_process_name(enum process_mode process);
const char *config_builtin_name(enum builtin builtin);

/* Is a process of this handler started before its request comes? */
bool config_is_waiting(const struct handler_config *handler);
/* Are its modules to be learnt from its requests? */
bool config_learns_preload(const struct handler_config *handler);

/* Are these two handlers, of one configuration or two, alike in every key? */
bool config_handler_is_same(const struct config *a, unsigned a_number, const struct config *b, unsigned b_number);

/* Parses "unix:/path", "127.0.0.1:9000", "[::1]:9000". */
int address_parse(const char *text, struct address *out, struct err *err);
void address_fini(struct address *address);
bool address_is_loopback(const struct address *address);        /* unix sockets too */
bool prefix_contains(const struct prefix *prefix, const struct sockaddr *peer);

#endif
