# Load, blocks and statistics, reports: talks to hosts as an outsider.
fcgi_host_libfcgihost_a_SOURCES += \
	%D%/blocks.c %D%/blocks.h \
	%D%/latencies.c %D%/latencies.h \
	%D%/random.c %D%/random.h \
	%D%/schedule.c %D%/schedule.h \
	%D%/statistics.c %D%/statistics.h
