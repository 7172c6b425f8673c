# What systemd needs: units, folders, the user.
SYSTEMD_FILES = %D%/fcgi-host.service %D%/fcgi-host.socket %D%/fcgi-host.tmpfiles

$(SYSTEMD_FILES): %D%/local.mk Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && $(INSTALLED_PLACES) $(srcdir)/$@.in >$@.new && mv $@.new $@
%D%/fcgi-host.service: %D%/fcgi-host.service.in
%D%/fcgi-host.socket: %D%/fcgi-host.socket.in
%D%/fcgi-host.tmpfiles: %D%/fcgi-host.tmpfiles.in

nodist_systemdsystemunit_DATA = %D%/fcgi-host.service %D%/fcgi-host.socket
noinst_DATA += %D%/fcgi-host.tmpfiles
EXTRA_DIST += %D%/fcgi-host.service.in %D%/fcgi-host.socket.in %D%/fcgi-host.tmpfiles.in %D%/fcgi-host.sysusers
CLEANFILES += $(SYSTEMD_FILES)

# Installed as fcgi-host.conf, both of them.
install-data-local: %D%/fcgi-host.tmpfiles
	$(MKDIR_P) '$(DESTDIR)$(tmpfilesdir)' '$(DESTDIR)$(sysusersdir)'
	$(INSTALL_DATA) %D%/fcgi-host.tmpfiles '$(DESTDIR)$(tmpfilesdir)/fcgi-host.conf'
	$(INSTALL_DATA) $(srcdir)/%D%/fcgi-host.sysusers '$(DESTDIR)$(sysusersdir)/fcgi-host.conf'

uninstall-local:
	rm -f '$(DESTDIR)$(tmpfilesdir)/fcgi-host.conf' '$(DESTDIR)$(sysusersdir)/fcgi-host.conf'
