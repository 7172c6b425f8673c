/*
 * call.c - `fcgi-host call`: one request without a web server, and its answer.
 *
 * Plays the web server's part: sends the variables that one would send, and
 * moves both bodies at once, so that neither side can wait for the other.
 */
#include "cli/call_body.h"
#include "cli/cli.h"
#include "base/bytes.h"
#include "base/text.h"
#include "config/config.h"
#include "wire/cgi_header.h"
#include "wire/cgi_request.h"
#include "wire/fcgi.h"
#include "wire/vars.h"

#include <errno.h>
#include <fastcgi.h>
#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST_ID = 1, PIECE_BYTES = 32768, OUT_MAX = 4 << 20, VARS_MAX = 1 << 20, HEADER_MAX = 1 << 20 };

struct call {
	const char *config, *connect;   /* where the host is: one of them, or neither */
	const char *method, *data, *url;
	bool with_header;
	struct vars *vars;

	int body_fd;                    /* -1 without a body */
	uint64_t body_left;             /* bytes of it not queued yet */
	bool is_body_ended;             /* the empty STDIN is queued */

	int fd;
	bool is_deaf;                   /* the host takes no more of the body */
	struct bytes out;               /* records waiting to be sent */
	struct fcgi_decoder decoder;
	struct cgi_header header;
	struct fcgi_fixed end_body;     /* of END_REQUEST */
	uint64_t answer_bytes;          /* of the answer's body so far */
	bool is_ended;                  /* END_REQUEST has come */
};

static int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* -1, so that a caller can return it. */
static int complain(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("fcgi-host call: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return -1;
}

/* A repeated field is joined with ", ", as web servers do. */
static int join_var(struct vars *vars, struct slice name, struct slice value)
{
	struct bytes joined;
	int result;
	char *name_text = slice_dup(name);
	const char *before = name_text == NULL ? NULL : vars_get(vars, name_text);

	bytes_init(&joined, VARS_MAX);
	result = name_text == NULL ? -1 : 0;
	if (before != NULL && before[0] != '\0')
		result |= bytes_printf(&joined, "%s, ", before);
	result |= bytes_append(&joined, value.ptr, value.len);
	if (result == 0 && vars_set(vars, name, (struct slice){ (char *)bytes_data(&joined), joined.len }) > VARS_REPLACED)
		result = -1;
	bytes_fini(&joined);
	free(name_text);
	return result;
}

/* "Name: value" as the variable that a web server makes of it.  "Name:" leaves
 * it empty for now: no default comes in its place. */
static int add_header(struct vars *vars, const char *text)
{
	const char *colon = strchr(text, ':');
	char buffer[VARS_FIELD_NAME_BYTES];
	struct slice name = { buffer, 0 };

	if (colon != NULL)
		name = vars_field_name((struct slice){ text, (size_t)(colon - text) }, buffer);
	if (name.len == 0)
		return complain("-H takes 'Name: value', not '%s'", text);
	if (join_var(vars, name, slice_trim(slice_of(colon + 1))) != 0)
		return complain("'%.100s' cannot be sent", text);
	return 0;
}

static void set_default(struct vars *vars, const char *name, const char *value)
{
	if (vars_get(vars, name) == NULL)
		vars_set_text(vars, name, value);
}

/* "http://host/path?query" or "/path?query". */
static int set_url(struct call *call)
{
	const char *scheme = strstr(call->url, "://"), *uri = call->url;
	char *path = NULL;

	if (scheme != NULL && scheme < call->url + strcspn(call->url, "/?#")) {
		const char *host = scheme + 3;
		size_t len = strcspn(host, "/?#");

		if (vars_get(call->vars, "HTTP_HOST") == NULL)
			vars_set(call->vars, slice_of("HTTP_HOST"), (struct slice){ host, len });
		uri = host + len;
	}
	uri = uri[0] == '\0' ? "/" : uri;
	if (uri[0] != '/' && uri[0] != '?')
		return complain("PATH begins with '/', not '%s'", call->url);
	vars_set_text(call->vars, "REQUEST_URI", uri);
	vars_set_text(call->vars, "QUERY_STRING", strchr(uri, '?') == NULL ? "" : strchr(uri, '?') + 1);
	/* What cannot be decoded is the host's to refuse. */
	if (cgi_path_decode(slice_of(uri), &path, NULL) == 0)
		vars_set_text(call->vars, "SCRIPT_NAME", path);
	free(path);
	return 0;
}

static void set_vars(struct call *call)
{
	struct vars *vars = call->vars;
	struct slice port, host;
	char length[24];

	snprintf(length, sizeof(length), "%llu", (unsigned long long)call->body_left);
	vars_set_text(vars, "REQUEST_METHOD", call->method);
	if (call->body_fd >= 0) {
		set_default(vars, "CONTENT_LENGTH", length);
		set_default(vars, "CONTENT_TYPE", "application/x-www-form-urlencoded");
	}
	set_default(vars, "HTTP_HOST", "localhost");
	set_default(vars, "HTTP_ACCEPT", "*/*");
	set_default(vars, "HTTP_USER_AGENT", PACKAGE_NAME "/" PACKAGE_VERSION);
	host = cgi_host_split(vars_get(vars, "HTTP_HOST"), &port);
	vars_set(vars, slice_of("SERVER_NAME"), host);
	vars_set(vars, slice_of("SERVER_PORT"), port.len == 0 ? slice_of("80") : port);
	vars_set_text(vars, "GATEWAY_INTERFACE", "CGI/1.1");
	vars_set_text(vars, "SERVER_PROTOCOL", "HTTP/1.1");
	vars_set_text(vars, "SERVER_SOFTWARE", PACKAGE_NAME "/" PACKAGE_VERSION);
	vars_set_text(vars, "REQUEST_SCHEME", "http");
	vars_set_text(vars, "REMOTE_ADDR", "127.0.0.1");
	for (size_t i = vars_count(vars); i > 0; i--) {
		struct var var = vars_at(vars, i - 1);

		if (var.value_len == 0 && strcmp(var.name, "QUERY_STRING") != 0)
			vars_unset(vars, var.name);
	}
}

static int open_body(struct call *call)
{
	struct err err;

	call->body_fd = call_body_open(call->data, &call->body_left, &err);
	return call->body_fd < 0 ? complain("%s", err.text) : 0;
}

static int open_host(struct call *call, const struct address *address)
{
	call->fd = socket(address->sockaddr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (call->fd < 0 || connect(call->fd, (const struct sockaddr *)&address->sockaddr, address->sockaddr_len) != 0)
		return complain("cannot connect to %s: %s", address->text, strerror(errno));
	return 0;
}

static int open_configured(struct call *call)
{
	struct config_report report;
	struct config *config;
	int result = -1;

	config_report_init(&report);
	config = config_load(call->config == NULL ? config_default_file() : call->config, &report);
	if (config == NULL)
		fprintf(stderr, "%.*s", (int)report.errors.len, (const char *)bytes_data(&report.errors));
	else if (config->listen_count == 0)
		complain("%s does not say where the host listens; --connect does", config->file);
	else
		result = open_host(call, &config->listen[0].address);
	config_free(&config);
	config_report_fini(&report);
	return result;
}

static int open_connection(struct call *call)
{
	struct address address;
	struct err err;
	int result;

	if (call->connect == NULL)
		return open_configured(call);
	if (address_parse(call->connect, &address, &err) != 0)
		return complain("%s", err.text);
	result = open_host(call, &address);
	address_fini(&address);
	return result;
}

static int queue_request(struct call *call)
{
	uint8_t begin[FCGI_HEADER_BYTES + FCGI_BODY_BYTES];
	struct bytes params;
	int result = 0;

	bytes_init(&params, OUT_MAX / 2);
	fcgi_put_begin(begin, REQUEST_ID, FCGI_RESPONDER, 0);
	result |= bytes_append(&call->out, begin, sizeof(begin));
	result |= vars_to_params(call->vars, &params);
	if (params.len > 0)
		result |= fcgi_put_stream(&call->out, FCGI_PARAMS, REQUEST_ID, bytes_data(&params), params.len);
	result |= fcgi_put_stream(&call->out, FCGI_PARAMS, REQUEST_ID, NULL, 0);
	bytes_fini(&params);
	return result == 0 ? 0 : complain("no memory for the request");
}

/* The next piece of the body, then the empty record, whenever there is room. */
static int queue_body(struct call *call)
{
	char piece[PIECE_BYTES];
	ssize_t got = 0;

	if (call->is_body_ended || call->out.len > PIECE_BYTES)
		return 0;
	if (call->body_left > 0) {
		got = read(call->body_fd, piece, call->body_left < sizeof(piece) ? call->body_left : sizeof(piece));
		if (got <= 0)
			return complain("the body cannot be read: %s", got == 0 ? "the file became shorter" : strerror(errno));
		call->body_left -= (uint64_t)got;
	}
	call->is_body_ended = got == 0;
	if (fcgi_put_stream(&call->out, FCGI_STDIN, REQUEST_ID, piece, (size_t)got) != 0)
		return complain("no memory for the body");
	return 0;
}

/* A host may answer and go before it has read all: what it sent still counts. */
static void write_some(struct call *call)
{
	ssize_t done = send(call->fd, bytes_data(&call->out), call->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (done >= 0)
		bytes_consume(&call->out, (size_t)done);
	else if (errno != EAGAIN && errno != EINTR)
		call->is_deaf = true;
}

static void on_dropped(void *ctx, struct slice line, const char *why)
{
	(void)ctx;
	complain("the answer has %s: '%.*s'", why, (int)line.len, line.ptr);
}

static int print_header(struct call *call)
{
	static const char status[] = "Status: ";
	struct bytes text;
	int result = -1;

	bytes_init(&text, HEADER_MAX);
	if (cgi_header_write(&call->header, &text) == 0) {
		bytes_consume(&text, sizeof(status) - 1);
		printf("HTTP/1.1 ");
		fwrite(bytes_data(&text), 1, text.len, stdout);
		result = 0;
	}
	bytes_fini(&text);
	return result == 0 ? 0 : complain("no memory for the header");
}

static int take_stdout(struct call *call, struct slice content)
{
	if (call->header.state == CGI_HEADER_MORE) {
		if (cgi_header_read(&call->header, &content) == CGI_HEADER_BAD)
			return complain("the answer is broken: %s", call->header.reason);
		if (call->header.state == CGI_HEADER_DONE && call->with_header && print_header(call) != 0)
			return -1;
	}
	call->answer_bytes += content.len;
	if (content.len > 0 && (fwrite(content.ptr, 1, content.len, stdout) != content.len))
		return complain("the answer cannot be written: %s", strerror(errno));
	return 0;
}

static int take_content(struct call *call, struct slice content)
{
	if (call->decoder.type == FCGI_STDOUT)
		return take_stdout(call, content);
	if (call->decoder.type == FCGI_STDERR)
		fwrite(content.ptr, 1, content.len, stderr);
	if (call->decoder.type == FCGI_END_REQUEST)
		fcgi_fixed_put(&call->end_body, content);
	return 0;
}

static int take_input(struct call *call, struct slice input)
{
	struct slice content;

	while (!call->is_ended) {
		switch (fcgi_decode(&call->decoder, &input, &content)) {
		case FCGI_MORE:
			return fflush(stdout) == 0 ? 0 : complain("the answer cannot be written: %s", strerror(errno));
		case FCGI_BAD:
			return complain("the answer is cut: the host broke off after %llu bytes of body",
				(unsigned long long)call->answer_bytes);
		case FCGI_START:
			if (call->decoder.id != REQUEST_ID)
				return complain("the answer is broken: a record of request %u", call->decoder.id);
			break;
		case FCGI_CONTENT:
			if (take_content(call, content) != 0)
				return -1;
			break;
		case FCGI_END:
			call->is_ended = call->decoder.type == FCGI_END_REQUEST;
			break;
		}
	}
	return 0;
}

static int read_some(struct call *call)
{
	char piece[PIECE_BYTES];
	ssize_t got = recv(call->fd, piece, sizeof(piece), MSG_DONTWAIT);

	if (got > 0)
		return take_input(call, (struct slice){ piece, (size_t)got });
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return complain("the answer is cut: %s after %llu bytes of body", got == 0 ? "connection closed" : strerror(errno),
		(unsigned long long)call->answer_bytes);
}

static int exchange(struct call *call)
{
	while (!call->is_ended) {
		struct pollfd watched = { .fd = call->fd, .events = POLLIN };

		if (!call->is_deaf && queue_body(call) != 0)
			return -1;
		if (!call->is_deaf && call->out.len > 0)
			watched.events |= POLLOUT;
		if (poll(&watched, 1, -1) < 0 && errno != EINTR)
			return complain("poll: %s", strerror(errno));
		if (watched.revents & POLLOUT)
			write_some(call);
		if ((watched.revents & ~POLLOUT) != 0 && read_some(call) != 0)
			return -1;
	}
	return 0;
}

static int check_answer(const struct call *call)
{
	static const char *const protocol_status[] = { "", "CANT_MPX_CONN", "OVERLOADED", "UNKNOWN_ROLE" };
	const struct cgi_header *header = &call->header;
	struct fcgi_end end;

	fcgi_get_end(call->end_body.bytes, &end);
	if (end.protocol_status != FCGI_REQUEST_COMPLETE)
		return complain("the host refused the request: %s", end.protocol_status < 4
			? protocol_status[end.protocol_status] : "unknown protocol status");
	if (header->state != CGI_HEADER_DONE)
		return complain("the answer is broken: %s", header->read_bytes == 0 ? "it is empty" : "its header does not end");
	if (header->has_length && !cgi_header_forbids_body(header, call->method)
	    && header->content_length != call->answer_bytes)
		return complain("the answer is broken: %llu bytes of body, Content-Length is %llu",
			(unsigned long long)call->answer_bytes, (unsigned long long)header->content_length);
	return 0;
}

static int run(struct call *call)
{
	if (call->data != NULL && open_body(call) != 0)
		return EXIT_MISTAKE;
	set_vars(call);
	if (open_connection(call) != 0 || queue_request(call) != 0)
		return EXIT_MISTAKE;
	if (exchange(call) != 0 || check_answer(call) != 0)
		return EXIT_MISTAKE;
	return EXIT_FINE;
}

static int usage(void)
{
	fputs("usage: fcgi-host call " CLI_CALL_USAGE "\n", stderr);
	return -1;
}

static int read_arguments(struct call *call, int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' }, { "connect", required_argument, NULL, 'C' },
		{ "include", no_argument, NULL, 'i' }, { "request", required_argument, NULL, 'X' },
		{ "header", required_argument, NULL, 'H' }, { "data", required_argument, NULL, 'd' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "c:iX:H:d:", options, NULL)) != -1) {
		if (option == '?' || (option == 'H' && add_header(call->vars, optarg) != 0))
			return usage();
		if (option == 'c')
			call->config = optarg;
		if (option == 'C')
			call->connect = optarg;
		if (option == 'i')
			call->with_header = true;
		if (option == 'X')
			call->method = optarg;
		if (option == 'd')
			call->data = optarg;
	}
	if (argc - optind != 1 || (call->config != NULL && call->connect != NULL))
		return usage();
	call->url = argv[optind];
	if (call->method == NULL)
		call->method = call->data == NULL ? "GET" : "POST";
	return set_url(call);
}

int cli_call(int argc, char **argv)
{
	struct call call = { .body_fd = -1, .fd = -1, .vars = vars_new(VARS_MAX) };
	int status;

	if (call.vars == NULL) {
		complain("no memory");
		return EXIT_MISTAKE;
	}
	bytes_init(&call.out, OUT_MAX);
	cgi_header_init(&call.header, HEADER_MAX, on_dropped, NULL);
	status = read_arguments(&call, argc, argv) != 0 ? EXIT_USAGE : run(&call);
	if (fflush(stdout) != 0)
		status = EXIT_MISTAKE;
	if (call.body_fd >= 0)
		close(call.body_fd);
	if (call.fd >= 0)
		close(call.fd);
	cgi_header_fini(&call.header);
	bytes_fini(&call.out);
	vars_free(&call.vars);
	return status;
}
