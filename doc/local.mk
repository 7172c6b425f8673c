dist_man1_MANS = %D%/fcgi-host-compare.1
dist_man8_MANS = %D%/fcgi-host.8
dist_man5_MANS = %D%/fcgi-host.yaml.5
dist_doc_DATA = %D%/ARCHITECTURE.md %D%/front-ends.md %D%/packaging.md \
	%D%/from-fcgiwrap.md %D%/from-spawn-fcgi.md %D%/from-mod_fcgid.md %D%/from-php-fpm.md

# Writes the keys of fcgi-host.yaml.5 anew.
EXTRA_DIST += %D%/update-keys

# What the suites measured.
EXTRA_DIST += %D%/results/README.md %D%/results/run-suites %D%/results/json-greeting.md %D%/results/hello-web.md \
	%D%/results/user-lookup.md %D%/results/hello-servers.md %D%/results/burst.md

# What a test holds fcgi-host.yaml.5 against.
noinst_PROGRAMS += %D%/config_reference
%C%_config_reference_SOURCES = %D%/config_reference.c
%C%_config_reference_LDADD = $(FCGI_HOST_LIBS)
