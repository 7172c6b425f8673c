# What lets a process wait before a request: README.md.  A build folder has the
# whole of it in handlers/shims/lib, as it is installed.  The library runs in
# other people's programs, so it is never built with sanitizers.
shimsdir = $(pkglibdir)/shims
shims_PROGRAMS = %D%/lib/fcgi-host-park.so
%C%_lib_fcgi_host_park_so_SOURCES = %D%/fcgi-host-park.c %D%/park.h %D%/park_files.c %D%/park_message.c \
	%D%/park_rehearse.c %D%/park_zygote.c
%C%_lib_fcgi_host_park_so_CPPFLAGS = -D_GNU_SOURCE
%C%_lib_fcgi_host_park_so_CFLAGS = -std=gnu11 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wwrite-strings -Wvla $(WERROR_FLAGS) -fPIC -fvisibility=hidden
%C%_lib_fcgi_host_park_so_LDFLAGS = -shared

# Every interpreter looks in a folder of its own.
shims_pythondir = $(shimsdir)/python
dist_shims_python_DATA = %D%/python/sitecustomize.py
shims_perldir = $(shimsdir)/perl/FCGIHost
dist_shims_perl_DATA = %D%/perl/FCGIHost/Wait.pm
shims_rubydir = $(shimsdir)/ruby
dist_shims_ruby_DATA = %D%/ruby/fcgi_host_wait.rb
shims_nodedir = $(shimsdir)/node
dist_shims_node_DATA = %D%/node/fcgi-host-wait.js %D%/node/rehearsal.js %D%/node/rehearsal.bin
shims_phpdir = $(shimsdir)/php
dist_shims_php_DATA = %D%/php/fcgi-host.ini

all-local: %D%/lib/scripts.stamp
%D%/lib/scripts.stamp: $(dist_shims_python_DATA) $(dist_shims_perl_DATA) $(dist_shims_ruby_DATA) \
		$(dist_shims_node_DATA) $(dist_shims_php_DATA)
	$(AM_V_GEN)for dir in python perl/FCGIHost ruby node php; do \
		$(MKDIR_P) %D%/lib/$$dir && cp $(srcdir)/%D%/$$dir/*.* %D%/lib/$$dir/ || exit 1; \
	done; touch $@

clean-local:
	rm -rf %D%/lib

EXTRA_DIST += %D%/README.md
