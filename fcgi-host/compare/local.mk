# Load, blocks and statistics, reports: talks to hosts as an outsider.
fcgi_host_libfcgihost_a_SOURCES += \
	%D%/advice.c %D%/advice.h \
	%D%/answers.c %D%/answers.h \
	%D%/blocks.c %D%/blocks.h \
	%D%/child.c %D%/child.h \
	%D%/exchange.c %D%/exchange.h \
	%D%/latencies.c %D%/latencies.h \
	%D%/load.c %D%/load.h \
	%D%/plan.c %D%/plan.h \
	%D%/private_host.c %D%/private_host.h \
	%D%/private_web.c %D%/private_web.h \
	%D%/progress.c %D%/progress.h \
	%D%/random.c %D%/random.h \
	%D%/reply.c %D%/reply.h \
	%D%/report.h %D%/report_shared.c %D%/report_text.c %D%/report_json.c %D%/report_csv.c \
	%D%/report_html.c %D%/report_charts.c %D%/report_charts.h \
	%D%/result.c %D%/result.h \
	%D%/run.c %D%/run.h %D%/run_answers.c %D%/run_private.h \
	%D%/schedule.c %D%/schedule.h \
	%D%/setup.c %D%/setup.h \
	%D%/statistics.c %D%/statistics.h \
	%D%/subject.c %D%/subject.h \
	%D%/suite.c %D%/suite.h %D%/suite_private.h %D%/suite_handler.c %D%/suite_request.c %D%/suite_ways.c \
	%D%/suite_keys.c %D%/suite_keys.h \
	%D%/target.c %D%/target.h \
	%D%/usage.c %D%/usage.h %D%/usage_listener.c \
	%D%/ways.c %D%/ways.h
nodist_fcgi_host_libfcgihost_a_SOURCES += %D%/shipped.c

# The configurations that we ship, and the page's style, as C, so that a build that is not installed has them too.
SHIPPED_FILES = nginx/fcgi-host-upstream.conf nginx/fcgi-host.conf nginx/fcgi-host.params apache/mod_proxy_fcgi.conf %D%/report.css
EXTRA_DIST += %D%/report.css
CLEANFILES += %D%/shipped.c
%D%/shipped.c: $(srcdir)/nginx/fcgi-host-upstream.conf $(srcdir)/nginx/fcgi-host.conf $(srcdir)/nginx/fcgi-host.params \
		$(srcdir)/apache/mod_proxy_fcgi.conf $(srcdir)/%D%/report.css Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && { \
		echo '#include "compare/private_web.h"'; echo 'const struct shipped shipped_files[] = {'; \
		for file in $(SHIPPED_FILES); do \
			echo "{ \"$$file\", \"\""; sed -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' "$(srcdir)/$$file" || exit 1; echo '},'; \
		done; echo '{ NULL, NULL } };'; } >$@.new && mv $@.new $@
