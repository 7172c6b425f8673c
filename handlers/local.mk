# Sample handlers.  The programs in C are built as an operator would build them:
# they see nothing of the host, not even config.h.
handlers_cdir = $(pkglibexecdir)/handlers/c
handlers_c_PROGRAMS = %D%/c/hello %D%/c/greeting %D%/c/hello-world
%C%_c_hello_SOURCES = %D%/c/hello.c
%C%_c_hello_CPPFLAGS = -D_GNU_SOURCE
%C%_c_hello_LDADD = $(FCGI_LIBS)
%C%_c_greeting_SOURCES = %D%/c/greeting.c
%C%_c_greeting_CPPFLAGS = -D_GNU_SOURCE
%C%_c_greeting_LDADD = $(FCGI_LIBS) $(JSON_LIBS)
%C%_c_hello_world_SOURCES = %D%/c/hello-world.c
%C%_c_hello_world_CPPFLAGS = -D_GNU_SOURCE
%C%_c_hello_world_LDADD = $(FCGI_LIBS)

handlers_shelldir = $(pkglibexecdir)/handlers/shell
dist_handlers_shell_SCRIPTS = %D%/shell/hello.sh %D%/shell/greeting.sh %D%/shell/greet-function.sh

handlers_pythondir = $(pkglibexecdir)/handlers/python
dist_handlers_python_SCRIPTS = %D%/python/hello.py %D%/python/greeting.py \
	%D%/python/counter.py %D%/python/upload-digest.py \
	%D%/python/hello-world.py %D%/python/hello-world-flask.py %D%/python/hello-world-http.py \
	%D%/python/greet.py %D%/python/greet-function.py %D%/python/user.py %D%/python/user-flask.py
dist_handlers_python_DATA = %D%/python/fastcgi.py %D%/python/serve.py %D%/python/users.py

handlers_perldir = $(pkglibexecdir)/handlers/perl
dist_handlers_perl_SCRIPTS = %D%/perl/hello.pl %D%/perl/greeting.pl %D%/perl/hello.fcgi

handlers_phpdir = $(pkglibexecdir)/handlers/php
dist_handlers_php_DATA = %D%/php/hello.php

handlers_nodedir = $(pkglibexecdir)/handlers/node
dist_handlers_node_SCRIPTS = %D%/node/hello-world.js %D%/node/greet.js %D%/node/greet-function.js
dist_handlers_node_DATA = %D%/node/fastcgi.js %D%/node/serve.js

handlers_luadir = $(pkglibexecdir)/handlers/lua
dist_handlers_lua_SCRIPTS = %D%/lua/hello-world.lua %D%/lua/hello-world-http.lua

# --- What only the suites need: built by `make suites`, or `make suite-NAME`, and
# by nothing else, since it takes compilers and libraries that a host does without.

EXTRA_PROGRAMS += %D%/c/user
%C%_c_user_SOURCES = %D%/c/user.c
%C%_c_user_CPPFLAGS = -D_GNU_SOURCE `$(PKG_CONFIG) --cflags libpq`
%C%_c_user_LDADD = $(FCGI_LIBS) $(JSON_LIBS) -lpq

CPP_HELLO_WORLD = %D%/cpp/hello-world.cc
%D%/cpp/hello-world: $(CPP_HELLO_WORLD)
	$(AM_V_GEN)$(MKDIR_P) %D%/cpp && c++ -std=c++17 -O2 -Wall -Wextra -o $@ $(srcdir)/$(CPP_HELLO_WORLD) \
		`$(PKG_CONFIG) --cflags --libs cpp-httplib` -lfcgi++ $(FCGI_LIBS) -lpthread

# Go finds our packages through a link in the build, and the libraries where
# Debian has them; it downloads nothing and writes nowhere else.  Linked by the C
# linker they start by way of the C library, as what is to be parked must.
GO_FILES = %D%/go/go.mod %D%/go/serve/serve.go %D%/go/hello-world/main.go %D%/go/hello-world-echo/main.go \
	%D%/go/greet/main.go %D%/go/greet-function/main.go %D%/go/user/main.go
GO_BUILT = %D%/go/bin/hello-world %D%/go/bin/hello-world-echo %D%/go/bin/greet %D%/go/bin/greet-function %D%/go/bin/user
GO_WORK = %D%/go/work
$(GO_WORK)/src/handlers:
	$(AM_V_at)$(MKDIR_P) $(GO_WORK)/src && ln -s "`cd '$(srcdir)/%D%/go' && pwd`" $@
$(GO_BUILT): $(GO_FILES) | $(GO_WORK)/src/handlers
	$(AM_V_GEN)work='$(abs_top_builddir)/$(GO_WORK)' && cd / && \
	GO111MODULE=off GOTOOLCHAIN=local GOFLAGS= GOCACHE="$$work/cache" GOPATH="$$work:/usr/share/gocode" \
	go build -ldflags=-linkmode=external -o '$(abs_top_builddir)/$@' handlers/$(@F)

suite-json-greeting: %D%/go/bin/greet %D%/go/bin/greet-function
suite-hello-web: %D%/c/hello-world %D%/go/bin/hello-world %D%/go/bin/hello-world-echo
suite-user-lookup: %D%/c/user %D%/go/bin/user
suite-hello-servers: %D%/go/bin/hello-world %D%/cpp/hello-world
suite-burst: %D%/c/hello-world %D%/go/bin/hello-world
suites: suite-json-greeting suite-hello-web suite-user-lookup suite-hello-servers suite-burst
.PHONY: suites suite-json-greeting suite-hello-web suite-user-lookup suite-hello-servers suite-burst

CLEANFILES += $(EXTRA_PROGRAMS) %D%/cpp/hello-world
clean-local: clean-go
clean-go:
	rm -rf $(GO_WORK) %D%/go/bin
.PHONY: clean-go

EXTRA_DIST += %D%/README.md $(CPP_HELLO_WORLD) $(GO_FILES)

include handlers/shims/local.mk
