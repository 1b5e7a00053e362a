/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/marks.h"

#include <errno.h>

#include "formats/perfetto/annotation.h"
#include "formats/perfetto/numbers.h"
#include "formats/perfetto/track_event.h"

enum { LEXICOGRAPHIC = 1 }; /* TrackDescriptor.ChildTracksOrdering */

void pf_marks_init(struct pf_marks *m, enum pf_clock clock, struct task_table *tasks)
{
	*m = (struct pf_marks){
		.clock = clock,
		.tasks = tasks,
		.tracks.clock = clock,
		.categories.field = INTERNED_CATEGORIES,
		.names.field = INTERNED_NAMES,
		.keys.field = INTERNED_KEYS,
	};
	pf_perf_init(&m->perf);
}

void pf_marks_deinit(struct pf_marks *m)
{
	pf_tracks_deinit(&m->tracks);
	stack_frames_deinit(&m->frames);
	pf_perf_deinit(&m->perf);
	pf_interner_deinit(&m->categories);
	pf_interner_deinit(&m->names);
	pf_interner_deinit(&m->keys);
	buf_deinit(&m->event);
	buf_deinit(&m->fresh);
}

void pf_marks_restart(struct pf_marks *m)
{
	pf_tracks_restart(&m->tracks);
	stack_frames_restart(&m->frames);
	pf_perf_restart(&m->perf);
	pf_interner_deinit(&m->categories);
	pf_interner_deinit(&m->names);
	pf_interner_deinit(&m->keys);
}

/*
 * Writes the thread's CPU time and instruction count at a slice's begin and end as counters, on
 * tracks that readers know.
 */
static int pf_mark_describe_counts(struct pf_marks *m, const struct mark *mark, uint64_t thread,
				   struct buf *out)
{
	static const struct {
		enum mark_has has;
		int kind;
		const char *name;
	} counts[] = {
		{ HAS_TTS, PF_TRACK_THREAD_TIME, "thread time" },
		{ HAS_TICOUNT, PF_TRACK_INSTRUCTIONS, "thread instructions" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		const struct pf_track_form form = {
			.parent = thread,
			.kind = counts[i].kind,
			.name = { counts[i].name, (uint32_t)strlen(counts[i].name) },
		};
		struct pf_track *track;
		int r;

		if (!(mark->has & counts[i].has))
			continue;
		track = pf_track_get(&m->tracks,
				     pf_track_uuid('n', form.kind, 0, TEXT(""), thread));
		if (!track)
			return -ENOMEM;
		r = pf_track_describe(&m->tracks, track, &form, out);
		if (r < 0)
			return r;
	}
	return 0;
}

static void pf_mark_put_counts(struct pf_marks *m, const struct mark *mark, uint64_t thread,
			       bool end)
{
	uint64_t time = mark->tts + (end && mark->has & HAS_TDUR ? mark->tdur : 0);
	uint64_t count = mark->ticount + (end && mark->has & HAS_TIDELTA ? mark->tidelta : 0);

	if (mark->has & HAS_TTS) {
		pf_uint(&m->event, EVENT_EXTRA_TRACKS,
			pf_track_uuid('n', PF_TRACK_THREAD_TIME, 0, TEXT(""), thread));
		pf_uint(&m->event, EVENT_EXTRA_VALUES, time);
	}
	if (mark->has & HAS_TICOUNT) {
		pf_uint(&m->event, EVENT_EXTRA_TRACKS,
			pf_track_uuid('n', PF_TRACK_INSTRUCTIONS, 0, TEXT(""), thread));
		pf_uint(&m->event, EVENT_EXTRA_VALUES, count);
	}
}

/* Ends flows here that were waiting for the thread's next slice. */
static void pf_mark_put_pending_flows(struct pf_marks *m, const struct mark *mark)
{
	struct pf_track *track = pf_track_of(&m->tracks, mark->pid, mark->tid);

	if (!track)
		return;
	for (unsigned i = 0; i < track->actor->flow_count; i++)
		pf_fixed64(&m->event, EVENT_LAST_FLOWS, track->actor->flows[i]);
	track->actor->flow_count = 0;
	pf_track_release(&m->tracks, track);
}

static int pf_mark_put_thread_event(struct pf_marks *m, const struct mark *mark, unsigned type,
				    struct buf *out)
{
	uint64_t thread;
	int r = pf_track_describe_actor(&m->tracks, mark->pid, mark->tid, &thread, out);

	if (r == 0)
		r = pf_mark_describe_counts(m, mark, thread, out);
	if (r < 0)
		return r;
	pf_event_begin(m, type, thread);
	/* An end closes the open slice, whatever its name. */
	if (type != SLICE_END)
		pf_event_put_name(m, mark->part[PART_NAME]);
	pf_event_put_unnamed(m, mark);
	pf_mark_put_counts(m, mark, thread, false);
	if (type != SLICE_END)
		pf_mark_put_pending_flows(m, mark);
	return pf_event_end(m, mark->ts, out);
}

/*
 * Begin to write for a complete mark. At equal begins the enclosing one arrives later, since it
 * ends later, but readers take the first for the outer one: so it begins 1 ns earlier.
 */
static uint64_t pf_mark_complete_begin(struct pf_marks *m, const struct mark *mark)
{
	struct pf_track *track = pf_track_of(&m->tracks, mark->pid, mark->tid);
	uint64_t end = mark->ts + mark->dur, begin = mark->ts;
	struct pf_actor *a = track ? track->actor : NULL;

	if (!a)
		return begin;
	if (a->complete_end && mark->ts <= a->complete_ts && mark->ts >= a->complete_written &&
	    end >= a->complete_end && mark->dur && a->complete_written > 1)
		begin = a->complete_written - 1;
	a->complete_ts = mark->ts;
	a->complete_written = begin;
	a->complete_end = end;
	return begin;
}

static int pf_mark_put_complete(struct pf_marks *m, const struct mark *mark, struct buf *out)
{
	struct mark begin = *mark;
	uint64_t thread;
	int r;

	begin.ts = pf_mark_complete_begin(m, mark);
	r = pf_mark_put_thread_event(m, &begin, SLICE_BEGIN, out);
	if (r < 0)
		return r;
	r = pf_track_describe_actor(&m->tracks, mark->pid, mark->tid, &thread, out);
	if (r < 0)
		return r;
	pf_event_begin(m, SLICE_END, thread);
	pf_mark_put_counts(m, mark, thread, true);
	pf_put_stack(&m->frames, mark, PART_ESF, &m->event);
	return pf_event_end(m, mark->ts + mark->dur, out);
}

/* Describes tracks without a process: one on the top level, below it one per kind. */
static int pf_mark_describe_shared(struct pf_marks *m, struct text name, uint64_t *ret_uuid,
				   struct buf *out)
{
	struct pf_track_form form = { .name = TEXT("Applications"), .ordering = LEXICOGRAPHIC };
	struct pf_track *track = pf_track_get(&m->tracks, pf_track_uuid('r', 0, 0, TEXT(""), 0));
	int r;

	if (!track)
		return -ENOMEM;
	form.parent = 0;
	r = pf_track_describe(&m->tracks, track, &form, out);
	if (r < 0)
		return r;
	form.parent = track->uuid;
	form.name = name;
	form.ordering = 0;
	track = pf_track_get(&m->tracks, pf_track_uuid('r', 1, 0, name, 0));
	if (!track)
		return -ENOMEM;
	*ret_uuid = track->uuid;
	return pf_track_describe(&m->tracks, track, &form, out);
}

int pf_marks_put_shared(struct pf_marks *m, const struct mark *mark, struct text track,
			struct buf *out)
{
	uint64_t uuid;
	int r;

	m->tracks.ts = mark->ts;
	r = pf_mark_describe_shared(m, track, &uuid, out);
	if (r < 0)
		return r;
	pf_event_begin(m, INSTANT, uuid);
	pf_event_put(m, mark);
	return pf_event_end(m, mark->ts, out);
}

static int pf_mark_put_process_instant(struct pf_marks *m, const struct mark *mark, struct buf *out)
{
	uint64_t process;
	int r = pf_track_describe_actor(&m->tracks, mark->pid, 0, &process, out);

	if (r < 0)
		return r;
	pf_event_begin(m, INSTANT, process);
	pf_event_put(m, mark);
	return pf_event_end(m, mark->ts, out);
}

static int pf_mark_put_instant(struct pf_marks *m, const struct mark *mark, struct buf *out)
{
	switch (mark->instant) {
	case 'g':
		return pf_marks_put_shared(m, mark, TEXT("instants"), out);
	case 'p':
		return pf_mark_put_process_instant(m, mark, out);
	default:
		return pf_mark_put_thread_event(m, mark, INSTANT, out);
	}
}

uint64_t pf_mark_id(char kind, const struct mark *mark, bool usually_local, struct text cat,
		    struct text id)
{
	bool local = mark->id_kind == ID_LOCAL || (mark->id_kind != ID_GLOBAL && usually_local);
	uint64_t seed = pf_track_uuid(kind, local, local ? mark->pid : 0, cat, 0);

	return pf_track_uuid(kind, 0, 0, id,
			     pf_track_uuid(kind, 0, 0, mark->part[PART_SCOPE], seed));
}

static uint64_t pf_mark_tree_of(const struct mark *mark)
{
	return pf_mark_id('a', mark, false, mark->part[PART_CAT], mark->part[PART_ID]);
}

/*
 * The track of a mark with an id, described below its process or on the top level; type: of the
 * event to come. -ENOENT: it ends nothing.
 */
static int pf_mark_find_own(struct pf_marks *m, const struct mark *mark, unsigned type,
			    uint64_t uuid, struct text name, struct pf_track **ret, struct buf *out)
{
	struct pf_track_form form = { .name = name };
	struct pf_track *track = pf_track_get(&m->tracks, uuid);
	int r = 0;

	if (track && track->same_as)
		track = pf_track_get(&m->tracks, uuid = track->same_as);
	if (!track)
		return -ENOMEM;
	if (type == SLICE_END && !track->open)
		return -ENOENT;
	r = type == SLICE_BEGIN ? pf_track_hold(&m->tracks, track, mark) : 0;
	if (r == 0 && !track->described) {
		r = mark->id_kind == ID_GLOBAL
			    ? pf_mark_describe_shared(m, TEXT("operations"), &form.parent, out)
			    : pf_track_describe_actor(&m->tracks, mark->pid, 0, &form.parent, out);
		if (r < 0)
			return r;
		track = pf_track_get(&m->tracks, uuid);
		if (!track)
			return -ENOMEM;
		r = pf_track_describe(&m->tracks, track, &form, out);
	}
	*ret = track;
	return r;
}

/* Slices and instants on a track of their own. */
static int pf_mark_put_own(struct pf_marks *m, const struct mark *mark, unsigned type,
			   uint64_t uuid, struct text name, struct buf *out)
{
	struct pf_track *track = NULL;
	int r = pf_mark_find_own(m, mark, type, uuid, name, &track, out);

	if (r < 0)
		return r;
	track->open += type == SLICE_BEGIN;
	track->open -= type == SLICE_END;
	pf_track_release(&m->tracks, track);
	pf_event_begin(m, type, track->uuid);
	pf_event_put(m, mark);
	return pf_event_end(m, mark->ts, out);
}

/* Links two ids: marks of the second go to the first one's track. */
static int pf_mark_take_link(struct pf_marks *m, const struct mark *mark)
{
	struct pf_track *track;
	struct value id;
	struct text text;
	char spelled[20];
	uint64_t uuid = pf_mark_tree_of(mark), linked;

	if (!value_find(mark->part[PART_ARGS], "linked_id", &id) ||
	    !value_spell_id(&id, spelled, &text))
		return -EINVAL;
	linked = pf_mark_id('a', mark, false, mark->part[PART_CAT], text);
	track = pf_track_get(&m->tracks, uuid);
	if (track && track->same_as)
		uuid = track->same_as;
	track = linked == uuid ? NULL : pf_track_get(&m->tracks, linked);
	/* A track with open slices stays separate. */
	if (!track || track->open)
		return linked == uuid ? 0 : track ? -EBUSY : -ENOMEM;
	track->same_as = uuid;
	return 0;
}

static int pf_mark_put_flow(struct pf_marks *m, const struct mark *mark, struct buf *out)
{
	uint64_t flow = pf_track_uuid(
		'f', 0, 0, mark->part[PART_NAME],
		pf_mark_id('f', mark, false, mark->part[PART_CAT], mark->part[PART_ID]));
	bool last = mark->phase == PHASE_FLOW_END;
	uint64_t thread;
	int r;

	if (last && !(mark->has & HAS_BIND_ENCLOSING)) {
		struct pf_track *track = pf_track_of(&m->tracks, mark->pid, mark->tid);

		if (!track)
			return -ENOMEM;
		if (track->actor->flow_count < PF_PENDING_FLOWS &&
		    pf_track_hold(&m->tracks, track, mark) == 0) {
			track->actor->flows[track->actor->flow_count++] = flow;
			return 0;
		}
	}
	r = pf_track_describe_actor(&m->tracks, mark->pid, mark->tid, &thread, out);
	if (r < 0)
		return r;
	pf_event_begin(m, INSTANT, thread);
	pf_event_put(m, mark);
	pf_fixed64(&m->event, last ? EVENT_LAST_FLOWS : EVENT_FLOWS, flow);
	return pf_event_end(m, mark->ts, out);
}

/* An object's life is a slice; its snapshots are instants. */
static int pf_mark_put_object(struct pf_marks *m, const struct mark *mark, struct buf *out)
{
	struct text id = mark->part[PART_ID], name = mark->part[PART_NAME];
	unsigned type = mark->phase == PHASE_OBJECT_NEW	     ? SLICE_BEGIN
			: mark->phase == PHASE_OBJECT_DELETE ? SLICE_END
							     : INSTANT;
	_cleanup_buf_ struct buf spelled = BUF_INIT;

	buf_append(&spelled, name.data, MIN(name.len, PF_NAME_BYTES_MAX));
	buf_putc(&spelled, ' ');
	buf_append(&spelled, id.data, MIN(id.len, PF_NAME_BYTES_MAX));
	if (buf_error(&spelled) < 0)
		return -ENOMEM;
	return pf_mark_put_own(m, mark, type, pf_mark_id('o', mark, true, (struct text){ 0 }, id),
			       (struct text){ spelled.data, (uint32_t)spelled.len }, out);
}

/* The track of contexts is below their thread's: a context describes what the thread does. */
static int pf_mark_put_context(struct pf_marks *m, const struct mark *mark, struct buf *out)
{
	struct pf_track_form form = { .name = TEXT("contexts") };
	bool enter = mark->phase == PHASE_CONTEXT_ENTER;
	struct pf_track *track;
	int r = pf_track_describe_actor(&m->tracks, mark->pid, mark->tid, &form.parent, out);

	if (r < 0)
		return r;
	track = pf_track_get(&m->tracks, pf_track_uuid('x', 0, 0, TEXT(""), form.parent));
	if (!track)
		return -ENOMEM;
	if (!enter && !track->open)
		return -ENOENT;
	r = enter ? pf_track_hold(&m->tracks, track, mark) : 0;
	if (r == 0)
		r = pf_track_describe(&m->tracks, track, &form, out);
	if (r < 0)
		return r;
	track->open += enter ? 1U : -1U;
	pf_track_release(&m->tracks, track);
	pf_event_begin(m, enter ? SLICE_BEGIN : SLICE_END, track->uuid);
	pf_event_put(m, mark);
	pf_annotation_text(&m->event, EVENT_ANNOTATIONS, TEXT("id"), mark->part[PART_ID], &m->keys,
			   &m->fresh);
	return pf_event_end(m, mark->ts, out);
}

static int pf_mark_keep_text(char **to, const struct value *v)
{
	char *text = v->type == VALUE_STRING
			     ? strndup(v->text.data ?: "", MIN(v->text.len, PF_NAME_BYTES_MAX))
			     : NULL;

	if (v->type != VALUE_STRING)
		return -EINVAL;
	if (!text)
		return -ENOMEM;
	free(*to);
	*to = text;
	return 0;
}

/* process_name, thread_name ...: remembered, and written with its next mark. */
static int pf_mark_take_metadata(struct pf_marks *m, const struct mark *mark)
{
	struct text item = mark->part[PART_NAME], args = mark->part[PART_ARGS];
	bool thread = item.len > 7 && memcmp(item.data, "thread_", 7) == 0;
	struct pf_track *track = pf_track_of(&m->tracks, mark->pid, thread ? mark->tid : 0);
	struct pf_actor *a = track ? track->actor : NULL;
	struct value v;
	int r;

	if (!a)
		return -ENOMEM;
	r = pf_track_hold(&m->tracks, track, mark);
	if (r < 0)
		return r;
	r = -EINVAL;
	if (text_equal(item, TEXT("process_name")) || text_equal(item, TEXT("thread_name"))) {
		if (value_find(args, "name", &v))
			r = pf_mark_keep_text(&a->name, &v);
	} else if (text_equal(item, TEXT("process_labels"))) {
		if (value_find(args, "labels", &v))
			r = pf_mark_keep_text(&a->labels, &v);
	} else if (text_equal(item, TEXT("process_sort_index")) ||
		   text_equal(item, TEXT("thread_sort_index"))) {
		if (value_find(args, "sort_index", &v) && v.type == VALUE_INT && v.i >= INT32_MIN &&
		    v.i <= INT32_MAX) {
			a->has_rank = true;
			a->rank = (int32_t)v.i;
			r = 0;
		}
	}
	a->changed |= r == 0;
	pf_track_release(&m->tracks, track);
	return r;
}

/* A merged sample has a tid only. */
static int pf_mark_put_sample(struct pf_marks *m, const struct mark *mark, struct buf *out)
{
	const struct task *task = task_table_find(m->tasks, mark->tid, mark->ts);
	struct mark sample = *mark;

	uint32_t cpu;

	sample.pid = mark->pid ?: task && task->tgid ? task->tgid : mark->tid;
	if (pf_perf_has_cpu(mark, &cpu))
		return pf_perf_put(&m->perf, &m->frames, mark, sample.pid, m->clock, out);
	if (!sample.part[PART_CAT].len)
		sample.part[PART_CAT] = TEXT("sample");
	return pf_mark_put_thread_event(m, &sample, INSTANT, out);
}

static int pf_mark_put(struct pf_marks *m, const struct mark *mark, struct buf *out)
{
	struct text name = mark->part[PART_NAME];

	switch (mark->phase) {
	case PHASE_FRAME:
		return stack_frames_add(&m->frames, mark);
	case PHASE_METADATA:
		return pf_mark_take_metadata(m, mark);
	case PHASE_BEGIN:
		return pf_mark_put_thread_event(m, mark, SLICE_BEGIN, out);
	case PHASE_END:
		return pf_mark_put_thread_event(m, mark, SLICE_END, out);
	case PHASE_COMPLETE:
		return pf_mark_put_complete(m, mark, out);
	case PHASE_INSTANT:
		return pf_mark_put_instant(m, mark, out);
	case PHASE_MARK:
	case PHASE_SAMPLE:
		return pf_mark_put_thread_event(m, mark, INSTANT, out);
	case PHASE_GLOBAL_SAMPLE:
		return pf_mark_put_sample(m, mark, out);
	case PHASE_COUNTER:
		return pf_marks_put_counter(m, mark, out);
	case PHASE_ASYNC_BEGIN:
		return pf_mark_put_own(m, mark, SLICE_BEGIN, pf_mark_tree_of(mark), name, out);
	case PHASE_ASYNC_END:
		return pf_mark_put_own(m, mark, SLICE_END, pf_mark_tree_of(mark), name, out);
	case PHASE_ASYNC_INSTANT:
		return pf_mark_put_own(m, mark, INSTANT, pf_mark_tree_of(mark), name, out);
	case PHASE_FLOW_START:
	case PHASE_FLOW_STEP:
	case PHASE_FLOW_END:
		return pf_mark_put_flow(m, mark, out);
	case PHASE_OBJECT_NEW:
	case PHASE_OBJECT_SNAPSHOT:
	case PHASE_OBJECT_DELETE:
		return pf_mark_put_object(m, mark, out);
	case PHASE_CONTEXT_ENTER:
	case PHASE_CONTEXT_LEAVE:
		return pf_mark_put_context(m, mark, out);
	case PHASE_LINK:
		return pf_mark_take_link(m, mark);
	case PHASE_MEMORY_GLOBAL:
		return pf_marks_put_shared(m, mark, TEXT("memory"), out);
	case PHASE_MEMORY_PROCESS:
		return pf_mark_put_process_instant(m, mark, out);
	default:
		return 0;
	}
}

int pf_marks_put(struct pf_marks *m, const struct mark *mark, struct buf *out)
{
	int r;

	m->tracks.ts = mark->ts;
	r = pf_mark_put(m, mark, out);
	if (r == -ENOMEM || buf_error(out) < 0)
		return -ENOMEM;
	/* Counted where the room is. */
	m->left_out += r < 0 && r != -ENOSPC;
	return 0;
}

int pf_marks_warn(const struct pf_marks *m, struct stream_index *index)
{
	index->marks_lost |= m->tracks.shares.refused > 0;
	return shares_warn(&m->tracks.shares, "slices and names", "that are open or new", index)
		       ?: shares_warn(&m->frames.shares, "stack frames", NULL, index)
		       ?: stream_index_warn_count(index, m->numberless, MARKS_NUMBERLESS);
}

int pf_marks_put_names(struct pf_marks *m, bool tied, struct buf *out)
{
	return pf_tracks_describe_rest(&m->tracks, tied ? m->tasks : NULL, out) == -ENOMEM
		       ? -ENOMEM
		       : buf_error(out);
}
