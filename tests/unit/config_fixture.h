/*
 * config_fixture.h - a configuration from text, in a folder of its own.
 */
#ifndef TESTS_UNIT_CONFIG_FIXTURE_H
#define TESTS_UNIT_CONFIG_FIXTURE_H

#include "config/config.h"

/* Group set-up and tear-down: the current folder is a new one while they last. */
int config_fixture_begin(void **state);
int config_fixture_end(void **state);

/* Writes t.yaml, mode 0644. */
void config_fixture_write(const char *yaml);

/* What config_load("t.yaml") says of the text; the report's buffers end with NUL. */
struct loaded {
	struct config *config;
	struct config_report report;
};
void config_fixture_load(struct loaded *loaded, const char *yaml);
void config_fixture_free(struct loaded *loaded);
const char *loaded_errors(struct loaded *loaded);
const char *loaded_warnings(struct loaded *loaded);

/* A file of the source tree's top; the caller frees it. */
char *source_file(const char *path);

#endif
