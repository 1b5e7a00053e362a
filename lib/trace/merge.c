/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One sequence of records in time order, out of the sub-buffers of all CPUs.
 *
 * The recorder reads each CPU's ring in turn, so the stream has the sub-buffers of one CPU in time
 * order, and those of different CPUs mixed. A trace can be far larger than memory. So each CPU of
 * each buffer has a cursor, and the cursors play a tournament by the time of their next record:
 *
 * 	stream   |0 0|1|0|2 2|1|0|1|...           chunks, each of one CPU (chunk_cursor.h)
 * 	           \  |    /
 * 	cursor      0  1  2       chunk > window (loaded part) > page > next record
 * 	             \ | /
 * 	tree           1          winner: earliest record; at equal times the lowest CPU
 * 	               |
 * 	          merge_next()    a record, a loss, or the end
 *
 * Invariants
 * - A queued cursor has its next record decoded, or only a loss left at its CPU's end (time
 *   UINT64_MAX). A cursor without either loses against all others.
 * - tree[1] is the winner, tree[n] the earlier of tree[2n] and tree[2n + 1]. The last half are the
 *   cursors, in their order, with a copy of the time: a comparison reads no cursor.
 * - Records of one CPU come in the ring's order, even if a clock ran backwards.
 * - A loss comes right before the record after the gap. Damage is a loss of unknown count; the
 *   merge goes on with the next sub-buffer.
 * - m->current is the winner after its record was given out: the cursor is advanced on the next
 *   call, so that the record's data stays valid until then. rival_ts is the earliest time of all
 *   other cursors: while the current page has earlier records, merge_next_in_page() needs no tree.
 *   It is searched for when a cursor wins twice: among many CPUs that is rare.
 * - Windows of all CPUs take MERGE_MEMORY together. window_max is a CPU's share. If that is less
 *   than a sub-buffer, a window is a part of one. c->part says which it was when it was filled, as
 *   CPUs of a followed recording may appear later and make the share smaller.
 * - A record that was given out may still be read by render threads (loan.h). Its window is then
 *   lent, and the cursor takes another one (lent_windows.c).
 * - A followed stream is merged up to m->limit (`ripe` in index.h): a later chunk may hold an older
 *   record. merge_needs() is the offset from which the stream must be kept. A chunk counts as
 *   needed until its last record was given out, not only until it was loaded: if the exporter dies
 *   in between, its events are still in the stream.
 *
 * What was tried
 * - A window of at least one sub-buffer per CPU: 512 CPUs with pages of 64 KiB took 32 MiB, and
 *   streams with more than 128 MiB were refused. Hence parts.
 * - Loading a long record with the rest of its sub-buffer: 512 CPUs took 128 MiB. It is read alone
 *   now.
 * - A copy of each record for the render threads: two CPUs were 0.8 to 1.3 times as fast as one.
 *   Hence lent windows.
 * - A binary heap of the cursors: which child is earlier decides where the next level's children
 *   lie, and the processor guesses it wrong half the time. A tournament's places are known before.
 * - One thread that merges for all: two CPUs were 1.4 to 1.6 times as fast as one, as notes and
 *   records went from cache to cache. Threads now take turns at the merge.
 */
#include "trace/merge.h"

#include <string.h>

#include "base/vec.h"
#include "trace/chunk_cursor.h"
#include "trace/lent_windows.h"

struct cursor {
	uint32_t cpu;
	uint32_t buffer;
	uint32_t number;	 /* its index in merge.cursors */
	struct merge_gaps *gaps; /* the merge's */
	/*
	 * Its window has whole sub-buffers, or part of one. Its skip is 0 after the chunk's first
	 * sub-buffer.
	 */
	struct chunk_cursor chunks;
	bool part; /* window has part of a sub-buffer; merge_in_parts() may differ since it was
		      filled */
	struct page_iter page;
	uint32_t seen; /* records starting below this offset in the page were given out before */
	struct record next;
	uint64_t last_ts; /* time of the record before next; 0: none */
	bool have_record;
	bool queued;	  /* it has a record or a loss to give out */
	bool ahead;	  /* merge_peek() has already advanced to next */
	int ahead_result; /* result of that cursor_next_record() */
	struct buf kept;  /* copy of the last record: merge_peek() may replace the window */
	bool loss;	  /* report a loss before next */
	bool damaged;
	uint64_t lost;
};

/* A cursor in the tournament. */
struct player {
	uint64_t ts;	       /* of its next record */
	struct cursor *cursor; /* NULL: it has nothing to give out */
};

struct merge {
	const struct page_layout *layout;
	const struct ring_index *ring;
	struct chunk_source source;
	uint32_t window_max; /* bytes */
	uint64_t consumed;
	uint64_t limit;		 /* stop at chunks from this offset on */
	struct cursor **cursors; /* owned, with their elements; sorted by CPU */
	size_t cursor_count;
	struct player *tree;	/* owned; 2 * cursor_count */
	struct cursor *current; /* the CPU of the last record given out, until it is advanced */
	struct cursor *last;	/* the same, until another one gives out a record */
	uint64_t rival_ts; /* earliest time of the other cursors; UINT64_MAX: none; 0: unknown */
	bool begun;
	struct lent_windows lent;
	struct merge_gaps gaps;
};

static inline struct player player_of(struct cursor *c)
{
	return (struct player){ c->next.ts, c->queued ? c : NULL };
}

/* At equal times the lower CPU wins; a cursor wins over none. */
static _noinline_ bool player_is_later(const struct cursor *a, const struct cursor *b)
{
	return b && (!a || b->number < a->number);
}

/* Branch-free: the outcome is unpredictable. Equal times are rare. */
static inline struct player player_earlier(struct player a, struct player b)
{
	uint64_t second = b.ts < a.ts;

	if (unlikely(a.ts == b.ts))
		second = player_is_later(a.cursor, b.cursor);
	second = 0 - second;
	return (struct player){ a.ts ^ ((a.ts ^ b.ts) & second),
				(struct cursor *)((uintptr_t)a.cursor ^
						  (((uintptr_t)a.cursor ^ (uintptr_t)b.cursor) &
						   (uintptr_t)second)) };
}

/* Call after a cursor's next record changed. */
static inline void merge_replay(struct merge *m, struct cursor *c)
{
	struct player *tree = m->tree, winner = player_of(c);
	size_t at = m->cursor_count + c->number;

	/* Two CPUs often take turns: the processor foresees a branch, and waits for no time. */
	if (m->cursor_count == 2) {
		const struct player rival = tree[at ^ 1];

		tree[at] = winner;
		if (likely(rival.ts < winner.ts))
			tree[1] = rival;
		else
			tree[1] = player_earlier(winner, rival);
		return;
	}
	/* The processor foresees few streams; many CPUs' records come before this one's next. */
	__builtin_prefetch((const void *)((uintptr_t)c->page.page + c->page.pos + 64));
	for (tree[at] = winner; at > 1; tree[at] = winner) {
		winner = player_earlier(winner, tree[at ^ 1]);
		at /= 2;
	}
}

static void merge_play(struct merge *m)
{
	for (size_t i = 0; i < m->cursor_count; i++) {
		m->cursors[i]->number = (uint32_t)i;
		m->tree[m->cursor_count + i] = player_of(m->cursors[i]);
	}
	for (size_t i = m->cursor_count; i-- > 1;)
		m->tree[i] = player_earlier(m->tree[2 * i], m->tree[2 * i + 1]);
}

/* NULL: no cursor has anything to give out. */
static struct cursor *merge_winner(const struct merge *m)
{
	return m->cursor_count ? m->tree[1].cursor : NULL;
}

/* The earliest time of all cursors but the winner: it lost against the winner. */
static uint64_t merge_find_rival(const struct merge *m)
{
	uint64_t ts = UINT64_MAX;

	for (size_t at = m->cursor_count + m->tree[1].cursor->number; at > 1; at /= 2)
		ts = MIN(ts, m->tree[at ^ 1].ts);
	return ts;
}

static void cursor_note_loss(struct cursor *c, uint64_t count, bool damaged)
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

static const struct cpu_chunks *cursor_chunks(const struct merge *m, const struct cursor *c)
{
	return ring_index_find(m->ring, c->cpu, c->buffer);
}

/* Enters the next chunk. If the stream before it was freed, events are missing there. */
static int cursor_enter_chunk(struct merge *m, struct cursor *c, struct error *err)
{
	const struct cpu_chunks *chunks = cursor_chunks(m, c);
	const bool after_gap = chunks->gap && chunks->gap == c->chunks.next + 1;
	int r = chunk_cursor_enter(&c->chunks, &m->source, &chunks->list, UINT64_MAX, err);

	if (r > 0 && after_gap)
		cursor_note_loss(c, UINT64_MAX, false);
	return r;
}

/* True if windows are smaller than a sub-buffer: there are many CPUs with large ones. */
static bool merge_in_parts(const struct merge *m)
{
	return m->window_max < m->layout->subbuf_size;
}

/* Fills the window with the beginning of the chunk's next sub-buffer. */
static int cursor_fill_part(struct merge *m, struct chunk_cursor *w, struct error *err)
{
	uint32_t size = m->layout->subbuf_size, at = w->at;

	m->consumed += MIN(w->chunk.length - at, size);
	if (w->chunk.length - at < size)
		return -EBADMSG;
	w->at += size;
	return chunk_cursor_load_part(w, &m->source, at, m->window_max, err);
}

/* Fills the window from the current chunk. Leaves the chunk at its end. */
static int cursor_fill_window(struct merge *m, struct cursor *c, struct error *err)
{
	struct chunk_cursor *w = &c->chunks;
	uint32_t size = m->layout->subbuf_size, rest = w->chunk.length - w->at, n;

	c->part = rest && merge_in_parts(m);
	if (c->part)
		return cursor_fill_part(m, w, err);
	if (w->chunk.length <= m->window_max) {
		m->consumed += w->chunk.length;
		return chunk_cursor_load(w, &m->source, err);
	}
	n = MIN(rest, MAX(m->window_max / size, 1U) * size);
	m->consumed += n;
	return chunk_cursor_load_part(w, &m->source, w->at, n, err);
}

/* Gets an empty window of at most window_max bytes. */
static int cursor_renew_window(struct merge *m, struct chunk_cursor *w, struct error *err)
{
	int r = lent_windows_exchange(&m->lent, &w->window, err);

	if (r == 0 && w->window.cap > m->window_max)
		buf_deinit(&w->window);
	w->used = MIN(w->used, w->window.len);
	return r;
}

/* Returns 1 if the window has a sub-buffer, 0 at the CPU's end. Skips damaged chunks. */
static int cursor_next_window(struct merge *m, struct cursor *c, struct error *err)
{
	struct chunk_cursor *w = &c->chunks;

	for (;;) {
		_cleanup_error_ struct error why = ERROR_INIT;
		int r = cursor_renew_window(m, w, err);

		if (r < 0)
			return r;
		r = chunk_cursor_inside(w) ? 1 : cursor_enter_chunk(m, c, &why);
		if (r == 0)
			return 0;
		if (r > 0)
			r = cursor_fill_window(m, c, &why);
		if (r == 0 && (c->part || chunk_cursor_left(w) >= m->layout->subbuf_size))
			return 1;
		if (r < 0 && r != -EBADMSG)
			return error_move(err, &why);
		/* Damaged, or the last sub-buffer is incomplete. */
		if (r < 0 || chunk_cursor_left(w))
			cursor_note_loss(c, UINT64_MAX, true);
		if (r < 0)
			chunk_cursor_skip(w);
	}
}

/* Starts the page in the window. Returns 0, -EBADMSG if the page is damaged, or another -errno. */
static int cursor_begin_page(struct merge *m, struct cursor *c)
{
	struct chunk_cursor *w = &c->chunks;
	uint32_t size = m->layout->subbuf_size;
	int r;

	if (!c->part) {
		r = page_iter_init(&c->page, m->layout, w->window.data + w->used, size);
		w->used += size;
		return r;
	}
	w->used = w->window.len;
	r = page_iter_init_part(&c->page, m->layout, w->window.data, (uint32_t)w->window.len, size);
	if (r < 0 || !c->page.missed_at)
		return r;
	r = stream_reader_load_part(m->source.reader, &w->chunk, w->from + c->page.missed_at,
				    m->layout->word_size, &m->source.scratch, NULL);
	if (r == 0)
		page_iter_set_missed(&c->page, m->source.scratch.data);
	return r;
}

/* True if another window of this size fits. Only windows above window_max count. */
static bool merge_has_room(const struct merge *m, size_t bytes)
{
	for (size_t i = 0; i < m->cursor_count; i++)
		if (m->cursors[i]->chunks.window.cap > m->window_max)
			bytes += m->cursors[i]->chunks.window.cap;
	return bytes <= MERGE_LONG;
}

/* Loads the next part of the page. */
static int cursor_next_part(struct merge *m, struct cursor *c, struct error *err)
{
	struct chunk_cursor *w = &c->chunks;
	uint32_t at = c->page.pos, left = c->page.end - at + c->page.rest;
	uint32_t bytes = at ? MIN(left, m->window_max) : page_iter_wants(&c->page);
	_cleanup_error_ struct error why = ERROR_INIT;
	int r = cursor_renew_window(m, w, err);

	if (r < 0)
		return r;
	r = bytes <= m->window_max || merge_has_room(m, bytes)
		    ? chunk_cursor_load_part(w, &m->source, w->from + at, bytes, &why)
		    : -EBADMSG;
	if (r < 0 && r != -EBADMSG)
		return error_move(err, &why);
	if (r < 0) {
		cursor_note_loss(c, UINT64_MAX, true);
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
static int cursor_next_page(struct merge *m, struct cursor *c, struct error *err)
{
	struct chunk_cursor *w = &c->chunks;
	uint32_t size = m->layout->subbuf_size;

	for (;;) {
		uint32_t skip;
		int r;

		if (chunk_cursor_left(w) < size) {
			if (chunk_cursor_left(w))
				cursor_note_loss(c, UINT64_MAX, true);
			w->used = w->window.len;
			r = cursor_next_window(m, c, err);
			if (r <= 0)
				return r;
		}
		skip = w->skip;
		w->skip = 0;
		r = cursor_begin_page(m, c);
		if (r < 0 && r != -EBADMSG)
			return error_errno(err, r, "can't read the stream");
		if (r < 0) {
			cursor_note_loss(c, UINT64_MAX, true);
			/*
			 * Forget the page: its window may be replaced before this CPU's next
			 * record.
			 */
			c->page = (struct page_iter){ .layout = m->layout };
			continue;
		}
		/* The loss before this sub-buffer was reported on the first read. */
		if (c->page.missed && !skip)
			cursor_note_loss(c, c->page.missed, false);
		c->seen = skip < size ? m->layout->data_offset + skip : size;
		return 1;
	}
}

/* Decodes the cursor's next record. Returns 1, 0 at the CPU's end, or -errno. */
static int cursor_next_record(struct merge *m, struct cursor *c, struct error *err)
{
	for (;;) {
		int r = page_iter_next(&c->page, &c->next);

		if (likely(r > 0)) {
			if (likely(c->page.start >= c->seen))
				return 1;
			continue;
		}
		if (unlikely(c->page.rest)) {
			r = cursor_next_part(m, c, err);
			if (r < 0)
				return r;
			continue;
		}
		if (r < 0)
			cursor_note_loss(c, UINT64_MAX, true);
		r = cursor_next_page(m, c, err);
		if (r <= 0)
			return r;
	}
}

/* Adds cursors for new CPUs. The ring index is sorted by CPU and never loses one. */
static int merge_add_cursors(struct merge *m, struct error *err)
{
	size_t count = m->ring->count;
	struct player *tree;
	struct cursor **all;

	m->window_max = MIN(MERGE_MEMORY / (uint32_t)MAX(count, (size_t)1), MERGE_WINDOW_MAX);
	m->window_max = MAX(m->window_max, MERGE_WINDOW_LEAST);
	m->source.whole_max = m->window_max;
	m->lent.max =
		(uint64_t)m->window_max * count > MERGE_MEMORY ? MERGE_LENT_LEAST : MERGE_LENT;
	if (count == m->cursor_count)
		return 0;
	tree = reallocarray(m->tree, count, 2 * sizeof(*tree));
	if (tree)
		m->tree = tree;
	if (!tree || vec_reserve_exact(m->cursors, m->cursor_count, count - m->cursor_count) < 0)
		return error_errno(err, -ENOMEM, "can't merge the events");
	all = m->cursors;
	for (size_t i = 0; i < count; i++) {
		struct cursor *c;

		if (i < m->cursor_count && all[i]->cpu == m->ring->cpus[i].cpu &&
		    all[i]->buffer == m->ring->cpus[i].buffer)
			continue;
		c = calloc(1, sizeof(*c));
		if (!c)
			return error_errno(err, -ENOMEM, "can't merge the events");
		c->cpu = m->ring->cpus[i].cpu;
		c->buffer = m->ring->cpus[i].buffer;
		c->gaps = &m->gaps;
		c->page.layout = m->layout;
		memmove(&all[i + 1], &all[i], (m->cursor_count - i) * sizeof(struct cursor *));
		all[i] = c;
		m->cursor_count++;
	}
	return 0;
}

int merge_new(struct merge **ret, const struct page_layout *layout, const struct ring_index *ring,
	      const struct stream_reader *reader, struct error *err)
{
	_cleanup_(merge_freep) struct merge *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return error_errno(err, -ENOMEM, "can't merge the events");
	m->layout = layout;
	m->ring = ring;
	m->source = (struct chunk_source){
		.reader = reader,
		.type = CHUNK_SUBBUFS,
		.head = sizeof(struct subbufs_header),
	};
	m->limit = UINT64_MAX;
	r = merge_add_cursors(m, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(m);
	return 0;
}

struct merge *merge_free(struct merge *m)
{
	if (!m)
		return NULL;
	for (size_t i = 0; i < m->cursor_count; i++) {
		buf_deinit(&m->cursors[i]->chunks.window);
		buf_deinit(&m->cursors[i]->kept);
		free(m->cursors[i]);
	}
	lent_windows_deinit(&m->lent);
	chunk_source_deinit(&m->source);
	free(m->cursors);
	free(m->tree);
	free(m);
	return NULL;
}

void merge_lend(struct merge *m, const struct loan *loan)
{
	m->lent.loan = loan;
}

/* Advances a cursor. *ret_any is false if it has nothing to give out, for now or forever. */
static int cursor_advance(struct merge *m, struct cursor *c, bool *ret_any, struct error *err)
{
	int r = c->ahead ? c->ahead_result : cursor_next_record(m, c, err);

	c->ahead = false;
	if (unlikely(r < 0))
		return r;
	c->have_record = r > 0;
	if (unlikely(!c->have_record))
		c->next.ts = UINT64_MAX;
	/* A loss at the CPU's end has no record: report it after all records. */
	*ret_any = c->have_record || (c->loss && m->limit == UINT64_MAX);
	return 0;
}

static int merge_step(struct merge *m, struct cursor *c, struct error *err)
{
	int r;

	if (likely(!c->ahead))
		c->last_ts = c->next.ts;
	r = cursor_advance(m, c, &c->queued, err);
	if (likely(r == 0))
		merge_replay(m, c);
	return r;
}

int merge_extend(struct merge *m, uint64_t limit, struct error *err)
{
	int r = m->current ? merge_step(m, m->current, err) : 0;

	m->current = m->last = NULL;
	m->limit = limit;
	m->begun = true;
	if (r == 0)
		r = merge_add_cursors(m, err);
	for (size_t i = 0; r == 0 && i < m->cursor_count; i++) {
		struct cursor *c = m->cursors[i];

		if (!c->queued)
			r = cursor_advance(m, c, &c->queued, err);
	}
	merge_play(m);
	return r;
}

static void merge_give_loss(struct merge *m, struct cursor *c, struct merge_item *ret)
{
	*ret = (struct merge_item){
		.event.cpu = c->cpu,
		.before_ts = c->last_ts,
		.after_ts = c->have_record ? c->next.ts : UINT64_MAX,
		.count = c->lost,
		.damaged = c->damaged,
	};
	c->loss = c->damaged = false;
	m->gaps.open--;
	c->queued = c->have_record;
	if (!c->queued)
		merge_replay(m, c);
}

/*
 * Fast path: the next record mostly is in the same page and earlier than all other CPUs' records.
 * Then only the page's iterator moves. Returns false if the tree must decide.
 */
static inline bool merge_next_in_page(struct merge *m, struct merge_item *ret)
{
	struct cursor *c = m->current;
	int r = likely(c && !c->ahead) ? page_iter_next(&c->page, &ret->event.rec) : 0;

	if (unlikely(r <= 0)) {
		if (r < 0)
			cursor_note_loss(c, UINT64_MAX, true);
		return false;
	}
	c->last_ts = c->next.ts;
	if (unlikely(ret->event.rec.ts >= m->rival_ts)) {
		c->next = ret->event.rec;
		m->current = NULL;
		merge_replay(m, c);
		return false;
	}
	c->next.ts = ret->event.rec.ts;
	ret->event.cpu = c->cpu;
	return true;
}

static _noinline_ int merge_next_of_tree(struct merge *m, struct merge_item *ret, struct error *err)
{
	struct cursor *c;
	int r = 0;

	if (m->current)
		r = merge_step(m, m->current, err);
	else if (!m->begun)
		r = merge_extend(m, UINT64_MAX, err);
	m->current = NULL;
	if (unlikely(r < 0))
		return r;
	c = merge_winner(m);
	if (unlikely(!c))
		return MERGE_END;
	if (unlikely(c->chunks.chunk.offset >= m->limit))
		return MERGE_END;
	if (unlikely(c->loss)) {
		merge_give_loss(m, c, ret);
		return MERGE_LOSS;
	}
	m->rival_ts = c == m->last ? merge_find_rival(m) : 0;
	m->current = m->last = c;
	ret->event.cpu = c->cpu;
	ret->event.rec = c->next;
	return MERGE_RECORD;
}

_hot_ int merge_next(struct merge *m, struct merge_item *ret, struct error *err)
{
	return likely(merge_next_in_page(m, ret)) ? MERGE_RECORD : merge_next_of_tree(m, ret, err);
}

int merge_peek(struct merge *m, struct record *rec, struct record *ret, struct error *err)
{
	struct cursor *c = m->current;

	if (likely(!c->ahead && c->page.pos >= c->seen && page_iter_peek(&c->page, ret)))
		return 1;
	/* cursor_next_record() may replace the page's window: keep a copy of the record. */
	buf_clear(&c->kept);
	buf_append(&c->kept, rec->data, rec->len);
	if (buf_error(&c->kept) < 0)
		return error_errno(err, -ENOMEM, "can't merge the events");
	rec->data = (const uint8_t *)c->kept.data;
	if (!c->ahead) {
		c->last_ts = c->next.ts;
		c->ahead_result = cursor_next_record(m, c, err);
		c->ahead = true;
	}
	if (c->ahead_result <= 0 || c->loss)
		return MIN(c->ahead_result, 0);
	*ret = c->next;
	return 1;
}

const struct merge_gaps *merge_gaps(const struct merge *m)
{
	return &m->gaps;
}

uint64_t merge_progress(const struct merge *m)
{
	return m->consumed;
}

/* Records in the window that were not given out are still needed if this process dies. */
static uint64_t cursor_needs(const struct cursor *c, const struct chunk_list *list)
{
	return c->queued ? c->chunks.chunk.offset : chunk_cursor_needs(&c->chunks, list);
}

/* The ring index may have CPUs that have no cursor yet; both are in the same order. */
uint64_t merge_needs(const struct merge *m)
{
	static const struct cursor none;
	uint64_t least = UINT64_MAX;
	size_t at = 0;

	for (size_t i = 0; i < m->ring->count; i++) {
		const struct cpu_chunks *chunks = &m->ring->cpus[i];
		const struct cursor *c = &none;

		if (at < m->cursor_count && m->cursors[at]->cpu == chunks->cpu &&
		    m->cursors[at]->buffer == chunks->buffer)
			c = m->cursors[at++];
		least = MIN(least, cursor_needs(c, &chunks->list));
	}
	return least;
}

void merge_forget(struct merge *m, struct ring_index *ring)
{
	for (size_t i = 0; i < m->cursor_count; i++) {
		const struct cursor *c = m->cursors[i];

		chunk_list_forget(&ring_index_find(ring, c->cpu, c->buffer)->list, c->chunks.next);
	}
}
