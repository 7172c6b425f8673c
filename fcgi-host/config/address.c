/*
 * address.c - addresses to listen on and to connect to, and address prefixes.
 */
#include "config/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

enum { UNIX_PATH_MAX_BYTES = sizeof(((struct sockaddr_un *)0)->sun_path) - 1 };

static int finish(const char *text, const void *sockaddr, socklen_t len, struct address *out, struct err *err)
{
	*out = (struct address){ .text = strdup(text), .sockaddr_len = len };
	if (out->text == NULL)
		return err_set(err, "there is not enough memory");
	memcpy(&out->sockaddr, sockaddr, len);
	return 0;
}

static int parse_unix(const char *text, const char *path, struct address *out, struct err *err)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	size_t len = strlen(path);

	if (path[0] == '\0')
		return err_set(err, "'%s' has no path", text);
	if (path[0] == '@')
		return err_set(err, "'%s': abstract sockets are not supported, since everyone may connect to them", text);
	if (len > UNIX_PATH_MAX_BYTES)
		return err_set(err, "the path '%s' has %zu bytes: a unix socket's may have %d", path, len, UNIX_PATH_MAX_BYTES);
	memcpy(sun.sun_path, path, len + 1);
	return finish(text, &sun, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1), out, err);
}

static int parse_port(const char *text, const char *digits, in_port_t *out, struct err *err)
{
	uint64_t port;

	if (text_to_u64(slice_of(digits), &port) != 0 || port < 1 || port > 65535)
		return err_set(err, "'%s': '%s' is no port from 1 to 65535", text, digits);
	*out = htons((uint16_t)port);
	return 0;
}

static int parse_ipv6(const char *text, struct address *out, struct err *err)
{
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6 };
	const char *end = strchr(text, ']');
	char host[INET6_ADDRSTRLEN];

	if (end == NULL || end[1] != ':')
		return err_set(err, "'%s' is no address such as [::1]:9000", text);
	snprintf(host, sizeof(host), "%.*s", (int)(end - text - 1), text + 1);
	if ((size_t)(end - text - 1) >= sizeof(host) || inet_pton(AF_INET6, host, &sin6.sin6_addr) != 1)
		return err_set(err, "'%s' holds no IPv6 address", text);
	if (parse_port(text, end + 2, &sin6.sin6_port, err) != 0)
		return -1;
	return finish(text, &sin6, sizeof(sin6), out, err);
}

static int parse_ipv4(const char *text, struct address *out, struct err *err)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	const char *colon = strrchr(text, ':');
	char host[64];

	if (colon == NULL || strchr(text, ':') != colon)
		return err_set(err, "'%s' is no address: unix:/path, 127.0.0.1:9000 or [::1]:9000", text);
	snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
	if (strcmp(host, "*") == 0 || host[0] == '\0')
		return err_set(err, "'%s': every address of this machine is written 0.0.0.0%s", text, colon);
	if (strcmp(host, "localhost") == 0)
		return err_set(err, "'%s': names are not looked up, write 127.0.0.1%s", text, colon);
	if (inet_pton(AF_INET, host, &sin.sin_addr) != 1)
		return err_set(err, "'%s': '%s' is no IPv4 address (names are not looked up)", text, host);
	if (parse_port(text, colon + 1, &sin.sin_port, err) != 0)
		return -1;
	return finish(text, &sin, sizeof(sin), out, err);
}

int address_parse(const char *text, struct address *out, struct err *err)
{
	*out = (struct address){ 0 };
	if (strncmp(text, "unix:", 5) == 0)
		return parse_unix(text, text + 5, out, err);
	if (strchr(text, '/') != NULL)
		return err_set(err, "'%s' is no address, did you mean 'unix:%s'?", text, text);
	if (text[0] == '[')
		return parse_ipv6(text, out, err);
	return parse_ipv4(text, out, err);
}

void address_fini(struct address *address)
{
	free(address->text);
	*address = (struct address){ 0 };
}

bool address_is_loopback(const struct address *address)
{
	static const struct prefix loopback[] = {
		{ AF_INET, { 127 }, 8 },
		{ AF_INET6, { [15] = 1 }, 128 },
	};
	const struct sockaddr *sockaddr = (const struct sockaddr *)&address->sockaddr;

	return sockaddr->sa_family == AF_UNIX || prefix_contains(&loopback[0], sockaddr)
		|| prefix_contains(&loopback[1], sockaddr);
}

bool address_is_same(const struct address *a, const struct address *b)
{
	if (a->sockaddr_len != b->sockaddr_len)
		return false;
	return memcmp(&a->sockaddr, &b->sockaddr, a->sockaddr_len) == 0;
}

int prefix_parse(const char *text, struct prefix *out, struct err *err)
{
	const char *slash = strchr(text, '/');
	size_t host_len = slash == NULL ? strlen(text) : (size_t)(slash - text);
	char host[INET6_ADDRSTRLEN];
	uint64_t bits;

	*out = (struct prefix){ .family = memchr(text, ':', host_len) != NULL ? AF_INET6 : AF_INET };
	snprintf(host, sizeof(host), "%.*s", (int)host_len, text);
	if (host_len >= sizeof(host) || inet_pton(out->family, host, out->address) != 1)
		return err_set(err, "'%s' is no address or prefix such as 10.0.0.0/8", text);
	unsigned size = out->family == AF_INET ? 32 : 128;
	bits = size;
	if (slash != NULL && (text_to_u64(slice_of(slash + 1), &bits) != 0 || bits > size))
		return err_set(err, "'%s': the length of the prefix is from 0 to %u", text, size);
	out->bits = (unsigned)bits;
	for (unsigned bit = out->bits; bit < size; bit++)
		if (out->address[bit / 8] & (0x80u >> (bit % 8)))
			return err_set(err, "'%s' has bits set after the first %u: what is meant?", text, out->bits);
	return 0;
}

void prefix_to_text(const struct prefix *prefix, char out[PREFIX_TEXT_BYTES])
{
	char host[INET6_ADDRSTRLEN] = "";

	inet_ntop(prefix->family, prefix->address, host, sizeof(host));
	snprintf(out, PREFIX_TEXT_BYTES, "%s/%u", host, prefix->bits);
}

/* The bytes of a peer's address; an IPv4 one inside of IPv6 as IPv4. */
static const uint8_t *peer_bytes(const struct sockaddr *peer, int *family_out)
{
	*family_out = peer->sa_family;
	if (peer->sa_family == AF_INET)
		return (const uint8_t *)&((const struct sockaddr_in *)peer)->sin_addr;
	if (peer->sa_family != AF_INET6)
		return NULL;
	const struct in6_addr *address = &((const struct sockaddr_in6 *)peer)->sin6_addr;
	if (!IN6_IS_ADDR_V4MAPPED(address))
		return address->s6_addr;
	*family_out = AF_INET;
	return address->s6_addr + 12;
}

bool prefix_contains(const struct prefix *prefix, const struct sockaddr *peer)
{
	int family;
	const uint8_t *bytes = peer_bytes(peer, &family);
	unsigned whole = prefix->bits / 8, rest = prefix->bits % 8;

	if (bytes == NULL || family != prefix->family || memcmp(bytes, prefix->address, whole) != 0)
		return false;
	return rest == 0 || ((bytes[whole] ^ prefix->address[whole]) >> (8 - rest)) == 0;
}

int peer_parse(const char *text, struct sockaddr_storage *out)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)out;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)out;
	char host[INET6_ADDRSTRLEN];
	size_t len = strcspn(text, "%");

	*out = (struct sockaddr_storage){ 0 };
	if (len >= sizeof(host))
		return -1;
	snprintf(host, sizeof(host), "%.*s", (int)len, text);
	if (inet_pton(AF_INET, host, &sin->sin_addr) == 1) {
		out->ss_family = AF_INET;
		return 0;
	}
	if (inet_pton(AF_INET6, host, &sin6->sin6_addr) != 1)
		return -1;
	out->ss_family = AF_INET6;
	return 0;
}

bool prefixes_contain(const struct prefixes *prefixes, const struct sockaddr *peer)
{
	for (size_t i = 0; i < prefixes->count; i++)
		if (prefix_contains(&prefixes->list[i], peer))
			return true;
	return false;
}

static struct prefix private_list[] = {
	{ AF_INET, { 127 }, 8 },
	{ AF_INET, { 10 }, 8 },
	{ AF_INET, { 172, 16 }, 12 },
	{ AF_INET, { 192, 168 }, 16 },
	{ AF_INET, { 169, 254 }, 16 },
	{ AF_INET6, { [15] = 1 }, 128 },
	{ AF_INET6, { 0xfc }, 7 },
	{ AF_INET6, { 0xfe, 0x80 }, 10 },
};
const struct prefixes private_prefixes = { private_list, sizeof(private_list) / sizeof(private_list[0]) };
