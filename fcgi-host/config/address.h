/*
 * address.h - what the configuration itself needs of addresses beside what
 * config.h offers to all.
 */
#ifndef FCGI_HOST_CONFIG_ADDRESS_H
#define FCGI_HOST_CONFIG_ADDRESS_H

#include "config/config.h"

bool address_is_same(const struct address *a, const struct address *b);

/* "10.0.0.0/8", "192.0.2.7", "2001:db8::/32"; bits after the prefix are refused. */
int prefix_parse(const char *text, struct prefix *out, struct err *err);

enum { PREFIX_TEXT_BYTES = 64 };
void prefix_to_text(const struct prefix *prefix, char out[PREFIX_TEXT_BYTES]);

/* An IPv4 or IPv6 address alone, as in REMOTE_ADDR; a zone ("%eth0") is ignored.
 * 0, or -1 when it is none. */
int peer_parse(const char *text, struct sockaddr_storage *out);

bool prefixes_contain(const struct prefixes *prefixes, const struct sockaddr *peer);

/* Loopback, link-local, and those for private use (RFC 1918, RFC 4193). */
extern const struct prefixes private_prefixes;

#endif
