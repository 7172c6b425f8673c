# Listener, client connection, request, backends, access log.
fcgi_host_libfcgihost_a_SOURCES += \
	%D%/access_log.c \
	%D%/answer.c %D%/answer.h \
	%D%/backend.h \
	%D%/backend_cgi.c \
	%D%/backend_fastcgi.c \
	%D%/body.c %D%/body.h \
	%D%/builtin.c %D%/builtin.h \
	%D%/cgi_start.c %D%/cgi_start.h \
	%D%/client.c %D%/client.h %D%/client_private.h \
	%D%/client_records.c \
	%D%/control.c %D%/control.h \
	%D%/dispatch.c %D%/dispatch.h \
	%D%/fastcgi_link.c %D%/fastcgi_link.h \
	%D%/fastcgi_request.h \
	%D%/fastcgi_send.c \
	%D%/failures.c %D%/failures.h \
	%D%/figures.c %D%/figures.h \
	%D%/host.c %D%/host.h \
	%D%/identity.c %D%/identity.h \
	%D%/limits.c \
	%D%/listener.c %D%/listener.h \
	%D%/notify.c %D%/notify.h \
	%D%/reading.c %D%/reading.h \
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
	%D%/status.h \
	%D%/status_json.c \
	%D%/status_metrics.c \
	%D%/status_page.c %D%/status_assets.h \
	%D%/stop.c %D%/stop.h

# The status page is embedded, file by file, as arrays of bytes.
STATUS_ASSETS = $(srcdir)/%D%/status_page/page.html $(srcdir)/%D%/status_page/page.css $(srcdir)/%D%/status_page/page.js
nodist_fcgi_host_libfcgihost_a_SOURCES = %D%/status_assets.c
CLEANFILES += %D%/status_assets.c
EXTRA_DIST += %D%/status_page/page.html %D%/status_page/page.css %D%/status_page/page.js
%D%/status_assets.c: $(STATUS_ASSETS) %D%/local.mk
	$(AM_V_GEN)$(MKDIR_P) %D% && for file in $(STATUS_ASSETS); do \
		name=status_`basename $$file | tr . _`; \
		echo "const unsigned char $$name[] = {" && \
		od -An -v -tx1 $$file | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g' && \
		echo "};" && echo "const unsigned long $${name}_len = sizeof($$name);"; \
	done >$@.new && mv $@.new $@
