/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "heap.h"
#include "make_ring.h"
#include "trace/merge.h"

#define CPUS 37
#define RECORDS 3000

/* Each record there holds its CPU and its number. */
static void records_come_by_time_and_then_by_cpu(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_made_merge_ struct made_merge made;
	struct merge_item item;
	uint32_t seen[CPUS] = { 0 }, last_cpu = 0;
	uint64_t last_ts = 0;
	unsigned seed = 7, total = 0;

	maker_init(&m, 8, false, 512);
	for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
		uint64_t ts = 1000;

		page_begin(&m, ts);
		for (uint32_t n = 0; n < RECORDS; n++) {
			uint32_t data[2] = { cpu, n };

			seed = seed * 1103515245 + 12345;
			ts += seed >> 16 & 3; /* equal times are frequent */
			if (m.page.len > 400) {
				page_end(&m, 0);
				if (seed & 0x100000)
					maker_flush(&m, cpu, BUFFER_MAIN, 0);
				page_begin(&m, ts);
			}
			page_record(&m, ts, data, sizeof(data));
		}
		page_flush(&m, 0, cpu);
	}
	maker_merge(&m, &made);
	while (merge_next(made.merge, &item, NULL) == MERGE_RECORD) {
		uint32_t data[2];

		memcpy(data, item.event.rec.data, sizeof(data));
		assert_int_equal(data[0], item.event.cpu);
		assert_int_equal(data[1], seen[item.event.cpu]);
		seen[item.event.cpu]++;
		assert_true(item.event.rec.ts > last_ts ||
			    (item.event.rec.ts == last_ts && item.event.cpu >= last_cpu));
		last_ts = item.event.rec.ts;
		last_cpu = item.event.cpu;
		total++;
	}
	assert_int_equal(total, CPUS * RECORDS);
	assert_int_equal(merge_next(made.merge, &item, NULL), MERGE_END);
}

/* Each record holds its number within its CPU; a loss or a time extend precedes some. */
static void make_gaps(struct maker *m)
{
	unsigned seed = 11;

	maker_init(m, 8, false, 512);
	for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
		uint64_t ts = 1000;

		page_begin(m, ts);
		for (uint32_t n = 0; n < RECORDS; n++) {
			seed = seed * 1103515245 + 12345;
			ts += seed >> 16 & 3;
			if (seed >> 20 & 1 && n % 50 == 7)
				ts += UINT64_C(1) << 28;
			if (m->page.len > 400) {
				page_end(m, seed >> 21 & 1 ? 3 : 0);
				if (seed & 0x100000)
					maker_flush(m, cpu, BUFFER_MAIN, 0);
				page_begin(m, ts);
			}
			page_record(m, ts, &n, sizeof(n));
		}
		page_flush(m, 0, cpu);
	}
}

struct met {
	uint32_t cpu, number; /* UINT32_MAX: a loss */
	uint64_t ts;
};

/* At each record that it reads, looks ahead `times` times. */
static size_t meet_all(const struct maker *m, unsigned times, struct met *all, unsigned *ret_moved)
{
	_cleanup_made_merge_ struct made_merge made;
	uint32_t ahead[CPUS];
	struct merge_item item;
	size_t count = 0;
	int kind;

	memset(ahead, 0xff, sizeof(ahead));
	maker_merge(m, &made);
	for (; (kind = merge_next(made.merge, &item, NULL)) != MERGE_END; count++) {
		const uint8_t *data = item.event.rec.data;
		struct record next;
		uint32_t number;

		all[count] = (struct met){ item.event.cpu, UINT32_MAX, 0 };
		if (kind == MERGE_LOSS) {
			assert_int_equal(ahead[item.event.cpu], UINT32_MAX);
			continue;
		}
		assert_int_equal(kind, MERGE_RECORD);
		memcpy(&number, data, sizeof(number));
		if (ahead[item.event.cpu] != UINT32_MAX)
			assert_int_equal(number, ahead[item.event.cpu]);
		ahead[item.event.cpu] = UINT32_MAX;
		all[count].number = number;
		all[count].ts = item.event.rec.ts;
		for (unsigned i = 0; i < times; i++) {
			int r = merge_peek(made.merge, &item.event.rec, &next, NULL);

			assert_memory_equal(item.event.rec.data, &number, sizeof(number));
			*ret_moved += item.event.rec.data != data;
			if (r == 1)
				memcpy(&ahead[item.event.cpu], next.data, sizeof(number));
			else
				assert_int_equal(r, 0);
		}
	}
	return count;
}

static void to_look_ahead_changes_nothing(void **state _unused_)
{
	static struct met plain[CPUS * RECORDS * 2], looked[CPUS * RECORDS * 2];
	_cleanup_(maker_deinit) struct maker m;
	unsigned moved = 0;
	size_t count, losses = 0;

	make_gaps(&m);
	count = meet_all(&m, 0, plain, &moved);
	for (size_t i = 0; i < count; i++)
		losses += plain[i].number == UINT32_MAX;
	assert_int_equal(count - losses, CPUS * RECORDS);
	assert_true(losses > CPUS);
	for (unsigned times = 1; times <= 2; times++) {
		moved = 0;
		assert_int_equal(meet_all(&m, times, looked, &moved), count);
		assert_memory_equal(looked, plain, count * sizeof(*plain));
		/* At the end of a page, and before a time extend. */
		assert_in_range(moved, losses, count / 2);
	}
}

/* A chunk of this size is read in windows. */
#define BIG_SUBBUF 65536
#define BIG_COUNT 60

static void make_big_chunk(struct maker *m)
{
	static char data[60000];

	maker_init(m, 8, true, BIG_SUBBUF);
	for (uint32_t i = 0; i < BIG_COUNT; i++) {
		page_begin(m, i);
		page_record(m, i, data, sizeof(data));
		page_end(m, 0);
	}
	maker_flush(m, 5, BUFFER_MAIN, 0);
	assert_true(m->writer.bytes > MERGE_WINDOW_MAX);
}

static void large_chunks_are_read_in_parts(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_made_merge_ struct made_merge made;
	struct merge_item item;

	make_big_chunk(&m);
	maker_merge(&m, &made);
	for (uint32_t i = 0; i < BIG_COUNT; i++) {
		assert_int_equal(merge_next(made.merge, &item, NULL), MERGE_RECORD);
		assert_int_equal(item.event.rec.ts, i);
		assert_int_equal(item.event.cpu, 5);
	}
	assert_int_equal(merge_next(made.merge, &item, NULL), MERGE_END);
}

#define LENT_COUNT 700 /* of BIG_SUBBUF: more than may be lent */

struct borrower {
	struct loan loan;
	const uint8_t *data[LENT_COUNT]; /* of all records that are not returned */
	uint32_t first, end;		 /* their numbers */
	unsigned recalls;
};

static int give_back(void *userdata, struct error *err _unused_)
{
	struct borrower *b = userdata;

	for (; b->first < b->end; b->first++) {
		uint32_t number;

		memcpy(&number, b->data[b->first], sizeof(number));
		assert_int_equal(number, b->first);
	}
	b->loan.returned = ++b->loan.lent;
	b->recalls++;
	return 0;
}

/* In several chunks, each of one or more windows. */
static void make_lent(struct maker *m)
{
	static char data[60000];

	maker_init(m, 8, false, BIG_SUBBUF);
	for (uint32_t i = 0; i < LENT_COUNT; i++) {
		memcpy(data, &i, sizeof(i));
		page_begin(m, i);
		page_record(m, i, data, sizeof(data));
		page_end(m, 0);
		if (i % 90 == 5 || i % 90 == 40)
			maker_flush(m, 0, BUFFER_MAIN, 0);
	}
	maker_flush(m, 0, BUFFER_MAIN, 0);
	assert_true(m->writer.bytes > 2 * MERGE_LENT);
}

static void lent_records_stay_until_they_are_returned(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_made_merge_ struct made_merge made;
	static struct borrower b;
	struct merge_item item;

	b = (struct borrower){ .loan = { .recall = give_back, .userdata = &b } };
	make_lent(&m);
	maker_merge(&m, &made);
	merge_lend(made.merge, &b.loan);
	while (merge_next(made.merge, &item, NULL) == MERGE_RECORD) {
		b.data[b.end++] = item.event.rec.data;
		/* The borrower returns some without being asked. */
		if (b.end == 50 || b.end == 51 || b.end == 650)
			give_back(&b, NULL);
	}
	assert_int_equal(b.end, LENT_COUNT);
	give_back(&b, NULL);
	/* Four calls came without a request; each other one came when too much was lent. */
	assert_in_range(b.recalls - 4, m.writer.bytes / MERGE_LENT - 2,
			m.writer.bytes / MERGE_LENT);
}

#define SMALL_CHUNKS 1500
#define LARGE_CHUNKS 100
#define LARGE_PAGES 64

/* A quiet time, in which each page is a chunk, then a busy time. */
static void make_quiet_and_busy(struct maker *m)
{
	static const char data[3900];

	maker_init(m, 8, false, 4096);
	for (uint64_t i = 0; i < SMALL_CHUNKS + LARGE_CHUNKS * LARGE_PAGES; i++) {
		page_begin(m, i);
		page_record(m, i, data, sizeof(data));
		page_end(m, 0);
		if (i < SMALL_CHUNKS || i % LARGE_PAGES == 0)
			maker_flush(m, 0, BUFFER_MAIN, 0);
	}
	maker_flush(m, 0, BUFFER_MAIN, 0);
}

static int give_all_back(void *userdata, struct error *err _unused_)
{
	struct loan *loan = userdata;

	loan->returned = ++loan->lent;
	return 0;
}

/* Many small windows were lent before: the memory of their successors is counted. */
static void large_windows_after_small_ones_are_bounded(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_made_merge_ struct made_merge made;
	struct loan loan = { .recall = give_all_back, .userdata = &loan };
	struct merge_item item;
	size_t before, most = 0;

	/* A sanitizer has a heap of its own. */
	if (SANITIZED)
		skip();
	make_quiet_and_busy(&m);
	maker_merge(&m, &made);
	merge_lend(made.merge, &loan);
	before = heap();
	while (merge_next(made.merge, &item, NULL) == MERGE_RECORD) {
		/* The borrower returns each after 900 others. */
		loan.lent++;
		loan.returned = loan.lent > 900 ? loan.lent - 900 : 0;
		most = MAX(most, heap());
	}
	assert_in_range(most - before, 1U << 20, MERGE_LENT + 2 * MERGE_WINDOW_MAX);
}

static void a_large_chunk_is_checked_before_its_first_part(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_made_merge_ struct made_merge made;
	struct merge_item item;

	make_big_chunk(&m);
	assert_int_equal(pwrite(m.fd, "x", 1, (off_t)m.writer.bytes - 100), 1);
	maker_merge(&m, &made);
	assert_int_equal(merge_next(made.merge, &item, NULL), MERGE_LOSS);
	assert_true(item.damaged);
	assert_int_equal(item.event.cpu, 5);
	assert_int_equal(item.count, UINT64_MAX);
	assert_int_equal(item.before_ts, 0);
	assert_int_equal(item.after_ts, UINT64_MAX);
	assert_int_equal(merge_next(made.merge, &item, NULL), MERGE_END);
}

static void losses_come_right_before_what_follows_them(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_made_merge_ struct made_merge made;
	struct merge_item item;

	maker_init(&m, 4, true, 256);
	page_begin(&m, 10);
	page_record(&m, 10, "abcd", 4);
	page_record(&m, 30, "abcd", 4);
	page_flush(&m, 0, 0);
	page_begin(&m, 5);
	page_record(&m, 5, "abcd", 4);
	page_head(&m, 0, 0); /* damaged */
	page_u32(&m, 1);
	page_end(&m, 0);
	page_begin(&m, 20);
	page_record(&m, 20, "abcd", 4);
	page_flush(&m, 3, 1);

	maker_merge(&m, &made);
	assert_int_equal(merge_next(made.merge, &item, NULL), MERGE_RECORD);
	assert_int_equal(item.event.rec.ts, 5);
	assert_int_equal(merge_next(made.merge, &item, NULL), MERGE_RECORD);
	assert_int_equal(item.event.rec.ts, 10);
	assert_int_equal(merge_next(made.merge, &item, NULL), MERGE_LOSS);
	assert_int_equal(item.event.cpu, 1);
	assert_int_equal(item.before_ts, 5);
	assert_int_equal(item.after_ts, 20);
	assert_int_equal(item.count, UINT64_MAX); /* 3, and the loss that the damage caused */
	assert_true(item.damaged);
	assert_int_equal(merge_next(made.merge, &item, NULL), MERGE_RECORD);
	assert_int_equal(item.event.rec.ts, 20);
	assert_int_equal(merge_next(made.merge, &item, NULL), MERGE_RECORD);
	assert_int_equal(item.event.rec.ts, 30);
	assert_int_equal(merge_next(made.merge, &item, NULL), MERGE_END);
}

/* A followed recording asks again, and gets no more than when the page was refused. */
static void a_page_that_is_refused_gives_nothing_later(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_made_merge_ struct made_merge made;
	struct merge_item item;
	char data[104];

	memset(data, 0, sizeof(data));
	maker_init(&m, 8, false, 128);
	page_begin(&m, 10);
	page_record(&m, 10, data, sizeof(data));
	page_end(&m, 0);
	/* Its count of lost events has no room. */
	m.subbufs.data[8 + 3] = (char)0xc0;
	maker_flush(&m, 0, BUFFER_MAIN, 0);
	maker_merge(&m, &made);
	assert_int_equal(merge_extend(made.merge, m.writer.bytes, NULL), 0);
	assert_int_equal(merge_next(made.merge, &item, NULL), MERGE_END);
	assert_int_equal(merge_extend(made.merge, UINT64_MAX, NULL), 0);
	assert_int_equal(merge_next(made.merge, &item, NULL), MERGE_LOSS);
	assert_true(item.damaged);
	assert_int_equal(merge_next(made.merge, &item, NULL), MERGE_END);
}

/* A chunk of one page with one record. */
static void make_page(struct maker *m, uint32_t cpu)
{
	page_begin(m, 10);
	page_record(m, 10, "abcd", 4);
	page_end(m, 0);
	maker_flush(m, cpu, BUFFER_MAIN, 0);
}

/* A damaged chunk's data stays in no window that a followed recording would read again. */
static void a_damaged_chunk_gives_nothing_later(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_(ring_deinit) struct ring_index ring;
	_cleanup_(merge_freep) struct merge *merge = NULL;
	struct stream_reader reader;
	struct merge_item item;
	struct page_layout l;

	maker_init(&m, 8, false, 128);
	make_page(&m, 0);
	assert_int_equal(pwrite(m.fd, "x", 1, (off_t)m.writer.bytes - 100), 1);
	maker_index(&m, &reader, &ring);
	maker_layout(&m, &l);
	assert_int_equal(merge_new(&merge, &l, &ring, &reader, NULL), 0);
	assert_int_equal(merge_extend(merge, m.writer.bytes, NULL), 0);
	assert_int_equal(merge_next(merge, &item, NULL), MERGE_END);
	assert_int_equal(merge_extend(merge, UINT64_MAX, NULL), 0);
	assert_int_equal(merge_next(merge, &item, NULL), MERGE_LOSS);
	assert_true(item.damaged);
	assert_int_equal(merge_next(merge, &item, NULL), MERGE_END);
}

/* The exporter of a followed recording may wait, and say what it needs, before it reads on. */
static void chunks_of_a_cpu_that_comes_later_are_needed(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_(ring_deinit) struct ring_index ring;
	_cleanup_(merge_freep) struct merge *merge = NULL;
	struct stream_reader reader;
	struct merge_item item;
	struct page_layout l;

	maker_init(&m, 8, false, 128);
	for (uint32_t cpu = 0; cpu < 2; cpu++)
		make_page(&m, cpu);
	maker_index(&m, &reader, &ring);
	maker_layout(&m, &l);
	ring.count = 0;
	assert_int_equal(merge_new(&merge, &l, &ring, &reader, NULL), 0);
	assert_int_equal(merge_needs(merge), UINT64_MAX);
	ring.count = 1;
	assert_int_equal(merge_needs(merge), ring.cpus[0].list.refs[0].offset);
	assert_int_equal(merge_extend(merge, m.writer.bytes, NULL), 0);
	assert_int_equal(merge_next(merge, &item, NULL), MERGE_RECORD);
	assert_int_equal(merge_next(merge, &item, NULL), MERGE_END);
	assert_int_equal(merge_needs(merge), UINT64_MAX);
	ring.count = 2;
	assert_int_equal(merge_needs(merge), ring.cpus[1].list.refs[0].offset);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_come_by_time_and_then_by_cpu),
		cmocka_unit_test(to_look_ahead_changes_nothing),
		cmocka_unit_test(large_chunks_are_read_in_parts),
		cmocka_unit_test(lent_records_stay_until_they_are_returned),
		cmocka_unit_test(large_windows_after_small_ones_are_bounded),
		cmocka_unit_test(a_large_chunk_is_checked_before_its_first_part),
		cmocka_unit_test(losses_come_right_before_what_follows_them),
		cmocka_unit_test(a_page_that_is_refused_gives_nothing_later),
		cmocka_unit_test(a_damaged_chunk_gives_nothing_later),
		cmocka_unit_test(chunks_of_a_cpu_that_comes_later_are_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
