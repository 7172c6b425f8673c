#include "process/modules.h"

#include "process/hook.h"

#include <string.h>

void modules_init(struct modules *modules)
{
	bytes_init(&modules->names, HOOK_NAMES_MAX * (HOOK_NAME_MAX_BYTES + 1));
	modules->count = 0;
}

void modules_fini(struct modules *modules)
{
	bytes_fini(&modules->names);
}

void modules_forget(struct modules *modules)
{
	bytes_clear(&modules->names);
	modules->count = 0;
}

static bool has(const struct modules *modules, const char *name, size_t len)
{
	const char *at = (const char *)bytes_data(&modules->names);
	const char *end = modules->names.len == 0 ? at : at + modules->names.len;

	for (; at < end; at += strlen(at) + 1)
		if (strlen(at) == len && memcmp(at, name, len) == 0)
			return true;
	return false;
}

static bool learn(struct modules *modules, const char *name, size_t len)
{
	if (modules->count >= HOOK_NAMES_MAX || !hook_name_is_module(name, len) || has(modules, name, len) ||
	    bytes_room(&modules->names) < len + 1 || bytes_reserve(&modules->names, len + 1) == NULL)
		return false;
	bytes_append(&modules->names, name, len);
	bytes_append(&modules->names, "", 1);
	modules->count++;
	return true;
}

bool modules_learn(struct modules *modules, struct slice names)
{
	bool is_new = false;

	while (names.len > 0) {
		size_t len = strnlen(names.ptr, names.len);
		size_t step = len < names.len ? len + 1 : len;

		if (learn(modules, names.ptr, len))
			is_new = true;
		names.ptr += step;
		names.len -= step;
	}
	return is_new;
}
