/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sub-buffers that are too large for memory to hold one of each CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "heap.h"
#include "make_ring.h"
#include "trace/merge.h"

#define HUGE_SUBBUF (1U << 20)
#define HUGE_CPUS 16
#define HUGE_PAGES 2

/* Together they exceed the windows' memory: each window has a part of a sub-buffer. */
static void make_huge(struct maker *m, char *data)
{
	unsigned seed = 3;

	maker_init(m, 8, false, HUGE_SUBBUF);
	memset(data, 'd', HUGE_SUBBUF);
	for (uint32_t cpu = 0; cpu < HUGE_CPUS; cpu++) {
		for (unsigned page = 0; page < HUGE_PAGES; page++) {
			uint64_t ts = 1000 + page * (UINT64_C(1) << 32);
			uint32_t len = cpu == 3 ? 900U << 10 : 4; /* longer than a window */

			page_begin(m, ts);
			while (m->page.len + len + 32 < HUGE_SUBBUF) {
				memcpy(data, &len, sizeof(len));
				page_record(m, ts, data, len);
				seed = seed * 1103515245 + 12345;
				ts += seed >> 8;
				len = 4 + (seed >> 16) % 5000;
			}
			page_end(m, page && cpu % 2 ? 5 + cpu : 0);
		}
		maker_flush(m, cpu, BUFFER_MAIN, 0);
	}
}

static void parts_of_large_sub_buffers_are_as_the_whole(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_(ring_deinit) struct ring_index ring;
	_cleanup_free_ char *data = malloc(HUGE_SUBBUF);
	struct ring_index rings[HUGE_CPUS];
	struct merge *all, *alone[HUGE_CPUS];
	struct merge_item item, other;
	struct stream_reader reader;
	struct page_layout l;
	unsigned counts[4] = { 0 };
	int kind;

	make_huge(&m, data);
	maker_index(&m, &reader, &ring);
	maker_layout(&m, &l);
	ring.cpus[2].list.refs[0].skip = 300000;
	/* A single CPU's window holds all of its sub-buffer. */
	for (size_t i = 0; i < HUGE_CPUS; i++) {
		rings[i] = (struct ring_index){ .cpus = &ring.cpus[i], .count = 1 };
		assert_int_equal(merge_new(&alone[i], &l, &rings[i], &reader, NULL), 0);
	}
	assert_int_equal(merge_new(&all, &l, &ring, &reader, NULL), 0);
	while ((kind = merge_next(all, &item, NULL)) > 0) {
		counts[kind]++;
		assert_int_equal(merge_next(alone[item.event.cpu], &other, NULL), kind);
		if (kind == MERGE_LOSS) {
			assert_int_equal(item.count, other.count);
			assert_int_equal(item.before_ts, other.before_ts);
			assert_int_equal(item.after_ts, other.after_ts);
			assert_int_equal(item.damaged, other.damaged);
			continue;
		}
		assert_int_equal(item.event.rec.ts, other.event.rec.ts);
		assert_int_equal(item.event.rec.len, other.event.rec.len);
		assert_memory_equal(item.event.rec.data, other.event.rec.data, item.event.rec.len);
	}
	assert_int_equal(kind, MERGE_END);
	assert_int_equal(counts[MERGE_LOSS], HUGE_CPUS / 2);
	assert_true(counts[MERGE_RECORD] > HUGE_CPUS * HUGE_PAGES * 300);
	for (size_t i = 0; i < HUGE_CPUS; i++) {
		assert_int_equal(merge_next(alone[i], &other, NULL), MERGE_END);
		merge_free(alone[i]);
	}
	merge_free(all);
}

#define LATE_CPUS 64
#define LATE_SUBBUF (256U << 10)
#define LATE_PAGES 3

/* Each CPU has two chunks: one page, then several pages with one record each, its number. */
static void make_late(struct maker *m)
{
	maker_init(m, 8, false, LATE_SUBBUF);
	for (uint32_t cpu = 0; cpu < LATE_CPUS; cpu++)
		for (uint32_t page = 0; page <= LATE_PAGES; page++) {
			page_begin(m, page);
			page_record(m, page, &page, sizeof(page));
			page_end(m, 0);
			if (page == 0 || page == LATE_PAGES)
				maker_flush(m, cpu, BUFFER_MAIN, 0);
		}
}

/* The stream grows: a window holds several whole sub-buffers, and later a part of one. */
static void windows_that_become_parts_lose_nothing(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_(ring_deinit) struct ring_index ring;
	_cleanup_(merge_freep) struct merge *merge = NULL;
	uint32_t seen[LATE_CPUS] = { 0 }, number;
	struct stream_reader reader;
	struct merge_item item;
	struct page_layout l;

	make_late(&m);
	maker_index(&m, &reader, &ring);
	maker_layout(&m, &l);
	ring.count = 2;
	assert_int_equal(merge_new(&merge, &l, &ring, &reader, NULL), 0);
	/* The first CPU's second chunk is in its window, but not ripe. */
	assert_int_equal(merge_extend(merge, ring.cpus[0].list.refs[1].offset, NULL), 0);
	assert_int_equal(merge_next(merge, &item, NULL), MERGE_RECORD);
	seen[item.event.cpu]++;
	assert_int_equal(merge_next(merge, &item, NULL), MERGE_END);
	ring.count = LATE_CPUS;
	assert_int_equal(merge_extend(merge, UINT64_MAX, NULL), 0);
	while (merge_next(merge, &item, NULL) == MERGE_RECORD) {
		memcpy(&number, item.event.rec.data, sizeof(number));
		assert_int_equal(number, seen[item.event.cpu]);
		seen[item.event.cpu]++;
	}
	assert_int_equal(merge_next(merge, &item, NULL), MERGE_END);
	for (uint32_t cpu = 0; cpu < LATE_CPUS; cpu++)
		assert_int_equal(seen[cpu], LATE_PAGES + 1);
}

/* Chunks without a sub-buffer still name their CPU. */
static void chunks_of_nothing_are_no_damage(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_(ring_deinit) struct ring_index ring;
	struct stream_reader reader;
	struct merge_item item;
	struct page_layout l;

	maker_init(&m, 8, false, LATE_SUBBUF);
	for (uint32_t cpu = 0; cpu < LATE_CPUS; cpu++)
		maker_flush(&m, cpu, BUFFER_MAIN, 0);
	maker_index(&m, &reader, &ring);
	maker_layout(&m, &l);
	/* Read as whole windows, and in parts. */
	for (size_t count = 1; count <= LATE_CPUS; count += LATE_CPUS - 1) {
		_cleanup_(merge_freep) struct merge *merge = NULL;

		ring.count = count;
		assert_int_equal(merge_new(&merge, &l, &ring, &reader, NULL), 0);
		assert_int_equal(merge_next(merge, &item, NULL), MERGE_END);
	}
}

#define LONG_CPUS 200
#define LONG_RECORD (900U << 10)

/* The same chunk for as many CPUs: a page of long records, and an empty one. */
static void make_long(struct maker *m, struct stream_reader *reader, struct ring_index *ring,
		      uint32_t len)
{
	static char data[LONG_RECORD];

	maker_init(m, 8, false, HUGE_SUBBUF);
	page_begin(m, 1);
	while (m->page.len + len + 8 <= HUGE_SUBBUF)
		page_record(m, 1, data, len);
	page_end(m, 0);
	page_begin(m, 2);
	page_record(m, 2, data, 4);
	page_flush(m, 0, 0);
	maker_index(m, reader, ring);
	ring->cpus = reallocarray(ring->cpus, LONG_CPUS, sizeof(*ring->cpus));
	assert_non_null(ring->cpus);
	for (; ring->count < LONG_CPUS; ring->count++) {
		struct cpu_chunks *c = &ring->cpus[ring->count];

		*c = (struct cpu_chunks){ .cpu = (uint32_t)ring->count };
		assert_int_equal(chunk_list_add(&c->list, ring->cpus[0].list.refs), 0);
	}
}

/* Records that nearly fill a sub-buffer, all at one time: those without room count as damaged. */
static void long_records_have_a_sum(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_(ring_deinit) struct ring_index ring;
	_cleanup_(merge_freep) struct merge *merge = NULL;
	size_t before, lost = 0, given = 0;
	struct stream_reader reader;
	struct merge_item item;
	struct page_layout l;
	int kind;

	make_long(&m, &reader, &ring, LONG_RECORD);
	maker_layout(&m, &l);
	before = heap();
	assert_int_equal(merge_new(&merge, &l, &ring, &reader, NULL), 0);
	assert_int_equal(merge_extend(merge, UINT64_MAX, NULL), 0);
	if (!SANITIZED)
		assert_in_range(heap() - before, MERGE_LONG / 2, MERGE_LONG + MERGE_MEMORY);
	while ((kind = merge_next(merge, &item, NULL)) > 0) {
		lost += kind == MERGE_LOSS;
		if (kind == MERGE_LOSS)
			assert_true(item.damaged);
		else
			given += item.event.rec.len == LONG_RECORD;
	}
	assert_int_equal(kind, MERGE_END);
	assert_in_range(given, MERGE_LONG / HUGE_SUBBUF, LONG_CPUS - 1);
	assert_int_equal(given + lost, LONG_CPUS);
}

#define LONGER_RECORD (80U << 10) /* longer than a window */

/* One at a time: what follows in their sub-buffers takes no room. */
static void long_records_are_held_alone(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_(ring_deinit) struct ring_index ring;
	_cleanup_(merge_freep) struct merge *merge = NULL;
	struct stream_reader reader;
	struct merge_item item;
	struct page_layout l;
	size_t before, count = 0;
	int kind;

	make_long(&m, &reader, &ring, LONGER_RECORD);
	maker_layout(&m, &l);
	before = heap();
	assert_int_equal(merge_new(&merge, &l, &ring, &reader, NULL), 0);
	assert_int_equal(merge_extend(merge, UINT64_MAX, NULL), 0);
	if (!SANITIZED)
		assert_in_range(heap() - before, 0, LONG_CPUS * (LONGER_RECORD + 1024));
	while ((kind = merge_next(merge, &item, NULL)) == MERGE_RECORD)
		count += item.event.rec.len == LONGER_RECORD;
	assert_int_equal(kind, MERGE_END);
	assert_int_equal(count, LONG_CPUS * (HUGE_SUBBUF / LONGER_RECORD));
}

static int give_back(void *userdata, struct error *err _unused_)
{
	struct loan *loan = userdata;

	loan->returned = ++loan->lent;
	return 0;
}

/* CPUs neither keep the memory of long records nor pass it on. */
static void memory_of_long_records_is_freed(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_(ring_deinit) struct ring_index ring;
	struct stream_reader reader;
	struct merge_item item;
	struct page_layout l;

	/* A sanitizer has a heap of its own. */
	if (SANITIZED)
		skip();
	make_long(&m, &reader, &ring, LONG_RECORD);
	maker_layout(&m, &l);
	for (unsigned lent = 0; lent < 2; lent++) {
		_cleanup_(merge_freep) struct merge *merge = NULL;
		struct loan loan = { .recall = give_back, .userdata = &loan };
		size_t before = heap();

		assert_int_equal(merge_new(&merge, &l, &ring, &reader, NULL), 0);
		if (lent)
			merge_lend(merge, &loan);
		while (merge_next(merge, &item, NULL) > 0)
			loan.lent++;
		assert_in_range(heap() - before, 0, MERGE_MEMORY + MERGE_LENT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_large_sub_buffers_are_as_the_whole),
		cmocka_unit_test(windows_that_become_parts_lose_nothing),
		cmocka_unit_test(chunks_of_nothing_are_no_damage),
		cmocka_unit_test(long_records_have_a_sum),
		cmocka_unit_test(long_records_are_held_alone),
		cmocka_unit_test(memory_of_long_records_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
