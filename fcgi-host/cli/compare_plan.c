#include "cli/compare_plan.h"

#include "base/text.h"
#include "cli/call_body.h"
#include "cli/cli.h"
#include "compare/ways.h"
#include "config/reader.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { BODY_MAX_BYTES = 128 << 20, TIMEOUT_S = 60 };

/* The command line. */

enum {
	OPTION_BASELINE = 256, OPTION_BLOCKS, OPTION_COMMAND, OPTION_CONCURRENCY, OPTION_CONNECT, OPTION_CSV, OPTION_HTML,
	OPTION_JSON, OPTION_NATIVE, OPTION_NO_KEEP, OPTION_PATH, OPTION_PROTOCOL, OPTION_RATE, OPTION_STATUS, OPTION_SUITE,
	OPTION_TIMEOUT, OPTION_URL, OPTION_VIA, OPTION_WAYS,
};

static const struct option option_list[] = {
	{ "baseline", required_argument, NULL, OPTION_BASELINE }, { "blocks", required_argument, NULL, OPTION_BLOCKS },
	{ "command", required_argument, NULL, OPTION_COMMAND }, { "concurrency", required_argument, NULL, OPTION_CONCURRENCY },
	{ "config", required_argument, NULL, 'c' }, { "connect", required_argument, NULL, OPTION_CONNECT },
	{ "csv", no_argument, NULL, OPTION_CSV }, { "data", required_argument, NULL, 'd' }, { "header", required_argument, NULL, 'H' },
	{ "html", required_argument, NULL, OPTION_HTML }, { "json", no_argument, NULL, OPTION_JSON },
	{ "native", required_argument, NULL, OPTION_NATIVE }, { "no-keep", no_argument, NULL, OPTION_NO_KEEP },
	{ "path", required_argument, NULL, OPTION_PATH }, { "protocol", required_argument, NULL, OPTION_PROTOCOL },
	{ "rate", required_argument, NULL, OPTION_RATE }, { "request", required_argument, NULL, 'X' },
	{ "requests", required_argument, NULL, 'n' }, { "status", required_argument, NULL, OPTION_STATUS },
	{ "suite", required_argument, NULL, OPTION_SUITE }, { "timeout", required_argument, NULL, OPTION_TIMEOUT },
	{ "url", required_argument, NULL, OPTION_URL }, { "via", required_argument, NULL, OPTION_VIA },
	{ "ways", required_argument, NULL, OPTION_WAYS }, { NULL, 0, NULL, 0 },
};

static int refuse(const char *what, const char *value)
{
	fprintf(stderr, "fcgi-host compare: %s, not '%s'\n", what, value);
	return -1;
}

static int take_number(const char *name, uint64_t min, uint64_t max, uint64_t *out)
{
	char what[128];

	if (text_to_u64(slice_of(optarg), out) == 0 && *out >= min && *out <= max)
		return 0;
	snprintf(what, sizeof(what), "%s takes a number from %llu to %llu", name, (unsigned long long)min, (unsigned long long)max);
	return refuse(what, optarg);
}

static int take_rate(struct compare_options *options)
{
	char *end;

	options->rate_per_s = strtod(optarg, &end);
	return *end == '\0' && end != optarg && options->rate_per_s >= 0.01 && options->rate_per_s <= 1e7 ? 0 :
		refuse("--rate takes requests a second, from 0.01 to 10000000", optarg);
}

static int append(const char ***list, const char *text)
{
	size_t count = 0;
	const char **more;

	while (*list != NULL && (*list)[count] != NULL)
		count++;
	more = realloc(*list, (count + 2) * sizeof(*more));
	if (more == NULL)
		return -1;
	more[count] = text;
	more[count + 1] = NULL;
	*list = more;
	return 0;
}

static int take_load_option(struct compare_options *options, int option)
{
	uint64_t number;

	switch (option) {
	case 'n': return take_number("-n", 1, 1000000000, &options->requests);
	case 'X': options->method = optarg; return 0;
	case 'd': options->data = optarg; return 0;
	case 'H':
		return strchr(optarg, ':') == NULL || optarg[0] == ':' || strpbrk(optarg, "\r\n") != NULL ? refuse("-H takes 'Name: value'", optarg) : append(&options->headers, optarg);
	case OPTION_BLOCKS: return take_number("--blocks", PLAN_BLOCKS_MIN, PLAN_BLOCKS_MAX, &options->blocks);
	case OPTION_CONCURRENCY: return take_number("--concurrency", 1, PLAN_CONCURRENCY_MAX, &options->concurrency);
	case OPTION_RATE: return take_rate(options);
	case OPTION_TIMEOUT: return take_number("--timeout", 1, 3600, &options->timeout_s);
	case OPTION_NO_KEEP: options->without_keep = true; return 0;
	case OPTION_PATH:
		options->path = optarg;
		return optarg[0] == '/' ? 0 : refuse("--path takes a path that begins with '/'", optarg);
	case OPTION_STATUS:
		if (take_number("--status", 200, 599, &number) < 0)
			return -1;
		options->status = (unsigned)number;
		return 0;
	case OPTION_VIA: return via_from(optarg, &options->via) == 0 ? 0 : refuse("--via takes nginx, apache or none", optarg);
	default: return -1;
	}
}

static int take_option(struct compare_options *options, int option)
{
	switch (option) {
	case 'c': options->config_file = optarg; return 0;
	case OPTION_BASELINE: options->baseline = optarg; return 0;
	case OPTION_COMMAND: options->command = optarg; return 0;
	case OPTION_PROTOCOL: options->protocol = optarg; return 0;
	case OPTION_SUITE: options->suite = optarg; return 0;
	case OPTION_WAYS: options->ways = optarg; return 0;
	case OPTION_NATIVE: options->native = optarg; return 0;
	case OPTION_URL: return append(&options->urls, optarg);
	case OPTION_CONNECT: return append(&options->connects, optarg);
	case OPTION_JSON: options->as_json = true; return 0;
	case OPTION_CSV: options->as_csv = true; return 0;
	case OPTION_HTML: options->html = optarg; return 0;
	default: return take_load_option(options, option);
	}
}

/* One thing to compare, and nothing that would be ignored. */
static int check_options(const struct compare_options *options, int given)
{
	bool has_own_ways = options->handler != NULL || options->command != NULL;

	if (options->suite != NULL)
		return given == 1 + options->as_json + options->as_csv + (options->html != NULL) && options->handler == NULL ? 0 :
			refuse("--suite goes with --json, --csv and --html only: a suite says the rest itself", "more");
	if (options->handler != NULL && options->command != NULL)
		return refuse("either HANDLER or --command", "both");
	if (!has_own_ways && options->urls == NULL && options->connects == NULL && options->native == NULL)
		return -1;
	if (options->protocol != NULL && options->command == NULL)
		return refuse("--protocol goes with --command", options->protocol);
	return options->as_json && options->as_csv ? refuse("either --json or --csv", "both") : 0;
}

int compare_options_read(struct compare_options *options, int argc, char **argv)
{
	int option, given = 0;

	*options = (struct compare_options){ .config_file = config_default_file(), .blocks = PLAN_BLOCKS_DEFAULT, .concurrency = 1,
		.status = 200, .timeout_s = TIMEOUT_S };
	for (; (option = getopt_long(argc, argv, "c:n:X:H:d:", option_list, NULL)) != -1; given++)
		if (take_option(options, option) < 0)
			return -1;
	if (argc - optind > 1)
		return -1;
	options->handler = argc > optind ? argv[optind] : NULL;
	return check_options(options, given);
}

void compare_options_fini(struct compare_options *options)
{
	free(options->urls);
	free(options->connects);
	free(options->headers);
}

/* The plan. */

/* A program named on the command line is found from here, not from a file's folder. */
static char *absolute_command(const char *command)
{
	size_t len = strcspn(command, " \t");
	char *first = slice_dup((struct slice){ command, len }), *here = getcwd(NULL, 0), *found = NULL, *whole = NULL;

	if (first != NULL && here != NULL)
		found = strchr(first, '/') == NULL ? plan_find_program(first) : path_resolve(here, first);
	if (found != NULL && asprintf(&whole, "%s%s", found, command + len) < 0)
		whole = NULL;
	free(first);
	free(here);
	free(found);
	return whole;
}

static int write_config(const struct compare_options *options, const char *command, FILE *out)
{
	fputs("handlers:\n  command:\n    command: ", out);
	plan_put_quoted(out, command);
	if (options->protocol != NULL) {
		fputs("\n    protocol: ", out);
		plan_put_quoted(out, options->protocol);
	}
	/* Nobody has set limits for it: what a load of ours asks for at a time may wait. */
	fprintf(out, "\n    queue: {max: %d, timeout: %llus}", PLAN_CONCURRENCY_MAX, (unsigned long long)options->timeout_s);
	fputs("\nroutes:\n  - {path: /*, handler: command}\n", out);
	return fclose(out);
}

static struct config *load(const char *file, struct err *err)
{
	struct config_report report;
	struct config *config;

	config_report_init(&report);
	config = config_load(file, &report);
	if (config == NULL)
		err_set(err, "%.*s", (int)(report.errors.len > 0 ? report.errors.len - 1 : 0), (const char *)bytes_data(&report.errors));
	config_report_fini(&report);
	return config;
}

static struct config *config_of_command(const struct compare_options *options, struct err *err)
{
	char *command = absolute_command(options->command), path[4096];
	struct config *config = NULL;
	FILE *out;
	int fd;

	snprintf(path, sizeof(path), "%s/fcgi-host-compare-command.XXXXXX", plan_temporary_folder());
	fd = command == NULL ? -1 : mkstemp(path);
	out = fd < 0 ? NULL : fdopen(fd, "w");

	if (command == NULL)
		err_set(err, "there is no program '%s'", options->command);
	else if (out == NULL || write_config(options, command, out) != 0)
		err_set_errno(err, errno, "%s", path);
	else
		config = load(path, err);
	if (fd >= 0)
		unlink(path);
	free(command);
	return config;
}

static int find_handler(const struct config *config, const char *name, unsigned *number_out, struct err *err)
{
	const char **names = calloc(config->handlers_count + 1, sizeof(*names)), *nearest;

	for (unsigned i = 0; names != NULL && i < config->handlers_count; i++) {
		names[i] = config->handlers[i].name;
		if (strcmp(names[i], name) == 0) {
			*number_out = i;
			free(names);
			return 0;
		}
	}
	nearest = names == NULL ? NULL : text_nearest(name, names);
	err_set(err, "%s has no handler '%s'%s%s%s", config->file, name, nearest == NULL ? "" : ", did you mean '", nearest == NULL ? "" : nearest,
		nearest == NULL ? "" : "'?");
	free(names);
	return -1;
}

static int read_body(const char *data, struct load_plan *load, struct err *err)
{
	uint64_t size = 0, got = 0;
	int fd = call_body_open(data, &size, err);
	ssize_t n;

	if (fd < 0)
		return -1;
	load->body = size > BODY_MAX_BYTES ? NULL : malloc(size + 1);
	while (load->body != NULL && got < size && (n = read(fd, load->body + got, size - got)) > 0)
		got += (uint64_t)n;
	close(fd);
	load->body_len = (size_t)got;
	return load->body != NULL && got == size ? 0 : err_set(err, "the body cannot be read, or is over 128 MiB");
}

/* The one that was asked for, the usual one, or another one where the route takes that alone. */
static const char *method_for(const struct compare_options *options, const struct route_config *route)
{
	const char *usual = options->data != NULL ? "POST" : "GET";

	if (options->method != NULL || route == NULL || route->methods == NULL || route->methods[0] == NULL)
		return options->method != NULL ? options->method : usual;
	for (size_t i = 0; route->methods[i] != NULL; i++)
		if (strcmp(route->methods[i], usual) == 0)
			return usual;
	return route->methods[0];
}

/* Those that were given, and the host that the route wants. */
static int make_headers(const struct compare_options *options, const struct route_config *route, struct load_plan *load)
{
	size_t count = 0;
	bool has_host = false;

	while (options->headers != NULL && options->headers[count] != NULL)
		has_host |= strncasecmp(options->headers[count++], "Host:", 5) == 0;
	load->headers = calloc(count + 2, sizeof(*load->headers));
	for (size_t i = 0; load->headers != NULL && i < count; i++)
		load->headers[i] = strdup(options->headers[i]);
	if (load->headers != NULL && route != NULL && route->host != NULL && !has_host &&
	    asprintf(&load->headers[count], "Host: %s", route->host) < 0)
		load->headers[count] = NULL;
	return load->headers == NULL ? -1 : 0;
}

static int make_load(const struct compare_options *options, const struct route_config *route, struct load_plan *load, struct err *err)
{

	*load = (struct load_plan){
		.kind = options->rate_per_s > 0 ? SCHEDULE_OPEN : SCHEDULE_CLOSED,
		.requests = options->requests,
		.blocks = options->blocks + options->blocks % 2,
		/* In an open loop the places must not be what limits. */
		.concurrency = options->rate_per_s > 0 && options->concurrency == 1 ? 256 : options->concurrency,
		.rate_per_s = options->rate_per_s, .keep = !options->without_keep, .via = options->via, .status = options->status,
		.timeout_ms = options->timeout_s * 1000,
		.method = strdup(method_for(options, route)),
		.path = options->path != NULL ? strdup(options->path) : ways_path(route),
	};
	if (make_headers(options, route, load) < 0 || load->method == NULL || load->path == NULL)
		return err_set(err, "no memory");
	return options->data == NULL ? 0 : read_body(options->data, load, err);
}

/* "url", "url-2", … */
static int add_servers(struct comparison *comparison, const char *const *list, const char *name, bool is_url)
{
	for (size_t i = 0; list != NULL && list[i] != NULL; i++) {
		struct way *way = comparison_add_way(comparison);

		if (way == NULL || (i == 0 ? (way->name = strdup(name)) == NULL : asprintf(&way->name, "%s-%zu", name, i + 1) < 0))
			return -1;
		*(is_url ? &way->url : &way->connect) = strdup(list[i]);
	}
	return 0;
}

static int check_baseline(const struct comparison *comparison, struct err *err)
{
	bool is_there = comparison->baseline == NULL;

	for (size_t i = 0; i < comparison->ways_count; i++)
		is_there |= comparison->baseline != NULL && strcmp(comparison->ways[i].name, comparison->baseline) == 0;
	return is_there ? 0 : err_set(err, "the baseline '%s' is none of the ways that are compared", comparison->baseline);
}

static int make_comparison(const struct compare_options *options, const struct config *config, unsigned number, struct plan *plan,
	struct err *err)
{
	struct comparison *comparison = plan_add_comparison(plan);
	const char *native[] = { options->native, NULL };
	const char *baseline = options->baseline != NULL ? options->baseline : options->native != NULL ? "native" : NULL;

	if (comparison == NULL)
		return err_set(err, "no memory");
	comparison->baseline = baseline == NULL ? NULL : strdup(baseline);
	if (config != NULL && ways_add(comparison, config, number, options->ways, err) < 0)
		return -1;
	if (add_servers(comparison, native, "native", true) < 0 || add_servers(comparison, options->urls, "url", true) < 0 ||
	    add_servers(comparison, options->connects, "connect", false) < 0)
		return err_set(err, "no memory");
	return check_baseline(comparison, err);
}

int compare_plan_make(const struct compare_options *options, struct plan *plan, struct config **config, struct err *err)
{
	unsigned number = 0;

	*config = NULL;
	plan->is_strict = true;
	if (options->command != NULL && (*config = config_of_command(options, err)) == NULL)
		return -1;
	if (options->handler != NULL && ((*config = load(options->config_file, err)) == NULL ||
	    find_handler(*config, options->handler, &number, err) < 0))
		return -1;
	if (make_load(options, *config == NULL ? NULL : ways_route(*config, number), &plan->load, err) < 0)
		return -1;
	return make_comparison(options, *config, number, plan, err);
}
