/*
 * fit.h - which ways of living a handler's program can have.
 *
 * The one place that knows: the loader refuses by it, and what asks for the ways
 * to compare takes those that fit.
 */
#ifndef FCGI_HOST_CONFIG_FIT_H
#define FCGI_HOST_CONFIG_FIT_H

#include "config/config.h"

/* 0, or -1 with `why`.  `handler` needs its program and protocol.  A program that
 * is not there, or may not be read, could be anything: it fits. */
int fit_process(const struct handler_config *handler, enum process_mode mode, struct err *why);

#endif
