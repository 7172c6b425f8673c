/*
 * env_names.h - which names of variables may come from a peer into the
 * environment of a process that we start.
 */
#ifndef FCGI_HOST_BASE_ENV_NAMES_H
#define FCGI_HOST_BASE_ENV_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* [A-Za-z_][A-Za-z0-9_]* */
bool env_name_is_variable(const char *name, size_t len);

/* False for what is no variable name and for names that steer loaders, shells,
 * interpreters and the C library. */
bool env_name_is_safe(const char *name, size_t len);

#endif
