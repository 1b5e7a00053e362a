/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The recorder's search of its own machine's sub-buffers, beside the exporter's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/capture/names/seen_events.h"
#include "make_stream.h"
#include "trace/page.h"

struct fixture {
	struct maker m;
	struct subbuf_layout layout;
	struct page_layout page_layout;
	struct seen_events seen;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	_cleanup_buf_ struct buf text = BUF_INIT;

	assert_non_null(f);
	maker_init(&f->m, sizeof(long), __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, 4096);
	maker_header_page(&f->m, &text);
	assert_int_equal(subbuf_layout_parse(&f->layout, text.data, text.len, 0), 0);
	assert_int_equal(page_layout_parse(&f->page_layout, text.data, text.len, f->m.word_size,
					   f->m.big_endian, 0, NULL),
			 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	maker_deinit(&f->m);
	free(f);
	return 0;
}

static void look(struct fixture *f)
{
	seen_events_look(&f->seen, &f->layout, f->m.subbufs.data,
			 (unsigned)(f->m.subbufs.len / f->layout.size));
}

static bool has(const struct fixture *f, uint16_t event)
{
	struct event_set one = { 0 };

	event_set_add(&one, event);
	return seen_events_has_any(&f->seen, &one);
}

static unsigned count(const struct event_set *s)
{
	unsigned n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(s->words); i++)
		n += (unsigned)__builtin_popcountll(s->words[i]);
	return n;
}

static void record(struct fixture *f, uint64_t ts, uint16_t event, uint32_t len)
{
	uint8_t data[1024] = { 0 };

	memcpy(data, &event, sizeof(event));
	page_record(&f->m, ts, data, len);
}

static void records_of_each_kind(void **state)
{
	struct fixture *f = *state;

	page_begin(&f->m, 1000);
	record(f, 1000, 1, 8);
	record(f, 1000 + (UINT64_C(1) << 40), 2, 112); /* behind a time extend */
	record(f, 1001 + (UINT64_C(1) << 40), 3, 116); /* its length is in array[0] */
	page_head(&f->m, RECORD_TIME_STAMP, 7);
	page_u32(&f->m, 4);
	page_head(&f->m, RECORD_PADDING, 1); /* discarded */
	page_u32(&f->m, 8);
	page_u32(&f->m, 5);
	page_head(&f->m, 0, 1); /* long, without data */
	page_u32(&f->m, 4);
	record(f, f->m.ts, 65535, 4);
	page_head(&f->m, RECORD_PADDING, 0); /* nothing more */
	page_u32(&f->m, 6);
	page_end(&f->m, 12345);
	page_begin(&f->m, 2000);
	record(f, 2000, 64, 8);
	page_end(&f->m, 0);
	look(f);
	assert_false(f->seen.any);
	assert_int_equal(f->seen.bytes, 2 * 4096);
	assert_int_equal(count(&f->seen.events), 5);
	assert_true(has(f, 1) && has(f, 2) && has(f, 3) && has(f, 64) && has(f, 65535));
	assert_false(has(f, 0) || has(f, 4) || has(f, 5) || has(f, 6));
}

static void one_that_ends_too_early(void **state)
{
	struct fixture *f = *state;

	page_begin(&f->m, 1000);
	record(f, 1000, 1, 8);
	page_head(&f->m, 28, 0);
	page_u32(&f->m, 8); /* no length */
	page_u32(&f->m, 2);
	page_end(&f->m, 0);
	look(f);
	assert_true(f->seen.any);
}

static void nobody_asks(void **state)
{
	struct fixture *f = *state;

	page_begin(&f->m, 1000);
	record(f, 1000, 1, 8);
	page_end(&f->m, 0);
	f->seen.off = true;
	look(f);
	assert_false(has(f, 1));
	assert_int_equal(f->seen.bytes, 0);
}

static void too_much_to_look_at(void **state)
{
	struct fixture *f = *state;

	page_begin(&f->m, 1000);
	record(f, 1000, 1, 8);
	page_end(&f->m, 0);
	f->seen.bytes = SEEN_EVENTS_BYTES_MAX - f->layout.size;
	look(f);
	assert_true(has(f, 1));
	assert_false(has(f, 2));
	look(f);
	assert_true(has(f, 2));
	/* Beyond the limit any event is assumed. */
	assert_true(f->seen.any);
}

/* For any bytes: each event that the exporter reads was seen, or "any" is set. */
static void all_that_the_exporter_reads(void **state)
{
	struct fixture *f = *state;
	unsigned whole = 0, damaged = 0;

	srandom(1);
	for (int i = 0; i < 20000; i++) {
		struct page_iter it;
		struct record rec;
		uint8_t *page;

		buf_clear(&f->m.subbufs);
		page_begin(&f->m, 1000);
		for (uint64_t ts = 1000, n = (uint64_t)random() % 20; n; n--, ts += random() % 3)
			record(f, ts, (uint16_t)random(), (uint32_t)random() % 40 * 4 + 4);
		page_end(&f->m, 0);
		page = (uint8_t *)f->m.subbufs.data;
		for (long flips = random() % 4; flips; flips--)
			page[8 + random() % 400] ^= (uint8_t)(1 << random() % 8);
		f->seen = (struct seen_events){ 0 };
		look(f);
		damaged += f->seen.any;
		whole += !f->seen.any;
		if (page_iter_init(&it, &f->page_layout, page, f->layout.size) < 0) {
			assert_true(f->seen.any);
			continue;
		}
		while (page_iter_next(&it, &rec) > 0)
			if (rec.len >= 4)
				assert_true(has(f, load_u16(rec.data, f->m.big_endian)));
	}
	assert_in_range(whole, 500, 19500);
	assert_in_range(damaged, 500, 19500);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(records_of_each_kind), TEST(one_that_ends_too_early),     TEST(nobody_asks),
		TEST(too_much_to_look_at),  TEST(all_that_the_exporter_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
