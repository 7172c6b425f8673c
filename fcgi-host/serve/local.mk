# Listener, client connection, request, backends, access log.
fcgi_host_libfcgihost_a_SOURCES += \
	%D%/access_log.c \
	%D%/answer.c %D%/answer.h \
	%D%/backend.h \
	%D%/backend_cgi.c \
	%D%/backend_fastcgi.c \
	%D%/body.c %D%/body.h \
	%D%/client.c %D%/client.h \
	%D%/control.c %D%/control.h \
	%D%/dispatch.c %D%/dispatch.h \
	%D%/figures.c %D%/figures.h \
	%D%/host.c %D%/host.h \
	%D%/identity.c %D%/identity.h \
	%D%/limits.c \
	%D%/listener.c %D%/listener.h \
	%D%/reload.c %D%/reload.h \
	%D%/request.c %D%/request.h \
	%D%/script.c %D%/script.h \
	%D%/site.c %D%/site.h \
	%D%/status.c %D%/status.h
