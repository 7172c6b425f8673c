#include "wire/siphash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

static const uint64_t key[2] = { UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908) };

/* Values of SipHash-1-3 for the bytes 0, 1, 2, …. */
static void known_values(void **state)
{
	static const struct { size_t len; uint64_t hash; } known[] = {
		{ 0, UINT64_C(0xabac0158050fc4dc) }, { 1, UINT64_C(0xc9f49bf37d57ca93) },
		{ 2, UINT64_C(0x82cb9b024dc7d44d) }, { 7, UINT64_C(0xd3927d989bb11140) },
		{ 8, UINT64_C(0x369095118d299a8e) },
	};
	uint8_t data[16];

	(void)state;
	for (uint8_t i = 0; i < sizeof(data); i++)
		data[i] = i;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_true(siphash(key, data, known[i].len) == known[i].hash);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(known_values) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
