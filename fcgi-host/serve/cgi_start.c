#include "serve/cgi_start.h"

#include "base/clock.h"
#include "serve/request.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
	ENTRY_MAX_BYTES = 128 * 1024,           /* one variable, as execve takes it */
	HAND_OVER_MAX_BYTES = 128 * 1024,       /* all, as a socket takes them at once */
};

int cgi_make_environ(const struct request *request, struct bytes *out, struct err *err)
{
	struct vars *vars = request_variables(request, true);
	int status = -1;

	bytes_init(out, vars == NULL ? 1 : vars_bytes(vars) + 1);
	if (vars != NULL)
		status = vars_to_environ(vars, out);
	vars_free(&vars);
	return status < 0 ? err_set(err, "no memory for the variables") : 0;
}

/* What a program that is started would not get, or get in another way, is left to
 * the kernel to refuse. */
static bool is_for_exec(const struct bytes *environment)
{
	const char *entry = (const char *)bytes_data(environment), *end = environment->len == 0 ? entry : entry + environment->len;

	if (environment->len > HAND_OVER_MAX_BYTES)
		return true;
	for (; entry < end; entry += strlen(entry) + 1)
		if (strlen(entry) >= ENTRY_MAX_BYTES)
			return true;
	return false;
}

void cgi_choose_process(struct cgi *cgi, const struct bytes *environment)
{
	if (cgi->spare != NULL && is_for_exec(environment)) {
		spare_end(cgi->spare);
		spare_free(&cgi->spare);
		pool_on_answered(cgi->request->pool);
	}
	cgi->process = cgi->spare != NULL ? &cgi->spare->process : &cgi->started;
	cgi->request->has_spare = cgi->spare != NULL;
	if (cgi->spare == NULL)
		cgi->request->start = START_COLD;
	else
		cgi->request->start = cgi->spare->is_forked ? START_FORKED : START_PARKED;
}

/* Pipes. */

static int open_new_pipes(struct cgi *cgi, int child_fds[3], struct err *err)
{
	int in[2], out[2], errors[2];

	if (!body_is_spent(&cgi->request->body)) {
		if (pipe2(in, O_CLOEXEC) < 0)
			return err_set_errno(err, errno, "pipe for a handler");
		child_fds[0] = in[0];
		cgi->in_fd = in[1];
		fcntl(cgi->in_fd, F_SETFL, O_NONBLOCK);
	}
	if (pipe2(out, O_CLOEXEC) < 0)
		return err_set_errno(err, errno, "pipe for a handler");
	child_fds[1] = out[1];
	cgi->out_fd = out[0];
	if (pipe2(errors, O_CLOEXEC) < 0)
		return err_set_errno(err, errno, "pipe for a handler");
	child_fds[2] = errors[1];
	cgi->err_fd = errors[0];
	return 0;
}

static void take_pipes(struct cgi *cgi)
{
	struct spare *spare = cgi->spare;

	cgi->in_fd = spare->fds[SPARE_IN];
	cgi->out_fd = spare->fds[SPARE_OUT];
	cgi->err_fd = spare->fds[SPARE_ERR];
	spare->fds[SPARE_IN] = spare->fds[SPARE_OUT] = spare->fds[SPARE_ERR] = -1;
	if (body_is_spent(&cgi->request->body)) {
		close(cgi->in_fd);
		cgi->in_fd = -1;
	}
}

int cgi_open_pipes(struct cgi *cgi, int child_fds[3], struct err *err)
{
	if (cgi->spare == NULL)
		return open_new_pipes(cgi, child_fds, err);
	take_pipes(cgi);
	return 0;
}

/* The request's way to it. */

static int start_process(struct cgi *cgi, const struct bytes *environment, const int child_fds[3], struct err *err)
{
	struct request *request = cgi->request;
	struct spawn_request spawn = {
		.handler = request->handler->number, .generation = pool_generation(request->pool), .script = request->script,
		.environ = environment, .fds = { child_fds[0], child_fds[1], child_fds[2] } };

	return process_start(request->host->spawner, cgi->process, &spawn, err);
}

static int hand_over(struct cgi *cgi, const struct bytes *environment, struct err *err)
{
	if (spare_hand_over(cgi->spare, environment, err) < 0)
		return -1;
	request_on_started(cgi->request, cgi->process->pid, clock_monotonic_ns());
	watch_set(cgi->err_watch, WATCH_READ);
	return 0;
}

int cgi_start(struct cgi *cgi, const struct bytes *environment, const int child_fds[3], struct err *err)
{
	return cgi->spare != NULL ? hand_over(cgi, environment, err) : start_process(cgi, environment, child_fds, err);
}
