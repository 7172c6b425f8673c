# The compiled table of routes.
fcgi_host_libfcgihost_a_SOURCES += %D%/route.c %D%/route.h
