/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the records of one raw sub-buffer, as in Linux's include/linux/ring_buffer.h and
 * kernel/trace/ring_buffer.c. A sub-buffer is hostile input: every length is checked.
 */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"
#include "base/error.h"
#include "print/record.h"
#include "stream/layout.h"

/* Layout from events/header_page, and properties of the recording machine. */
struct page_layout {
	uint8_t word_size; /* 4 or 8 */
	bool big_endian;
	uint32_t subbuf_size;
	uint32_t timestamp_offset;
	uint32_t commit_offset, commit_size;
	uint32_t data_offset;
	/*
	 * A record's time is ((stamp * mult) >> shift) + offset. mult 0: the stamp is not scaled.
	 */
	struct page_clock {
		bool differs; /* false: times are stamps */
		uint32_t mult, shift;
		int64_t offset;
	} clock;
};

/* -EBADMSG: the text describes no valid page. subbuf_size 0: take it from the text. */
int page_layout_parse(struct page_layout *ret, const char *text, size_t len, unsigned word_size,
		      bool big_endian, uint32_t subbuf_size, struct error *err);

struct page_iter {
	const struct page_layout *layout;
	const uint8_t *page;
	uint32_t pos, end;  /* offsets in page */
	uint32_t start;	    /* offset of the last record's header */
	uint32_t rest;	    /* bytes of records after end that are not loaded */
	uint64_t ts;	    /* time of the last record or time stamp */
	uint64_t missed;    /* events lost before this page; UINT64_MAX: an unknown number */
	uint32_t missed_at; /* offset of the lost count, if it is not loaded; 0: missed is set */
};

/* size: bytes at page. Returns 0, or -EBADMSG if the page's header is damaged. */
int page_iter_init(struct page_iter *it, const struct page_layout *layout, const void *page,
		   uint32_t size);
/*
 * The same for a page of which only the first bytes are loaded. At their end page_iter_next()
 * returns 0 and rest is not 0. The caller then loads the page from pos on and calls
 * page_iter_go_on(). If pos is still 0 after that, the next record is longer: load
 * page_iter_wants() bytes.
 */
int page_iter_init_part(struct page_iter *it, const struct page_layout *layout, const void *page,
			uint32_t bytes, uint32_t size);
void page_iter_go_on(struct page_iter *it, const void *data, uint32_t bytes);
uint32_t page_iter_wants(const struct page_iter *it);
/* Sets missed from the word at missed_at. */
void page_iter_set_missed(struct page_iter *it, const void *word);
/* The slow path of page_iter_next(): handles any record, and entries that are no records. */
int page_iter_next_any(struct page_iter *it, struct record *ret);

/*
 * Returns the next record without consuming it, if it is a common one: little-endian, with its
 * length in type_len and its stamp as time. False: there is none, or it is of another form.
 */
static inline bool page_iter_peek(const struct page_iter *it, struct record *ret)
{
	uint32_t room = it->end - it->pos, header, length;

	if (unlikely(room < RECORD_HEADER || (it->layout->big_endian | it->layout->clock.differs)))
		return false;
	header = load_u32(it->page + it->pos, false);
	length = (header & 31) * 4;
	if (unlikely(!length || length > RECORD_DATA_MAX * 4 || length > room - RECORD_HEADER))
		return false;
	*ret = (struct record){
		.ts = it->ts + (header >> 5),
		.data = it->page + it->pos + RECORD_HEADER,
		.len = length,
	};
	return true;
}

/* Consumes the record of page_iter_peek(). */
static inline void page_iter_pass(struct page_iter *it, const struct record *rec)
{
	it->start = it->pos;
	it->ts = rec->ts;
	it->pos += RECORD_HEADER + rec->len;
}

/* Returns 1: ret is the next record. 0: no more. -EBADMSG: damaged; the rest cannot be read. */
static inline int page_iter_next(struct page_iter *it, struct record *ret)
{
	if (unlikely(!page_iter_peek(it, ret)))
		return page_iter_next_any(it, ret);
	page_iter_pass(it, ret);
	return 1;
}
