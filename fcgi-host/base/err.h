/*
 * err.h - one error, as one line of text for a person.
 *
 * A function that can fail returns 0 or -1 and takes `struct err *` last.
 * `err` may be NULL where the caller does not want the text.
 */
#ifndef FCGI_HOST_BASE_ERR_H
#define FCGI_HOST_BASE_ERR_H

struct err {
	char text[1024];        /* NUL-terminated, no newline; "" = no error */
};

/* Writes the text (cut at the array's size).  Always returns -1, so that a
 * caller can write `return err_set(err, ...)`. */
int err_set(struct err *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same with ": " and the text of `errnum` appended. */
int err_set_errno(struct err *err, int errnum, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
