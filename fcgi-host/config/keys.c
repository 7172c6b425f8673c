/*
 * keys.c - the one table of keys.
 */
#include "config/keys.h"

#include <string.h>

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define SECOND UINT64_C(1000)
#define HOUR (3600 * SECOND)
#define WEEK (168 * HOUR)

#define TOP(field) .scope = SCOPE_TOP, .offset = offsetof(struct config, field)
#define LISTEN(field) .scope = SCOPE_LISTEN, .offset = offsetof(struct listen_config, field)
#define HANDLER(field) .scope = SCOPE_HANDLER, .offset = offsetof(struct handler_config, field)
#define ROUTE(field) .scope = SCOPE_ROUTE, .offset = offsetof(struct route_config, field)

static const struct word auto_words[] = { { "auto", 0 }, { NULL, 0 } };
static const struct word log_file_words[] = { { "stderr", 0 }, { "syslog", 0 }, { NULL, 0 } };
static const struct word log_format_words[] = { { "text", LOG_FORMAT_TEXT }, { "json", LOG_FORMAT_JSON }, { NULL, 0 } };
static const struct word log_level_words[] = { { "error", LOG_LEVEL_ERROR }, { "warning", LOG_LEVEL_WARNING },
	{ "info", LOG_LEVEL_INFO }, { "debug", LOG_LEVEL_DEBUG }, { NULL, 0 } };
static const struct word protocol_words[] = { { "cgi", PROTOCOL_CGI }, { "fastcgi", PROTOCOL_FASTCGI },
	{ "scgi", NOT_YET }, { "http", NOT_YET }, { "stdio", PROTOCOL_STDIO }, { "actionloop", NOT_YET }, { "lambda", NOT_YET },
	{ NULL, 0 } };
static const struct word process_words[] = { { "per-request", PROCESS_PER_REQUEST }, { "parked", PROCESS_PARKED },
	{ "zygote", PROCESS_ZYGOTE }, { "persistent", PROCESS_PERSISTENT }, { NULL, 0 } };
static const struct word chunked_words[] = { { "stream", CHUNKED_STREAM }, { "spool", CHUNKED_SPOOL },
	{ "reject", CHUNKED_REJECT }, { NULL, 0 } };
static const struct word abort_words[] = { { "kill", ABORT_KILL }, { "finish", ABORT_FINISH }, { NULL, 0 } };
static const struct word builtin_words[] = { { "status", BUILTIN_STATUS }, { NULL, 0 } };

/* In the order in which they are read, printed and described: handlers after
 * what they inherit, routes after the handlers that they name. */
const struct key keys[] = {
	{ TOP(listen), .name = "listen", .kind = &kind_listeners,
		.fallback = "unix:" RUNSTATEDIR "/fcgi-host/fcgi-host.sock",
		.help = "where the web server connects to: one address, one map with 'address', or a list of these" },
	{ TOP(spawners), .name = "spawners", .kind = &kind_count, .min = 1, .max = 64, .words = auto_words, .fallback = "auto",
		.help = "how many processes may be starting at once; auto is what was measured to be best" },
	{ TOP(max_processes), .name = "max_processes", .kind = &kind_count, .max = 1000000, .fallback = "0",
		.help = "processes of all handlers together; 0 = no limit" },
	{ TOP(user), .name = "user", .kind = &kind_user,
		.fallback_note = "none: everything stays root, with a warning",
		.help = "when started as root: who the relay runs as, and handlers that name no user" },
	{ TOP(user), .name = "group", .kind = &kind_user_group, .fallback_note = "the user's own",
		.help = "the group that goes with 'user'" },
	{ TOP(params_max_bytes), .name = "params", .kind = &kind_group, .help = "the variables of a request" },
	{ TOP(params_max_bytes), .name = "params.max", .kind = &kind_size, .min = 64 * KIB, .max = 16 * MIB,
		.fallback = "256KiB", .help = "all variables of a request together; over it the answer is 431" },
	{ TOP(log), .name = "log", .kind = &kind_group, .help = "where and how to log" },
	{ TOP(log.file), .name = "log.file", .kind = &kind_path, .words = log_file_words, .fallback = "stderr",
		.help = "stderr, syslog, or the path of a file" },
	{ TOP(log.format), .name = "log.format", .kind = &kind_word, .words = log_format_words, .fallback = "text",
		.help = "text is name=value, json is one object a line" },
	{ TOP(log.level), .name = "log.level", .kind = &kind_word, .words = log_level_words, .fallback = "info",
		.help = "the least important lines that are written" },
	{ TOP(log.slow_ms), .name = "log.slow", .kind = &kind_time, .max = WEEK, .fallback = "0s",
		.help = "a request that takes longer is logged while it still runs, with the stage it is in; 0 = none" },
	{ TOP(handlers), .name = "defaults", .kind = &kind_defaults,
		.help = "any key of a handler, for all of them; a handler's own value wins, 'env' is merged by name" },
	{ TOP(handlers), .name = "handlers", .kind = &kind_handlers,
		.help = "names of handlers, each with the keys of a handler" },
	{ TOP(routes), .name = "routes", .kind = &kind_routes, .help = "the list of routes; the most specific one wins" },

	{ LISTEN(address), .name = "address", .kind = &kind_address, .is_needed = true,
		.help = "unix:/path, 127.0.0.1:9000 or [::1]:9000" },
	{ LISTEN(mode), .name = "mode", .kind = &kind_mode, .min = 1, .max = 0777, .fallback = "0660",
		.help = "who may connect to a unix socket: octal, quoted" },
	{ LISTEN(owner), .name = "owner", .kind = &kind_owner, .fallback_note = "who creates it",
		.help = "the owner of a unix socket" },
	{ LISTEN(group), .name = "group", .kind = &kind_owner_group, .fallback_note = "who creates it",
		.help = "the group of a unix socket, such as the web server's" },
	{ LISTEN(backlog), .name = "backlog", .kind = &kind_count, .min = 1, .max = 65535, .fallback = "1024",
		.help = "connections that wait to be accepted" },
	{ LISTEN(allow), .name = "allow", .kind = &kind_prefixes, .fallback_note = "everyone on loopback",
		.help = "who may connect over TCP: addresses and prefixes; needed for an address other than loopback" },

	{ HANDLER(command), .name = "command", .kind = &kind_command, .is_program = true,
		.help = "the program and its arguments: a list, or a text that is split at blanks (no quotes, no shell)" },
	{ HANDLER(scripts), .name = "scripts", .kind = &kind_path, .is_program = true,
		.help = "a folder: any executable file below it, chosen by the path after the route's prefix" },
	{ HANDLER(connect), .name = "connect", .kind = &kind_address, .is_program = true,
		.help = "the address of workers that someone else runs, such as PHP-FPM; needs protocol: fastcgi" },
	{ HANDLER(protocol), .name = "protocol", .kind = &kind_word, .words = protocol_words, .fallback = "cgi",
		.help = "what the program speaks" },
	{ HANDLER(process), .name = "process", .kind = &kind_word, .words = process_words,
		.fallback_note = "per-request for cgi and stdio, persistent for every other protocol",
		.help = "how a process lives: per-request is a new one for each request, parked one started before it, "
			"zygote one forked before it, persistent serves many" },
	{ HANDLER(workers), .name = "workers", .kind = &kind_group, .help = "the handler's processes" },
	{ HANDLER(workers.min), .name = "workers.min", .kind = &kind_count, .max = 10000, .fallback = "0",
		.help = "persistent workers kept running without requests" },
	{ HANDLER(workers.max), .name = "workers.max", .kind = &kind_count, .min = 1, .max = 10000, .fallback = "8",
		.help = "processes at once: per-request ones too, and those that are ending, but not those that wait for a request; "
			"while workers are replaced, up to half as many more" },
	{ HANDLER(workers.spare), .name = "workers.spare", .kind = &kind_count, .max = 10000, .fallback = "1",
		.help = "workers kept ready beyond those at work, while any is at work; parked, zygote: processes that wait for a request, always" },
	{ HANDLER(workers.reserved), .name = "workers.reserved", .kind = &kind_count, .max = 10000, .fallback = "0",
		.help = "how many of max_processes this handler is always sure of" },
	{ HANDLER(workers.idle_timeout_ms), .name = "workers.idle_timeout", .kind = &kind_time, .max = WEEK, .fallback = "60s",
		.help = "a worker above workers.min without a request for so long is ended; 0 = never" },
	{ HANDLER(workers.max_requests), .name = "workers.max_requests", .kind = &kind_count, .max = UINT32_MAX,
		.fallback = "0", .help = "a worker is replaced after so many requests, a zygote after so many forks; 0 = never (a zygote: 1000)" },
	{ HANDLER(workers.max_age_ms), .name = "workers.max_age", .kind = &kind_time, .max = WEEK, .fallback = "0s",
		.help = "a worker, or a process that waits, is replaced after so long; 0 = never (a zygote: 10m)" },
	{ HANDLER(workers.jitter_percent), .name = "workers.jitter", .kind = &kind_percent, .max = 100, .fallback = "10%",
		.help = "max_requests and max_age differ by up to so much between workers" },
	{ HANDLER(queue), .name = "queue", .kind = &kind_group, .help = "waiting for a process; over it 503 with Retry-After" },
	{ HANDLER(queue.max), .name = "queue.max", .kind = &kind_count, .max = 100000, .fallback = "100",
		.help = "requests that may wait; 0 = none" },
	{ HANDLER(queue.timeout_ms), .name = "queue.timeout", .kind = &kind_time, .min = 1, .max = HOUR, .fallback = "10s",
		.help = "how long one may wait" },
	{ HANDLER(timeout), .name = "timeout", .kind = &kind_group, .help = "limits of time" },
	{ HANDLER(timeout.start_ms), .name = "timeout.start", .kind = &kind_time, .max = WEEK, .fallback = "10s",
		.help = "for a process to start and be ready; 0 = none; over it 504" },
	{ HANDLER(timeout.response_ms), .name = "timeout.response", .kind = &kind_time, .max = WEEK, .fallback = "30s",
		.help = "from the last byte of the request to the response header; 0 = none; over it 504" },
	{ HANDLER(timeout.idle_ms), .name = "timeout.idle", .kind = &kind_time, .max = WEEK, .fallback = "60s",
		.help = "without a byte moving while a body comes in or goes out, and for a process to end after its answer; 0 = none" },
	{ HANDLER(timeout.total_ms), .name = "timeout.total", .kind = &kind_time, .max = WEEK, .fallback = "0s",
		.help = "for the whole request; 0 = none" },
	{ HANDLER(timeout.kill_ms), .name = "timeout.kill", .kind = &kind_time, .min = 1, .max = HOUR, .fallback = "5s",
		.help = "from TERM to KILL when a process is ended" },
	{ HANDLER(body), .name = "body", .kind = &kind_group, .help = "bodies of requests" },
	{ HANDLER(body.max_bytes), .name = "body.max", .kind = &kind_size, .max = 1024 * 1024 * GIB, .fallback = "64MiB",
		.help = "the largest body taken; over it 413; 0 = none at all" },
	{ HANDLER(body.chunked), .name = "body.chunked", .kind = &kind_word, .words = chunked_words, .fallback = "stream",
		.help = "bodies without CONTENT_LENGTH: pass them on as they come, gather them first, or refuse them" },
	{ HANDLER(header), .name = "header", .kind = &kind_group, .help = "headers of responses" },
	{ HANDLER(header.max_bytes), .name = "header.max", .kind = &kind_size, .min = 1 * KIB, .max = 60 * KIB,
		.fallback = "32KiB", .help = "the largest header as sent on, which travels in one record; over it 502" },
	{ HANDLER(content_type), .name = "content_type", .kind = &kind_media_type, .fallback = "text/plain",
		.help = "stdio: the Content-Type of the answer" },
	{ HANDLER(hold_bytes), .name = "hold", .kind = &kind_size, .max = 1024 * GIB, .fallback = "64MiB",
		.help = "stdio: how much of an answer waits for the exit status; a longer one is sent as it comes" },
	{ HANDLER(server_timing), .name = "server_timing", .kind = &kind_bool, .fallback = "false",
		.help = "whether the answer gets a Server-Timing field with the durations queue, start and handler" },
	{ HANDLER(env), .name = "env", .kind = &kind_env,
		.help = "variables for the handler; they win over the request's and are merged by name with defaults.env" },
	{ HANDLER(pass_authorization), .name = "pass_authorization", .kind = &kind_bool, .fallback = "false",
		.help = "whether the handler sees HTTP_AUTHORIZATION" },
	{ HANDLER(directory), .name = "directory", .kind = &kind_path, .fallback_note = "where the program is",
		.help = "the working directory" },
	{ HANDLER(identity), .name = "user", .kind = &kind_user, .fallback_note = "the top-level user",
		.help = "who the program runs as; needs root" },
	{ HANDLER(identity), .name = "group", .kind = &kind_user_group, .fallback_note = "the user's own",
		.help = "the group that goes with 'user'" },
	{ HANDLER(limits), .name = "limits", .kind = &kind_group, .help = "what one process may use; 0 = no limit" },
	{ HANDLER(limits.memory_bytes), .name = "limits.memory", .kind = &kind_size, .max = 1024 * GIB, .fallback = "0",
		.help = "data memory (RLIMIT_DATA); a worker that holds more is replaced, and stopped at twice as much" },
	{ HANDLER(limits.cpu_ms), .name = "limits.cpu", .kind = &kind_time, .max = WEEK, .fallback = "0s",
		.help = "time of the processor, in whole seconds (RLIMIT_CPU); not for persistent" },
	{ HANDLER(limits.files), .name = "limits.files", .kind = &kind_count, .max = 1000000, .fallback = "0",
		.help = "open descriptors (RLIMIT_NOFILE)" },
	{ HANDLER(limits.processes), .name = "limits.processes", .kind = &kind_count, .max = 1000000, .fallback = "0",
		.help = "processes of the same user (RLIMIT_NPROC); root has no limit" },
	{ HANDLER(on_abort), .name = "on_abort", .kind = &kind_word, .words = abort_words, .fallback = "kill",
		.help = "what a vanished client does to the process; one that may finish keeps its limits of time" },
	{ HANDLER(preload), .name = "preload", .kind = &kind_list, .fallback = "auto",
		.help = "parked, zygote: modules loaded ahead: auto (what earlier requests came to load), a list, or none" },

	{ ROUTE(path), .name = "path", .kind = &kind_route_path, .is_needed = true,
		.help = "/hello: exactly this; /git/*: this prefix; /users/{id}: one segment, which handlers see as PARAM_ID" },
	{ ROUTE(host), .name = "host", .kind = &kind_host, .fallback_note = "every host",
		.help = "only requests for this host, without port" },
	{ ROUTE(methods), .name = "methods", .kind = &kind_methods, .fallback_note = "every method",
		.help = "only these methods; GET stands for HEAD too" },
	{ ROUTE(handler), .name = "handler", .kind = &kind_handler, .help = "the name of the handler" },
	{ ROUTE(builtin), .name = "builtin", .kind = &kind_word, .words = builtin_words,
		.help = "an answer of the host itself, instead of a handler: status is a page of what it does" },
	{ ROUTE(allow), .name = "allow", .kind = &kind_prefixes, .fallback_note = "private addresses and loopback",
		.help = "with builtin: who may ask, by the REMOTE_ADDR that the web server sends; for others the answer is 403" },
};
const size_t keys_count = sizeof(keys) / sizeof(keys[0]);

const struct key *key_find(enum key_scope scope, const char *name)
{
	for (size_t i = 0; i < keys_count; i++)
		if (keys[i].scope == scope && strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

const char *key_leaf(const struct key *key)
{
	const char *dot = strchr(key->name, '.');

	return dot == NULL ? key->name : dot + 1;
}

struct slice key_group(const struct key *key)
{
	const char *dot = strchr(key->name, '.');

	return (struct slice){ key->name, dot == NULL ? 0 : (size_t)(dot - key->name) };
}

void key_print(struct printer *printer, const struct key *key)
{
	printer_key(printer, key_group(key), key_leaf(key));
}

const char *word_for(const struct word *words, int value)
{
	for (; words->name != NULL; words++)
		if (words->value == value)
			return words->name;
	return NULL;
}

const struct word *word_find(const struct word *words, const char *name)
{
	for (; words->name != NULL; words++)
		if (strcmp(words->name, name) == 0)
			return words;
	return NULL;
}

const char *config_protocol_name(enum protocol protocol)
{
	return word_for(protocol_words, (int)protocol);
}

const char *config_process_name(enum process_mode process)
{
	return word_for(process_words, (int)process);
}

const char *config_builtin_name(enum builtin builtin)
{
	return word_for(builtin_words, (int)builtin);
}

bool config_is_waiting(const struct handler_config *handler)
{
	return handler->process == PROCESS_PARKED || handler->process == PROCESS_ZYGOTE;
}

bool config_learns_preload(const struct handler_config *handler)
{
	return config_is_waiting(handler) && handler->preload != NULL && strcmp(handler->preload[0], "auto") == 0;
}
