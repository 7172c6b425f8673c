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

#endif
