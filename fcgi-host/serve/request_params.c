/*
 * The variables of a request: collected, checked, and brought into one form.
 */
#include "serve/request_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "serve/dispatch.h"
#include "wire/fcgi_params.h"

#include <inttypes.h>
#include <stdio.h>

enum params_result { PARAMS_FINE, PARAMS_TOO_LARGE, PARAMS_BAD, PARAMS_BAD_PATH };

void request_params(struct request *request, struct slice data)
{
	if (request->state != REQUEST_PARAMS || request->is_params_too_large)
		return;
	if (bytes_append(&request->params, data.ptr, data.len) < 0) {
		request->is_params_too_large = true;
		bytes_fini(&request->params);
	}
}

/* Only a NUL makes their value refused. */
static bool names_path(struct slice name)
{
	return slice_is(name, "SCRIPT_NAME") || slice_is(name, "PATH_INFO") || slice_is(name, "DOCUMENT_URI") ||
		slice_is(name, "REQUEST_URI") || slice_is(name, "QUERY_STRING");
}

const char *request_describe_largest(const struct vars *vars, char *out, size_t out_size)
{
	struct var largest = { "none", "", 4, 0 };

	for (size_t i = 0; vars != NULL && i < vars_count(vars); i++) {
		struct var var = vars_at(vars, i);

		if (var.value_len > largest.value_len)
			largest = var;
	}
	snprintf(out, out_size, "%zu in all, the largest %.64s (%u bytes)", vars == NULL ? 0 : vars_count(vars),
		largest.name, largest.value_len);
	return out;
}

static enum params_result read_params(struct request *request, bool *has_repeated_out)
{
	struct slice block = { (const char *)bytes_data(&request->params), request->params.len };
	struct slice name, value;

	request->front = vars_new((size_t)request->host->site->config->params_max_bytes);
	if (request->front == NULL || request->is_params_too_large)
		return PARAMS_TOO_LARGE;
	for (;;) {
		switch (fcgi_next_pair(&block, &name, &value)) {
		case FCGI_PAIR_NONE: return PARAMS_FINE;
		case FCGI_PAIR_BAD: return PARAMS_BAD;
		case FCGI_PAIR_OK: break;
		}
		switch (vars_set(request->front, name, value)) {
		case VARS_SET: break;
		case VARS_REPLACED: *has_repeated_out = true; break;
		case VARS_REFUSED:
			if (names_path(name))
				return PARAMS_BAD_PATH;
			log_message(LOG_LEVEL_WARNING, "variable_dropped", "id %s: a variable whose name or value no environment can hold", request->id);
			break;
		case VARS_FULL: return PARAMS_TOO_LARGE;
		}
	}
}

static void notice_variables(struct request *request, bool has_repeated)
{
	const struct route_config *route = request->match.route;

	if (route == NULL)
		return;
	if (has_repeated && site_notice(request->site, route, NOTICE_REPEATED))
		log_message(LOG_LEVEL_WARNING, "variable_repeated", "route %s: the web server sent a variable twice; the last one wins", route->path);
	if (vars_get(request->front, "REMOTE_USER") != NULL && vars_get(request->front, "REMOTE_USER")[0] != '\0' &&
	    (vars_get(request->front, "AUTH_TYPE") == NULL || vars_get(request->front, "AUTH_TYPE")[0] == '\0') &&
	    site_notice(request->site, route, NOTICE_REMOTE_USER))
		log_message(LOG_LEVEL_WARNING, "remote_user", "route %s: REMOTE_USER came without AUTH_TYPE: has the web server checked that name?", route->path);
}

void request_params_end(struct request *request)
{
	bool has_repeated = false;
	enum params_result result;
	char largest[160];
	struct err err;

	if (request->state != REQUEST_PARAMS)
		return;
	result = read_params(request, &has_repeated);
	if (result == PARAMS_TOO_LARGE) {
		request_fail(request, 431, NULL, "variables over params.max (%" PRIu64 " bytes): %s",
			request->host->site->config->params_max_bytes, request_describe_largest(request->front, largest, sizeof(largest)));
		return;
	}
	if (result == PARAMS_BAD) {
		request_fail(request, 400, NULL, "variables are not FastCGI name-value pairs");
		return;
	}
	if (result == PARAMS_BAD_PATH) {
		request_fail(request, 400, NULL, "a NUL in the path");
		return;
	}
	bytes_fini(&request->params);
	if (cgi_request_read(request->front, &request->cgi, &err) < 0) {
		request_fail(request, 400, NULL, "%s", err.text);
		return;
	}
	request->method = request->cgi.method;
	request->query = request->cgi.query;
	request->has_body = !request->cgi.has_length || request->cgi.content_length > 0;
	if (!request->has_body) {
		request->body.is_complete = true;
		request->body_end_ns = clock_monotonic_ns();
	}
	dispatch_first(request);
	notice_variables(request, has_repeated);
}
