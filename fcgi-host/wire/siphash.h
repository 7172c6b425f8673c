/*
 * siphash.h - a hash whose collisions nobody can prepare without the key
 * (SipHash-1-3, Aumasson and Bernstein), for tables whose keys a peer chooses.
 */
#ifndef FCGI_HOST_WIRE_SIPHASH_H
#define FCGI_HOST_WIRE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t siphash(const uint64_t key[2], const void *data, size_t len);

#endif
