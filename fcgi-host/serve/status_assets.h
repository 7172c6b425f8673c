/*
 * status_assets.h - the files of status_page/, as the build embeds them.
 */
#ifndef FCGI_HOST_SERVE_STATUS_ASSETS_H
#define FCGI_HOST_SERVE_STATUS_ASSETS_H

extern const unsigned char status_page_html[], status_page_css[], status_page_js[];
extern const unsigned long status_page_html_len, status_page_css_len, status_page_js_len;

#endif
