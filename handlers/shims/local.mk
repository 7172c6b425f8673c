# What lets a process wait before a request: README.md.  The library runs in
# other people's programs, so it is never built with sanitizers.
shimsdir = $(pkglibdir)/shims
shims_PROGRAMS = %D%/fcgi-host-park.so
%C%_fcgi_host_park_so_SOURCES = %D%/fcgi-host-park.c %D%/park.h %D%/park_files.c %D%/park_message.c \
	%D%/park_rehearse.c %D%/park_zygote.c
%C%_fcgi_host_park_so_CPPFLAGS = -D_GNU_SOURCE
%C%_fcgi_host_park_so_CFLAGS = -std=gnu11 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wwrite-strings -Wvla $(WERROR_FLAGS) -fPIC -fvisibility=hidden
%C%_fcgi_host_park_so_LDFLAGS = -shared

EXTRA_DIST += %D%/README.md
