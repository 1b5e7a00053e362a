/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>

#include "formats/perfetto/numbers.h"
#include "formats/perfetto/track_event.h"
#include "formats/perfetto_read/annotations.h"
#include "formats/perfetto_read/mark_writer.h"
#include "marks/json_value.h"
#include "marks/sort.h"

#define FLOWS_MAX 64 /* of one event */
#define COUNTS_MAX 2 /* the thread's time and instructions */
#define DEPTH_MAX 256

struct draft {
	unsigned type;
	uint64_t track;
	struct text name;
	struct value counter; /* type 0: it has none */
	uint64_t extra_tracks[COUNTS_MAX], extra_values[COUNTS_MAX];
	unsigned extra_track_count, extra_value_count;
	uint64_t flows[FLOWS_MAX], last_flows[FLOWS_MAX];
	unsigned flow_count, last_flow_count;
	struct wire_field stack; /* len 0: none */
	unsigned missing;
};

/* A flow that goes on: how its beginning was called. */
struct open_flow {
	uint32_t name_len, cat_len;
	char text[];
};
#define FLOW_TEXT_MAX UINT32_C(1024)

static void put_category(struct pf_mark_writer *w, struct draft *e, struct text cat)
{
	/* More together than a reader takes: a few bytes may refer to a long one. */
	if (!cat.data || w->cats.len + cat.len >= ANNOTATION_TEXT_MAX) {
		e->missing++;
		return;
	}
	if (w->cats.len && cat.len)
		buf_putc(&w->cats, ',');
	buf_append(&w->cats, cat.data, cat.len);
}

static void put_flow_id(uint64_t *flows, unsigned *count, struct draft *e, uint64_t id)
{
	if (*count < FLOWS_MAX)
		flows[(*count)++] = id;
	else
		e->missing++;
}

static void put_counter(struct draft *e, const struct wire_field *f)
{
	e->counter.type = f->number == EVENT_COUNTER ? VALUE_INT : VALUE_DOUBLE;
	e->counter.u = f->value;
}

static const enum wire_type types[] = {
	[EVENT_CATEGORY_IIDS] = WIRE_VARINT,
	[EVENT_ANNOTATIONS] = WIRE_BYTES,
	[EVENT_TYPE] = WIRE_VARINT,
	[EVENT_NAME_IID] = WIRE_VARINT,
	[EVENT_TRACK] = WIRE_VARINT,
	[EVENT_EXTRA_VALUES] = WIRE_VARINT,
	[EVENT_CATEGORIES] = WIRE_BYTES,
	[EVENT_NAME] = WIRE_BYTES,
	[EVENT_COUNTER] = WIRE_VARINT,
	[EVENT_EXTRA_TRACKS] = WIRE_VARINT,
	[EVENT_DOUBLE_COUNTER] = WIRE_FIXED64,
	[EVENT_FLOWS] = WIRE_FIXED64,
	[EVENT_LAST_FLOWS] = WIRE_FIXED64,
	[CALLSTACK] = WIRE_BYTES,
};

static void take_field(struct pf_mark_writer *w, struct draft *e, const struct wire_field *f,
		       const struct interned *in)
{
	struct text text = { (const char *)f->data, (uint32_t)f->len };

	switch (f->number) {
	case EVENT_CATEGORY_IIDS:
		put_category(w, e, interned_text(in, INTERNED_CATEGORY, f->value));
		break;
	case EVENT_CATEGORIES:
		put_category(w, e, text);
		break;
	case EVENT_ANNOTATIONS:
		e->missing += annotation_put(&w->args, f, in, &w->scratch);
		break;
	case EVENT_TYPE:
		e->type = f->value <= COUNTER ? (unsigned)f->value : 0;
		break;
	case EVENT_NAME_IID:
		e->name = interned_text(in, INTERNED_NAME, f->value);
		e->missing += !e->name.data;
		break;
	case EVENT_NAME:
		e->name = text;
		break;
	case EVENT_TRACK:
		e->track = f->value;
		break;
	case EVENT_COUNTER:
	case EVENT_DOUBLE_COUNTER:
		put_counter(e, f);
		break;
	case EVENT_EXTRA_TRACKS:
		if (e->extra_track_count < COUNTS_MAX)
			e->extra_tracks[e->extra_track_count++] = f->value;
		break;
	case EVENT_EXTRA_VALUES:
		if (e->extra_value_count < COUNTS_MAX)
			e->extra_values[e->extra_value_count++] = f->value;
		break;
	case EVENT_FLOWS:
		put_flow_id(e->flows, &e->flow_count, e, f->value);
		break;
	case EVENT_LAST_FLOWS:
		put_flow_id(e->last_flows, &e->last_flow_count, e, f->value);
		break;
	case CALLSTACK:
		e->stack = *f;
		break;
	}
}

static bool read_event(struct pf_mark_writer *w, struct draft *e, const struct wire_field *message,
		       const struct interned *in)
{
	struct wire_reader r = wire_reader_in(message);
	struct wire_field f;

	*e = (struct draft){ 0 };
	buf_clear(&w->cats);
	buf_clear(&w->args);
	while (wire_read(&r, &f)) {
		if (f.number < ARRAY_SIZE(types) && f.type == types[f.number])
			take_field(w, e, &f, in);
	}
	return !r.bad && e->type;
}

/* An inline stack, the outermost frame first, as the number of the innermost; 0: none. */
static int number_stack(struct pf_mark_writer *w, const struct wire_field *message, uint32_t *ret,
			struct error *err)
{
	struct wire_reader r = wire_reader_in(message);
	struct wire_field f;
	unsigned depth = 0;

	*ret = 0;
	while (wire_read(&r, &f) && depth++ < DEPTH_MAX) {
		struct wire_reader frame;
		struct text texts[INLINE_FILE + 1] = { 0 };
		struct wire_field part;
		uint32_t inner;
		int code;

		if (f.number != CALLSTACK_INLINE || f.type != WIRE_BYTES)
			continue;
		frame = wire_reader_in(&f);
		while (wire_read(&frame, &part))
			if (part.number <= INLINE_FILE && part.type == WIRE_BYTES)
				texts[part.number] = (struct text){ (const char *)part.data,
								    (uint32_t)part.len };
		code = pf_mark_frame(w, *ret, texts[INLINE_FUNCTION], texts[INLINE_FILE], &inner,
				     err);
		if (code < 0 || !inner)
			return code;
		*ret = inner;
	}
	return 0;
}

/* The counts that a thread's event has, by what their tracks are. */
static void put_counts(struct pf_mark_writer *w, const struct draft *e, struct mark *m)
{
	unsigned count = MIN(e->extra_track_count, e->extra_value_count);

	for (unsigned i = 0; i < count; i++) {
		struct mark_place place;

		mark_tracks_find(w, e->extra_tracks[i], &place);
		if (place.kind == PLACE_TIME && e->extra_values[i] <= INT64_MAX) {
			m->has |= HAS_TTS;
			m->tts = e->extra_values[i];
		} else if (place.kind == PLACE_INSTRUCTIONS) {
			m->has |= HAS_TICOUNT;
			m->ticount = e->extra_values[i];
		} else {
			pf_mark_leave_out(w, 1, "a count that no track tells of");
		}
	}
}

static void keep_flow(struct pf_mark_writer *w, uint64_t id, const struct mark *m)
{
	uint32_t name_len = MIN(m->part[PART_NAME].len, FLOW_TEXT_MAX);
	uint32_t cat_len = MIN(m->part[PART_CAT].len, FLOW_TEXT_MAX);
	struct open_flow *flow =
		known_add(&w->flows, &w->room, id, sizeof(*flow) + name_len + cat_len);

	if (!flow) {
		pf_mark_leave_out(w, 1, "where a flow began, as there are too many");
		return;
	}
	flow->name_len = name_len;
	flow->cat_len = cat_len;
	memcpy(flow->text, m->part[PART_NAME].data, name_len);
	if (cat_len)
		memcpy(flow->text + name_len, m->part[PART_CAT].data, cat_len);
}

/* An event of a flow, at that mark. */
static int put_flow(struct pf_mark_writer *w, const struct mark *at, uint64_t id, bool last,
		    struct error *err)
{
	const struct open_flow *flow = known_find(&w->flows, id);
	struct mark m = *at;
	char spelled[24];
	int r;

	snprintf(spelled, sizeof(spelled), "0x%" PRIx64, id);
	m.phase = last ? PHASE_FLOW_END : flow ? PHASE_FLOW_STEP : PHASE_FLOW_START;
	m.id_kind = ID_PLAIN;
	m.part[PART_ID] = (struct text){ spelled, (uint32_t)strlen(spelled) };
	/* Readers want all events of a flow to be called the same. */
	if (flow) {
		m.part[PART_NAME] = (struct text){ flow->text, flow->name_len };
		m.part[PART_CAT] = (struct text){ flow->text + flow->name_len, flow->cat_len };
	} else if (!last) {
		keep_flow(w, id, at);
	}
	r = pf_mark_put(w, &m, err);
	if (last)
		known_drop(&w->flows, &w->room, id);
	return r;
}

/* A flow that is bound to another mark has no more than its place. */
static struct mark place_of(const struct mark *m)
{
	struct mark bare = { .pid = m->pid, .tid = m->tid, .ts = m->ts };

	bare.part[PART_NAME] = m->part[PART_NAME];
	bare.part[PART_CAT] = m->part[PART_CAT];
	return bare;
}

/* An instant that is a flow's own: an end's is called as its beginning was. */
static bool is_flow(const struct pf_mark_writer *w, const struct draft *e)
{
	const struct open_flow *flow;

	if (e->type != INSTANT || e->flow_count + e->last_flow_count != 1)
		return false;
	if (e->flow_count)
		return true;
	flow = known_find(&w->flows, e->last_flows[0]);
	return flow && text_equal((struct text){ flow->text, flow->name_len }, e->name);
}

/* A slice is held until it is known whether it ends next. */
static int hold(struct pf_mark_writer *w, const struct draft *e, const struct mark *m,
		struct error *err)
{
	int r = mark_pack(m, &w->held);

	if (r == -E2BIG) {
		buf_clear(&w->held);
		return pf_mark_leave_out(w, 1, "a mark that is too long");
	}
	w->held_track = e->track;
	return r < 0 ? error_errno(err, r, "can't keep a mark") : 0;
}

/* Whether this end makes a complete mark of what is held; that is written then. */
static bool is_completed(struct pf_mark_writer *w, const struct draft *e, const struct mark *end,
			 struct mark *ret)
{
	const enum mark_has counts = HAS_TTS | HAS_TICOUNT;

	if (!w->held.len || e->type != SLICE_END || e->track != w->held_track || e->name.len ||
	    end->part[PART_CAT].len || end->part[PART_ARGS].len ||
	    e->flow_count + e->last_flow_count || mark_unpack(ret, w->held.data, w->held.len) < 0)
		return false;
	if (end->ts < ret->ts || (end->has & counts) != (ret->has & counts) ||
	    end->tts < ret->tts || end->ticount < ret->ticount)
		return false;
	ret->phase = PHASE_COMPLETE;
	ret->has |= HAS_DUR;
	ret->dur = end->ts - ret->ts;
	ret->tdur = end->tts - ret->tts;
	ret->tidelta = end->ticount - ret->ticount;
	if (ret->tdur)
		ret->has |= HAS_TDUR;
	if (ret->tidelta)
		ret->has |= HAS_TIDELTA;
	ret->part[PART_ESF] = end->part[PART_SF];
	return true;
}

static int put_bound_flows(struct pf_mark_writer *w, const struct mark *m, const uint64_t *flows,
			   unsigned count, bool last, struct error *err)
{
	const struct mark place = place_of(m);
	int r = 0;

	for (unsigned i = 0; r == 0 && i < count; i++)
		r = put_flow(w, &place, flows[i], last, err);
	return r;
}

static int put_thread_event(struct pf_mark_writer *w, const struct draft *e,
			    const struct mark_place *place, struct mark *m, struct error *err)
{
	struct mark complete;
	int r;

	put_counts(w, e, m);
	if (is_completed(w, e, m, &complete)) {
		r = pf_mark_put(w, &complete, err);
		buf_clear(&w->held);
		return r;
	}
	r = pf_mark_release(w, err);
	if (r < 0)
		return r;
	if (is_flow(w, e)) {
		bool last = e->last_flow_count;

		if (last)
			m->has |= HAS_BIND_ENCLOSING;
		return put_flow(w, m, last ? e->last_flows[0] : e->flows[0], last, err);
	}
	/* It is bound to what begins next. */
	r = put_bound_flows(w, m, e->last_flows, e->last_flow_count, true, err);
	if (r < 0)
		return r;
	m->phase = e->type == SLICE_BEGIN ? PHASE_BEGIN
		   : e->type == SLICE_END ? PHASE_END
					  : PHASE_INSTANT;
	m->instant = place->tid ? 't' : 'p';
	/* What is a process's is no thread's: it is told as of its first one. */
	if (m->phase == PHASE_INSTANT && !place->tid)
		m->tid = m->pid;
	if (e->type == SLICE_BEGIN && !e->flow_count)
		return hold(w, e, m, err);
	return pf_mark_put(w, m, err) ?: put_bound_flows(w, m, e->flows, e->flow_count, false, err);
}

static int put_counter_event(struct pf_mark_writer *w, const struct draft *e,
			     const struct mark_place *place, struct mark *m, struct error *err)
{
	if (e->type != COUNTER || !e->counter.type)
		return pf_mark_leave_out(w, 1, "a counter's event without a count");
	buf_clear(&w->name);
	buf_append(&w->name, place->name.data, place->name.len);
	if (place->unit.len) {
		buf_puts(&w->name, place->name.len ? " [" : "[");
		buf_append(&w->name, place->unit.data, place->unit.len);
		buf_putc(&w->name, ']');
	}
	buf_clear(&w->args);
	value_put_u64(&w->args, &TEXT("value"), e->counter.type, e->counter.u);
	if (buf_error(&w->name) < 0 || buf_error(&w->args) < 0)
		return error_errno(err, -ENOMEM, "can't read a counter");
	m->phase = PHASE_COUNTER;
	m->part[PART_NAME] = w->name.len ? text_of(&w->name) : TEXT("unnamed");
	m->part[PART_ARGS] = text_of(&w->args);
	return pf_mark_put(w, m, err);
}

/* The last argument is the context's id. */
static int put_context(struct pf_mark_writer *w, const struct draft *e, struct mark *m,
		       struct error *err)
{
	struct value_iter it;
	struct value v, id = { 0 };
	const uint8_t *begin, *at = NULL;

	value_iter_init(&it, m->part[PART_ARGS], true);
	for (begin = it.p; value_next(&it, &v); begin = it.p) {
		id = v;
		at = begin;
		if (v.type == VALUE_LIST || v.type == VALUE_DICT)
			value_skip(&it);
	}
	if (e->type == INSTANT || id.type != VALUE_STRING || !text_equal(id.key, TEXT("id")))
		return pf_mark_leave_out(w, 1, "a context without an id");
	m->part[PART_ARGS].len = (uint32_t)(at - (const uint8_t *)m->part[PART_ARGS].data);
	m->phase = e->type == SLICE_BEGIN ? PHASE_CONTEXT_ENTER : PHASE_CONTEXT_LEAVE;
	m->id_kind = ID_PLAIN;
	m->part[PART_ID] = id.text;
	return pf_mark_put(w, m, err);
}

static int put_shared(struct pf_mark_writer *w, const struct draft *e,
		      const struct mark_place *place, struct mark *m, struct error *err)
{
	if (e->type != INSTANT)
		return pf_mark_leave_out(w, 1, "a slice where there are instants only");
	m->phase = place->kind == PLACE_MEMORY ? PHASE_MEMORY_GLOBAL : PHASE_INSTANT;
	m->instant = 'g';
	return pf_mark_put(w, m, err);
}

/* Of a track of its own: the track's name is that of its first mark. */
static int put_own(struct pf_mark_writer *w, const struct draft *e, const struct mark_place *place,
		   const struct mark *mark, struct error *err)
{
	struct mark own = *mark;
	char spelled[24];

	snprintf(spelled, sizeof(spelled), "0x%" PRIx64, e->track);
	own.phase = e->type == SLICE_BEGIN ? PHASE_ASYNC_BEGIN
		    : e->type == SLICE_END ? PHASE_ASYNC_END
					   : PHASE_ASYNC_INSTANT;
	own.id_kind = place->global ? ID_GLOBAL : ID_LOCAL;
	own.part[PART_ID] = (struct text){ spelled, (uint32_t)strlen(spelled) };
	if (!e->name.len && place->name.len)
		own.part[PART_NAME] = place->name;
	return pf_mark_put(w, &own, err);
}

static int put_event(struct pf_mark_writer *w, const struct draft *e,
		     const struct mark_place *place, struct mark *m, struct error *err)
{
	int r;

	if (place->kind == PLACE_THREAD && e->type != COUNTER)
		return put_thread_event(w, e, place, m, err);
	r = pf_mark_release(w, err);
	if (r < 0)
		return r;
	pf_mark_leave_out(w, e->flow_count + e->last_flow_count,
			  "a flow through what is no thread's");
	if (place->kind == PLACE_COUNTER)
		return put_counter_event(w, e, place, m, err);
	if (e->type == COUNTER)
		return pf_mark_leave_out(w, 1, "a count of what is no counter");
	switch (place->kind) {
	case PLACE_CONTEXTS:
		return put_context(w, e, m, err);
	case PLACE_INSTANTS:
	case PLACE_MEMORY:
		return put_shared(w, e, place, m, err);
	case PLACE_OWN:
		return put_own(w, e, place, m, err);
	default:
		return pf_mark_leave_out(w, 1, "a slice of a counter");
	}
}

int mark_events_take(struct pf_mark_writer *w, const struct pf_packet *p, const struct interned *in,
		     struct error *err)
{
	struct mark m = { .ts = p->timestamp };
	struct mark_place place;
	uint32_t frame = 0;
	struct draft e;
	char sf[16];
	int r;

	if (!read_event(w, &e, &p->track_event, in))
		return pf_mark_leave_out(w, 1, "an event that is damaged");
	mark_tracks_find(w, e.track, &place);
	if (place.kind == PLACE_SKIP)
		return 0;
	if (place.kind == PLACE_NONE)
		return pf_mark_leave_out(w, 1, "an event of a track that is not described");
	pf_mark_leave_out(w, e.missing, "a name, category or argument");
	if (buf_error(&w->cats) < 0 || buf_error(&w->args) < 0)
		return error_errno(err, -ENOMEM, "can't read a mark");
	r = e.stack.len ? number_stack(w, &e.stack, &frame, err) : 0;
	if (r < 0)
		return r;
	if (m.ts > INT64_MAX)
		return pf_mark_leave_out(w, 1, "a mark of a time that is none");
	m.pid = place.pid;
	m.tid = place.tid;
	if (place.kind != PLACE_THREAD && !m.tid)
		m.tid = m.pid;
	m.part[PART_NAME] = e.name.len ? e.name : TEXT("unnamed");
	m.part[PART_CAT] = text_of(&w->cats);
	m.part[PART_ARGS] = text_of(&w->args);
	if (frame)
		m.part[PART_SF] = (struct text){ sf, frame_id_spell(sf, frame) };
	return put_event(w, &e, &place, &m, err);
}
