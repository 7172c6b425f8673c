# One file per command.
fcgi_host_libfcgihost_a_SOURCES += \
	%D%/ask.c \
	%D%/bridge.c \
	%D%/call.c \
	%D%/check.c \
	%D%/cli.h \
	%D%/common.c \
	%D%/reload.c \
	%D%/routes.c \
	%D%/serve.c \
	%D%/status.c
