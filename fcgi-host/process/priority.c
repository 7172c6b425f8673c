#include "process/priority.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { AHEAD_NICE = 10 };

static bool can_raise(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data) != 0)
		return false;
	return (data[CAP_TO_INDEX(CAP_SYS_NICE)].effective & CAP_TO_MASK(CAP_SYS_NICE)) != 0;
}

int priority_ahead(void)
{
	return can_raise() ? AHEAD_NICE : 0;
}

void priority_raise(pid_t group)
{
	if (can_raise())
		setpriority(PRIO_PGRP, (id_t)group, getpriority(PRIO_PROCESS, 0));      /* ours is the usual one */
}
