/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Synthetic sub-buffers, one case of the kernel's format each, for all kinds of machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "make_stream.h"
#include "trace/page.h"

static void for_each_machine(void (*test)(struct maker *m, const struct page_layout *l))
{
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_buf_ struct buf text = BUF_INIT;
		struct page_layout l;

		maker_init(&m, machines[i].word_size, machines[i].big_endian, 4096);
		maker_header_page(&m, &text);
		assert_int_equal(page_layout_parse(&l, text.data, text.len, m.word_size,
						   m.big_endian, 0, NULL),
				 0);
		assert_int_equal(l.subbuf_size, 4096);
		assert_int_equal(l.data_offset, 8 + m.word_size);
		test(&m, &l);
	}
}

static struct page_iter begin(const struct maker *m, const struct page_layout *l)
{
	struct page_iter it;

	assert_int_equal(page_iter_init(&it, l, m->subbufs.data, l->subbuf_size), 0);
	return it;
}

static void expect(struct page_iter *it, uint64_t ts, const char *data, uint32_t len)
{
	struct record rec;

	assert_int_equal(page_iter_next(it, &rec), 1);
	assert_int_equal(rec.ts, ts);
	assert_int_equal(rec.len, len);
	assert_memory_equal(rec.data, data, len);
}

static void expect_end(struct page_iter *it)
{
	struct record rec;

	assert_int_equal(page_iter_next(it, &rec), 0);
	assert_int_equal(page_iter_next(it, &rec), 0);
}

static void do_data(struct maker *m, const struct page_layout *l)
{
	char big[200];
	struct page_iter it;

	memset(big, 'x', sizeof(big));
	page_begin(m, 1000);
	page_record(m, 1000, "abcd", 4);
	page_record(m, 1007, big, 112); /* the longest that type_len can state */
	page_record(m, 1008, big, 116); /* its length is in array[0] */
	page_record(m, 1009, big, 200);
	page_head(m, 0, 1); /* a long record without data */
	page_u32(m, 4);
	page_end(m, 0);
	it = begin(m, l);
	expect(&it, 1000, "abcd", 4);
	assert_int_equal(it.start, l->data_offset);
	expect(&it, 1007, big, 112);
	assert_int_equal(it.start, l->data_offset + 8);
	expect(&it, 1008, big, 116);
	expect(&it, 1009, big, 200);
	expect(&it, 1010, "", 0);
	expect_end(&it);
	assert_int_equal(it.missed, 0);
}

static void data_records(void **state _unused_)
{
	for_each_machine(do_data);
}

static void do_time(struct maker *m, const struct page_layout *l)
{
	struct page_iter it;

	page_begin(m, 1000);
	page_head(m, 30, 5); /* extend: 3 << 27 | 5 */
	page_u32(m, 3);
	page_head(m, 1, 2);
	page_u32(m, 0);
	page_head(m, 31, 7); /* an absolute stamp */
	page_u32(m, 1000);
	page_head(m, 1, 1);
	page_u32(m, 0);
	page_end(m, 0);
	it = begin(m, l);
	expect(&it, 1000 + (UINT64_C(3) << 27) + 5 + 2, "\0\0\0\0", 4);
	expect(&it, (UINT64_C(1000) << 27) + 7 + 1, "\0\0\0\0", 4);
	expect_end(&it);
}

static void time_extends_and_stamps(void **state _unused_)
{
	for_each_machine(do_time);
}

/* A stamp has 59 bits; clocks that use more (a TSC) take the rest from the time before it. */
static void do_stamp_msb(struct maker *m, const struct page_layout *l)
{
	const uint64_t high = UINT64_C(0xa8) << 56;
	struct page_iter it;

	page_begin(m, high | 0x100);
	page_head(m, 31, 0x200);
	page_u32(m, 0);
	page_head(m, 1, 0);
	page_u32(m, 0);
	page_head(m, 31, 0x10); /* lower: the 59 bits have wrapped */
	page_u32(m, 0);
	page_head(m, 1, 0);
	page_u32(m, 0);
	page_end(m, 0);
	it = begin(m, l);
	expect(&it, high | 0x200, "\0\0\0\0", 4);
	expect(&it, (high | 0x10) + (UINT64_C(1) << 59), "\0\0\0\0", 4);
}

static void stamps_get_their_upper_bits_back(void **state _unused_)
{
	for_each_machine(do_stamp_msb);
}

static void do_padding(struct maker *m, const struct page_layout *l)
{
	struct page_iter it;

	page_begin(m, 1000);
	page_head(m, 29, 1); /* discarded; 1 stands for 0 */
	page_u32(m, 12);
	page_u32(m, 0xffffffff);
	page_u32(m, 0xffffffff);
	page_head(m, 1, 3);
	page_u32(m, 0);
	page_head(m, 29, 50); /* discarded: its time still counts */
	page_u32(m, 4);
	page_head(m, 1, 4);
	page_u32(m, 0);
	page_head(m, 29, 0); /* nothing more */
	page_u32(m, 0xffffffff);
	page_end(m, 0);
	it = begin(m, l);
	expect(&it, 1003, "\0\0\0\0", 4);
	expect(&it, 1057, "\0\0\0\0", 4);
	expect_end(&it);
}

static void padding(void **state _unused_)
{
	for_each_machine(do_padding);
}

static void do_missed(struct maker *m, const struct page_layout *l)
{
	struct page_iter it;

	page_begin(m, 1000);
	page_record(m, 1000, "abcd", 4);
	page_end(m, 12345);
	it = begin(m, l);
	assert_int_equal(it.missed, 12345);
	expect(&it, 1000, "abcd", 4);
	expect_end(&it);

	buf_clear(&m->subbufs);
	page_begin(m, 1000);
	page_record(m, 1000, "abcd", 4);
	page_end(m, UINT64_MAX);
	it = begin(m, l);
	assert_int_equal(it.missed, UINT64_MAX);
	expect(&it, 1000, "abcd", 4);
	expect_end(&it);
}

static void missed_events(void **state _unused_)
{
	for_each_machine(do_missed);
}

static void do_damage(struct maker *m, const struct page_layout *l)
{
	/* Each is the last record of a page: its header and, if it has one, the next word. */
	static const struct {
		unsigned type_len, delta, words;
		uint32_t word;
	} bad[] = {
		{ 2, 0, 1, 0 },		 /* 8 bytes, but only 4 are there */
		{ 0, 0, 0, 0 },		 /* no length */
		{ 0, 0, 1, 0 },		 /* the length counts itself */
		{ 0, 0, 1, 6 },		 /* not a multiple of 4 */
		{ 0, 0, 1, 8 },		 /* beyond the end */
		{ 0, 0, 1, 0xfffffffc }, /* far beyond it */
		{ 29, 1, 1, 0 },	 { 29, 1, 1, 0xfffffffc }, { 29, 1, 0, 0 },
		{ 30, 0, 0, 0 },	 { 31, 0, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct page_iter it;
		struct record rec;

		buf_clear(&m->subbufs);
		page_begin(m, 1000);
		page_record(m, 1001, "abcd", 4);
		page_head(m, bad[i].type_len, bad[i].delta);
		if (bad[i].words)
			page_u32(m, bad[i].word);
		page_end(m, 0);
		it = begin(m, l);
		expect(&it, 1001, "abcd", 4);
		assert_int_equal(page_iter_next(&it, &rec), -EBADMSG);
		assert_int_equal(page_iter_next(&it, &rec), 0);
	}
}

static void damaged_records_end_the_page(void **state _unused_)
{
	for_each_machine(do_damage);
}

/* One of everything, with lengths that end anywhere, and a count of lost events. */
static void make_mixed(struct maker *m, bool is_damaged)
{
	char big[600];

	memset(big, 'x', sizeof(big));
	page_begin(m, 1000);
	for (unsigned i = 0; i < 5; i++) {
		page_record(m, m->ts + 3, "abcd", 4);
		page_record(m, m->ts + (UINT64_C(1) << 30), big, 112);
		page_record(m, m->ts + 1, big, 116 + 100 * i);
		page_head(m, 29, 5 + i); /* discarded */
		page_u32(m, 12);
		page_u32(m, 0);
		page_u32(m, 0);
		page_head(m, 31, 7); /* an absolute stamp */
		page_u32(m, 1000 * (i + 1));
		m->ts = (UINT64_C(1000) * (i + 1) << 27) + 7;
	}
	if (is_damaged)
		page_head(m, 0, 0);
	else
		page_head(m, 29, 0); /* padding up to the end */
	page_u32(m, is_damaged ? 6 : 0);
	page_end(m, 77);
}

/* Iterates over the page at data in parts of `bytes` bytes; *at: where the current part begins. */
static int next_in_parts(struct page_iter *it, struct record *rec, const char *data, uint32_t bytes,
			 uint32_t *at)
{
	for (;;) {
		int r = page_iter_next(it, rec);

		if (r != 0 || !it->rest)
			return r;
		*at += it->pos;
		page_iter_go_on(it, data + *at, it->pos ? bytes : page_iter_wants(it));
	}
}

static void do_parts(struct maker *m, const struct page_layout *l)
{
	for (unsigned n = 0; n < 2; n++) {
		const char *page;

		buf_clear(&m->subbufs);
		make_mixed(m, n);
		page = m->subbufs.data;
		for (uint32_t bytes = l->data_offset; bytes < l->subbuf_size; bytes++) {
			struct page_iter whole = begin(m, l), it;
			struct record a, b;
			uint32_t at = 0;
			int r;

			assert_int_equal(page_iter_init_part(&it, l, page, bytes, l->subbuf_size),
					 0);
			if (it.missed_at)
				page_iter_set_missed(&it, page + it.missed_at);
			assert_int_equal(it.missed, 77);
			do {
				r = page_iter_next(&whole, &a);
				assert_int_equal(next_in_parts(&it, &b, page, bytes, &at), r);
				if (r <= 0)
					break;
				assert_int_equal(b.ts, a.ts);
				assert_int_equal(at + it.start, whole.start);
				assert_int_equal(b.len, a.len);
				assert_memory_equal(b.data, a.data, a.len);
			} while (r > 0);
			assert_int_equal(r, n ? -EBADMSG : 0);
			assert_int_equal(it.rest, 0);
			assert_int_equal(page_iter_next(&it, &b), 0);
		}
	}
}

static void pages_in_parts_are_as_the_whole(void **state _unused_)
{
	for_each_machine(do_parts);
}

static void do_bad_header(struct maker *m, const struct page_layout *l)
{
	struct page_iter it;

	page_begin(m, 1000);
	page_end(m, 0);
	/* A length beyond the page; one with all flags set. */
	memset(m->subbufs.data + l->commit_offset, 0x11, l->commit_size);
	assert_int_equal(page_iter_init(&it, l, m->subbufs.data, l->subbuf_size), -EBADMSG);
	memset(m->subbufs.data + l->commit_offset, 0xff, l->commit_size);
	assert_int_equal(page_iter_init(&it, l, m->subbufs.data, l->subbuf_size), -EBADMSG);
	memset(m->subbufs.data + l->commit_offset, 0, l->commit_size);
	assert_int_equal(page_iter_init(&it, l, m->subbufs.data, l->subbuf_size), 0);
	assert_int_equal(page_iter_init(&it, l, m->subbufs.data, l->data_offset - 1), -EBADMSG);
}

static void bad_headers_are_refused(void **state _unused_)
{
	for_each_machine(do_bad_header);
}

static void odd_subbuffer_sizes(void **state _unused_)
{
	static const uint32_t sizes[] = { 64, 1000, 8192, 65536 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_buf_ struct buf text = BUF_INIT;
		struct page_layout l;
		struct page_iter it;
		uint32_t n = 0;

		maker_init(&m, 8, false, sizes[i]);
		maker_header_page(&m, &text);
		assert_int_equal(
			page_layout_parse(&l, text.data, text.len, 8, false, sizes[i], NULL), 0);
		page_begin(&m, 0);
		while (m.page.len + 8 <= sizes[i]) {
			page_record(&m, ++n, "abcd", 4);
		}
		page_end(&m, 0);
		it = begin(&m, &l);
		for (uint32_t j = 1; j <= n; j++)
			expect(&it, j, "abcd", 4);
		expect_end(&it);
	}
}

static void impossible_layouts_are_refused(void **state _unused_)
{
	static const char *const bad[] = {
		"",
		"field: u64 timestamp;\toffset:0;\tsize:8;\n",
		/* data overlaps commit */
		"field: u64 timestamp;\toffset:0;\tsize:8;\tfield: local_t "
		"commit;\toffset:8;\tsize:8;\t"
		"field: char data;\toffset:12;\tsize:4000;",
		/* commit of 2 bytes; a page without data */
		"field: u64 timestamp;\toffset:0;\tsize:8;\tfield: local_t "
		"commit;\toffset:8;\tsize:2;\t"
		"field: char data;\toffset:16;\tsize:4000;",
		"field: u64 timestamp;\toffset:0;\tsize:8;\tfield: local_t "
		"commit;\toffset:8;\tsize:8;\t"
		"field: char data;\toffset:4294967280;\tsize:4080;",
		"field: u64 timestamp;\toffset:4294967295;\tsize:8;\tfield: local_t commit;\t"
		"offset:8;\tsize:8;\tfield: char data;\toffset:16;\tsize:4080;",
	};
	struct page_layout l;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;

		assert_int_equal(page_layout_parse(&l, bad[i], strlen(bad[i]), 8, false, 0, &err),
				 -EBADMSG);
		assert_non_null(err.message);
	}
}

static void no_subbuffer_is_longer_than_the_kernels(void **state _unused_)
{
	static const char text[] = "field: u64 timestamp;\toffset:0;\tsize:8;\t"
				   "field: local_t commit;\toffset:8;\tsize:8;\t"
				   "field: char data;\toffset:16;\tsize:4080;";
	struct page_layout l;

	assert_int_equal(page_layout_parse(&l, text, strlen(text), 8, false, 1 << 20, NULL), 0);
	assert_int_equal(page_layout_parse(&l, text, strlen(text), 8, false, (1 << 20) + 4, NULL),
			 -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_records),
		cmocka_unit_test(time_extends_and_stamps),
		cmocka_unit_test(stamps_get_their_upper_bits_back),
		cmocka_unit_test(padding),
		cmocka_unit_test(missed_events),
		cmocka_unit_test(damaged_records_end_the_page),
		cmocka_unit_test(pages_in_parts_are_as_the_whole),
		cmocka_unit_test(bad_headers_are_refused),
		cmocka_unit_test(odd_subbuffer_sizes),
		cmocka_unit_test(impossible_layouts_are_refused),
		cmocka_unit_test(no_subbuffer_is_longer_than_the_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
