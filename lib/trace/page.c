/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The records of one sub-buffer of the kernel's ring buffer.
 *
 * 	timestamp | commit | record | record | ... | record | lost count | unused
 * 	   8 bytes  4 or 8  <------ commit bytes ---------->  (if stored)
 *
 * `commit` holds the bytes of records in its low bits, and two flags: events were lost before this
 * sub-buffer, and their count follows the records. Offsets and sizes of the header come from the
 * recorded kernel's events/header_page; records are the same in all kernels:
 *
 * 	header, 32 bits: type_len (5 bits) and time_delta (27 bits)
 * 	type_len 1 to 28    data of type_len * 4 bytes
 * 	type_len 0          a word with the length, itself included; then the data
 * 	29 padding          delta 0: end of the page; otherwise a discarded event
 * 	30 time extend      a word with the upper bits of a delta
 * 	31 time stamp       a word with the upper bits of an absolute time of 59 bits
 *
 * A record's time is that of the entry before it plus its delta, beginning with the page's
 * timestamp. A sub-buffer can therefore be read without the one before it.
 *
 * Invariants
 * - The page is hostile: each length is checked against `end`, and nothing is read beyond it.
 * Lengths are multiples of 4, above 0.
 * - pos only grows, by 4 bytes at least: each loop ends.
 * - After damage nothing more of the page is read, since only lengths lead to the next record.
 * - A returned record points into the page; nothing is copied.
 * - A page may be loaded in parts: [pos, end) is loaded, `rest` bytes after it are not. A record
 *   that does not fit is damage only if rest is 0. Otherwise the caller loads more from pos on
 *   (page_iter_go_on), or page_iter_wants() bytes if that was not enough for one record.
 *
 * What was tried
 * - A call for each record: nearly all are little-endian data with its length in type_len. These
 *   are decoded inline (page_iter_peek in page.h); page_iter_next_any() has the other cases.
 * - The recorder's own parser of header_page: it accepted sizes and offsets that this one refused.
 *   Both use subbuf_layout_parse() now.
 * - Converting clocks in the stamps: imported files keep their stamps, and offset and scale are
 *   applied last (struct page_clock), as the 59-bit arithmetic needs the stamps.
 */
#include "trace/page.h"

#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/wide.h"
#include "stream/layout.h"

/* Flags in the low 32 bits of commit. The kernel's sign extension may set the high ones. */
#define MISSED_EVENTS (UINT32_C(1) << 31)
#define MISSED_STORED (UINT32_C(1) << 30)

/* An absolute time stamp has 59 bits; the upper 5 come from the time before it. */
#define STAMP_MSB (UINT64_C(0xf8) << 56)

int page_layout_parse(struct page_layout *ret, const char *text, size_t len, unsigned word_size,
		      bool big_endian, uint32_t subbuf_size, struct error *err)
{
	struct subbuf_layout l;

	if (word_size != 4 && word_size != 8)
		return error_set(err, -EBADMSG, "the recorded kernel's word size is %u bytes",
				 word_size);
	if (subbuf_layout_parse(&l, text, len, subbuf_size) < 0)
		return error_set(err, -EBADMSG, "header_page describes no valid sub-buffer");
	*ret = (struct page_layout){
		.word_size = (uint8_t)word_size,
		.big_endian = big_endian,
		.subbuf_size = l.size,
		.timestamp_offset = l.timestamp_offset,
		.commit_offset = l.commit_offset,
		.commit_size = l.commit_size,
		.data_offset = l.data_offset,
	};
	return 0;
}

/* The low 32 bits of the commit field. */
static uint32_t page_read_commit(const struct page_layout *l, const uint8_t *page)
{
	const uint8_t *p = page + l->commit_offset;

	return load_u32(l->big_endian && l->commit_size == 8 ? p + 4 : p, l->big_endian);
}

void page_iter_set_missed(struct page_iter *it, const void *word)
{
	const struct page_layout *layout = it->layout;

	it->missed = layout->word_size == 8 ? load_u64(word, layout->big_endian)
					    : load_u32(word, layout->big_endian);
}

int page_iter_init_part(struct page_iter *it, const struct page_layout *layout, const void *page,
			uint32_t bytes, uint32_t size)
{
	const uint8_t *data = page;
	uint32_t commit, length, end;

	*it = (struct page_iter){ .layout = layout, .page = data };
	if (bytes < layout->data_offset)
		return -EBADMSG;
	commit = page_read_commit(layout, data);
	length = commit & SUBBUF_COMMIT_MASK;
	if (length > size - layout->data_offset)
		return -EBADMSG;
	end = layout->data_offset + length;
	it->pos = layout->data_offset;
	it->end = MIN(end, bytes);
	it->rest = end - it->end;
	it->ts = load_u64(data + layout->timestamp_offset, layout->big_endian);
	if (!(commit & MISSED_EVENTS))
		return 0;
	it->missed = UINT64_MAX;
	if (commit & MISSED_STORED) {
		if (size - end < layout->word_size)
			return -EBADMSG;
		if (end + layout->word_size > bytes)
			it->missed_at = end;
		else
			page_iter_set_missed(it, data + end);
	}
	return 0;
}

int page_iter_init(struct page_iter *it, const struct page_layout *layout, const void *page,
		   uint32_t size)
{
	return page_iter_init_part(it, layout, page, size, size);
}

void page_iter_go_on(struct page_iter *it, const void *data, uint32_t bytes)
{
	uint32_t left = it->end - it->pos + it->rest;

	it->page = data;
	it->pos = 0;
	it->end = MIN(left, bytes);
	it->rest = left - it->end;
}

uint32_t page_iter_wants(const struct page_iter *it)
{
	uint32_t room = it->end - it->pos, left = room + it->rest, header, type, length;
	bool big = it->layout->big_endian;

	if (room < RECORD_HEADER + 4)
		return left;
	header = load_u32(it->page + it->pos, big);
	type = big ? header >> RECORD_DELTA_BITS : header & 31;
	length = type && type <= RECORD_DATA_MAX
			 ? type * 4
			 : load_u32(it->page + it->pos + RECORD_HEADER, big);
	/* The iterator reports damage only if no rest is left: ask for the rest. */
	if (length < 4 || length % 4 || length > left - RECORD_HEADER)
		return left;
	return RECORD_HEADER + length;
}

/* Follows the kernel's rb_fix_abs_ts(). */
static uint64_t fix_stamp(uint64_t stamp, uint64_t before)
{
	if (before & STAMP_MSB) {
		stamp |= before & STAMP_MSB;
		if (unlikely(stamp < before))
			stamp += UINT64_C(1) << 59;
	}
	return stamp;
}

_cold_ static uint64_t clock_time(const struct page_clock *c, uint64_t stamp)
{
	if (c->mult)
		stamp = mul_shift(stamp, c->mult, c->shift);
	return stamp + (uint64_t)c->offset;
}

/* Handles a record that does not fit: the page is damaged, or its rest is not loaded yet. */
static int page_damaged(struct page_iter *it)
{
	if (it->rest)
		return 0;
	it->pos = it->end;
	return -EBADMSG;
}

/*
 * Skips an entry without data. Returns its length in bytes, 0 at the end of the page, or -EBADMSG.
 */
static int64_t pass_over(struct page_iter *it, uint32_t type, uint32_t delta, uint32_t room)
{
	bool big = it->layout->big_endian;
	uint32_t length;

	/* Padding without a delta fills the rest of the page and has no length. */
	if (type == RECORD_PADDING && !delta)
		return 0;
	if (room < RECORD_HEADER + 4)
		return -EBADMSG;
	length = load_u32(it->page + it->pos + RECORD_HEADER, big);
	switch (type) {
	case RECORD_TIME_EXTEND:
		it->ts += ((uint64_t)length << RECORD_DELTA_BITS) + delta;
		return RECORD_HEADER + 4;
	case RECORD_TIME_STAMP:
		it->ts = fix_stamp(((uint64_t)length << RECORD_DELTA_BITS) + delta, it->ts);
		return RECORD_HEADER + 4;
	default:
		/*
		 * A discarded event. Its delta counts, except 1: the kernel writes 1 for 0, as 0
		 * would mean the end of the page.
		 */
		if (length < 4 || length % 4 || length > room - RECORD_HEADER)
			return -EBADMSG;
		if (delta != 1)
			it->ts += delta;
		return RECORD_HEADER + length;
	}
}

int page_iter_next_any(struct page_iter *it, struct record *ret)
{
	bool big = it->layout->big_endian;

	while (it->pos < it->end) {
		const uint8_t *p = it->page + it->pos;
		uint32_t room = it->end - it->pos, header, type, delta, length;

		if (unlikely(room < RECORD_HEADER))
			return page_damaged(it);
		/* Bit fields start at the lowest bit, on big-endian machines at the highest. */
		header = load_u32(p, big);
		type = big ? header >> RECORD_DELTA_BITS : header & 31;
		delta = big ? header & RECORD_DELTA_MASK : header >> 5;

		if (unlikely(type > RECORD_DATA_MAX)) {
			int64_t n = pass_over(it, type, delta, room);

			if (n < 0)
				return page_damaged(it);
			it->pos = n ? it->pos + (uint32_t)n : it->end;
			it->rest = n ? it->rest : 0;
			continue;
		}
		it->start = it->pos;
		if (likely(type)) {
			length = type * 4;
			if (unlikely(length > room - RECORD_HEADER))
				return page_damaged(it);
			ret->data = p + RECORD_HEADER;
			ret->len = length;
		} else {
			/* array[0] holds the length, which includes array[0]. */
			if (unlikely(room < RECORD_HEADER + 4))
				return page_damaged(it);
			length = load_u32(p + RECORD_HEADER, big);
			if (unlikely(length < 4 || length % 4 || length > room - RECORD_HEADER))
				return page_damaged(it);
			ret->data = p + RECORD_HEADER + 4;
			ret->len = length - 4;
		}
		it->pos += RECORD_HEADER + length;
		it->ts += delta;
		ret->ts = likely(!it->layout->clock.differs)
				  ? it->ts
				  : clock_time(&it->layout->clock, it->ts);
		return 1;
	}
	return 0;
}
