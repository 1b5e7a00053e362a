/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/sort.h"

#include "base/heap.h"
#include "base/io.h"
#include "base/vec.h"

#define RUN_WINDOW (64U << 10)

struct packed {
	uint32_t size; /* of the whole record */
	uint8_t phase, id_kind, has;
	char instant;
	uint32_t source;
	int32_t pid, tid;
	char was, pad[3];
	uint64_t ts, dur, tts, tdur, ticount, tidelta;
	uint32_t len[PART_PARTS];
	uint32_t pad2;
};

struct key {
	uint64_t ts, longest, seq; /* longest: descending duration as a sort key */
	uint8_t class, complete;
	uint32_t offset; /* in the run's memory */
};

struct run {
	uint64_t at, end; /* range in the scratch file after the window */
	struct buf window;
	size_t used; /* bytes of the window consumed */
	struct mark mark;
	struct key key;
};

struct mark_sort {
	struct scratch *scratch;
	size_t memory;
	struct buf packed; /* the run being built */
	struct key *keys;  /* of it; owned */
	size_t count, cap;
	uint64_t seq;
	bool spilled;
	size_t next;	  /* next entry of keys, where nothing was spilled */
	struct run *runs; /* owned */
	size_t run_count;
	struct run **heap; /* owned */
	size_t heap_count;
};

unsigned mark_class(uint8_t phase)
{
	switch (phase) {
	case PHASE_FRAME:
		return 0;
	case PHASE_METADATA:
		return 1;
	case PHASE_GLOBAL_SAMPLE:
		return 3;
	default:
		return 2;
	}
}

/* -E2BIG: longer than MARK_PACKED_MAX. */
static int mark_pack(const struct mark *m, struct buf *out)
{
	struct packed p = {
		.phase = m->phase,
		.id_kind = m->id_kind,
		.has = m->has,
		.instant = m->instant,
		.was = m->was,
		.source = m->source,
		.pid = m->pid,
		.tid = m->tid,
		.ts = m->ts,
		.dur = m->dur,
		.tts = m->tts,
		.tdur = m->tdur,
		.ticount = m->ticount,
		.tidelta = m->tidelta,
	};
	size_t size = sizeof(p);

	for (int i = 0; i < PART_PARTS; i++) {
		p.len[i] = m->part[i].len;
		size += p.len[i];
	}
	if (size > MARK_PACKED_MAX)
		return -E2BIG;
	p.size = (uint32_t)size;
	buf_append(out, &p, sizeof(p));
	for (int i = 0; i < PART_PARTS; i++)
		buf_append(out, m->part[i].data, m->part[i].len);
	return buf_error(out);
}

/* -EBADMSG: the bytes are damaged. */
static int mark_unpack(struct mark *ret, const char *data, size_t len)
{
	const char *text = data + sizeof(struct packed);
	struct packed p;

	if (len < sizeof(p))
		return -EBADMSG;
	memcpy(&p, data, sizeof(p));
	if (p.size > len)
		return -EBADMSG;
	len = p.size - sizeof(p);
	*ret = (struct mark){
		.phase = p.phase,
		.id_kind = p.id_kind,
		.has = p.has,
		.instant = p.instant,
		.was = p.was,
		.source = p.source,
		.pid = p.pid,
		.tid = p.tid,
		.ts = p.ts,
		.dur = p.dur,
		.tts = p.tts,
		.tdur = p.tdur,
		.ticount = p.ticount,
		.tidelta = p.tidelta,
	};
	for (int i = 0; i < PART_PARTS; i++) {
		if (p.len[i] > len)
			return -EBADMSG;
		ret->part[i] = (struct text){ text, p.len[i] };
		text += p.len[i];
		len -= p.len[i];
	}
	return 0;
}

int mark_sort_new(struct mark_sort **ret, struct scratch *scratch, size_t memory)
{
	struct mark_sort *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->scratch = scratch;
	s->memory = memory ?: MARK_SORT_MEMORY;
	*ret = s;
	return 0;
}

struct mark_sort *mark_sort_free(struct mark_sort *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < s->run_count; i++)
		buf_deinit(&s->runs[i].window);
	free(s->runs);
	free(s->heap);
	free(s->keys);
	buf_deinit(&s->packed);
	free(s);
	return NULL;
}

static struct key sort_key(const struct mark *m, uint64_t seq)
{
	bool complete = m->phase == PHASE_COMPLETE;

	return (struct key){
		.ts = m->ts,
		.longest = complete ? UINT64_MAX - m->dur : 0,
		.seq = seq,
		.class = (uint8_t)mark_class(m->phase),
		.complete = complete,
	};
}

static int sort_compare(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	if (x->complete != y->complete)
		return x->complete < y->complete ? -1 : 1;
	if (x->longest != y->longest)
		return x->longest < y->longest ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static int sort_write_run(struct mark_sort *s, struct buf *out)
{
	size_t done = 0;

	while (done < out->len) {
		ssize_t n = pwrite(s->scratch->fd, out->data + done, out->len - done,
				   (off_t)s->scratch->end);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			done += (size_t)n;
			s->scratch->end += (size_t)n;
		}
	}
	buf_clear(out);
	return 0;
}

/* Writes sequence numbers too: they break ties between runs. */
static int sort_put(struct mark_sort *s, struct buf *out)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->count; i++) {
		const char *p = s->packed.data + s->keys[i].offset;
		uint32_t size;

		memcpy(&size, p, sizeof(size));
		buf_append(out, &s->keys[i].seq, sizeof(s->keys[i].seq));
		buf_append(out, p, size);
		r = buf_error(out);
		if (r == 0 && out->len >= RUN_WINDOW)
			r = sort_write_run(s, out);
	}
	return r ?: sort_write_run(s, out);
}

static int sort_spill(struct mark_sort *s, struct error *err)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	uint64_t start = s->scratch->end;
	int r;

	if (s->scratch->fd < 0 || s->run_count == MARK_SORT_RUNS_MAX)
		return error_set(err, -EFBIG, "too many marks to sort");
	if (vec_reserve_exact(s->runs, s->run_count, 1) < 0)
		return error_errno(err, -ENOMEM, "can't sort the marks");
	qsort(s->keys, s->count, sizeof(*s->keys), sort_compare);
	r = sort_put(s, &out);
	if (r < 0)
		return error_errno(err, r, "can't write marks to the temporary file");
	s->runs[s->run_count++] = (struct run){ .at = start, .end = s->scratch->end };
	s->count = 0;
	buf_clear(&s->packed);
	s->spilled = true;
	return 0;
}

int mark_sort_add(struct mark_sort *s, const struct mark *mark, struct error *err)
{
	size_t at = s->packed.len;
	int r;

	if (vec_reserve(s->keys, s->count, s->cap, 1) < 0)
		return error_errno(err, -ENOMEM, "can't sort the marks");
	r = mark_pack(mark, &s->packed);
	if (r == -E2BIG)
		return error_set(err, r, "a mark longer than %u MiB", MARK_PACKED_MAX >> 20);
	if (r < 0)
		return error_errno(err, r, "can't sort the marks");
	s->keys[s->count] = sort_key(mark, s->seq++);
	s->keys[s->count++].offset = (uint32_t)at;
	if (s->packed.len + s->count * sizeof(*s->keys) < s->memory)
		return 0;
	return sort_spill(s, err);
}

/* Reads the run's next mark through its window. 1; 0 at its end; or -errno. */
static int run_read(struct mark_sort *s, struct run *run)
{
	uint64_t seq;
	size_t have;
	int r;

	for (;;) {
		uint32_t size = 0;
		size_t want;
		ssize_t n;
		char *p;

		have = run->window.len - run->used;
		if (have >= sizeof(seq) + sizeof(size))
			memcpy(&size, run->window.data + run->used + sizeof(seq), sizeof(size));
		if (size > MARK_PACKED_MAX)
			return -EBADMSG;
		if (size && have >= sizeof(seq) + size)
			break;
		if (run->at == run->end)
			return have ? -EBADMSG : 0;
		if (have)
			memmove(run->window.data, run->window.data + run->used, have);
		run->window.len = have;
		run->used = 0;
		want = (size_t)MIN(run->end - run->at,
				   (uint64_t)MAX((size_t)RUN_WINDOW, sizeof(seq) + size));
		p = buf_reserve(&run->window, want);
		if (!p)
			return -ENOMEM;
		n = pread_full(s->scratch->fd, p, want, (off_t)run->at);
		if (n < 0 || (size_t)n < want)
			return n < 0 ? (int)n : -EBADMSG;
		run->window.len += want;
		run->at += want;
	}
	memcpy(&seq, run->window.data + run->used, sizeof(seq));
	run->used += sizeof(seq);
	r = mark_unpack(&run->mark, run->window.data + run->used, have - sizeof(seq));
	if (r < 0)
		return r;
	run->key = sort_key(&run->mark, seq);
	return 1;
}

static size_t mark_packed_size(const struct mark *m)
{
	size_t size = sizeof(struct packed);

	for (int i = 0; i < PART_PARTS; i++)
		size += m->part[i].len;
	return size;
}

DEFINE_HEAP(run_heap, struct run *, sort_compare(&a->key, &b->key) < 0);

int mark_sort_finish(struct mark_sort *s, struct error *err)
{
	int r;

	if (!s->spilled) {
		if (s->count)
			qsort(s->keys, s->count, sizeof(*s->keys), sort_compare);
		return 0;
	}
	r = s->count ? sort_spill(s, err) : 0;
	if (r < 0)
		return r;
	buf_deinit(&s->packed);
	s->heap = calloc(s->run_count, sizeof(*s->heap));
	if (!s->heap)
		return error_errno(err, -ENOMEM, "can't sort the marks");
	for (size_t i = 0; i < s->run_count; i++) {
		r = run_read(s, &s->runs[i]);
		if (r < 0)
			return error_errno(err, r, "can't read marks from the temporary file");
		if (r > 0)
			s->heap[s->heap_count++] = &s->runs[i];
	}
	run_heap_build(s->heap, s->heap_count);
	s->next = 0;
	return 0;
}

int mark_sort_next(struct mark_sort *s, struct mark *ret, struct error *err)
{
	struct run *run;
	int r;

	if (!s->spilled) {
		if (s->next == s->count)
			return 0;
		r = mark_unpack(ret, s->packed.data + s->keys[s->next].offset,
				s->packed.len - s->keys[s->next].offset);
		s->next++;
		return r < 0 ? r : 1;
	}
	/* The mark returned last still lies in its run's window: advance only now. */
	if (!s->heap_count)
		return 0;
	if (s->next++) {
		run = s->heap[0];
		run->used += mark_packed_size(&run->mark);
		r = run_read(s, run);
		if (r < 0)
			return error_errno(err, r, "can't read marks from the temporary file");
		if (r == 0)
			run_heap_pop(s->heap, &s->heap_count);
		else
			run_heap_sift_down(s->heap, s->heap_count, 0);
	}
	if (!s->heap_count)
		return 0;
	*ret = s->heap[0]->mark;
	return 1;
}

int mark_sort_again(struct mark_sort **sort, struct scratch *scratch,
		    void (*change)(struct mark *mark, void *userdata), void *userdata,
		    struct error *err)
{
	_cleanup_(mark_sort_freep) struct mark_sort *other = NULL;
	struct mark mark;
	int r = mark_sort_new(&other, scratch, (*sort)->memory);

	if (r < 0)
		return error_errno(err, r, "can't sort marks");
	while ((r = mark_sort_next(*sort, &mark, err)) > 0) {
		change(&mark, userdata);
		r = mark_sort_add(other, &mark, err);
		if (r < 0)
			return r;
	}
	if (r == 0)
		r = mark_sort_finish(other, err);
	if (r < 0)
		return r;
	mark_sort_free(*sort);
	*sort = TAKE_PTR(other);
	return 0;
}
