# What distributions make their packages from.
EXTRA_DIST += %D%/fcgi-host.spec %D%/rpmlint.toml \
	debian/changelog debian/control debian/copyright debian/rules debian/source/format \
	debian/fcgi-host.init debian/fcgi-host.install debian/fcgi-host.logrotate debian/fcgi-host.postrm \
	debian/fcgi-host-doc.docs debian/fcgi-host-doc.install debian/fcgi-host-handlers.install \
	debian/tests/apache debian/tests/common debian/tests/control debian/tests/nginx
