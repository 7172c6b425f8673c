# Bytes, text, errors, log, clock, event loop: knows nothing of the rest.
fcgi_host_libfcgihost_a_SOURCES += \
	%D%/buckets.h \
	%D%/bytes.c %D%/bytes.h \
	%D%/clock.c %D%/clock.h \
	%D%/env_names.c %D%/env_names.h \
	%D%/err.c %D%/err.h \
	%D%/escape.c %D%/escape.h \
	%D%/histogram.c %D%/histogram.h \
	%D%/json.c %D%/json.h \
	%D%/lines.c %D%/lines.h \
	%D%/log.c %D%/log.h \
	%D%/loop.c %D%/loop.h \
	%D%/tcp.c %D%/tcp.h \
	%D%/rate.c %D%/rate.h \
	%D%/text.c %D%/text.h
