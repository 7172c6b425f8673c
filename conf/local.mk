# sample configurations

# samples.yaml names the programs by absolute paths: once those of the build,
# once those of the installation.
SAMPLES_YAML = sed -e 's|@SCRIPTS@|'"$$scripts"'|g' -e 's|@PROGRAMS@|'"$$programs"'|g' $(srcdir)/%D%/samples.yaml.in

noinst_DATA = %D%/samples.yaml
%D%/samples.yaml: %D%/samples.yaml.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && scripts="$$(cd '$(srcdir)/handlers' && pwd)" programs='$(abs_top_builddir)/handlers' && \
	$(SAMPLES_YAML) >$@.new && mv $@.new $@

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
