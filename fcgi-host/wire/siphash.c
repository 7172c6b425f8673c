#include "wire/siphash.h"

#include <endian.h>
#include <string.h>

static inline uint64_t rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

/* Inlined at -O2 too: it is most of what a lookup costs. */
__attribute__((always_inline)) static inline void round_once(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

uint64_t siphash(const uint64_t key[2], const void *data, size_t len)
{
	uint64_t v[4] = {
		key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
		key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573),
	};
	const uint8_t *p = data;
	uint64_t word, last = (uint64_t)len << 56;
	size_t tail = len % 8;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&word, p, sizeof(word));
		word = le64toh(word);
		v[3] ^= word;
		round_once(v);
		v[0] ^= word;
	}
	for (size_t i = 0; i < tail; i++)
		last |= (uint64_t)p[i] << (8 * i);
	v[3] ^= last;
	round_once(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		round_once(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
