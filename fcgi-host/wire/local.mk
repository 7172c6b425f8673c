# sources of wire/
fcgi_host_libfcgihost_a_SOURCES += \
	%D%/cgi_environment.c \
	%D%/cgi_header.c %D%/cgi_header.h \
	%D%/cgi_request.c %D%/cgi_request.h \
	%D%/fcgi.c %D%/fcgi.h \
	%D%/fcgi_params.c %D%/fcgi_params.h \
	%D%/siphash.c %D%/siphash.h \
	%D%/vars.c %D%/vars.h
