# The program: everything but main.c is a library, so that the unit tests link it.
noinst_LIBRARIES += %D%/libfcgihost.a
%C%_libfcgihost_a_SOURCES =

include fcgi-host/base/local.mk
include fcgi-host/wire/local.mk
include fcgi-host/config/local.mk
include fcgi-host/route/local.mk
include fcgi-host/process/local.mk
include fcgi-host/serve/local.mk
include fcgi-host/compare/local.mk
include fcgi-host/cli/local.mk

FCGI_HOST_LIBS = fcgi-host/libfcgihost.a $(LIBUV_LIBS) $(YAML_LIBS) $(JSON_LIBS) $(NCURSES_LIBS) -lm

sbin_PROGRAMS += %D%/fcgi-host
%C%_fcgi_host_SOURCES = %D%/main.c
%C%_fcgi_host_LDADD = $(FCGI_HOST_LIBS)
