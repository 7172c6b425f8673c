nginxdir = $(pkgdatadir)/nginx
dist_nginx_DATA = %D%/fcgi-host.params %D%/fcgi-host-upstream.conf \
	%D%/fcgi-host.conf %D%/fcgi-host-streaming.conf %D%/cluster.conf %D%/fcgi-host-status.conf
