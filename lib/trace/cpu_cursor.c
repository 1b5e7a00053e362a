/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * 	chunk > window (loaded part) > page > next record
 *
 * Invariants
 * - Windows of all CPUs take MERGE_MEMORY together. window_max is a CPU's share. If that is less
 *   than a sub-buffer, a window is a part of one. c->part says which it was when it was filled, as
 *   CPUs of a followed recording may appear later and make the share smaller.
 * - A record that was given out may still be read by render threads (loan.h). Its window is then
 *   lent, and the cursor takes another one (lent_windows.c).
 *
 * What was tried
 * - A window of at least one sub-buffer per CPU: 512 CPUs with pages of 64 KiB took 32 MiB, and
 *   streams with more than 128 MiB were refused. Hence parts.
 * - Loading a long record with the rest of its sub-buffer: 512 CPUs took 128 MiB. It is read alone
 *   now.
 * - A copy of each record for the render threads: two CPUs were 0.8 to 1.3 times as fast as one.
 *   Hence lent windows.
 */
#include "trace/cpu_cursor.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

void cpu_cursor_note_loss(struct cpu_cursor *c, uint64_t count, bool damaged)
{
	if (c->loss && (c->lost == UINT64_MAX || count == UINT64_MAX))
		count = UINT64_MAX;
	else if (c->loss && __builtin_add_overflow(c->lost, count, &count))
		count = UINT64_MAX;
	c->gaps->met += !c->loss;
	c->gaps->open += !c->loss;
	c->loss = true;
	c->lost = count;
	c->damaged |= damaged;
}

static const struct cpu_chunks *cpu_cursor_chunks(const struct cpu_cursors *cpus,
						  const struct cpu_cursor *c)
{
	return ring_index_find(cpus->ring, c->cpu, c->buffer);
}

/* Enters the next chunk. If the stream before it was freed, events are missing there. */
static int cpu_cursor_enter_chunk(struct cpu_cursors *cpus, struct cpu_cursor *c, struct error *err)
{
	const struct cpu_chunks *chunks = cpu_cursor_chunks(cpus, c);
	const bool after_gap = chunks->gap && chunks->gap == c->chunks.next + 1;
	int r = chunk_cursor_enter(&c->chunks, &cpus->source, &chunks->list, UINT64_MAX, err);

	if (r > 0 && after_gap)
		cpu_cursor_note_loss(c, UINT64_MAX, false);
	return r;
}

/* True if windows are smaller than a sub-buffer: there are many CPUs with large ones. */
static bool cpu_cursors_in_parts(const struct cpu_cursors *cpus)
{
	return cpus->window_max < cpus->layout->subbuf_size;
}

/* Fills the window with the beginning of the chunk's next sub-buffer. */
static int cpu_cursor_fill_part(struct cpu_cursors *cpus, struct chunk_cursor *w, struct error *err)
{
	uint32_t size = cpus->layout->subbuf_size, at = w->at;

	cpus->consumed += MIN(w->chunk.length - at, size);
	if (w->chunk.length - at < size)
		return -EBADMSG;
	w->at += size;
	return chunk_cursor_load_part(w, &cpus->source, at, cpus->window_max, err);
}

/* Fills the window from the current chunk. Leaves the chunk at its end. */
static int cpu_cursor_fill_window(struct cpu_cursors *cpus, struct cpu_cursor *c, struct error *err)
{
	struct chunk_cursor *w = &c->chunks;
	uint32_t size = cpus->layout->subbuf_size, rest = w->chunk.length - w->at, n;

	c->part = rest && cpu_cursors_in_parts(cpus);
	if (c->part)
		return cpu_cursor_fill_part(cpus, w, err);
	if (w->chunk.length <= cpus->window_max) {
		cpus->consumed += w->chunk.length;
		return chunk_cursor_load(w, &cpus->source, err);
	}
	n = MIN(rest, MAX(cpus->window_max / size, 1U) * size);
	cpus->consumed += n;
	return chunk_cursor_load_part(w, &cpus->source, w->at, n, err);
}

/* Gets an empty window of at most window_max bytes. */
static int cpu_cursor_renew_window(struct cpu_cursors *cpus, struct chunk_cursor *w,
				   struct error *err)
{
	int r = lent_windows_exchange(&cpus->lent, &w->window, err);

	if (r == 0 && w->window.cap > cpus->window_max)
		buf_deinit(&w->window);
	w->used = MIN(w->used, w->window.len);
	return r;
}

/* Returns 1 if the window has a sub-buffer, 0 at the CPU's end. Skips damaged chunks. */
static int cpu_cursor_next_window(struct cpu_cursors *cpus, struct cpu_cursor *c, struct error *err)
{
	struct chunk_cursor *w = &c->chunks;

	for (;;) {
		_cleanup_error_ struct error why = ERROR_INIT;
		int r = cpu_cursor_renew_window(cpus, w, err);

		if (r < 0)
			return r;
		r = chunk_cursor_inside(w) ? 1 : cpu_cursor_enter_chunk(cpus, c, &why);
		if (r == 0)
			return 0;
		if (r > 0)
			r = cpu_cursor_fill_window(cpus, c, &why);
		if (r == 0 && (c->part || chunk_cursor_left(w) >= cpus->layout->subbuf_size))
			return 1;
		if (r < 0 && r != -EBADMSG)
			return error_move(err, &why);
		/* Damaged, or the last sub-buffer is incomplete. */
		if (r < 0 || chunk_cursor_left(w))
			cpu_cursor_note_loss(c, UINT64_MAX, true);
		if (r < 0)
			chunk_cursor_skip(w);
	}
}

/*
 * The kernel gives out no sub-buffer without records, except one that tells a loss. File systems
 * show zeros in place of data that a crash kept from the disk; a trace.dat has no checksums.
 */
static int cpu_cursor_check_page(const struct cpu_cursor *c)
{
	const struct page_iter *it = &c->page;

	return it->ts || it->missed || it->missed_at || it->pos < it->end + it->rest ? 0 : -EBADMSG;
}

/* Starts the page in the window. Returns 0, -EBADMSG if the page is damaged, or another -errno. */
static int cpu_cursor_begin_page(struct cpu_cursors *cpus, struct cpu_cursor *c)
{
	struct chunk_cursor *w = &c->chunks;
	uint32_t size = cpus->layout->subbuf_size;
	int r;

	if (!c->part) {
		r = page_iter_init(&c->page, cpus->layout, w->window.data + w->used, size);
		w->used += size;
		return r ?: cpu_cursor_check_page(c);
	}
	w->used = w->window.len;
	r = page_iter_init_part(&c->page, cpus->layout, w->window.data, (uint32_t)w->window.len,
				size)
		    ?: cpu_cursor_check_page(c);
	if (r < 0 || !c->page.missed_at)
		return r;
	r = stream_reader_load_part(cpus->source.reader, &w->chunk, w->from + c->page.missed_at,
				    cpus->layout->word_size, &cpus->source.scratch, NULL);
	if (r == 0)
		page_iter_set_missed(&c->page, cpus->source.scratch.data);
	return r;
}

/* True if another window of this size fits. Only windows above window_max count. */
static bool cpu_cursors_have_room(const struct cpu_cursors *cpus, size_t bytes)
{
	for (size_t i = 0; i < cpus->count; i++)
		if (cpus->all[i]->chunks.window.cap > cpus->window_max)
			bytes += cpus->all[i]->chunks.window.cap;
	return bytes <= MERGE_LONG;
}

/* Loads the next part of the page. */
static int cpu_cursor_next_part(struct cpu_cursors *cpus, struct cpu_cursor *c, struct error *err)
{
	struct chunk_cursor *w = &c->chunks;
	uint32_t at = c->page.pos, left = c->page.end - at + c->page.rest;
	uint32_t bytes = at ? MIN(left, cpus->window_max) : page_iter_wants(&c->page);
	_cleanup_error_ struct error why = ERROR_INIT;
	int r = cpu_cursor_renew_window(cpus, w, err);

	if (r < 0)
		return r;
	r = bytes <= cpus->window_max || cpu_cursors_have_room(cpus, bytes)
		    ? chunk_cursor_load_part(w, &cpus->source, w->from + at, bytes, &why)
		    : -EBADMSG;
	if (r < 0 && r != -EBADMSG)
		return error_move(err, &why);
	if (r < 0) {
		cpu_cursor_note_loss(c, UINT64_MAX, true);
		buf_clear(&w->window);
	}
	w->used = w->window.len;
	c->seen -= MIN(c->seen, at);
	page_iter_go_on(&c->page, w->window.data, bytes);
	if (r < 0)
		c->page.end = c->page.rest = 0;
	return 0;
}

/* Starts the next readable sub-buffer. Returns 1, 0 at the CPU's end, or -errno. */
static int cpu_cursor_next_page(struct cpu_cursors *cpus, struct cpu_cursor *c, struct error *err)
{
	struct chunk_cursor *w = &c->chunks;
	uint32_t size = cpus->layout->subbuf_size;

	for (;;) {
		uint32_t skip;
		int r;

		if (chunk_cursor_left(w) < size) {
			if (chunk_cursor_left(w))
				cpu_cursor_note_loss(c, UINT64_MAX, true);
			w->used = w->window.len;
			r = cpu_cursor_next_window(cpus, c, err);
			if (r <= 0)
				return r;
		}
		skip = w->skip;
		w->skip = 0;
		r = cpu_cursor_begin_page(cpus, c);
		if (r < 0 && r != -EBADMSG)
			return error_errno(err, r, "can't read the stream");
		if (r < 0) {
			cpu_cursor_note_loss(c, UINT64_MAX, true);
			/*
			 * Forget the page: its window may be replaced before this CPU's next
			 * record.
			 */
			c->page = (struct page_iter){ .layout = cpus->layout };
			continue;
		}
		/* The loss before this sub-buffer was reported on the first read. */
		if (c->page.missed && !skip)
			cpu_cursor_note_loss(c, c->page.missed, false);
		c->seen = skip < size ? cpus->layout->data_offset + skip : size;
		return 1;
	}
}

int cpu_cursor_next_record(struct cpu_cursors *cpus, struct cpu_cursor *c, struct error *err)
{
	for (;;) {
		int r = page_iter_next(&c->page, &c->next);

		if (likely(r > 0)) {
			if (likely(c->page.start >= c->seen))
				return 1;
			continue;
		}
		if (unlikely(c->page.rest)) {
			r = cpu_cursor_next_part(cpus, c, err);
			if (r < 0)
				return r;
			continue;
		}
		if (r < 0)
			cpu_cursor_note_loss(c, UINT64_MAX, true);
		r = cpu_cursor_next_page(cpus, c, err);
		if (r <= 0)
			return r;
	}
}

uint64_t cpu_cursor_needs(const struct cpu_cursor *c, const struct chunk_list *list)
{
	return c->queued ? c->chunks.chunk.offset : chunk_cursor_needs(&c->chunks, list);
}

void cpu_cursors_init(struct cpu_cursors *cpus, const struct page_layout *layout,
		      const struct ring_index *ring, const struct stream_reader *reader)
{
	*cpus = (struct cpu_cursors){
		.layout = layout,
		.ring = ring,
		.source = {
			.reader = reader,
			.type = CHUNK_SUBBUFS,
			.head = sizeof(struct subbufs_header),
		},
	};
}

void cpu_cursors_deinit(struct cpu_cursors *cpus)
{
	for (size_t i = 0; i < cpus->count; i++) {
		buf_deinit(&cpus->all[i]->chunks.window);
		buf_deinit(&cpus->all[i]->kept);
		free(cpus->all[i]);
	}
	lent_windows_deinit(&cpus->lent);
	chunk_source_deinit(&cpus->source);
	free(cpus->all);
}

/* Each cursor has a share of the memory for windows. */
static void cpu_cursors_share(struct cpu_cursors *cpus, size_t count)
{
	cpus->window_max = MIN(MERGE_MEMORY / (uint32_t)MAX(count, (size_t)1), MERGE_WINDOW_MAX);
	cpus->window_max = MAX(cpus->window_max, MERGE_WINDOW_LEAST);
	cpus->source.whole_max = cpus->window_max;
	cpus->lent.max =
		(uint64_t)cpus->window_max * count > MERGE_MEMORY ? MERGE_LENT_LEAST : MERGE_LENT;
}

int cpu_cursors_extend(struct cpu_cursors *cpus, struct error *err)
{
	size_t count = cpus->ring->count;
	struct cpu_cursor **all;

	cpu_cursors_share(cpus, count);
	if (count == cpus->count)
		return 0;
	if (vec_reserve_exact(cpus->all, cpus->count, count - cpus->count) < 0)
		return error_errno(err, -ENOMEM, "can't merge the events");
	all = cpus->all;
	for (size_t i = 0; i < count; i++) {
		struct cpu_cursor *c;

		if (i < cpus->count && all[i]->cpu == cpus->ring->cpus[i].cpu &&
		    all[i]->buffer == cpus->ring->cpus[i].buffer)
			continue;
		c = calloc(1, sizeof(*c));
		if (!c)
			return error_errno(err, -ENOMEM, "can't merge the events");
		c->cpu = cpus->ring->cpus[i].cpu;
		c->buffer = cpus->ring->cpus[i].buffer;
		c->gaps = &cpus->gaps;
		c->page.layout = cpus->layout;
		memmove(&all[i + 1], &all[i], (cpus->count - i) * sizeof(struct cpu_cursor *));
		all[i] = c;
		cpus->count++;
	}
	return 0;
}
