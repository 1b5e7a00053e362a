/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies sub-buffers unchanged. A recorder may read a sub-buffer that the kernel is still filling;
 * then the next chunk begins with the same one again. The later copy has all events of the earlier
 * one and replaces it; the earlier one's count of lost events is carried over.
 */
#include <string.h>
#if HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/bytes.h"
#include "base/vec.h"
#include "formats/dat/dat.h"

#define RUN_BYTES (1U << 20)
/* Sub-buffers per compressed block, as in trace-cmd. */
#define BLOCK_PAGES 10

/* Flags in the low 32 bits of the commit field. */
#define MISSED_EVENTS (UINT32_C(1) << 31)
#define MISSED_STORED (UINT32_C(1) << 30)

static uint64_t data_chunk_pages(const struct dat_file *f, const struct chunk_ref *ref)
{
	return (ref->length - sizeof(struct subbufs_header)) / f->page_size;
}

/* Whether the chunk after number n begins with the same sub-buffer as this one's last. */
static bool data_is_replaced(const struct cpu_chunks *c, size_t n)
{
	const struct chunk_ref *next = chunk_list_get(&c->list, n + 1);

	return next && next->skip;
}

static uint64_t data_count_pages(const struct dat_file *f, const struct cpu_chunks *c)
{
	const struct chunk_ref *ref;
	uint64_t pages = 0;

	for (size_t n = 0; (ref = chunk_list_get(&c->list, n)); n++) {
		uint64_t count = data_chunk_pages(f, ref);

		pages += count - (count && data_is_replaced(c, n));
	}
	return pages;
}

/* The main buffer has a name: add an empty top-level buffer, which readers require. */
#define NO_BUFFER UINT32_MAX

static const char *data_ring_name(const struct trace_info *info, uint32_t number)
{
	size_t i = number ? number - BUFFER_MORE + 1 : 0;

	return number != NO_BUFFER && i < info->header->n_buffers ? info->header->buffers[i] : "";
}

static struct dat_ring *data_find_ring(struct dat_file *f, uint32_t number)
{
	struct dat_ring *ring;

	for (size_t i = 0; i < f->ring_count; i++)
		if (f->rings[i].number == number)
			return &f->rings[i];
	if (vec_reserve_exact(f->rings, f->ring_count, 1) < 0)
		return NULL;
	ring = &f->rings[f->ring_count];
	*ring = (struct dat_ring){
		.number = number,
		.name = data_ring_name(f->info, number),
		.cpus = calloc(f->cpus, sizeof(struct dat_cpu_data)),
	};
	f->ring_count += ring->cpus != NULL;
	return ring->cpus ? ring : NULL;
}

int dat_find_data(struct dat_file *f, const struct stream_index *index, struct error *err)
{
	const struct ring_index *ring = &index->rings[BUFFER_MAIN];

	/* Sorted by CPU. */
	f->cpus = ring->count ? ring->cpus[ring->count - 1].cpu + 1 : 1;
	if (!data_find_ring(f, *data_ring_name(f->info, BUFFER_MAIN) ? NO_BUFFER : BUFFER_MAIN))
		return error_errno(err, -ENOMEM, "can't write the trace.dat");
	for (size_t i = 0; i < ring->count; i++) {
		const struct cpu_chunks *c = &ring->cpus[i];
		struct dat_ring *r = data_find_ring(f, c->buffer);

		if (!r)
			return error_errno(err, -ENOMEM, "can't write the trace.dat");
		r->cpus[c->cpu].chunks = c;
		r->cpus[c->cpu].pages = data_count_pages(f, c);
	}
	return 0;
}

/* Low 32 bits of the commit field. */
static uint8_t *page_commit_at(const struct page_layout *l, uint8_t *page)
{
	return page + l->commit_offset + (l->big_endian && l->commit_size == 8 ? 4 : 0);
}

static void page_store(bool big_endian, uint8_t *to, uint64_t v, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		to[big_endian ? size - 1 - i : i] = (uint8_t)(v >> (8 * i));
}

/* Records in the header that events are missing before this sub-buffer. */
static void page_mark_missed(const struct page_layout *l, uint8_t *page, uint64_t missed)
{
	uint8_t *at = page_commit_at(l, page);
	uint32_t commit = load_u32(at, l->big_endian);
	uint32_t len = commit & ~(MISSED_EVENTS | MISSED_STORED);

	if (!missed || (commit & MISSED_EVENTS) || len > l->subbuf_size - l->data_offset)
		return;
	commit |= MISSED_EVENTS;
	if (missed != UINT64_MAX && l->subbuf_size - l->data_offset - len >= l->word_size) {
		commit |= MISSED_STORED;
		page_store(l->big_endian, page + l->data_offset + len, missed, l->word_size);
	}
	page_store(l->big_endian, at, commit, 4);
}

static uint64_t page_missed_before(const struct page_layout *l, const uint8_t *page)
{
	struct page_iter it;

	return page_iter_init(&it, l, page, l->subbuf_size) < 0 ? 0 : it.missed;
}

/* Replaces an unreadable sub-buffer by an empty one with a loss. */
static void page_make_empty(const struct page_layout *l, uint8_t *page)
{
	memset(page, 0, l->subbuf_size);
	page_store(l->big_endian, page_commit_at(l, page), MISSED_EVENTS, 4);
}

#if HAVE_ZSTD
int dat_pack(struct dat_file *f, const void *from, size_t len, struct buf *to, struct error *err)
{
	size_t bound = ZSTD_compressBound(len), n;
	char *p = buf_reserve(to, bound);

	if (!f->zstd)
		f->zstd = ZSTD_createCCtx();
	if (!p || !f->zstd)
		return error_errno(err, -ENOMEM, "can't write the trace.dat");
	n = ZSTD_compressCCtx(f->zstd, p, bound, from, len, ZSTD_CLEVEL_DEFAULT);
	if (ZSTD_isError(n))
		return error_set(err, -EIO, "can't compress the trace.dat: %s",
				 ZSTD_getErrorName(n));
	to->len += n;
	return 0;
}
#else
int dat_pack(struct dat_file *f _unused_, const void *from _unused_, size_t len _unused_,
	     struct buf *to _unused_, struct error *err)
{
	return error_set(err, -EOPNOTSUPP, "this program was built without zstd");
}
#endif

static int data_cant_write(int r, struct error *err)
{
	return r < 0 ? error_errno(err, r, "can't write the trace.dat") : 0;
}

/* Writes whole blocks and keeps the remainder; last: writes all. */
static int data_put_blocks(struct dat_file *f, bool last, struct error *err)
{
	size_t block = (size_t)BLOCK_PAGES * f->page_size, at = 0;

	while (f->block.len - at >= (last ? 1 : block)) {
		size_t n = MIN(block, f->block.len - at);
		int r;

		buf_clear(&f->packed_block);
		r = dat_pack(f, f->block.data + at, n, &f->packed_block, err);
		if (r < 0)
			return r;
		dat_put_u32(f, &f->out->buf, (uint32_t)f->packed_block.len);
		dat_put_u32(f, &f->out->buf, (uint32_t)n);
		buf_append(&f->out->buf, f->packed_block.data, f->packed_block.len);
		at += n;
		r = data_cant_write(output_settle(f->out), err);
		if (r < 0)
			return r;
	}
	memmove(f->block.data, f->block.data + at, f->block.len - at);
	f->block.len -= at;
	return 0;
}

/* Writes all of f->block. */
static int data_put_pages(struct dat_file *f, struct error *err)
{
	return f->packed ? data_put_blocks(f, false, err)
			 : data_cant_write(output_take(f->out, &f->block), err);
}

#define HEAD ((uint32_t)sizeof(struct subbufs_header))

/*
 * Loads sub-buffers from..from + n of a chunk. The whole chunk is read with its checksum; parts
 * only after that was verified.
 */
static int data_load_pages(const struct stream_reader *reader, const struct chunk *chunk,
			   uint32_t from, uint32_t n, uint32_t size, struct buf *piece,
			   struct error *err)
{
	int r;

	if (HEAD + n * size != chunk->length)
		return stream_reader_load_part(reader, chunk, HEAD + from * size, n * size, piece,
					       err);
	r = stream_reader_load(reader, chunk, piece, err);
	if (r < 0)
		return r;
	piece->len = n * size;
	memmove(piece->data, piece->data + HEAD, piece->len);
	return 0;
}

/* Like data_load_pages(), but replaces unreadable sub-buffers by empty ones. */
static int data_load_or_empty(struct dat_file *f, const struct stream_reader *reader,
			      const struct chunk *chunk, uint32_t from, uint32_t n, bool good,
			      struct buf *piece, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	uint32_t size = f->page_size;
	int r = good ? data_load_pages(reader, chunk, from, n, size, piece, &why) : -EBADMSG;

	if (r != -EBADMSG)
		return r < 0 ? error_move(err, &why) : 0;
	buf_clear(piece);
	if (!buf_reserve(piece, (size_t)n * size))
		return error_errno(err, -ENOMEM, "can't write the trace.dat");
	for (uint32_t i = 0; i < n; i++)
		page_make_empty(&f->info->layout, (uint8_t *)piece->data + (size_t)i * size);
	piece->len = (size_t)n * size;
	return 0;
}

/* *missed: loss to record in the next sub-buffer's header. */
static int data_write_chunk(struct dat_file *f, const struct stream_reader *reader,
			    const struct chunk *chunk, bool replaced, uint64_t *missed,
			    struct error *err)
{
	const struct page_layout *l = &f->info->layout;
	uint32_t pages = (chunk->length - HEAD) / f->page_size;
	uint32_t step = MAX(RUN_BYTES / f->page_size, 1U);
	_cleanup_buf_ struct buf piece = BUF_INIT;
	bool at_once = pages <= step && HEAD + pages * f->page_size == chunk->length;
	bool good = at_once || stream_reader_verify(reader, chunk, &piece, NULL) == 0;

	for (uint32_t at = 0, n; at < pages; at += n) {
		int r;

		n = MIN(step, pages - at);
		r = data_load_or_empty(f, reader, chunk, at, n, good, &piece, err);
		if (r < 0)
			return r;
		page_mark_missed(l, (uint8_t *)piece.data, *missed);
		*missed = 0;
		if (replaced && at + n == pages) {
			piece.len -= f->page_size;
			*missed = page_missed_before(l, (uint8_t *)piece.data + piece.len);
		}
		if (f->packed) {
			buf_append(&f->block, piece.data, piece.len);
		} else {
			struct buf empty = f->block;

			f->block = piece;
			piece = empty;
		}
		r = buf_error(&f->block);
		r = r < 0 ? data_cant_write(r, err) : data_put_pages(f, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int dat_write_cpu(struct dat_file *f, const struct dat_cpu_data *cpu,
		  const struct stream_reader *reader, struct error *err)
{
	const struct chunk_ref *ref;
	uint64_t missed = 0;
	int r = 0;

	if (f->packed)
		dat_put_u32(f, &f->out->buf,
			    (uint32_t)((cpu->pages + BLOCK_PAGES - 1) / BLOCK_PAGES));
	for (size_t n = 0; r == 0 && (ref = chunk_list_get(&cpu->chunks->list, n)); n++) {
		const struct chunk chunk = {
			.type = CHUNK_SUBBUFS,
			.cpu = cpu->chunks->cpu,
			.offset = ref->offset,
			.length = ref->length,
		};

		r = data_write_chunk(f, reader, &chunk, data_is_replaced(cpu->chunks, n), &missed,
				     err);
	}
	return r == 0 && f->packed ? data_put_blocks(f, true, err) : r;
}
