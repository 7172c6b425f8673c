#include "wire/fcgi.h"
#include "wire/fcgi_params.h"

#include <fastcgi.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* One record that the decoder has read whole. */
struct record {
	uint8_t type;
	uint16_t id;
	size_t len;
	uint8_t content[FCGI_MAX_CONTENT];
	unsigned ends;
};

/* Feeds `len` bytes in pieces of `piece` and keeps the last record. */
static enum fcgi_event feed(struct fcgi_decoder *d, const uint8_t *data, size_t len, size_t piece, struct record *r)
{
	enum fcgi_event event = FCGI_MORE;

	for (size_t at = 0; at < len; at += piece) {
		struct slice input = { (const char *)data + at, len - at < piece ? len - at : piece };
		struct slice content;

		while ((event = fcgi_decode(d, &input, &content)) != FCGI_MORE) {
			if (event == FCGI_BAD)
				return event;
			if (event == FCGI_START) {
				r->type = d->type;
				r->id = d->id;
				r->len = 0;
			}
			if (event == FCGI_CONTENT) {
				assert_true(content.len > 0);
				memcpy(r->content + r->len, content.ptr, content.len);
				r->len += content.len;
			}
			if (event == FCGI_END) {
				r->ends++;
				assert_int_equal(r->len, d->content_len);
			}
		}
		assert_int_equal(input.len, 0);
	}
	return event;
}

static void largest_record_in_any_pieces(void **state)
{
	static uint8_t wire[8 + 65535 + 255 + 8];
	static const size_t pieces[] = { 1, 7, 8, 9, 4096, sizeof(wire) };
	struct record *r = test_malloc(sizeof(*r));

	(void)state;
	for (size_t i = 0; i < sizeof(wire); i++)
		wire[i] = (uint8_t)(i * 7);
	fcgi_put_header(wire, FCGI_STDIN, 258, 65535, 255);
	fcgi_put_header(wire + 8 + 65535 + 255, FCGI_STDIN, 65535, 0, 0);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct fcgi_decoder d = { .state = 0 };

		r->ends = 0;
		feed(&d, wire, sizeof(wire) - 8, pieces[i], r);
		assert_int_equal(r->ends, 1);
		assert_int_equal(r->id, 258);
		assert_int_equal(r->len, 65535);
		assert_memory_equal(r->content, wire + 8, 65535);
		feed(&d, wire + sizeof(wire) - 8, 8, pieces[i], r);
		assert_int_equal(r->ends, 2);
		assert_int_equal(r->id, 65535);
		assert_int_equal(r->len, 0);
	}
	test_free(r);
}

static void empty_record_ends_without_more_input(void **state)
{
	struct fcgi_decoder d = { .state = 0 };
	uint8_t wire[8];
	struct slice input = { (const char *)wire, 8 }, content;

	(void)state;
	fcgi_put_header(wire, FCGI_PARAMS, 1, 0, 0);
	assert_int_equal(fcgi_decode(&d, &input, &content), FCGI_START);
	assert_int_equal(fcgi_decode(&d, &input, &content), FCGI_END);
	assert_int_equal(fcgi_decode(&d, &input, &content), FCGI_MORE);
}

static void wrong_version_is_bad_for_ever(void **state)
{
	struct fcgi_decoder d = { .state = 0 };
	struct slice input = { "\2", 1 }, content;

	(void)state;
	assert_int_equal(fcgi_decode(&d, &input, &content), FCGI_BAD);
	input = (struct slice){ "\1\1\0\1\0\0\0\0", 8 };
	assert_int_equal(fcgi_decode(&d, &input, &content), FCGI_BAD);
}

static void fixed_records_round_trip(void **state)
{
	uint8_t wire[16];
	struct fcgi_begin begin;
	struct fcgi_end end;

	(void)state;
	fcgi_put_begin(wire, 300, FCGI_RESPONDER, FCGI_KEEP_CONN);
	assert_memory_equal(wire, "\1\1\1\x2c\0\10\0\0\0\1\1\0\0\0\0\0", 16);
	fcgi_get_begin(wire + 8, &begin);
	assert_int_equal(begin.role, FCGI_RESPONDER);
	assert_int_equal(begin.flags, FCGI_KEEP_CONN);
	fcgi_put_end(wire, 1, 0x80000102, FCGI_UNKNOWN_ROLE);
	fcgi_get_end(wire + 8, &end);
	assert_int_equal(end.app_status, 0x80000102);
	assert_int_equal(end.protocol_status, FCGI_UNKNOWN_ROLE);
	fcgi_put_unknown_type(wire, 99);
	assert_memory_equal(wire, "\1\13\0\0\0\10\0\0\143\0\0\0\0\0\0\0", 16);
}

static void a_fixed_body_is_gathered_from_its_pieces_and_cut(void **state)
{
	struct fcgi_fixed fixed = { .len = 0 };

	(void)state;
	fcgi_fixed_put(&fixed, (struct slice){ "\1\2\3", 3 });
	assert_int_equal(fixed.len, 3);
	fcgi_fixed_put(&fixed, (struct slice){ "\4\5\6\7\10\11\12", 7 });
	assert_int_equal(fixed.len, FCGI_BODY_BYTES);
	fcgi_fixed_put(&fixed, (struct slice){ "\13", 1 });
	assert_int_equal(fixed.len, FCGI_BODY_BYTES);
	assert_memory_equal(fixed.bytes, "\1\2\3\4\5\6\7\10", 8);
}

static void stream_is_cut_into_records(void **state)
{
	size_t len = 65528 + 3;
	uint8_t *data = test_calloc(1, len);
	struct bytes out;

	(void)state;
	bytes_init(&out, len + 16);
	assert_int_equal(fcgi_put_stream(&out, FCGI_STDIN, 1, data, len), 0);
	assert_int_equal(out.len, len + 16);
	assert_memory_equal(bytes_data(&out), "\1\5\0\1\xff\xf8\0\0", 8);
	assert_memory_equal(bytes_data(&out) + 8 + 65528, "\1\5\0\1\0\3\0\0", 8);
	assert_int_equal(fcgi_put_stream(&out, FCGI_STDIN, 1, NULL, 0), -1);
	assert_int_equal(out.len, len + 16);
	bytes_clear(&out);
	assert_int_equal(fcgi_put_stream(&out, FCGI_STDIN, 1, NULL, 0), 0);
	assert_int_equal(out.len, 8);
	assert_int_equal(fcgi_put_stream(&out, FCGI_STDIN, 1, data, len), -1);
	assert_int_equal(out.len, 8);
	bytes_fini(&out);
	test_free(data);
}

static void values_are_answered_once_each(void **state)
{
	struct bytes asked, out;
	struct slice block, name, value;

	(void)state;
	bytes_init(&asked, 1 << 16);
	bytes_init(&out, 1 << 16);
	fcgi_put_pair(&asked, slice_of("FCGI_NO_SUCH"), slice_of(""));
	for (int i = 0; i < 500; i++)
		fcgi_put_pair(&asked, slice_of(FCGI_MPXS_CONNS), slice_of(""));
	fcgi_put_pair(&asked, slice_of(FCGI_MAX_CONNS), slice_of(""));
	block = (struct slice){ (const char *)bytes_data(&asked), asked.len };
	assert_int_equal(fcgi_put_values(&out, block, 4096, 7), 0);
	block = (struct slice){ (const char *)bytes_data(&out) + 8, out.len - 8 };
	assert_int_equal(bytes_data(&out)[1], FCGI_GET_VALUES_RESULT);
	assert_int_equal(bytes_data(&out)[5], block.len);
	assert_int_equal(fcgi_next_pair(&block, &name, &value), FCGI_PAIR_OK);
	assert_true(slice_is(name, FCGI_MPXS_CONNS) && slice_is(value, "0"));
	assert_int_equal(fcgi_next_pair(&block, &name, &value), FCGI_PAIR_OK);
	assert_true(slice_is(name, FCGI_MAX_CONNS) && slice_is(value, "4096"));
	assert_int_equal(fcgi_next_pair(&block, &name, &value), FCGI_PAIR_NONE);
	bytes_clear(&out);
	assert_int_equal(fcgi_put_values(&out, (struct slice){ "\x7fx", 2 }, 1, 1), -1);
	assert_int_equal(out.len, 0);
	assert_int_equal(fcgi_put_values(&out, (struct slice){ NULL, 0 }, 1, 1), 0);
	assert_int_equal(out.len, 8);
	bytes_fini(&asked);
	bytes_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(largest_record_in_any_pieces),
		cmocka_unit_test(empty_record_ends_without_more_input),
		cmocka_unit_test(wrong_version_is_bad_for_ever),
		cmocka_unit_test(fixed_records_round_trip),
		cmocka_unit_test(a_fixed_body_is_gathered_from_its_pieces_and_cut),
		cmocka_unit_test(stream_is_cut_into_records),
		cmocka_unit_test(values_are_answered_once_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
