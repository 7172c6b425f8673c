#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, const char *format, ...)
{
	va_list args;

	if (err == NULL)
		return -1;
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return -1;
}

int err_set_errno(struct err *err, int errnum, const char *format, ...)
{
	va_list args;
	size_t len;

	if (err == NULL)
		return -1;
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	len = strlen(err->text);
	snprintf(err->text + len, sizeof(err->text) - len, ": %s", strerror(errnum));
	return -1;
}
