# Sample handlers.  The programs in C are built as an operator would build them:
# they see nothing of the host, not even config.h.
handlers_cdir = $(pkglibexecdir)/handlers/c
handlers_c_PROGRAMS = %D%/c/hello %D%/c/greeting
%C%_c_hello_SOURCES = %D%/c/hello.c
%C%_c_hello_CPPFLAGS = -D_GNU_SOURCE
%C%_c_hello_LDADD = $(FCGI_LIBS)
%C%_c_greeting_SOURCES = %D%/c/greeting.c
%C%_c_greeting_CPPFLAGS = -D_GNU_SOURCE
%C%_c_greeting_LDADD = $(FCGI_LIBS) $(JSON_LIBS)

handlers_shelldir = $(pkglibexecdir)/handlers/shell
dist_handlers_shell_SCRIPTS = %D%/shell/hello.sh %D%/shell/greeting.sh

handlers_pythondir = $(pkglibexecdir)/handlers/python
dist_handlers_python_SCRIPTS = %D%/python/hello.py %D%/python/greeting.py \
	%D%/python/counter.py %D%/python/upload-digest.py

handlers_perldir = $(pkglibexecdir)/handlers/perl
dist_handlers_perl_SCRIPTS = %D%/perl/hello.pl %D%/perl/greeting.pl %D%/perl/hello.fcgi

handlers_phpdir = $(pkglibexecdir)/handlers/php
dist_handlers_php_DATA = %D%/php/hello.php

EXTRA_DIST += %D%/README.md

include handlers/shims/local.mk
