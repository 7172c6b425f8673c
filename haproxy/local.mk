haproxydir = $(pkgdatadir)/haproxy
dist_haproxy_DATA = %D%/cluster.cfg
