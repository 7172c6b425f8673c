apachedir = $(pkgdatadir)/apache
dist_apache_DATA = %D%/mod_proxy_fcgi.conf %D%/mod_fcgid.conf %D%/mod_fcgid-server.conf %D%/status.conf
