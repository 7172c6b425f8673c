/* Any variables from a web server, given as FastCGI pairs: a path that begins
 * with '/' and does not climb, and no guarded name in the environment. */
#include "base/env_names.h"
#include "wire/cgi_request.h"
#include "wire/fcgi_params.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_environment(const struct vars *front, const struct cgi_request *request)
{
	const struct cgi_environment how = {
		.method = request->method, .query = request->query, .script_name = "", .path_info = request->path,
		.request_id = "1", .has_body = request->has_length, .has_length = request->has_length,
		.content_length = request->content_length, .is_process = true,
	};
	struct vars *out = vars_new(1 << 16);

	if (cgi_environment_build(front, &how, out) != 0)
		abort();
	for (size_t i = 0; i < vars_count(out); i++) {
		const char *name = vars_at(out, i).name;

		if (!env_name_is_safe(name, strlen(name)) || strcasecmp(name, "HTTP_PROXY") == 0
		    || strcasecmp(name, "HTTP_AUTHORIZATION") == 0)
			abort();
	}
	if (strncmp(vars_get(out, "SCRIPT_FILENAME") == NULL ? "" : vars_get(out, "SCRIPT_FILENAME"), "proxy:", 6) == 0)
		abort();
	vars_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice block = { (const char *)data, size }, name, value;
	struct vars *front = vars_new(4096);
	struct cgi_request request;
	struct err err;

	while (fcgi_next_pair(&block, &name, &value) == FCGI_PAIR_OK)
		vars_set(front, name, value);
	if (cgi_request_read(front, &request, &err) == 0) {
		if (request.path[0] != '/' || cgi_path_climbs(request.path))
			abort();
		check_environment(front, &request);
	}
	cgi_request_fini(&request);
	vars_free(&front);
	return 0;
}
