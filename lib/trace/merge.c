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
 * 	cursor      0  1  2       its next record (cpu_cursor.h)
 * 	             \ | /
 * 	tree           1          winner: earliest record; at equal times the lowest CPU
 * 	               |
 * 	          merge_next()    a record, a loss, or the end
 *
 * Invariants
 * - A queued cursor has its next record decoded, or only a loss left at its CPU's end (time
 *   UINT64_MAX). A cursor without either loses against all others.
 * - times[] and numbers[] are the tree: of each place, the time and the number of its cursor. Place
 *   1 is the winner, place n the earlier of 2n and 2n + 1. The last half are the cursors, in their
 *   order. A comparison reads no cursor.
 * - Records of one CPU come in the ring's order, even if a clock ran backwards.
 * - A loss comes right before the record after the gap. Damage is a loss of unknown count; the
 *   merge goes on with the next sub-buffer.
 * - m->current is the winner after its record was given out: the cursor is advanced on the next
 *   call, so that the record's data stays valid until then. rival_ts is the earliest time of all
 *   other cursors: while the current page has earlier records, merge_next_in_page() needs no tree.
 *   It is searched for when a cursor wins twice: among many CPUs that is rare.
 * - A followed stream is merged up to m->limit (`ripe` in index.h): a later chunk may hold an older
 *   record. merge_needs() is the offset from which the stream must be kept. A chunk counts as
 *   needed until its last record was given out, not only until it was loaded: if the exporter dies
 *   in between, its events are still in the stream.
 *
 * What was tried
 * - A binary heap of the cursors: which child is earlier decides where the next level's children
 *   lie, and the processor guesses it wrong half the time. A tournament's places are known before.
 * - A tree of times and pointers, and a mask to select both: each level's comparison waited for the
 *   mask of the level below. With numbers, it waits for a minimum alone.
 * - One thread that merges for all: two CPUs were 1.4 to 1.6 times as fast as one, as notes and
 *   records went from cache to cache. Threads now take turns at the merge.
 */
#include "trace/merge.h"

#include <stdlib.h>

#include "trace/cpu_cursor.h"

/* The number of a cursor with nothing to give out: all others win over it. */
#define NOBODY UINT32_MAX

struct merge {
	struct cpu_cursors cpus;
	uint64_t limit;	 /* stop at chunks from this offset on */
	uint64_t *times; /* owned, with numbers; two for each cursor */
	uint32_t *numbers;
	struct cpu_cursor *current; /* the CPU of the last record given out, until it is advanced */
	struct cpu_cursor *last;    /* the same, until another one gives out a record */
	uint64_t rival_ts; /* earliest time of the other cursors; UINT64_MAX: none; 0: unknown */
	bool begun;
};

/* Climbs the tree from a place where times are equal: the lower CPU wins. Such times are rare. */
static _noinline_ void merge_climb_tie(struct merge *m, size_t at)
{
	for (; at > 1; at /= 2) {
		const size_t rival = at ^ 1;
		const bool later =
			m->times[rival] < m->times[at] ||
			(m->times[rival] == m->times[at] && m->numbers[rival] < m->numbers[at]);
		const size_t winner = later ? rival : at;

		m->times[at / 2] = m->times[winner];
		m->numbers[at / 2] = m->numbers[winner];
	}
}

/* Call after a cursor's next record changed. */
static inline void merge_replay(struct merge *m, struct cpu_cursor *c)
{
	const size_t count = m->cpus.count;
	size_t at = count + c->number;
	uint64_t *times = m->times, ts = c->next.ts;
	uint32_t *numbers = m->numbers, number = c->queued ? c->number : NOBODY;

	/* The processor foresees few streams; many CPUs' records come before this one's next. */
	if (count > 2)
		__builtin_prefetch((const void *)((uintptr_t)c->page.page + c->page.pos + 64));
	times[at] = ts;
	numbers[at] = number;
	while (at > 1) {
		const uint64_t rival = times[at ^ 1];
		const uint32_t other = numbers[at ^ 1];

		if (unlikely(rival == ts)) {
			merge_climb_tie(m, at);
			return;
		}
		at /= 2;
		/* Without branches: the outcome is unpredictable. */
		number ^= (number ^ other) & (0U - (rival < ts));
		ts = MIN(rival, ts);
		times[at] = ts;
		numbers[at] = number;
	}
}

static void merge_play(struct merge *m)
{
	for (size_t i = 0; i < 2 * m->cpus.count; i++) {
		m->times[i] = UINT64_MAX;
		m->numbers[i] = NOBODY;
	}
	for (size_t i = 0; i < m->cpus.count; i++) {
		m->cpus.all[i]->number = (uint32_t)i;
		merge_replay(m, m->cpus.all[i]);
	}
}

/* NULL: no cursor has anything to give out. */
static struct cpu_cursor *merge_winner(const struct merge *m)
{
	return m->cpus.count && m->numbers[1] != NOBODY ? m->cpus.all[m->numbers[1]] : NULL;
}

/* The earliest time of all cursors but the winner: it lost against the winner. */
static uint64_t merge_find_rival(const struct merge *m)
{
	uint64_t ts = UINT64_MAX;

	for (size_t at = m->cpus.count + m->numbers[1]; at > 1; at /= 2)
		ts = MIN(ts, m->times[at ^ 1]);
	return ts;
}

/* Adds cursors for new CPUs. */
static int merge_add_cursors(struct merge *m, struct error *err)
{
	size_t count = m->cpus.ring->count;
	uint64_t *times;

	if (count > m->cpus.count) {
		times = reallocarray(m->times, count, 2 * (sizeof(*times) + sizeof(*m->numbers)));
		if (!times)
			return error_errno(err, -ENOMEM, "can't merge the events");
		m->times = times;
		m->numbers = (uint32_t *)(times + 2 * count);
	}
	return cpu_cursors_extend(&m->cpus, err);
}

int merge_new(struct merge **ret, const struct page_layout *layout, const struct ring_index *ring,
	      const struct stream_reader *reader, struct error *err)
{
	_cleanup_(merge_freep) struct merge *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return error_errno(err, -ENOMEM, "can't merge the events");
	cpu_cursors_init(&m->cpus, layout, ring, reader);
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
	cpu_cursors_deinit(&m->cpus);
	free(m->times);
	free(m);
	return NULL;
}

void merge_lend(struct merge *m, const struct loan *loan)
{
	m->cpus.lent.loan = loan;
}

/* Advances a cursor. *ret_any is false if it has nothing to give out, for now or forever. */
static int merge_advance(struct merge *m, struct cpu_cursor *c, bool *ret_any, struct error *err)
{
	int r = c->ahead ? c->ahead_result : cpu_cursor_next_record(&m->cpus, c, err);

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

static int merge_step(struct merge *m, struct cpu_cursor *c, struct error *err)
{
	int r;

	if (likely(!c->ahead))
		c->last_ts = c->next.ts;
	r = merge_advance(m, c, &c->queued, err);
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
	for (size_t i = 0; r == 0 && i < m->cpus.count; i++) {
		struct cpu_cursor *c = m->cpus.all[i];

		if (!c->queued)
			r = merge_advance(m, c, &c->queued, err);
	}
	merge_play(m);
	return r;
}

static void merge_give_loss(struct merge *m, struct cpu_cursor *c, struct merge_item *ret)
{
	*ret = (struct merge_item){
		.event.cpu = c->cpu,
		.before_ts = c->last_ts,
		.after_ts = c->have_record ? c->next.ts : UINT64_MAX,
		.count = c->lost,
		.damaged = c->damaged,
	};
	c->loss = c->damaged = false;
	m->cpus.gaps.open--;
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
	struct cpu_cursor *c = m->current;
	/* In registers: copies of what was just stored would wait for it. */
	struct record next, any;
	int r;

	if (unlikely(!c || c->ahead))
		return false;
	if (likely(page_iter_peek(&c->page, &next))) {
		page_iter_pass(&c->page, &next);
	} else {
		r = page_iter_next_any(&c->page, &any);
		if (r < 0)
			cpu_cursor_note_loss(c, UINT64_MAX, true);
		if (r <= 0)
			return false;
		next = any;
	}
	c->last_ts = c->next.ts;
	if (unlikely(next.ts >= m->rival_ts)) {
		c->next = next;
		m->current = NULL;
		merge_replay(m, c);
		return false;
	}
	c->next.ts = next.ts;
	ret->event.rec = next;
	ret->event.cpu = c->cpu;
	return true;
}

static _noinline_ int merge_next_of_tree(struct merge *m, struct merge_item *ret, struct error *err)
{
	struct cpu_cursor *c;
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
	/* The first condition saves a cache line. */
	if (unlikely(m->limit != UINT64_MAX && c->chunks.chunk.offset >= m->limit))
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
	struct cpu_cursor *c = m->current;

	if (likely(!c->ahead && c->page.pos >= c->seen && page_iter_peek(&c->page, ret)))
		return 1;
	/* cpu_cursor_next_record() may replace the page's window: keep a copy of the record. */
	buf_clear(&c->kept);
	buf_append(&c->kept, rec->data, rec->len);
	if (buf_error(&c->kept) < 0)
		return error_errno(err, -ENOMEM, "can't merge the events");
	rec->data = (const uint8_t *)c->kept.data;
	if (!c->ahead) {
		c->last_ts = c->next.ts;
		c->ahead_result = cpu_cursor_next_record(&m->cpus, c, err);
		c->ahead = true;
	}
	if (c->ahead_result <= 0 || c->loss)
		return MIN(c->ahead_result, 0);
	*ret = c->next;
	return 1;
}

const struct merge_gaps *merge_gaps(const struct merge *m)
{
	return &m->cpus.gaps;
}

uint64_t merge_progress(const struct merge *m)
{
	return m->cpus.consumed;
}

/* The ring index may have CPUs that have no cursor yet; both are in the same order. */
uint64_t merge_needs(const struct merge *m)
{
	static const struct cpu_cursor none;
	uint64_t least = UINT64_MAX;
	size_t at = 0;

	for (size_t i = 0; i < m->cpus.ring->count; i++) {
		const struct cpu_chunks *chunks = &m->cpus.ring->cpus[i];
		const struct cpu_cursor *c = &none;

		if (at < m->cpus.count && m->cpus.all[at]->cpu == chunks->cpu &&
		    m->cpus.all[at]->buffer == chunks->buffer)
			c = m->cpus.all[at++];
		least = MIN(least, cpu_cursor_needs(c, &chunks->list));
	}
	return least;
}

void merge_forget(struct merge *m, struct ring_index *ring)
{
	for (size_t i = 0; i < m->cpus.count; i++) {
		const struct cpu_cursor *c = m->cpus.all[i];

		chunk_list_forget(&ring_index_find(ring, c->cpu, c->buffer)->list, c->chunks.next);
	}
}
