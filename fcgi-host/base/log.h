/*
 * log.h - structured log lines, `name=value` or JSON, that never block.
 *
 * A line is built field by field and written whole.  Values are escaped, so a
 * peer or a handler cannot forge a line.  Lines wait in a bounded buffer; what
 * a slow reader does not take is dropped, counted and said in a later line.
 */
#ifndef FCGI_HOST_BASE_LOG_H
#define FCGI_HOST_BASE_LOG_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

struct log_options {
	const char *file;               /* "stderr", "syslog" or a path; borrowed */
	enum log_format format;
	enum log_level level;           /* lines below it are not written */
};

/* Opens the destination.  Before this, lines go to stderr as text.
 * The log is one per process. */
int log_open(const struct log_options *options, struct err *err);
void log_close(void);                   /* writes what it can, then closes */
/* USR1: opens the path again, or connects to syslog again; syslog that was started
 * anew is found without that. */
int log_reopen(struct err *err);

/* Writes what goes without blocking.  true when nothing waits any more. */
bool log_flush(void);
/* Runs whenever lines begin to wait; log_flush() should follow soon.  Without
 * it each line is written as it ends. */
void log_on_waiting(void (*on_waiting)(void *ctx), void *ctx);
uint64_t log_lines_dropped(void);

bool log_wants(enum log_level level);

/* One line.  Between begin and end only log_*() field calls for it. */
struct log_line {
	struct bytes text;
	enum log_level level;
	bool is_wanted;
};

void log_begin(struct log_line *line, enum log_level level, const char *event);
void log_str(struct log_line *line, const char *name, const char *value); /* NULL: "-" (null) */
void log_slice(struct log_line *line, const char *name, struct slice value);
void log_u64(struct log_line *line, const char *name, uint64_t value);
void log_i64(struct log_line *line, const char *name, int64_t value);
void log_ms(struct log_line *line, const char *name, uint64_t ns);       /* as 12.345 */
void log_none(struct log_line *line, const char *name);                  /* "-" or null */
void log_end(struct log_line *line);

/* A line with only `event` and `msg`. */
void log_message(enum log_level level, const char *event, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
