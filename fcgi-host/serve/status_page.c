/*
 * The page: status_page/page.html, with page.css and page.js put where it says
 * so.
 */
#include "serve/status.h"

#include "base/text.h"
#include "serve/status_assets.h"

#include <string.h>

/* All of the page up to the marker; what follows is left in *rest. */
static int put_until(struct bytes *out, struct slice *rest, const char *marker)
{
	const char *at = memmem(rest->ptr, rest->len, marker, strlen(marker));
	size_t before = at == NULL ? rest->len : (size_t)(at - rest->ptr);

	if (bytes_append(out, rest->ptr, before) < 0)
		return -1;
	rest->ptr += before + (at == NULL ? 0 : strlen(marker));
	rest->len -= before + (at == NULL ? 0 : strlen(marker));
	return 0;
}

static int put_element(struct bytes *out, const char *name, const char *nonce, struct slice content)
{
	if (bytes_printf(out, "<%s nonce=\"%s\">\n", name, nonce) < 0 || bytes_append(out, content.ptr, content.len) < 0)
		return -1;
	return bytes_printf(out, "</%s>", name);
}

int status_page(const char nonce[STATUS_NONCE_BYTES], struct bytes *out)
{
	struct slice page = { (const char *)status_page_html, status_page_html_len };
	struct slice style = { (const char *)status_page_css, status_page_css_len };
	struct slice script = { (const char *)status_page_js, status_page_js_len };

	if (put_until(out, &page, "<!--style-->") < 0 || put_element(out, "style", nonce, style) < 0)
		return -1;
	if (put_until(out, &page, "<!--script-->") < 0 || put_element(out, "script", nonce, script) < 0)
		return -1;
	return bytes_append(out, page.ptr, page.len);
}
