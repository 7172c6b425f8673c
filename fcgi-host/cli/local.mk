# One file per command, and what they share.
fcgi_host_libfcgihost_a_SOURCES += \
	%D%/ask.c \
	%D%/bridge.c \
	%D%/call.c \
	%D%/call_body.c %D%/call_body.h \
	%D%/check.c \
	%D%/cli.h \
	%D%/common.c \
	%D%/compare.c %D%/compare_plan.c %D%/compare_plan.h \
	%D%/members.c %D%/members.h \
	%D%/reload.c \
	%D%/routes.c \
	%D%/serve.c \
	%D%/status.c \
	%D%/top.c \
	%D%/top_screen.c %D%/top_screen.h
