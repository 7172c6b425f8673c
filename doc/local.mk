dist_man8_MANS = %D%/fcgi-host.8
dist_doc_DATA = %D%/ARCHITECTURE.md %D%/front-ends.md
