/*
 * complaint.h - what is wrong with a configuration file, gathered while it is
 * read and handed out in the order of the file.
 */
#ifndef FCGI_HOST_CONFIG_COMPLAINT_H
#define FCGI_HOST_CONFIG_COMPLAINT_H

#include "config/config.h"

/* A position in the file, both from 1; line 0 is the file as a whole. */
struct mark {
	unsigned line, column;
};

enum severity { COMPLAINT_ERROR, COMPLAINT_WARNING };

struct complaint;       /* see complaint.c */

struct complaints {
	const char *file;               /* as the operator named it; borrowed */
	struct complaint *list;
	size_t count, cap;
	unsigned errors_count;
	bool is_out_of_memory;          /* set it when an allocation fails: it becomes an error */
};

void complaints_init(struct complaints *complaints, const char *file);
void complaints_fini(struct complaints *complaints);
bool complaints_has_errors(const struct complaints *complaints);

/* Remembers one line.  `where` (a key, "handlers.hello.timeout") may be NULL. */
void complain(struct complaints *complaints, enum severity severity, struct mark mark, const char *where,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Writes all of them into the report, by position. */
void complaints_write(struct complaints *complaints, struct config_report *report);

#endif
