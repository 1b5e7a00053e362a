/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto_read/pages.h"

#include <errno.h>

/* Linux's include/linux/ring_buffer.h and kernel/trace/ring_buffer.c. */
enum { TYPE_LEN_MAX = 28, TYPE_TIME_EXTEND = 30, DELTA_BITS = 27 };
#define MISSED_EVENTS (UINT32_C(1) << 31)
#define MISSED_STORED (UINT32_C(1) << 30)
/* So much of one CPU becomes a chunk. */
#define CHUNK_BYTES (1U << 20)
/* A time extend and a record's header with its length. */
#define RECORD_OVERHEAD 16

int pages_describe(unsigned word_size, uint32_t subbuf_size, struct buf *ret)
{
	buf_printf(ret,
		   "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
		   "\tfield: local_t commit;\toffset:8;\tsize:%u;\tsigned:1;\n"
		   "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
		   "\tfield: char data;\toffset:%u;\tsize:%u;\tsigned:1;\n",
		   word_size, 8 + word_size, subbuf_size - 8 - word_size);
	return buf_error(ret);
}

void pages_deinit(struct pages *p)
{
	buf_deinit(&p->buf);
}

static uint32_t missed_size(const struct pages *p)
{
	return p->missed && p->missed != UINT64_MAX ? p->layout.word_size : 0;
}

uint32_t pages_room(const struct pages *p)
{
	return p->layout.subbuf_size - p->layout.data_offset - RECORD_OVERHEAD -
	       p->layout.word_size;
}

void pages_begin(struct pages *p, uint32_t cpu, uint64_t lost)
{
	p->cpu = cpu;
	p->missed = lost;
}

static void put_u32(struct pages *p, uint32_t v)
{
	v = p->layout.big_endian ? htobe32(v) : htole32(v);
	buf_append(&p->buf, &v, sizeof(v));
}

static void store_word(const struct pages *p, void *to, uint64_t v)
{
	uint64_t v8 = p->layout.big_endian ? htobe64(v) : htole64(v);
	uint32_t v4 = p->layout.big_endian ? htobe32((uint32_t)v) : htole32((uint32_t)v);

	if (p->layout.word_size == 8)
		memcpy(to, &v8, sizeof(v8));
	else
		memcpy(to, &v4, sizeof(v4));
}

static void begin(struct pages *p, uint64_t ts)
{
	uint64_t stamp = p->layout.big_endian ? htobe64(ts) : htole64(ts);
	char *page = buf_reserve(&p->buf, p->layout.subbuf_size);

	if (!page)
		return;
	memset(page, 0, p->layout.data_offset);
	memcpy(page + p->layout.timestamp_offset, &stamp, sizeof(stamp));
	p->start = p->buf.len;
	p->buf.len += p->layout.data_offset;
	p->ts = ts;
	p->open = true;
}

static void end(struct pages *p)
{
	uint64_t commit = p->buf.len - p->start - p->layout.data_offset;
	size_t rest;

	if (!p->open)
		return;
	if (p->missed) {
		/* The kernel adds a negative int: it fills the upper half of a 64-bit word. */
		commit |= UINT64_C(0xffffffff00000000) | MISSED_EVENTS;
		if (missed_size(p)) {
			char word[8];

			commit |= MISSED_STORED;
			store_word(p, word, p->missed);
			buf_append(&p->buf, word, missed_size(p));
		}
	}
	store_word(p, p->buf.data + p->start + p->layout.commit_offset, commit);
	rest = p->layout.subbuf_size - (p->buf.len - p->start);
	memset(p->buf.data + p->buf.len, 0, rest);
	p->buf.len += rest;
	p->missed = 0;
	p->open = false;
}

/* type_len and time_delta are bit fields: they begin at the word's other end on big-endian ones. */
static void put_head(struct pages *p, uint32_t type_len, uint32_t delta)
{
	put_u32(p, p->layout.big_endian ? type_len << DELTA_BITS | delta : delta << 5 | type_len);
}

static int write_all(struct pages *p)
{
	struct iovec iov = { .iov_base = p->buf.data, .iov_len = p->buf.len };
	int r = buf_error(&p->buf);

	if (r == 0 && p->buf.len)
		r = stream_write_subbufs(p->w, p->cpu, BUFFER_MAIN, 0, &iov, 1);
	buf_clear(&p->buf);
	return r;
}

/* Sees to it that a record of so many bytes has room. */
static int make_room(struct pages *p, uint64_t ts, uint32_t len)
{
	int r = 0;

	if (p->open &&
	    p->buf.len - p->start + RECORD_OVERHEAD + len + missed_size(p) > p->layout.subbuf_size)
		end(p);
	/* A time extend has 59 bits. */
	if (p->open && (ts - p->ts) >> DELTA_BITS >> 32)
		end(p);
	if (!p->open && p->buf.len >= CHUNK_BYTES)
		r = write_all(p);
	if (!p->open)
		begin(p, ts);
	return r ?: buf_error(&p->buf);
}

int pages_add(struct pages *p, uint64_t ts, const void *data, uint32_t len)
{
	uint32_t padded = (len + 3) / 4 * 4;
	uint64_t delta;
	int r;

	if (padded > pages_room(p))
		return -EMSGSIZE;
	if (p->open)
		ts = MAX(ts, p->ts);
	r = make_room(p, ts, padded);
	if (r < 0)
		return r;
	delta = ts - p->ts;
	if (delta >> DELTA_BITS) {
		put_head(p, TYPE_TIME_EXTEND, delta & ((1U << DELTA_BITS) - 1));
		put_u32(p, (uint32_t)(delta >> DELTA_BITS));
		delta = 0;
	}
	if (padded && padded <= TYPE_LEN_MAX * 4) {
		put_head(p, padded / 4, (uint32_t)delta);
	} else {
		put_head(p, 0, (uint32_t)delta);
		put_u32(p, padded + 4);
	}
	buf_append(&p->buf, data, len);
	buf_append(&p->buf, "\0\0\0", padded - len);
	p->ts = ts;
	return buf_error(&p->buf);
}

int pages_flush(struct pages *p)
{
	end(p);
	p->missed = 0;
	return write_all(p);
}
