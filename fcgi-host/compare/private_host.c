#include "compare/private_host.h"

#include "base/clock.h"
#include "base/text.h"
#include "compare/target.h"
#include "serve/control.h"
#include "serve/figures.h"

#include <errno.h>
#include <json-c/json.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	START_PATIENCE_MS = 15000, STOP_PATIENCE_MS = 7000,
	STATUS_MAX_BYTES = 16 << 20, STATUS_TIMEOUT_MS = 5000,
	SETTLE_MS = 1000, AHEAD_PATIENCE_MS = 3000,
	LOG_MAX_BYTES = 4 << 20,
};

static void nap(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* Listening. */

static bool is_connected(const struct target *target)
{
	int fd = target_connect(target), error = 0;
	struct pollfd watched = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(error);
	bool is_fine;

	if (fd < 0)
		return errno == EAGAIN;         /* its line is full: it is there */
	is_fine = poll(&watched, 1, 1000) == 1 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0;
	close(fd);
	return is_fine;
}

int wait_for_listener(const char *where, struct child *child, uint64_t patience_ms, const char *what, struct err *err)
{
	static const struct request_spec any = { .method = "GET", .path = "/" };
	uint64_t end_ns = clock_monotonic_ns() + patience_ms * 1000000;
	struct target target;
	bool is_url = strncasecmp(where, "http://", 7) == 0;
	int status = is_url ? target_init_http(&target, where, &any, err) : target_init_fastcgi(&target, where, &any, err);

	while (status == 0 && !is_connected(&target)) {
		if (!child_runs(child) || clock_monotonic_ns() >= end_ns)
			status = child_tell(child, what, err);
		else
			nap(5);
	}
	/* Someone else may listen there. */
	if (status == 0 && !child_runs(child))
		status = child_tell(child, what, err);
	target_fini(&target);
	return status;
}

/* The configuration. */

static int write_config(const struct private_host *host, const struct way *way, const struct way_place *place, struct err *err)
{
	FILE *out = fopen(host->config, "we");
	int status;

	if (out == NULL)
		return err_set_errno(err, errno, "%s", host->config);
	status = way->write_config(way, place, out);
	if (fclose(out) != 0 || status < 0)
		return err_set(err, "%s cannot be written", host->config);
	chmod(host->config, 0644);
	return 0;
}

/* Without "FILE:LINE:COLUMN: ", which nobody else can look at. */
static int tell_mistake(const struct config_report *report, struct err *err)
{
	const char *text = (const char *)bytes_data(&report->errors), *what = NULL;
	size_t len = report->errors.len, line_len;

	if (len > 0) {
		const char *end = memchr(text, '\n', len);

		line_len = end == NULL ? len : (size_t)(end - text);
		what = memmem(text, line_len, ": ", 2);
		if (what != NULL)
			return err_set(err, "%.*s", (int)(line_len - (size_t)(what + 2 - text)), what + 2);
	}
	return err_set(err, "its configuration is wrong");
}

/* What this program does not support is better said before a host is started. */
static int check_config(const struct private_host *host, struct err *err)
{
	struct config_report report;
	struct config *config;
	int status = 0;

	config_report_init(&report);
	config = config_load(host->config, &report);
	if (config == NULL)
		status = tell_mistake(&report, err);
	config_free(&config);
	config_report_fini(&report);
	return status;
}

int private_host_start(struct private_host *host, const struct way *way, const char *folder, unsigned number,
	const struct way_place *also, struct err *err)
{
	static const char program[] = "/proc/self/exe";
	struct way_place place = *also;
	char *output = NULL, *argv[] = { (char *)"fcgi-host", (char *)"serve", (char *)"-c", NULL, NULL };
	struct child_spec spec = { .program = program, .argv = argv, .stdin_fd = -1, .stdout_fd = -1 };
	int status = 0;

	*host = (struct private_host){ .child = { .pid = 0 } };
	if (asprintf(&host->config, "%s/host-%u.yaml", folder, number) < 0 ||
	    asprintf(&host->address, "unix:%s/host-%u.sock", folder, number) < 0 ||
	    asprintf(&host->log, "%s/host-%u.log", folder, number) < 0 || asprintf(&output, "%s/host-%u.out", folder, number) < 0)
		status = err_set(err, "no memory");
	place.socket = host->address;
	place.log = host->log;
	if (status == 0)
		status = write_config(host, way, &place, err);
	if (status == 0)
		status = check_config(host, err);
	argv[3] = host->config;
	spec.output = output;
	if (status == 0)
		status = child_start(&host->child, &spec, err);
	if (status == 0)
		status = wait_for_listener(host->address, &host->child, START_PATIENCE_MS, "the private host", err);
	free(output);
	return status;
}

void private_host_stop(struct private_host *host)
{
	child_stop(&host->child, STOP_PATIENCE_MS);
	free(host->config);
	free(host->address);
	free(host->log);
	*host = (struct private_host){ .child = { .pid = 0 } };
}

bool private_host_has_given_up_waiting(const struct private_host *host, char *why, size_t why_size)
{
	static const char begin[] = "cannot be process: ", end[] = "; every request";
	char *text = NULL, *found = NULL, *found_end = NULL;
	size_t size = 0;
	ssize_t len;
	FILE *in = fopen(host->log, "re");

	while (in != NULL && found_end == NULL && (len = getline(&text, &size, in)) > 0) {
		found = strstr(text, begin);
		found_end = found == NULL ? NULL : strstr(found, end);
	}
	if (found_end != NULL)
		snprintf(why, why_size, "%.*s", (int)(found_end - found - (ssize_t)sizeof(begin) + 1), found + sizeof(begin) - 1);
	if (in != NULL)
		fclose(in);
	free(text);
	return found_end != NULL;
}

void private_host_trim_log(const struct private_host *host)
{
	struct stat status;

	if (stat(host->log, &status) == 0 && status.st_size > LOG_MAX_BYTES && truncate(host->log, 0) != 0)
		return;         /* then it grows */
}

/* Its status. */

static int ask(const struct private_host *host, struct bytes *answer, struct err *err)
{
	static const char question[] = "status\n";
	struct timeval limit = { .tv_sec = STATUS_TIMEOUT_MS / 1000 };
	struct sockaddr_un address;
	socklen_t len = control_address(host->config, &address);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char piece[8192];
	ssize_t n = -1;

	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0 &&
	    connect(fd, (struct sockaddr *)&address, len) == 0 && send(fd, question, sizeof(question) - 1, MSG_NOSIGNAL) > 0)
		while ((n = read(fd, piece, sizeof(piece))) > 0 || (n < 0 && errno == EINTR))
			if (n > 0 && bytes_append(answer, piece, (size_t)n) < 0)
				break;
	if (fd >= 0)
		close(fd);
	return answer->len > 0 && n == 0 && bytes_append(answer, "", 1) == 0 ? 0 : err_set(err, "the private host does not tell its status");
}

static struct json_object *member(struct json_object *of, const char *name)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(of, name, &value);
	return value;
}

static uint64_t ns_of(struct json_object *of, const char *name)
{
	return (uint64_t)(json_object_get_double(member(of, name)) * 1e6 + 0.5);
}

static uint64_t number_of(struct json_object *of, const char *name)
{
	return (uint64_t)json_object_get_int64(member(of, name));
}

static void read_handler(struct json_object *handler, struct host_reading *out)
{
	static const char *const parts[SPAWN_PARTS_COUNT] = { "start_ms", "first_byte_ms", "end_ms", "exit_ms" };
	struct json_object *ended = member(handler, "ended"), *spawn = member(handler, "spawn"), *starts = member(handler, "starts");

	*out = (struct host_reading){
		.requests = number_of(member(handler, "totals"), "requests"),
		/* What was done ahead is done for a request all the same. */
		.ended_cpu_ns = ns_of(ended, "cpu_ms") + ns_of(ended, "start_cpu_ms"),
		.ended_faults = number_of(ended, "faults") + number_of(ended, "start_faults"),
		.ended_switches = number_of(ended, "context_switches"),
		.spawn_count = number_of(spawn, "count"),
		.starts_cold = number_of(starts, "cold"),
		.starts_ahead = number_of(starts, "parked") + number_of(starts, "forked"),
		.idle = number_of(member(handler, "processes"), "idle"),
	};
	for (int i = 0; i < SPAWN_PARTS_COUNT; i++)
		out->spawn_ns[i] = ns_of(spawn, parts[i]);
}

static int read_host(const struct private_host *host, struct host_reading *out, struct err *err)
{
	struct json_object *status = NULL, *handler;
	struct bytes answer;

	bytes_init(&answer, STATUS_MAX_BYTES);
	if (ask(host, &answer, err) == 0)
		status = json_tokener_parse((const char *)bytes_data(&answer));
	bytes_fini(&answer);
	handler = status == NULL ? NULL : json_object_array_get_idx(member(status, "handlers"), 0);
	if (handler != NULL)
		read_handler(handler, out);
	json_object_put(status);
	return handler != NULL ? 0 : err_set(err, "the private host does not tell its status");
}

int private_host_settle(const struct private_host *host, uint64_t requests, struct host_reading *out, struct err *err)
{
	uint64_t end_ns = clock_monotonic_ns() + SETTLE_MS * UINT64_C(1000000);

	for (;;) {
		if (read_host(host, out, err) < 0)
			return -1;
		if (out->requests >= requests || clock_monotonic_ns() >= end_ns)
			return 0;
		nap(2);
	}
}

void private_host_wait_ahead(const struct private_host *host)
{
	uint64_t end_ns = clock_monotonic_ns() + AHEAD_PATIENCE_MS * UINT64_C(1000000);
	struct host_reading reading = { .idle = 0 };
	char why[600];

	while (read_host(host, &reading, NULL) == 0 && reading.idle == 0 &&
	       !private_host_has_given_up_waiting(host, why, sizeof(why)) && clock_monotonic_ns() < end_ns)
		nap(10);
}
