/*
 * exiting.h - is a process about to end?
 *
 * A process that ends closes its descriptors shortly before its exit is known;
 * one that goes on has closed them on purpose.
 */
#ifndef FCGI_HOST_PROCESS_EXITING_H
#define FCGI_HOST_PROCESS_EXITING_H

#include <stdbool.h>
#include <sys/types.h>

/* Also true when it cannot be told: its exit will be. */
bool process_is_exiting(pid_t pid);

#endif
