#include "serve/identity.h"

#include <errno.h>
#include <grp.h>
#include <sys/prctl.h>
#include <unistd.h>

static int check(const struct identity *identity, struct err *err)
{
	uid_t real, effective, saved;

	if (getresuid(&real, &effective, &saved) < 0 || real != identity->uid || effective != identity->uid || saved != identity->uid)
		return err_set(err, "user %s: the process is still somebody else", identity->user);
	if (identity->uid != 0 && setuid(0) == 0)
		return err_set(err, "user %s: the process could become root again", identity->user);
	return 0;
}

/* Everyone may read and check such a configuration, and bridge to its host. */
int identity_check_handlers(const struct config *config, struct err *err)
{
	for (size_t i = 0; i < config->handlers_count; i++) {
		const struct handler_config *handler = &config->handlers[i];

		if (handler->identity.is_set)
			return err_set(err, "%s:%u:%u: handlers.%s: 'user' needs root: only root can start programs as another user",
				config->file, handler->line, handler->column, handler->name);
	}
	return 0;
}

int identity_assume(const struct identity *identity, struct err *err)
{
	if (!identity->is_set || geteuid() != 0)
		return 0;
	if (setgroups(identity->groups_count, identity->groups) < 0 ||
	    setresgid(identity->gid, identity->gid, identity->gid) < 0 ||
	    setresuid(identity->uid, identity->uid, identity->uid) < 0)
		return err_set_errno(err, errno, "user %s", identity->user);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return check(identity, err);
}
