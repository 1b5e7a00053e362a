/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The quick ways of protobuf's wire format, against the way that its description has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "formats/perfetto/wire.h"

static size_t plain_varint(uint8_t *p, uint64_t value)
{
	size_t n = 0;

	for (; value > 127; value /= 128)
		p[n++] = (uint8_t)(128 + value % 128);
	p[n++] = (uint8_t)value;
	return n;
}

static void check_varint(uint64_t value)
{
	uint8_t want[WIRE_VARINT_MAX], got[WIRE_VARINT_MAX];
	size_t len = plain_varint(want, value);

	assert_int_equal(wire_varint(got, value) - got, len);
	assert_memory_equal(got, want, len);
	assert_int_equal(wire_varint_wide(got, value) - got, len);
	assert_memory_equal(got, want, len);
	if (value >> 63 == 0)
		assert_int_equal(wire_size(value), len);
	if (value >> 28) {
		uint8_t *high = wire_varint_low(got, value);

		assert_int_equal(wire_varint(high, value >> 28) - got, len);
		assert_memory_equal(got, want, len);
	}
}

static void numbers_of_every_size(void **state _unused_)
{
	uint64_t bits = 1;

	for (unsigned shift = 0; shift < 64; shift++)
		for (int64_t near = -2; near <= 2; near++)
			check_varint((UINT64_C(1) << shift) + (uint64_t)near);
	/* All lengths are equally frequent. */
	for (unsigned i = 0; i < 100000; i++) {
		bits = bits * UINT64_C(6364136223846793005) + 1;
		check_varint(bits >> i % 64);
	}
}

static void contents_of_every_length(void **state _unused_)
{
	static const size_t lengths[] = { 0, 1, 127, 128, 129, 16383, 16384, 20000 };

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		size_t len = lengths[i], head;
		_cleanup_free_ uint8_t *text = malloc(20000);
		_cleanup_free_ uint8_t *got = malloc(20000 + 2 * WIRE_VARINT_MAX);
		_cleanup_free_ uint8_t *want = malloc(20000 + 2 * WIRE_VARINT_MAX);
		uint8_t *content;

		assert_true(text && got && want);
		for (size_t k = 0; k < 20000; k++)
			text[k] = (uint8_t)(k * 7);
		want[0] = 5 << 3 | WIRE_BYTES;
		head = 1 + plain_varint(want + 1, len);
		memcpy(want + head, text, len);
		content = wire_open(got, 5);
		memcpy(content, text, len);
		assert_int_equal(wire_close(content, content + len) - got, head + len);
		assert_memory_equal(got, want, head + len);
		assert_int_equal(wire_bytes(got, 5, text, len) - got, head + len);
		assert_memory_equal(got, want, head + len);
	}
}

/* A varint may have more bytes than it needs. */
static void a_wide_length_is_that_length(void **state _unused_)
{
	static const size_t lengths[] = { 0, 127, 128, 16384, UINT32_C(0x7fffffff) };
	uint8_t got[1 + WIRE_WIDE];

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint8_t *content = wire_open_wide(got, 5);
		uint64_t told = 0;

		wire_close_wide(content, lengths[i]);
		assert_int_equal(content - got, 1 + WIRE_WIDE);
		for (unsigned k = 0; k < WIRE_WIDE; k++) {
			told |= (uint64_t)(got[1 + k] & 0x7f) << 7 * k;
			assert_int_equal(got[1 + k] >> 7, k + 1 < WIRE_WIDE);
		}
		assert_int_equal(told, lengths[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_every_size),
		cmocka_unit_test(contents_of_every_length),
		cmocka_unit_test(a_wide_length_is_that_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
