#include "serve/spool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { PIECE_BYTES = 1000, MIB = 1024 * 1024 };

static void put(struct spool *spool, size_t len, uint64_t *offset)
{
	uint8_t piece[PIECE_BYTES];
	struct err err;

	while (len > 0) {
		size_t part = len < sizeof(piece) ? len : sizeof(piece);

		for (size_t i = 0; i < part; i++)
			piece[i] = (uint8_t)((*offset + i) * 31 + (*offset + i) / 256);
		assert_int_equal(spool_put(spool, piece, part, &err), 0);
		*offset += part;
		len -= part;
	}
}

static void take(struct spool *spool, size_t len, uint64_t *offset)
{
	struct slice piece;
	struct err err;

	while (len > 0) {
		assert_int_equal(spool_peek(spool, &piece, &err), 0);
		assert_true(piece.len > 0);
		piece.len = piece.len < len ? piece.len : len;
		for (size_t i = 0; i < piece.len; i++)
			assert_int_equal((uint8_t)piece.ptr[i], (uint8_t)((*offset + i) * 31 + (*offset + i) / 256));
		spool_consume(spool, piece.len);
		*offset += piece.len;
		len -= piece.len;
	}
}

static uint64_t on_disk(const struct spool *spool)
{
	struct stat st;

	assert_int_equal(fstat(spool->fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static void little_needs_no_file(void **state)
{
	uint64_t in = 0, out = 0;
	struct spool spool;

	(void)state;
	spool_init(&spool);
	for (unsigned i = 0; i < 100; i++) {
		put(&spool, SPOOL_MEMORY_BYTES, &in);
		take(&spool, SPOOL_MEMORY_BYTES, &out);
	}
	assert_int_equal(spool.fd, -1);
	assert_null(spool.memory.base);
	spool_fini(&spool);
}

static void much_comes_back_in_order(void **state)
{
	uint64_t in = 0, out = 0;
	struct spool spool;

	(void)state;
	spool_init(&spool);
	put(&spool, 3 * MIB, &in);
	take(&spool, MIB / 3, &out);
	put(&spool, MIB, &in);
	assert_int_equal(spool_waiting(&spool), in - out);
	take(&spool, (size_t)(in - out), &out);
	assert_int_equal(spool_waiting(&spool), 0);
	put(&spool, 70, &in);
	take(&spool, 70, &out);
	spool_fini(&spool);
	assert_int_equal(spool.fd, -1);
}

static void what_was_read_takes_no_space(void **state)
{
	uint64_t in = 0, out = 0;
	struct spool spool;

	(void)state;
	spool_init(&spool);
	put(&spool, 16 * MIB, &in);
	assert_true(on_disk(&spool) > 14 * MIB);
	take(&spool, 12 * MIB, &out);
	assert_true(on_disk(&spool) < 6 * MIB);
	take(&spool, 4 * MIB, &out);
	assert_int_equal(on_disk(&spool), 0);
	spool_fini(&spool);
}

/* A reader that keeps up but never quite: the file stays as small as what waits. */
static void a_long_life_keeps_the_file_small(void **state)
{
	uint64_t in = 0, out = 0;
	struct spool spool;

	(void)state;
	spool_init(&spool);
	put(&spool, MIB, &in);
	for (unsigned i = 0; i < 64; i++) {
		put(&spool, MIB, &in);
		take(&spool, MIB, &out);
		assert_true(on_disk(&spool) < 4 * MIB);
	}
	spool_fini(&spool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(little_needs_no_file),
		cmocka_unit_test(much_comes_back_in_order),
		cmocka_unit_test(what_was_read_takes_no_space),
		cmocka_unit_test(a_long_life_keeps_the_file_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
