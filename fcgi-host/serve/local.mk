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
	%D%/fastcgi_link.c %D%/fastcgi_link.h \
	%D%/fastcgi_request.h \
	%D%/fastcgi_send.c \
	%D%/figures.c %D%/figures.h \
	%D%/host.c %D%/host.h \
	%D%/identity.c %D%/identity.h \
	%D%/limits.c \
	%D%/listener.c %D%/listener.h \
	%D%/notify.c %D%/notify.h \
	%D%/reload.c %D%/reload.h \
	%D%/reload_listeners.c %D%/reload_listeners.h \
	%D%/request.c %D%/request.h %D%/request_private.h \
	%D%/request_answer.c \
	%D%/request_body.c \
	%D%/request_params.c \
	%D%/script.c %D%/script.h \
	%D%/site.c %D%/site.h \
	%D%/spool.c %D%/spool.h \
	%D%/server_timing.c %D%/server_timing.h \
	%D%/status.c %D%/status.h
