#include "serve/dispatch.h"

#include "base/clock.h"
#include "base/log.h"
#include "serve/builtin.h"
#include "serve/request.h"
#include "serve/script.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HOPS_MAX = 5 };          /* local redirects for one request */

void dispatch_fini(struct request *request)
{
	free(request->path);
	free(request->script_name);
	free(request->path_info);
	free(request->script);
	free(request->script_filename);
	request->path = request->script_name = request->path_info = NULL;
	request->script = request->script_filename = NULL;
	if (request->handler != NULL)
		answer_fini(&request->answer);
	free(request->own_query);
	request->own_query = NULL;
}

/* In line. */

static void fail_refused(struct request *request, const struct pool_result *result)
{
	char retry[64];

	snprintf(retry, sizeof(retry), "Retry-After: %u\r\n", result->retry_after_s > 0 ? result->retry_after_s : 1);
	if (result->answer != POOL_START_FAILED)
		request_fail(request, 503, retry, "%s", result->err.text);
	else
		request_on_start_failed(request, result->failed_step, result->failed_errno);
}

static void on_place(void *ctx, const struct pool_result *result)
{
	struct request *request = ctx;

	request->granted_ns = clock_monotonic_ns();
	if (result->answer != POOL_READY) {
		fail_refused(request, result);
		return;
	}
	request->state = REQUEST_STARTING;
	request->backend = backend_for(request->handler);
	request_set_timer(request);
	request->backend->start(request, result);
}

static void wait_in_line(struct request *request)
{
	if (request->pool == NULL) {
		builtin_start(request);
		return;
	}
	request->state = REQUEST_WAITING;
	if (request->queued_ns == 0)
		request->queued_ns = clock_monotonic_ns();
	request->waiter.on_ready = on_place;
	request->waiter.ctx = request;
	pool_acquire(request->pool, &request->waiter);
	request_set_timer(request);
	host_check_stop(request->host);         /* after the line was served */
}

void dispatch_again(struct request *request)
{
	wait_in_line(request);
}

void dispatch_spooled(struct request *request)
{
	request->cgi.has_length = true;
	request->cgi.content_length = request->body.received_bytes;
	request->has_body = request->cgi.content_length > 0;
	wait_in_line(request);
}

/* The program. */

static int set_script(struct request *request)
{
	struct script script;

	switch (script_find(request->handler->scripts, request->path_info, &script)) {
	case SCRIPT_FOUND:
		break;
	case SCRIPT_MISSING:
		request_fail(request, 404, NULL, "no script for %s below %s", request->path_info, request->handler->scripts);
		return -1;
	case SCRIPT_FORBIDDEN:
		request_fail(request, 403, NULL, "%s%s: not an executable file that may be run", request->handler->scripts, request->path_info);
		return -1;
	}
	request->script = slice_dup(slice_of(script.path));
	if (asprintf(&request->script_filename, "%s/%s", request->handler->scripts, script.path) < 0)
		request->script_filename = NULL;
	free(request->script_name);
	request->script_name = slice_dup((struct slice){ request->path, request->match.script_name_len + script.taken });
	memmove(request->path_info, request->path_info + script.taken, strlen(request->path_info + script.taken) + 1);
	if (request->script == NULL || request->script_filename == NULL || request->script_name == NULL) {
		request_fail(request, 503, "Retry-After: 1\r\n", "no memory for a request");
		return -1;
	}
	return 0;
}

/* What a FastCGI program such as php-cgi runs is for the web server to say; its
 * guess for a path without a file is no use to anybody. */
static bool is_front_filename_real(const struct request *request)
{
	const char *filename = vars_get(request->front, "SCRIPT_FILENAME");
	struct stat st, own;

	if (request->hops > 0 || filename == NULL || filename[0] != '/')
		return false;
	if (stat(filename, &st) < 0)
		return errno == ENOTDIR;        /* a file with a PATH_INFO behind it */
	/* mod_fcgid sends what it started: us. */
	return S_ISREG(st.st_mode) &&
		!(stat("/proc/self/exe", &own) == 0 && st.st_dev == own.st_dev && st.st_ino == own.st_ino);
}

static int set_program(struct request *request)
{
	const struct handler_config *handler = request->handler;

	request->script_name = slice_dup((struct slice){ request->path, request->match.script_name_len });
	request->path_info = slice_dup(slice_of(request->path + request->match.script_name_len));
	if (request->script_name == NULL || request->path_info == NULL) {
		request_fail(request, 503, "Retry-After: 1\r\n", "no memory for a request");
		return -1;
	}
	if (cgi_path_climbs(request->path_info)) {
		request_fail(request, 400, NULL, "the path climbs above its route: %s", request->path_info);
		return -1;
	}
	if (handler->scripts != NULL)
		return set_script(request);
	if (handler->command != NULL &&
	    (handler->process != PROCESS_PERSISTENT || !is_front_filename_real(request)))
		request->script_filename = slice_dup(slice_of(handler->command[0]));
	return 0;
}

/* The route. */

static void take_pool(struct request *request, struct pool *pool)
{
	const struct pool_entry *entry = pool_owner(pool);

	pool_hold(pool);
	if (request->pool != NULL)
		pool_let_go(request->pool);
	request->pool = pool;
	site_unref(&request->pool_site);
	figures_unref(&request->figures);
	request->pool_site = site_ref(entry->site);
	request->figures = figures_ref(entry->figures);
	request->handler = pool_handler(pool);
}

static void take_builtin(struct request *request)
{
	if (request->pool != NULL)
		pool_let_go(request->pool);
	request->pool = NULL;
	site_unref(&request->pool_site);
	figures_unref(&request->figures);
	request->figures = figures_ref(request->host->builtin);
	request->handler = &builtin_handler;
}

static int find_route(struct request *request)
{
	struct route_match match;
	char allow[sizeof(match.allow) + 16];

	site_unref(&request->site);
	request->site = site_ref(request->host->site);
	switch (route_find(request->site->routes, request->method, request->cgi.host, request->path, &match)) {
	case ROUTE_FOUND:
		request->match = match;
		if (match.route->builtin != BUILTIN_NONE)
			take_builtin(request);
		else
			take_pool(request, request->site->pools[match.route->handler]);
		if (request->hops == 0)
			request->route_path = slice_dup(slice_of(match.route->path));
		answer_init(request);
		return 0;
	case ROUTE_NONE:
		request_fail(request, 404, NULL, "no route for %s", request->path);
		return -1;
	case ROUTE_WRONG_METHOD:
		break;
	}
	snprintf(allow, sizeof(allow), "Allow: %s\r\n", match.allow);
	request_fail(request, 405, allow, "%s is not allowed for %s", request->method, request->path);
	return -1;
}

void dispatch_first(struct request *request)
{
	request->path = slice_dup(slice_of(request->cgi.path));
	if (request->path == NULL) {
		request_fail(request, 503, "Retry-After: 1\r\n", "no memory for a request");
		return;
	}
	if (find_route(request) < 0)
		return;
	if (request->cgi.has_length && request->cgi.content_length > request->handler->body.max_bytes) {
		request_fail(request, 413, NULL, "body of %" PRIu64 " bytes over body.max (%" PRIu64 ")",
			request->cgi.content_length, request->handler->body.max_bytes);
		return;
	}
	request->timer = timer_new(request->host->loop, request_on_timer, request);
	if (set_program(request) < 0)
		return;
	if (!request->cgi.has_length && request->handler->body.chunked != CHUNKED_STREAM) {
		request->state = REQUEST_SPOOLING;
		body_allow_spool(&request->body);
		request_set_timer(request);
		return;
	}
	wait_in_line(request);
}

/* Local redirects (RFC 3875, 6.2.2). */

static char *local_path(const struct request *request, struct slice *query_out)
{
	const struct bytes *location = &request->answer.header.location;
	struct slice raw = { (const char *)bytes_data(location), location->len };
	const char *end = memchr(raw.ptr, '#', raw.len);
	const char *mark;
	char *path;

	if (end != NULL)
		raw.len = (size_t)(end - raw.ptr);
	mark = memchr(raw.ptr, '?', raw.len);
	*query_out = (struct slice){ "", 0 };
	if (mark != NULL) {
		*query_out = (struct slice){ mark + 1, raw.len - (size_t)(mark + 1 - raw.ptr) };
		raw.len = (size_t)(mark - raw.ptr);
	}
	return cgi_path_decode(raw, &path, NULL) < 0 ? NULL : path;
}

bool dispatch_can_redirect(const struct request *request)
{
	struct route_match match;
	struct slice query;
	char *path = local_path(request, &query);
	bool can = path != NULL &&
		route_find(request->host->site->routes, "GET", request->cgi.host, path, &match) == ROUTE_FOUND;

	free(path);
	return can;
}

void dispatch_redirect(struct request *request)
{
	struct slice query;
	char *path = local_path(request, &query);
	char *own_query = slice_dup(query);
	struct log_line line;

	if (++request->hops > HOPS_MAX || path == NULL || own_query == NULL) {
		free(path);
		free(own_query);
		request_fail(request, 502, NULL, "more than %d local redirects", HOPS_MAX);
		return;
	}
	log_begin(&line, LOG_LEVEL_DEBUG, "redirect");
	log_str(&line, "id", request->id);
	log_str(&line, "handler", request->handler->name);
	log_str(&line, "path", path);
	log_end(&line);
	dispatch_fini(request);
	request->handler = NULL;
	request->answer = (struct answer){ .state = ANSWER_HEADER };
	request->is_redirecting = request->is_lost = request->has_exit = request->has_usage = false;
	request->is_body_unwanted = false;
	request->path = path;
	request->query = request->own_query = own_query;
	request->method = "GET";
	request->has_body = false;
	request->body.is_complete = true;
	body_discard(&request->body);
	request->pid = 0;
	request->queued_ns = request->granted_ns = request->started_ns = request->first_byte_ns = 0;
	request->body_end_ns = request->progress_ns = clock_monotonic_ns();
	if (find_route(request) == 0 && set_program(request) == 0)
		wait_in_line(request);
}

/* Variables for the handler. */

enum { PARAM_NAME_BYTES = 128 };

static void param_name(struct slice name, char *out)
{
	size_t len = (size_t)snprintf(out, PARAM_NAME_BYTES, "PARAM_%.*s", (int)name.len, name.ptr);

	for (size_t i = 0; i < len && i < PARAM_NAME_BYTES - 1; i++)
		out[i] = isalnum((unsigned char)out[i]) ? (char)toupper((unsigned char)out[i]) : '_';
}

static struct vars *build(const struct request *request, const struct cgi_environment *how)
{
	struct vars *vars = vars_new((size_t)request->host->site->config->params_max_bytes * 2 + 65536);

	if (vars != NULL && cgi_environment_build(request->front, how, vars) < 0)
		vars_free(&vars);
	return vars;
}

struct vars *request_variables(const struct request *request, bool is_process)
{
	const struct handler_config *handler = request->handler;
	const struct route_match *match = &request->match;
	char names[ROUTE_PARAMS_MAX][PARAM_NAME_BYTES];
	char *values[ROUTE_PARAMS_MAX];
	struct cgi_pair params[ROUTE_PARAMS_MAX];
	struct vars *vars = NULL;
	size_t made;
	struct cgi_environment how = {
		.method = request->method, .query = request->query,
		.script_name = request->script_name, .path_info = request->path_info,
		.script_filename = request->script_filename, .request_id = request->id,
		.has_body = request->has_body, .has_length = request->cgi.has_length,
		.content_length = request->cgi.content_length,
		.is_process = is_process, .pass_authorization = handler->pass_authorization,
		.params = params, .params_count = match->params_count,
		.env = (const struct cgi_pair *)handler->env, .env_count = handler->env_count,
	};

	for (made = 0; made < match->params_count; made++) {
		param_name(match->params[made].name, names[made]);
		values[made] = slice_dup(match->params[made].value);
		if (values[made] == NULL)
			break;
		params[made] = (struct cgi_pair){ names[made], values[made] };
	}
	if (made == match->params_count)
		vars = build(request, &how);
	while (made > 0)
		free(values[--made]);
	return vars;
}
