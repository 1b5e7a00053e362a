/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sub-buffers that the merge reads in parts because there are many CPUs, beside the same read as a
 * whole. Byte 0: the kind of machine, and how they are read. Byte 1: the size of a sub-buffer. The
 * rest: pieces that make them: a byte for the kind, one for the CPU, two for the length or another
 * number, and for some kinds bytes.
 */
#include "fuzz.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "make_stream.h"
#include "trace/merge.h"

/* Flags in byte 0. */
enum {
	MACHINE_32 = 1,
	MACHINE_BIG = 2,
	LENT = 4,  /* records are read later */
	GROWN = 8, /* most CPUs come later */
};

enum {
	PIECE_RAW,
	PIECE_RECORD,
	PIECE_HEAD,
	PIECE_PAGE,
	PIECE_TAIL,
	PIECE_CHUNK,
	PIECE_POKE,
	PIECE_KINDS
};

#define CPUS 4
/* The number of CPUs without data. */
#define OTHERS (MERGE_MEMORY / MERGE_WINDOW_LEAST)
#define CHUNKS 64

static uint32_t room(const struct maker *m)
{
	return m->subbuf_size - (uint32_t)m->page.len;
}

static void put_page(struct maker *m, unsigned missed)
{
	if (room(m) < m->word_size)
		missed = missed ? UINT16_MAX : 0;
	page_end(m, missed == UINT16_MAX ? UINT64_MAX : missed);
	page_begin(m, m->ts);
}

static void put_record(struct maker *m, const uint8_t *data, size_t size, uint32_t len)
{
	static char bytes[UINT16_MAX];

	len = MIN(len, (uint32_t)sizeof(bytes));
	if (len + 20 > room(m))
		return;
	memcpy(bytes, data, MIN(size, (size_t)8));
	page_record(m, m->ts + len, bytes, len);
}

/* Returns how many of the bytes after a piece's head belong to it. */
static size_t put_piece(struct maker *m, unsigned kind, uint32_t cpu, uint32_t n,
			const uint8_t *data, size_t size)
{
	size_t own = MIN((size_t)n, size);

	switch (kind) {
	case PIECE_RAW:
		own = MIN(own, (size_t)room(m));
		buf_append(&m->page, data, own);
		return own;
	case PIECE_RECORD:
		put_record(m, data, size, n);
		return 0;
	case PIECE_HEAD:
		if (size < 4 || room(m) < 8)
			return 0;
		page_head(m, cpu % 32, n);
		buf_append(&m->page, data, 4);
		return 4;
	case PIECE_PAGE:
		put_page(m, n);
		return 0;
	case PIECE_TAIL:
		buf_append(&m->subbufs, data, own);
		return own;
	case PIECE_POKE:
		if (m->subbufs.len)
			m->subbufs.data[n % m->subbufs.len] = (char)cpu;
		return 0;
	default:
		maker_flush(m, cpu % CPUS, BUFFER_MAIN, n);
		return 0;
	}
}

static void put_pieces(struct maker *m, const uint8_t *data, size_t size)
{
	unsigned chunks = 0;

	page_begin(m, 1000);
	while (size >= 4 && chunks < CHUNKS) {
		unsigned kind = data[0] % PIECE_KINDS;
		size_t own = put_piece(m, kind, data[1], data[2] | (uint32_t)data[3] << 8, data + 4,
				       size - 4);

		chunks += kind == PIECE_CHUNK;
		data += 4 + own;
		size -= 4 + own;
	}
	put_page(m, 0);
	maker_flush(m, 0, BUFFER_MAIN, 0);
}

static void index_chunks(struct stream_reader *r, struct ring_index *ring)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct subbufs_header h;
	struct chunk c;

	while (stream_reader_next(r, &c, NULL) > 0) {
		struct chunk_ref ref = { .offset = c.offset, .length = c.length };

		if (stream_reader_load_part(r, &c, 0, sizeof(h), &b, NULL) < 0)
			abort();
		memcpy(&h, b.data, sizeof(h));
		ref.skip = le32toh(h.skip);
		if (ring_index_add(ring, c.cpu, 0, &ref) < 0)
			abort();
	}
}

/* One merge's output: of each CPU, and of all in their order. */
struct given {
	uint64_t of[CPUS + 1];
	struct loan loan;
	struct {
		struct record rec;
		uint64_t hash;
	} lent[64];
	unsigned lent_count;
};

static uint64_t add_bytes(uint64_t hash, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static int give_back(void *userdata, struct error *err _unused_)
{
	struct given *g = userdata;

	for (unsigned i = 0; i < g->lent_count; i++)
		if (add_bytes(0, g->lent[i].rec.data, g->lent[i].rec.len) != g->lent[i].hash)
			abort();
	g->lent_count = 0;
	g->loan.returned = ++g->loan.lent;
	return 0;
}

static void lend(struct given *g, const struct record *rec)
{
	if (g->lent_count == ARRAY_SIZE(g->lent))
		give_back(g, NULL);
	g->lent[g->lent_count].rec = *rec;
	g->lent[g->lent_count++].hash = add_bytes(0, rec->data, rec->len);
}

static uint64_t add_item(uint64_t hash, const struct merge_item *item, int kind)
{
	const struct record *rec = &item->event.rec;
	uint64_t told[4];

	hash = add_bytes(hash, &item->event.cpu, sizeof(item->event.cpu));
	if (kind == MERGE_RECORD) {
		hash = add_bytes(hash, &rec->ts, sizeof(rec->ts));
		return add_bytes(hash, rec->data, rec->len);
	}
	told[0] = item->before_ts;
	told[1] = item->after_ts;
	told[2] = item->count;
	told[3] = item->damaged;
	return add_bytes(hash, told, sizeof(told));
}

static void take(struct given *g, const struct merge_item *item, int kind)
{
	uint32_t cpu = item->event.cpu;

	if (cpu >= CPUS)
		abort();
	g->of[cpu] = add_item(g->of[cpu], item, kind);
	g->of[CPUS] = add_item(g->of[CPUS], item, kind);
	if (kind == MERGE_RECORD && g->loan.recall)
		lend(g, &item->event.rec);
}

static void take_all(struct given *g, struct merge *merge)
{
	struct merge_item item;
	int kind;

	while ((kind = merge_next(merge, &item, NULL)) > 0)
		take(g, &item, kind);
	if (kind != MERGE_END)
		abort();
}

/* The ring has few CPUs at first, and chunks before grown_at are ripe. */
static void give(struct given *g, const struct page_layout *l, struct ring_index *ring, size_t few,
		 uint64_t grown_at, const struct stream_reader *reader)
{
	_cleanup_(merge_freep) struct merge *merge = NULL;
	size_t count = ring->count;

	ring->count = grown_at ? few : count;
	if (merge_new(&merge, l, ring, reader, NULL) < 0)
		abort();
	if (g->loan.recall)
		merge_lend(merge, &g->loan);
	if (grown_at) {
		if (merge_extend(merge, grown_at, NULL) < 0)
			abort();
		take_all(g, merge);
		ring->count = count;
		if (merge_extend(merge, UINT64_MAX, NULL) < 0)
			abort();
	}
	take_all(g, merge);
	if (g->lent_count)
		give_back(g, NULL);
}

static void compare(const struct maker *m, const struct stream_reader *reader,
		    struct ring_index *ring, unsigned how)
{
	static struct cpu_chunks cpus[CPUS + OTHERS];
	struct ring_index many = { .cpus = cpus, .count = ring->count + OTHERS };
	struct given whole = { 0 }, parts = { 0 };
	const struct page_layout l = {
		.word_size = (uint8_t)m->word_size,
		.big_endian = m->big_endian,
		.subbuf_size = m->subbuf_size,
		.commit_offset = 8,
		.commit_size = m->word_size,
		.data_offset = maker_data_offset(m),
	};
	uint64_t middle = ring->cpus[0].list.refs[ring->cpus[0].list.count / 2].offset;

	memcpy(cpus, ring->cpus, ring->count * sizeof(*cpus));
	for (uint32_t i = 0; i < OTHERS; i++)
		cpus[ring->count + i] = (struct cpu_chunks){ .cpu = CPUS + i };
	if (how & LENT)
		parts.loan = (struct loan){ .recall = give_back, .userdata = &parts };
	give(&whole, &l, ring, 0, 0, reader);
	give(&parts, &l, &many, ring->count, how & GROWN ? middle : 0, reader);
	if (memcmp(whole.of, parts.of, (CPUS + !(how & GROWN)) * sizeof(whole.of[0])))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ring_index ring = { 0 };
	struct stream_reader reader;
	struct maker m;

	if (size < 2)
		return 0;
	maker_init_fd(&m, input_file((const uint8_t *)"", 0), data[0] & MACHINE_32 ? 4 : 8,
		      data[0] & MACHINE_BIG, MERGE_WINDOW_LEAST + 4 + 64U * data[1]);
	put_pieces(&m, data + 2, size - 2);
	if (stream_reader_init(&reader, m.fd, NULL) < 0)
		abort();
	index_chunks(&reader, &ring);
	compare(&m, &reader, &ring, data[0]);
	ring_index_deinit(&ring);
	buf_deinit(&m.page);
	buf_deinit(&m.subbufs);
	return 0;
}
