/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/rings.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/heap.h"
#include "base/vec.h"
#include "marks/clock_map.h"
#include "trace/chunk_cursor.h"
#include "trace/index.h"
#include "traced/mark_record.h"

#define PART (64U << 10) /* bytes of a chunk in a window, if its records are not longer */
#define CLOCKS_MAX 16
#define UNKNOWN_TID (UINT32_C(1) << 30) /* the kernel's tids stay below 2^22 */

struct ring_cursor {
	struct mark_ring *ring;
	uint64_t order; /* time of its next mark, or of its first record */
	bool have_mark;
	struct chunk_cursor chunks;
	struct mark_decode decode;
	const struct clock_map *map;
	struct mark mark;
	bool waits; /* no data at present: not in the heap */
};

struct clock {
	clockid_t id;
	struct clock_map map;
	bool tied;
};

struct mark_rings {
	const struct trace_info *info;
	struct chunk_source source;
	struct mark_ring_list *list;
	uint64_t latest;    /* see mark_rings_set_latest */
	uint64_t limit;	    /* offset limit: later chunks are held back */
	size_t clocks_seen; /* clock readings of info already used */
	struct mark_decode_shared shared;
	struct clock clocks[CLOCKS_MAX];
	size_t clock_count;
	struct ring_cursor **cursors; /* owned, each of them */
	size_t cursor_count, cap;
	struct ring_cursor **heap; /* owned; room for all */
	size_t heap_count, heap_cap;
	bool given; /* heap[0]'s mark */
	struct mark_rings_sum sum;
};

static int rings_tie_clock(struct mark_rings *m, struct clock *c)
{
	int r;

	clock_map_deinit(&c->map);
	r = clock_map_of_recorded(&c->map, m->info, c->id);
	c->tied = r == 0;
	if (!c->tied)
		c->map.identity = true;
	return r == -ENOMEM ? r : 0;
}

static const struct clock *rings_find_clock(struct mark_rings *m, clockid_t id)
{
	struct clock *c;

	for (size_t i = 0; i < m->clock_count; i++)
		if (m->clocks[i].id == id)
			return &m->clocks[i];
	if (m->clock_count == CLOCKS_MAX)
		return NULL;
	c = &m->clocks[m->clock_count];
	*c = (struct clock){ .id = id };
	if (rings_tie_clock(m, c) < 0)
		return NULL;
	m->clock_count++;
	return c;
}

static const struct clock_map no_map = { .identity = true };

static uint64_t ring_to_trace(const struct ring_cursor *c, uint64_t ts)
{
	uint64_t bound;

	return clock_map_apply(c->map, ts, &bound);
}

DEFINE_HEAP(cursor_heap, struct ring_cursor *, a->order < b->order);

/* Time of the ring's first record: when to open the ring. Not validated yet. */
static uint64_t ring_first_order(struct mark_rings *m, const struct ring_cursor *c)
{
	const struct chunk_ref *first = chunk_list_get(&c->ring->chunks, c->chunks.next);
	struct chunk chunk = { .type = CHUNK_MARKS };
	const uint32_t size = sizeof(struct mark_record), from = sizeof(struct marks_header);
	struct buf *record = &m->source.scratch;

	if (!first || first->length < from + size)
		return 0;
	chunk.offset = first->offset;
	chunk.length = first->length;
	if (stream_reader_load_part(m->source.reader, &chunk, from, size, record, NULL) < 0)
		return 0;
	return ring_to_trace(c, mark_record_time(&c->decode, (uint8_t *)record->data));
}

static void rings_init_cursor(struct mark_rings *m, struct ring_cursor *c, struct mark_ring *ring)
{
	const Traced__Capture__Producer *p = ring->producer;
	const struct clock *clock = rings_find_clock(m, (clockid_t)p->clock);

	c->ring = ring;
	c->chunks.next = ring->chunks.forgotten;
	c->map = clock ? &clock->map : &no_map;
	m->sum.untied += !clock || !clock->tied;
	mark_decode_init(&c->decode, &m->shared, m->info->header->big_endian);
	c->decode.generation = p->generation;
	c->decode.pid = p->pid;
	c->decode.labels.owner = (struct share_owner){ p->uid, p->pid };
	/* An unknown thread gets a tid that no thread of its process has. */
	c->decode.tid = p->tid ?: (int32_t)(UNKNOWN_TID + p->ring % UNKNOWN_TID);
	c->order = ring_first_order(m, c);
	c->waits = true;
}

/* Adds a cursor for each new ring. */
static int rings_add_cursors(struct mark_rings *m)
{
	size_t count = m->list->count;

	if (vec_reserve(m->cursors, m->cursor_count, m->cap, count - m->cursor_count) < 0 ||
	    vec_reserve(m->heap, m->heap_count, m->heap_cap, count - m->heap_count) < 0)
		return -ENOMEM;
	for (size_t i = m->cursor_count; i < count; i++) {
		struct ring_cursor *c;

		c = calloc(1, sizeof(*c));
		if (!c)
			return -ENOMEM;
		rings_init_cursor(m, c, m->list->rings[i]);
		m->list->rings[i]->read = true;
		m->cursors[m->cursor_count++] = c;
	}
	m->sum.rings = m->cursor_count;
	return 0;
}

/* True if the cursor has a chunk below the limit. */
static bool ring_has_more(const struct mark_rings *m, const struct ring_cursor *c)
{
	const struct chunk_ref *next = chunk_list_get(&c->ring->chunks, c->chunks.next);

	return next && next->offset < m->limit;
}

int mark_rings_extend(struct mark_rings *m, uint64_t limit)
{
	int r = 0;

	m->limit = limit;
	if (m->clocks_seen != m->info->clock_count)
		for (size_t i = 0; r == 0 && i < m->clock_count; i++)
			r = rings_tie_clock(m, &m->clocks[i]);
	m->clocks_seen = m->info->clock_count;
	if (r == 0)
		r = rings_add_cursors(m);
	for (size_t i = 0; r == 0 && i < m->cursor_count; i++) {
		struct ring_cursor *c = m->cursors[i];

		if (!c->waits || !ring_has_more(m, c))
			continue;
		c->waits = false;
		m->heap[m->heap_count++] = c;
	}
	cursor_heap_build(m->heap, m->heap_count);
	return r;
}

void mark_rings_set_latest(struct mark_rings *m, uint64_t latest)
{
	m->latest = latest;
}

uint64_t mark_rings_needs(const struct mark_rings *m)
{
	uint64_t needs = UINT64_MAX;

	for (size_t i = 0; i < m->list->count; i++) {
		const struct mark_ring *ring = m->list->rings[i];

		if (!ring->read && ring->chunks.count)
			needs = MIN(needs, ring->chunks.refs[0].offset);
	}
	for (size_t i = 0; i < m->cursor_count; i++) {
		const struct ring_cursor *c = m->cursors[i];

		needs = MIN(needs, chunk_cursor_needs(&c->chunks, &c->ring->chunks));
	}
	return needs;
}

int mark_rings_new(struct mark_rings **ret, struct mark_ring_list *list,
		   const struct trace_info *info, const struct stream_reader *reader,
		   uint64_t limit)
{
	_cleanup_(mark_rings_freep) struct mark_rings *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->info = info;
	m->source = (struct chunk_source){
		.reader = reader,
		.type = CHUNK_MARKS,
		.head = sizeof(struct marks_header),
		.held_max = MARK_RINGS_MEMORY,
	};
	m->list = list;
	m->shared = MARK_DECODE_SHARED_INIT;
	m->latest = UINT64_MAX;
	m->clocks_seen = info->clock_count;
	r = mark_rings_extend(m, limit);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(m);
	return 0;
}

/* The ring has no more data, for now or for good: free its window. */
static void ring_leave_heap(struct mark_rings *m, struct ring_cursor *c)
{
	c->waits = true;
	chunk_cursor_release(&c->chunks, &m->source);
	chunk_list_forget(&c->ring->chunks, c->chunks.next);
	if (m->limit == UINT64_MAX)
		mark_decode_deinit(&c->decode);
}

struct mark_rings *mark_rings_free(struct mark_rings *m)
{
	if (!m)
		return NULL;
	for (size_t i = 0; i < m->cursor_count; i++) {
		chunk_cursor_release(&m->cursors[i]->chunks, &m->source);
		mark_decode_deinit(&m->cursors[i]->decode);
		free(m->cursors[i]);
	}
	for (size_t i = 0; i < m->clock_count; i++)
		clock_map_deinit(&m->clocks[i].map);
	mark_decode_shared_deinit(&m->shared);
	chunk_source_deinit(&m->source);
	free(m->cursors);
	free(m->heap);
	free(m);
	return NULL;
}

/* Skips the rest of the chunk. */
static void ring_leave_chunk(struct ring_cursor *c, uint64_t *count)
{
	++*count;
	chunk_cursor_skip(&c->chunks);
}

/* Loads more of the chunk, after the bytes left in the window. */
static int ring_fill(struct mark_rings *m, struct chunk_cursor *w)
{
	uint32_t rest = (uint32_t)chunk_cursor_left(w), from = w->at - rest;
	uint32_t n = MIN(w->chunk.length - from, MAX(PART, 2 * rest));
	int r = chunk_cursor_reserve(w, &m->source, n);

	return r ?: chunk_cursor_load_part(w, &m->source, from, n, NULL);
}

static const uint8_t *ring_record(const struct ring_cursor *c)
{
	return (const uint8_t *)c->chunks.window.data + c->chunks.used;
}

/* Finds the next whole record. Returns its size; 0: end of the ring; -ENOMEM. */
static int64_t ring_next_record(struct mark_rings *m, struct ring_cursor *c)
{
	for (;;) {
		size_t left = chunk_cursor_left(&c->chunks), size = 0;
		int r;

		if (left)
			size = mark_record_size(&c->decode, ring_record(c), left);
		if (size)
			return (int64_t)size;
		if (chunk_cursor_inside(&c->chunks)) {
			r = ring_fill(m, &c->chunks);
			if (r == -ENOMEM)
				return r;
			if (r < 0)
				ring_leave_chunk(c, &m->sum.damaged);
			continue;
		}
		/* An invalid record ends its chunk. */
		if (left)
			ring_leave_chunk(c, &m->sum.garbled);
		r = chunk_cursor_enter(&c->chunks, &m->source, &c->ring->chunks, m->limit, NULL);
		if (r == 0 || r == -ENOMEM)
			return r;
		if (r < 0)
			ring_leave_chunk(c, &m->sum.damaged);
	}
}

static uint64_t ring_mark_end(const struct ring_cursor *c)
{
	const struct mark *mark = &c->mark;

	if (mark->phase == PHASE_METADATA)
		return 0;
	return ring_to_trace(c,
			     mark->ts > UINT64_MAX - mark->dur ? UINT64_MAX : mark->ts + mark->dur);
}

/* Decodes the cursor's next mark. 1; 0: end; -ENOMEM. */
static int ring_advance(struct mark_rings *m, struct ring_cursor *c)
{
	for (;;) {
		int64_t size = ring_next_record(m, c);
		const uint8_t *p = ring_record(c);
		int r;

		if (size <= 0)
			return (int)size;
		r = mark_decode(&c->decode, p, (size_t)size, &c->mark);
		if (r == -ENOMEM)
			return r;
		if (r < 0) {
			ring_leave_chunk(c, &m->sum.garbled);
			continue;
		}
		/* Keep the order monotonic even if a program's times run backwards. */
		c->order = MAX(c->order, ring_to_trace(c, mark_record_time(&c->decode, p)));
		if (r != DECODED_FRAME)
			c->chunks.used += (size_t)size;
		/* A far-future time from one program would stretch the whole trace. */
		if (r == DECODED_MARK && ring_mark_end(c) > m->latest) {
			m->sum.impossible++;
			continue;
		}
		if (r != DECODED_NOTHING)
			return 1;
	}
}

/* Converts the times to the trace clock. */
static void ring_convert_times(struct mark_rings *m, const struct ring_cursor *c, struct mark *ret)
{
	uint64_t end, bound;

	*ret = c->mark;
	if (ret->phase == PHASE_FRAME || ret->phase == PHASE_METADATA) {
		ret->ts = 0;
		return;
	}
	end = ret->ts > UINT64_MAX - ret->dur ? UINT64_MAX : ret->ts + ret->dur;
	ret->ts = clock_map_apply(c->map, ret->ts, &bound);
	m->sum.bound = MAX(m->sum.bound, bound);
	if (ret->has & HAS_DUR)
		ret->dur = MAX(ring_to_trace(c, end), ret->ts) - ret->ts;
}

int mark_rings_next(struct mark_rings *m, struct mark *ret, uint64_t *ret_order, struct error *err)
{
	while (m->heap_count) {
		struct ring_cursor *c = m->heap[0];
		int r;

		if (c->have_mark && !m->given) {
			m->given = true;
			ring_convert_times(m, c, ret);
			*ret_order = c->order;
			return 1;
		}
		m->given = false;
		r = ring_advance(m, c);
		if (r < 0)
			return error_errno(err, r, "can't read the marks");
		c->have_mark = r > 0;
		if (r == 0) {
			ring_leave_heap(m, c);
			cursor_heap_pop(m->heap, &m->heap_count);
		} else {
			cursor_heap_sift_down(m->heap, m->heap_count, 0);
		}
	}
	return 0;
}

/*
 * Marks lost during the recording. A ring that has no record of the recording's begin lost none.
 * The program owns the counts, so they can be anything.
 */
static uint64_t ring_lost(const struct mark_rings *m, const struct ring_cursor *c, bool *impossible)
{
	uint64_t most = marks_possible(ring_to_trace(c, c->decode.begun_time), m->latest);
	uint64_t lost = c->ring->dropped;

	if (!c->decode.begun)
		return 0;
	lost = MAX(lost - MIN(lost, c->decode.dropped_before), c->decode.lost_reported);
	*impossible = c->decode.lost_impossibly || lost > most;
	return MIN(lost, most);
}

int mark_rings_warn(const struct mark_rings *m, struct stream_index *index)
{
	int r = shares_warn(&m->list->shares, "threads' marks", NULL, index);

	index->marks_lost |= m->list->shares.refused > 0;
	if (r == 0)
		r = shares_warn(&m->shared.labels, "names of marks", NULL, index);
	return r ?: shares_warn(&m->shared.stacks, "stack frames", NULL, index);
}

void mark_rings_sum(const struct mark_rings *m, struct mark_rings_sum *ret)
{
	*ret = m->sum;
	ret->labels_refused = m->shared.labels_refused;
	ret->unknown = m->shared.unknown_phases;
	for (size_t i = 0; i < m->cursor_count; i++) {
		bool impossible = false;

		ret->lost += ring_lost(m, m->cursors[i], &impossible);
		ret->overstated += impossible;
	}
}
