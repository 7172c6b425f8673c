# sample configurations

# samples.yaml names the programs by absolute paths: once those of the build,
# once those of the installation.
SAMPLES_YAML = sed -e 's|@SCRIPTS@|'"$$scripts"'|g' -e 's|@PROGRAMS@|'"$$programs"'|g' $(srcdir)/%D%/samples.yaml.in

noinst_DATA = %D%/samples.yaml
%D%/samples.yaml: %D%/samples.yaml.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && scripts="$$(cd '$(srcdir)/handlers' && pwd)" programs='$(abs_top_builddir)/handlers' && \
	$(SAMPLES_YAML) >$@.new && mv $@.new $@

# The suites of comparisons are run from the build: their programs are not installed.
SUITES = %D%/suites/json-greeting.yaml %D%/suites/hello-web.yaml %D%/suites/user-lookup.yaml \
	%D%/suites/hello-servers.yaml %D%/suites/burst.yaml
noinst_DATA += $(SUITES) %D%/suites/user-lookup-database
$(SUITES): Makefile $(SUITES:=.in)
	$(AM_V_GEN)$(MKDIR_P) %D%/suites && scripts="$$(cd '$(srcdir)/handlers' && pwd)" programs='$(abs_top_builddir)/handlers' && \
	sed -e 's|@SCRIPTS@|'"$$scripts"'|g' -e 's|@PROGRAMS@|'"$$programs"'|g' '$(srcdir)/$@.in' >$@.new && mv $@.new $@
# Beside the suite that names it.
%D%/suites/user-lookup-database: %D%/suites/user-lookup-database.sh
	$(AM_V_GEN)$(MKDIR_P) %D%/suites && cp '$(srcdir)/%D%/suites/user-lookup-database.sh' $@.new && chmod 755 $@.new && mv $@.new $@
CLEANFILES += $(SUITES) %D%/suites/user-lookup-database
EXTRA_DIST += %D%/suites/README.md $(SUITES:=.in) %D%/suites/user-lookup-database.sh

samplesdir = $(pkgdatadir)
nodist_samples_DATA = %D%/installed/samples.yaml
%D%/installed/samples.yaml: %D%/samples.yaml.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D%/installed && scripts='$(pkglibexecdir)/handlers' programs='$(pkglibexecdir)/handlers' && \
	$(SAMPLES_YAML) >$@.new && mv $@.new $@

# What a package puts at SYSCONFDIR/fcgi-host/fcgi-host.yaml.
nodist_samples_DATA += %D%/installed/first-route.yaml
%D%/installed/first-route.yaml: %D%/first-route.yaml.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D%/installed && $(INSTALLED_PLACES) $(srcdir)/%D%/first-route.yaml.in >$@.new && mv $@.new $@

CLEANFILES += %D%/samples.yaml %D%/installed/samples.yaml %D%/installed/first-route.yaml
EXTRA_DIST += %D%/samples.yaml.in %D%/first-route.yaml.in

# To read and to copy from.
examplesdir = $(docdir)/examples
dist_examples_DATA = %D%/minimal.yaml %D%/fcgi-host.yaml %D%/git.yaml %D%/fcgi-host.logrotate %D%/prometheus.yml
