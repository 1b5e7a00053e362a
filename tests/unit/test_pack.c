/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <zstd.h>

#include "random_series.h"
#include "stream/pack.h"
#include "traced/stream.h"

/* Several frames and a part of one: lines that differ. */
#define TEXT_SIZE (5 * PACK_FRAME + 12345)

static void put_text(struct buf *b)
{
	uint64_t random = RANDOM_FIRST;

	while (b->len < TEXT_SIZE)
		buf_printf(b, "%016llx t name_%zu\n", (unsigned long long)random_next(&random),
			   b->len);
	b->len = TEXT_SIZE;
	assert_int_equal(buf_error(b), 0);
}

static int expand(const struct buf *packed, size_t max, struct buf *ret)
{
	const char *why = "";
	int r = stream_expand(packed->data, packed->len, max, ret, &why);

	assert_true(r != -EBADMSG || *why);
	return r;
}

static void put_frame(struct buf *b, const void *data, size_t len)
{
	size_t room = ZSTD_compressBound(len), n;
	char *to = buf_reserve(b, room);

	assert_non_null(to);
	n = ZSTD_compress(to, room, data, len, 1);
	assert_false(ZSTD_isError(n));
	b->len += n;
}

static void packed_data_can_be_expanded(void **state _unused_)
{
	_cleanup_buf_ struct buf text = BUF_INIT, packed = BUF_INIT, plain = BUF_INIT;
	size_t at = 0, frames = 0;

	put_text(&text);
	buf_puts(&plain, "what was in it before");
	assert_int_equal(stream_pack(text.data, text.len, &packed), 1);
	assert_true(packed.len < text.len * 2 / 3);
	assert_int_equal(expand(&packed, text.len, &plain), 0);
	assert_int_equal(plain.len, text.len);
	assert_memory_equal(plain.data, text.data, text.len);
	/*
	 * Any other decoder gets the same, from the number of frames that the format's page states.
	 */
	memset(plain.data, 0, plain.len);
	assert_int_equal(ZSTD_decompress(plain.data, plain.len, packed.data, packed.len), text.len);
	assert_memory_equal(plain.data, text.data, text.len);
	for (; at < packed.len; frames++) {
		assert_int_equal(ZSTD_getFrameContentSize(packed.data + at, packed.len - at),
				 MIN((size_t)PACK_FRAME, text.len - frames * PACK_FRAME));
		at += ZSTD_findFrameCompressedSize(packed.data + at, packed.len - at);
	}
	assert_int_equal(frames, 6);
}

static void frames_are_whatever_another_made(void **state _unused_)
{
	_cleanup_buf_ struct buf text = BUF_INIT, packed = BUF_INIT, plain = BUF_INIT;

	put_text(&text);
	put_frame(&packed, text.data, text.len);
	assert_int_equal(expand(&packed, text.len, &plain), 0);
	assert_int_equal(plain.len, text.len);
	assert_memory_equal(plain.data, text.data, text.len);

	/* Much longer than a megabyte, empty, and short. */
	buf_clear(&packed);
	put_frame(&packed, text.data, 3 * PACK_FRAME + 1);
	for (int i = 0; i < 1000; i++)
		put_frame(&packed, "", 0);
	for (size_t at = 3 * PACK_FRAME + 1; at < text.len; at += 9999)
		put_frame(&packed, text.data + at, MIN(text.len - at, (size_t)9999));
	assert_int_equal(expand(&packed, text.len, &plain), 0);
	assert_int_equal(plain.len, text.len);
	assert_memory_equal(plain.data, text.data, text.len);

	buf_clear(&packed);
	put_frame(&packed, "", 0);
	assert_int_equal(expand(&packed, 0, &plain), 0);
	assert_int_equal(plain.len, 0);
}

/* Another writer may put this between frames: a decoder skips it. */
static void skippable_frames_are_passed_over(void **state _unused_)
{
	static const uint8_t skipped[] = { 0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c' };
	_cleanup_buf_ struct buf packed = BUF_INIT, plain = BUF_INIT;

	buf_append(&packed, skipped, sizeof(skipped));
	put_frame(&packed, "text", 4);
	buf_append(&packed, skipped, sizeof(skipped));
	assert_int_equal(expand(&packed, 4, &plain), 0);
	assert_int_equal(plain.len, 4);
	assert_memory_equal(plain.data, "text", 4);
}

static void invalid_frames_are_refused(void **state _unused_)
{
	/* The header says 5 bytes; the only block, a stored one, has 4. */
	static const uint8_t lies[] = { 0x28, 0xb5, 0x2f, 0xfd, 0x20, 5,  0x21,
					0,    0,    't',  'e',	'x',  't' };
	_cleanup_buf_ struct buf packed = BUF_INIT, plain = BUF_INIT;

	put_frame(&packed, "text", 4);
	buf_puts(&packed, "behind it");
	assert_int_equal(expand(&packed, 100, &plain), -EBADMSG);
	buf_clear(&packed);
	buf_append(&packed, lies, sizeof(lies));
	assert_int_equal(expand(&packed, 100, &plain), -EBADMSG);
	packed.data[5] = 4;
	assert_int_equal(expand(&packed, 100, &plain), 0);
	assert_int_equal(plain.len, 4);
	assert_memory_equal(plain.data, "text", 4);
}

static void one_cpu_is_enough(void **state _unused_)
{
	_cleanup_buf_ struct buf text = BUF_INIT, packed = BUF_INIT, plain = BUF_INIT;
	cpu_set_t all, one;
	int cpu = 0;

	put_text(&text);
	assert_int_equal(stream_pack(text.data, text.len, &packed), 1);
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(expand(&packed, text.len, &plain), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	assert_memory_equal(plain.data, text.data, text.len);
}

static void incompressible_data_stays(void **state _unused_)
{
	_cleanup_buf_ struct buf text = BUF_INIT, packed = BUF_INIT;
	uint64_t random = RANDOM_FIRST;

	while (text.len < 2 * PACK_FRAME) {
		uint64_t number = random_next(&random);

		buf_append(&text, &number, sizeof(number));
	}
	assert_int_equal(stream_pack(text.data, text.len, &packed), 0);
	assert_int_equal(stream_pack("X 1\n", 4, &packed), 0);
	assert_int_equal(stream_pack("", 0, &packed), 0);
}

static void more_than_is_asked_for_is_refused(void **state _unused_)
{
	/* The header of a frame of 200 MiB, and one empty block. */
	static const uint8_t head[] = { 0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0x80, 0x0c, 1, 0, 0 };
	_cleanup_buf_ struct buf text = BUF_INIT, packed = BUF_INIT, plain = BUF_INIT;
	const char *why = "";

	put_text(&text);
	assert_int_equal(stream_pack(text.data, text.len, &packed), 1);
	assert_int_equal(expand(&packed, text.len - 1, &plain), -EFBIG);
	buf_clear(&packed);
	buf_append(&packed, head, sizeof(head));
	assert_int_equal(ZSTD_getFrameContentSize(head, sizeof(head)), 200 << 20);
	assert_int_equal(expand(&packed, (200 << 20) - 1, &plain), -EFBIG);
	/* Each alone would be accepted. */
	buf_append(&packed, head, sizeof(head));
	assert_int_equal(stream_expand(packed.data, packed.len, CHUNK_EXPANDED_MAX, &plain, &why),
			 -EBADMSG);
	assert_non_null(strstr(why, "too large"));
}

static void damage_anywhere_is_reported(void **state _unused_)
{
	_cleanup_buf_ struct buf text = BUF_INIT, packed = BUF_INIT, plain = BUF_INIT;
	size_t at = 0;

	put_text(&text);
	assert_int_equal(stream_pack(text.data, text.len, &packed), 1);
	assert_int_equal(stream_expand(packed.data, 0, text.len, &plain, &(const char *){ "" }),
			 -EBADMSG);
	/* In each frame: its blocks, and the place of its length. */
	while (at < packed.len) {
		size_t n = ZSTD_findFrameCompressedSize(packed.data + at, packed.len - at);

		for (size_t of = 0; of < 12; of++) {
			int r;

			packed.data[at + of] ^= 0x5a;
			r = expand(&packed, CHUNK_EXPANDED_MAX, &plain);
			/* A changed size alone may happen to fit. */
			assert_true(r == -EBADMSG || (r == 0 && plain.len == text.len));
			packed.data[at + of] ^= 0x5a;
		}
		/* It ends within the frame. */
		assert_int_equal(stream_expand(packed.data, at + n - 1, text.len, &plain,
					       &(const char *){ "" }),
				 -EBADMSG);
		at += n;
	}
	assert_int_equal(expand(&packed, text.len, &plain), 0);
	assert_memory_equal(plain.data, text.data, text.len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packed_data_can_be_expanded),
		cmocka_unit_test(frames_are_whatever_another_made),
		cmocka_unit_test(skippable_frames_are_passed_over),
		cmocka_unit_test(invalid_frames_are_refused),
		cmocka_unit_test(one_cpu_is_enough),
		cmocka_unit_test(incompressible_data_stays),
		cmocka_unit_test(more_than_is_asked_for_is_refused),
		cmocka_unit_test(damage_anywhere_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
