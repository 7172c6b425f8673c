/* The page is put together from its three files, and fits into no smaller place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config_fixture.h"
#include "serve/status.h"

static const char nonce[STATUS_NONCE_BYTES] = "0123456789abcdef0123456789abcdef";

static void style_and_script_stand_in_it_with_the_nonce(void **state)
{
	char *html = source_file("fcgi-host/serve/status_page/page.html");
	char *css = source_file("fcgi-host/serve/status_page/page.css");
	char *js = source_file("fcgi-host/serve/status_page/page.js");
	struct bytes page;
	char *text;

	(void)state;
	bytes_init(&page, 1 << 20);
	assert_int_equal(status_page(nonce, &page), 0);
	bytes_append(&page, "", 1);
	text = (char *)bytes_data(&page);
	assert_non_null(strstr(text, "<style nonce=\"0123456789abcdef0123456789abcdef\">\n"));
	assert_non_null(strstr(text, "<script nonce=\"0123456789abcdef0123456789abcdef\">\n"));
	assert_non_null(strstr(text, css));
	assert_non_null(strstr(text, js));
	assert_null(strstr(text, "<!--style-->"));
	assert_null(strstr(text, "<!--script-->"));
	assert_int_equal(strncmp(text, html, 100), 0);
	assert_string_equal(text + strlen(text) - 8, "</html>\n");
	/* Else the browser would end them early. */
	assert_null(strstr(css, "</"));
	assert_null(strstr(js, "</"));
	bytes_fini(&page);
	free(html);
	free(css);
	free(js);
}

static void without_room_it_says_so(void **state)
{
	struct bytes page;

	(void)state;
	for (size_t room = 0; room < 20000; room += 997) {
		bytes_init(&page, room);
		assert_int_equal(status_page(nonce, &page), -1);
		bytes_fini(&page);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(style_and_script_stand_in_it_with_the_nonce),
		cmocka_unit_test(without_room_it_says_so),
	};

	return cmocka_run_group_tests(tests, config_fixture_begin, config_fixture_end);
}
