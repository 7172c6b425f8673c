#include "config/fit.h"

#include "config/runtime.h"

static int fit_connect(enum process_mode mode, struct err *why)
{
	if (mode == PROCESS_PERSISTENT)
		return 0;
	return err_set(why, "'connect' cannot be process: %s: its workers are started by someone else", config_process_name(mode));
}

static int fit_persistent(const struct handler_config *handler, struct err *why)
{
	if (handler->scripts != NULL)
		return err_set(why, "'scripts' are started for each request: say process: per-request");
	if (handler->protocol == PROTOCOL_CGI)
		return err_set(why, "a CGI program answers once and ends, so it cannot be persistent; its fast ways are 'parked' and 'zygote'");
	if (handler->protocol == PROTOCOL_STDIO)
		return err_set(why, "a stdio function answers once and ends, so it cannot be persistent; its fast ways are 'parked' and 'zygote'");
	return 0;
}

static int fit_waiting(const struct handler_config *handler, enum process_mode mode, struct err *why)
{
	struct runtime_found found;
	struct err reason;

	if (handler->scripts != NULL)
		return err_set(why, "'scripts' cannot be process: %s: what waits is one program; give the script a handler of its own, with 'command'",
			config_process_name(mode));
	if (handler->command == NULL || handler->command[0] == NULL || runtime_of_handler(handler, mode, &found, &reason) == 0)
		return 0;
	return err_set(why, "cannot be process: %s: %s", config_process_name(mode), reason.text);
}

int fit_process(const struct handler_config *handler, enum process_mode mode, struct err *why)
{
	if (handler->connect.text != NULL)
		return fit_connect(mode, why);
	switch (mode) {
	case PROCESS_PER_REQUEST: break;
	case PROCESS_PARKED:
	case PROCESS_ZYGOTE: return fit_waiting(handler, mode, why);
	case PROCESS_PERSISTENT: return fit_persistent(handler, why);
	}
	return 0;
}
