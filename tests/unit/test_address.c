/* Addresses and prefixes. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/un.h>

#include <cmocka.h>

#include "config/address.h"

static void good_addresses(void **state)
{
	static const struct {
		const char *text;
		int family;
		bool is_loopback;
	} cases[] = {
		{ "unix:/run/x.sock", AF_UNIX, true }, { "unix:x", AF_UNIX, true },
		{ "127.0.0.1:9000", AF_INET, true }, { "127.9.8.7:1", AF_INET, true }, { "0.0.0.0:9000", AF_INET, false },
		{ "10.0.0.1:65535", AF_INET, false }, { "[::1]:9000", AF_INET6, true }, { "[::]:9000", AF_INET6, false },
		{ "[::ffff:127.0.0.1]:9000", AF_INET6, true }, { "[::ffff:0.0.0.0]:9000", AF_INET6, false },
		{ "[2001:db8::7]:9000", AF_INET6, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct address address;
		struct err err;
		assert_int_equal(address_parse(cases[i].text, &address, &err), 0);
		assert_string_equal(address.text, cases[i].text);
		assert_int_equal(address.sockaddr.ss_family, cases[i].family);
		assert_int_equal(address_is_loopback(&address), cases[i].is_loopback);
		address_fini(&address);
	}
}

static void bad_addresses_say_what_was_meant(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "is no address" }, { "9000", "is no address" }, { "unix:", "no path" }, { "unix:@x", "abstract" },
		{ "/run/x.sock", "did you mean 'unix:/run/x.sock'?" }, { "localhost:9000", "write 127.0.0.1:9000" },
		{ "*:9000", "0.0.0.0:9000" }, { ":9000", "0.0.0.0:9000" }, { "127.0.0.1:0", "no port" },
		{ "127.0.0.1:65536", "no port" }, { "127.0.0.1:", "no port" }, { "127.0.0.1:90x", "no port" },
		{ "127.0.0.1:-1", "no port" }, { "::1:9000", "[::1]:9000" }, { "[::1]", "[::1]:9000" }, { "[::1", "[::1]:9000" },
		{ "[::1]9000", "[::1]:9000" }, { "[]:9000", "no IPv6" }, { "[127.0.0.1]:9000", "no IPv6" }, { "1.2.3:9000", "no IPv4" },
		{ "php:9000", "names are not looked up" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct address address;
		struct err err;
		assert_int_equal(address_parse(cases[i].text, &address, &err), -1);
		if (strstr(err.text, cases[i].says) == NULL)
			fail_msg("%s: %s", cases[i].text, err.text);
	}
}

static void a_unix_path_has_a_limit(void **state)
{
	char text[200] = "unix:";
	struct address address;
	struct err err;

	(void)state;
	memset(text + 5, 'x', 107);
	assert_int_equal(address_parse(text, &address, &err), 0);
	assert_int_equal(strlen(((struct sockaddr_un *)&address.sockaddr)->sun_path), 107);
	address_fini(&address);
	text[112] = 'x';
	assert_int_equal(address_parse(text, &address, &err), -1);
	assert_non_null(strstr(err.text, "has 108 bytes: a unix socket's may have 107"));
}

static bool contains(const char *prefix_text, const char *peer)
{
	struct prefix prefix;
	struct address address;

	assert_int_equal(prefix_parse(prefix_text, &prefix, NULL), 0);
	assert_int_equal(address_parse(peer, &address, NULL), 0);
	bool result = prefix_contains(&prefix, (struct sockaddr *)&address.sockaddr);
	address_fini(&address);
	return result;
}

static void prefixes_hold_what_begins_with_them(void **state)
{
	(void)state;
	assert_true(contains("10.0.0.0/8", "10.255.1.2:1"));
	assert_false(contains("10.0.0.0/8", "11.0.0.0:1"));
	assert_true(contains("192.0.2.7", "192.0.2.7:1"));
	assert_false(contains("192.0.2.7", "192.0.2.6:1"));
	assert_true(contains("172.16.0.0/12", "172.31.0.1:1"));
	assert_false(contains("172.16.0.0/12", "172.32.0.1:1"));
	assert_true(contains("0.0.0.0/0", "8.8.8.8:1"));
	assert_true(contains("10.0.0.0/8", "[::ffff:10.1.2.3]:1"));
	assert_false(contains("0.0.0.0/0", "[2001:db8::1]:1"));
	assert_true(contains("2001:db8::/33", "[2001:db8:7fff::1]:1"));
	assert_false(contains("2001:db8::/33", "[2001:db8:8000::1]:1"));
	assert_false(contains("::/0", "unix:/x"));
}

static void bad_prefixes(void **state)
{
	static const char *const texts[] = { "", "x", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/x", "10.1.0.0/8", "10.0.0/8", "::1/129",
		"2001:db8::1/32", "10.0.0.0/-1", NULL };
	struct prefix prefix;

	(void)state;
	for (const char *const *text = texts; *text != NULL; text++)
		assert_int_equal(prefix_parse(*text, &prefix, NULL), -1);
}

static bool is_private(const char *text)
{
	struct sockaddr_storage peer;

	assert_int_equal(peer_parse(text, &peer), 0);
	return prefixes_contain(&private_prefixes, (struct sockaddr *)&peer);
}

static void private_addresses(void **state)
{
	static const char *const private[] = { "127.0.0.1", "127.255.0.1", "10.9.8.7", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.1.1",
		"::1", "fc00::1", "fdff::1", "fe80::1", "fe80::1%eth0", "::ffff:10.0.0.1", NULL };
	static const char *const public[] = { "8.8.8.8", "172.15.0.1", "172.32.0.1", "192.167.1.1", "11.0.0.1", "::2", "2001:db8::1", "fe00::1",
		"::ffff:8.8.8.8", "0.0.0.0", "::", NULL };

	(void)state;
	for (const char *const *text = private; *text != NULL; text++)
		assert_true(is_private(*text));
	for (const char *const *text = public; *text != NULL; text++)
		assert_false(is_private(*text));
}

static void what_is_no_peer(void **state)
{
	static const char *const texts[] = { "", "unix:", "localhost", "127.0.0.1:80", "[::1]", "127.0.0.1, 8.8.8.8", " 127.0.0.1", "127.1", "%eth0",
		"0000:0000:0000:0000:0000:0000:0000:0000:0000:0001", NULL };
	struct sockaddr_storage peer;

	(void)state;
	for (const char *const *text = texts; *text != NULL; text++)
		assert_int_equal(peer_parse(*text, &peer), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_addresses),
		cmocka_unit_test(bad_addresses_say_what_was_meant),
		cmocka_unit_test(a_unix_path_has_a_limit),
		cmocka_unit_test(prefixes_hold_what_begins_with_them),
		cmocka_unit_test(bad_prefixes),
		cmocka_unit_test(private_addresses),
		cmocka_unit_test(what_is_no_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
