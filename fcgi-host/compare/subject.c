#include "compare/subject.h"

#include "serve/figures.h"

#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SERVER_PATIENCE_MS = 10000, STOP_PATIENCE_MS = 5000, BODY_MAX_BYTES = 64 << 20, EXIT_NEWS_MS = 3 };

/* Starting. */

/* A name for PATH, a path, or a pattern of paths. */
static bool is_installed(const char *program)
{
	char *found;
	glob_t paths;
	bool is_there;

	if (strpbrk(program, "*?[") != NULL) {
		is_there = glob(program, GLOB_NOSORT, NULL, &paths) == 0;
		globfree(&paths);
		return is_there;
	}
	found = plan_find_program(program);
	is_there = found != NULL;
	free(found);
	return is_there;
}

static int check_needs(const struct way *way, struct err *err)
{
	for (size_t i = 0; i < way->needs_count; i++)
		if (!is_installed(way->needs[i].program))
			return err_set(err, "%s is not installed (Debian: %s)", way->needs[i].program, way->needs[i].package);
	return 0;
}

/* `text` with {port} and {socket} replaced, on the heap. */
static char *replace(const char *text, const char *port, const char *socket)
{
	char *out = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&out, &len);

	while (to != NULL && *text != '\0') {
		if (strncmp(text, "{port}", 6) == 0) {
			fputs(port, to);
			text += 6;
		} else if (strncmp(text, "{socket}", 8) == 0) {
			fputs(socket, to);
			text += 8;
		} else {
			fputc(*text++, to);
		}
	}
	if (to != NULL)
		fclose(to);
	return out;
}

struct places { char port[16], socket[4096], output[4096]; };

static char **replace_all(char **texts, const struct places *places)
{
	size_t count = 0;
	char **out;

	while (texts[count] != NULL)
		count++;
	out = calloc(count + 1, sizeof(*out));
	for (size_t i = 0; out != NULL && i < count; i++)
		out[i] = replace(texts[i], places->port, places->socket);
	return out;
}

static struct pair *server_env(const struct subject *subject, const struct places *places, size_t *count_out)
{
	const struct way *way = subject->way;
	size_t count = subject->stage->env_count + way->server_env_count;
	struct pair *env = calloc(count + 1, sizeof(*env));

	*count_out = env == NULL ? 0 : count;
	for (size_t i = 0; i < *count_out; i++) {
		const struct pair *from = i < subject->stage->env_count ? &subject->stage->env[i] : &way->server_env[i - subject->stage->env_count];

		env[i] = (struct pair){ strdup(from->name), replace(from->value, places->port, places->socket) };
	}
	return env;
}

static int start_server(struct subject *subject, const struct places *places, struct err *err)
{
	char **argv = replace_all(subject->way->server, places);
	struct child_spec spec = { .argv = argv, .directory = subject->way->server_directory, .output = places->output,
		.stdin_fd = -1, .stdout_fd = -1 };
	struct pair *env = server_env(subject, places, &spec.env_count);
	const char *where = subject->url != NULL ? subject->url : subject->connect;
	char *program = argv == NULL || argv[0] == NULL ? NULL : plan_find_program(argv[0]);
	int status = 0;

	spec.env = env;
	spec.program = program;
	if (program == NULL)
		status = err_set(err, "%s is not installed", argv == NULL || argv[0] == NULL ? "the server" : argv[0]);
	else
		status = child_start(&subject->server, &spec, err);
	if (status == 0)
		status = wait_for_listener(where, &subject->server, SERVER_PATIENCE_MS, argv[0], err);
	for (size_t i = 0; i < spec.env_count; i++) {
		free(env[i].name);
		free(env[i].value);
	}
	free(env);
	free(program);
	texts_free(argv);
	return status;
}

static enum via via_of(const struct subject *subject)
{
	return subject->way->via == VIA_AS_LOAD ? subject->stage->plan->load.via : subject->way->via;
}

static int start_processes(struct subject *subject, unsigned number, struct err *err)
{
	const struct way *way = subject->way;
	struct stage *stage = subject->stage;
	struct way_place place = { .env = stage->env, .env_count = stage->env_count, .group = private_web_group(via_of(subject)) };
	struct places places;

	snprintf(places.port, sizeof(places.port), "%u", free_port());
	snprintf(places.socket, sizeof(places.socket), "%s/server-%u.sock", stage->folder, number);
	snprintf(places.output, sizeof(places.output), "%s/server-%u.out", stage->folder, number);
	subject->url = way->url == NULL ? NULL : replace(way->url, places.port, places.socket);
	subject->connect = way->connect == NULL ? NULL : replace(way->connect, places.port, places.socket);
	if (way->refusal != NULL)
		return err_set(err, "%s", way->refusal);
	if (check_needs(way, err) < 0 || (way->server != NULL && start_server(subject, &places, err) < 0))
		return -1;
	if (way->write_config == NULL)
		return 0;
	if (private_host_start(&subject->host, way, stage->folder, number, &place, err) < 0)
		return -1;
	if (way->process == PROCESS_PARKED || way->process == PROCESS_ZYGOTE)
		private_host_wait_ahead(&subject->host);
	return via_of(subject) == VIA_NONE ? 0 :
		private_web_start(&subject->web, via_of(subject), subject->host.address, stage->folder, number, err);
}

static int make_target(struct subject *subject, struct err *err)
{
	const struct load_plan *load = &subject->stage->plan->load;
	struct request_spec spec = { .method = load->method, .path = load->path, .headers = (const char *const *)load->headers,
		.body = load->body, .body_len = load->body_len, .keep = load->keep };

	if (subject->web.url != NULL)
		return target_init_http(&subject->target, subject->web.url, &spec, err);
	if (subject->url != NULL)
		return target_init_http(&subject->target, subject->url, &spec, err);
	return target_init_fastcgi(&subject->target, subject->connect != NULL ? subject->connect : subject->host.address, &spec, err);
}

int subject_start(struct subject *subject, struct stage *stage, const struct way *way, unsigned number, struct err *err)
{
	struct load_rules rules = { .places = stage->plan->load.concurrency, .status = stage->plan->load.status,
		.timeout_ms = stage->plan->load.timeout_ms, .is_interrupted = stage->is_interrupted, .random = &stage->random };

	*subject = (struct subject){ .stage = stage, .way = way };
	bytes_init(&subject->expected, BODY_MAX_BYTES);
	if (start_processes(subject, number, err) < 0 || make_target(subject, err) < 0)
		return -1;
	subject->has_outsider = way->behind != NULL || (subject->host.child.pid == 0 && subject->server.pid == 0);
	if (subject->has_outsider)
		subject->outsider = usage_listener(way->behind != NULL ? &way->behind->sockaddr : &subject->target.address);
	subject->loader = loader_new(&subject->target, &rules, err);
	return subject->loader == NULL ? -1 : 0;
}

void subject_stop(struct subject *subject)
{
	loader_free(&subject->loader);
	target_fini(&subject->target);
	private_web_stop(&subject->web);
	private_host_stop(&subject->host);
	child_stop(&subject->server, STOP_PATIENCE_MS);
	bytes_fini(&subject->expected);
	free(subject->url);
	free(subject->connect);
	subject->url = subject->connect = NULL;
}

/* Asking. */

int subject_ask(struct subject *subject, size_t variant, struct exchange *exchange, struct bytes *body, struct err *err)
{
	subject->asked++;
	return exchange_ask(exchange, &subject->target, variant, subject->stage->plan->load.timeout_ms, body, err);
}

void subject_last_log_line(const struct subject *subject, char *out, size_t out_size)
{
	int fd = subject->host.log == NULL ? -1 : open(subject->host.log, O_RDONLY | O_CLOEXEC);
	off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	ssize_t len = fd < 0 ? 0 : pread(fd, out, out_size - 1, size > (off_t)out_size - 1 ? size - ((off_t)out_size - 1) : 0);
	char *line;

	if (fd >= 0)
		close(fd);
	out[len < 0 ? 0 : len] = '\0';
	for (size_t end = strlen(out); end > 0 && out[end - 1] == '\n'; end--)
		out[end - 1] = '\0';
	line = strrchr(out, '\n');
	if (line != NULL)
		memmove(out, line + 1, strlen(line + 1) + 1);
}

static struct schedule schedule_for(struct subject *subject, uint64_t requests, bool is_warming)
{
	const struct load_plan *load = &subject->stage->plan->load;

	return (struct schedule){ .kind = is_warming ? SCHEDULE_CLOSED : load->kind, .requests = requests,
		.concurrency = is_warming && load->kind == SCHEDULE_OPEN ? 1 : load->concurrency, .rate_per_s = load->rate_per_s, .random = &subject->stage->random };
}

int subject_warm(struct subject *subject, uint64_t requests, double *each_ns_out, struct err *err)
{
	struct schedule schedule = schedule_for(subject, requests, true);
	struct block block;

	if (loader_run(subject->loader, &schedule, &block, NULL, err) < 0)
		return -1;
	if (each_ns_out != NULL)
		*each_ns_out = (double)block.elapsed_ns / (double)requests;
	return 0;
}

/* What it used so far. */

static uint64_t asked_in_all(const struct subject *subject)
{
	return subject->asked + loader_sent(subject->loader);
}

/* A host counts a request when its process has gone: then all that it used is known. */
static int settle(struct subject *subject, struct host_reading *reading, struct err *err)
{
	uint64_t asked = asked_in_all(subject);

	if (private_host_settle(&subject->host, subject->settled_requests + asked - subject->settled_asked, reading, err) < 0)
		return -1;
	/* It may count otherwise than we do, when something fails: do not wait for that again. */
	subject->settled_asked = asked;
	subject->settled_requests = reading->requests;
	return 0;
}

static bool read_clocks(const struct subject *subject, struct usage *usage)
{
	int status = 0;

	*usage = (struct usage){ 0 };
	if (subject->host.child.pid > 0)
		status = usage_add_host(subject->host.child.pid, usage);
	if (subject->web.child.pid > 0)
		status |= usage_add_program(subject->web.child.pid, USAGE_WEB, usage);
	if (subject->server.pid > 0)
		status |= usage_add_program(subject->server.pid, USAGE_HANDLERS, usage);
	if (subject->has_outsider)
		status |= subject->outsider == 0 ? -1 : usage_add_program(subject->outsider, USAGE_HANDLERS, usage);
	return status == 0;
}

static void add_reading(struct usage *usage, const struct host_reading *reading)
{
	usage->cpu_ns[USAGE_HANDLERS] += reading->ended_cpu_ns;
	usage->faults[USAGE_HANDLERS] += reading->ended_faults;
	usage->switches[USAGE_HANDLERS] += reading->ended_switches;
}

struct moment { struct usage usage; struct host_reading reading; bool is_known; };

static int read_before(struct subject *subject, struct moment *moment, struct err *err)
{
	if (subject->host.child.pid > 0 && settle(subject, &moment->reading, err) < 0)
		return -1;
	moment->is_known = read_clocks(subject, &moment->usage);
	add_reading(&moment->usage, &moment->reading);
	return 0;
}

/* The clocks before the status: telling that costs the relay something too. */
static int read_after(struct subject *subject, struct moment *moment, struct err *err)
{
	if (subject->host.child.pid > 0)
		nanosleep(&(struct timespec){ .tv_nsec = EXIT_NEWS_MS * 1000000 }, NULL);
	moment->is_known = read_clocks(subject, &moment->usage);
	if (subject->host.child.pid > 0 && settle(subject, &moment->reading, err) < 0)
		return -1;
	add_reading(&moment->usage, &moment->reading);
	return 0;
}

static void add_usage(struct way_result *result, const struct moment *before, const struct moment *after, const struct block *block)
{
	result->has_usage = before->is_known && after->is_known;
	usage_add_between(&result->usage, &before->usage, &after->usage);
	result->usage_requests += block->answered + block->failed;
	result->starts_cold += after->reading.starts_cold - before->reading.starts_cold;
	result->starts_ahead += after->reading.starts_ahead - before->reading.starts_ahead;
	result->spawn_count += after->reading.spawn_count - before->reading.spawn_count;
	for (int i = 0; i < SPAWN_PARTS_COUNT; i++)
		result->spawn_ns[i] += after->reading.spawn_ns[i] - before->reading.spawn_ns[i];
}

int subject_run_block(struct subject *subject, uint64_t requests, struct block *block, struct latencies *latencies,
	struct way_result *result, struct err *err)
{
	struct schedule schedule = schedule_for(subject, requests, false);
	struct moment before = { .is_known = false }, after = { .is_known = false };

	if (result != NULL && read_before(subject, &before, err) < 0)
		return -1;
	if (loader_run(subject->loader, &schedule, block, latencies, err) < 0)
		return -1;
	if (result != NULL && read_after(subject, &after, err) < 0)
		return -1;
	if (result != NULL)
		add_usage(result, &before, &after, block);
	if (subject->host.child.pid > 0)
		private_host_trim_log(&subject->host);
	return 0;
}

void subject_read_idle(struct subject *subject, struct way_result *result)
{
	int status = 0;

	result->idle = (struct holding){ .is_resident = false };
	if (subject->host.child.pid > 0)
		status = holding_add_host(subject->host.child.pid, &result->idle);
	if (subject->web.child.pid > 0)
		status |= holding_add_program(subject->web.child.pid, USAGE_WEB, &result->idle);
	if (subject->server.pid > 0)
		status |= holding_add_program(subject->server.pid, USAGE_HANDLERS, &result->idle);
	if (subject->has_outsider)
		status |= subject->outsider == 0 ? -1 : holding_add_program(subject->outsider, USAGE_HANDLERS, &result->idle);
	result->has_idle = status == 0;
}
