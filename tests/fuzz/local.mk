# One libFuzzer target per decoder, with --enable-fuzzers and CC=clang.  Run one as
# tests/fuzz/fuzz_fcgi -dict=SRCDIR/tests/fuzz/wire.dict -max_total_time=60
EXTRA_DIST += %D%/wire.dict
if ENABLE_FUZZERS
FUZZ_FLAGS = -fsanitize=fuzzer
FUZZERS = %D%/fuzz_fcgi %D%/fuzz_fcgi_params %D%/fuzz_cgi_header %D%/fuzz_cgi_request %D%/fuzz_reply
noinst_PROGRAMS += $(FUZZERS)

tests_fuzz_fuzz_fcgi_SOURCES = %D%/fuzz_fcgi.c
tests_fuzz_fuzz_fcgi_LDADD = $(FCGI_HOST_LIBS)
tests_fuzz_fuzz_fcgi_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_fcgi_params_SOURCES = %D%/fuzz_fcgi_params.c
tests_fuzz_fuzz_fcgi_params_LDADD = $(FCGI_HOST_LIBS)
tests_fuzz_fuzz_fcgi_params_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_cgi_header_SOURCES = %D%/fuzz_cgi_header.c
tests_fuzz_fuzz_cgi_header_LDADD = $(FCGI_HOST_LIBS)
tests_fuzz_fuzz_cgi_header_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_cgi_request_SOURCES = %D%/fuzz_cgi_request.c
tests_fuzz_fuzz_cgi_request_LDADD = $(FCGI_HOST_LIBS)
tests_fuzz_fuzz_cgi_request_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_reply_SOURCES = %D%/fuzz_reply.c
tests_fuzz_fuzz_reply_LDADD = $(FCGI_HOST_LIBS)
tests_fuzz_fuzz_reply_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
endif
