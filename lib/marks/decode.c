/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/decode.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "base/plural.h"
#include "marks/fields.h"
#include "marks/value.h"
#include "traced/mark_record.h"

#define STACK_MAX 256 /* program counters of a stack */

void mark_decode_init(struct mark_decode *d, struct mark_decode_shared *shared, bool big_endian)
{
	*d = (struct mark_decode){ .shared = shared, .big_endian = big_endian };
}

void mark_decode_deinit(struct mark_decode *d)
{
	label_table_forget(&d->labels, d->shared);
	buf_deinit(&d->args);
	buf_deinit(&d->extra);
	buf_deinit(&d->name);
	buf_deinit(&d->id);
	buf_deinit(&d->frame);
	buf_deinit(&d->linked);
}

size_t mark_record_size(const struct mark_decode *d, const uint8_t *p, size_t len)
{
	size_t size = len < sizeof(struct mark_record) ? 0 : load_u16(p, d->big_endian) * 8U;

	return size < sizeof(struct mark_record) || size > len ? 0 : size;
}

uint64_t mark_record_time(const struct mark_decode *d, const uint8_t *p)
{
	return load_u64(p + offsetof(struct mark_record, time), d->big_endian);
}

static struct text decode_spell_frame(char to[static 20], uint64_t frame)
{
	return (struct text){ to, (uint32_t)snprintf(to, 20, "0x%" PRIx64, frame) };
}

static int decode_give_frame(struct mark_decode *d, uint64_t frame, uint64_t parent,
			     struct text name, struct text cat, struct mark *ret)
{
	*ret = (struct mark){
		.phase = PHASE_FRAME,
		.has = HAS_OWN_FRAMES,
		.pid = d->pid,
		.uid = (uint32_t)d->labels.owner.user,
	};
	ret->part[PART_ID] = decode_spell_frame(d->frame_id, frame);
	ret->part[PART_NAME] = name;
	ret->part[PART_CAT] = cat;
	if (parent)
		ret->part[PART_SF] = decode_spell_frame(d->frame_parent, parent);
	return DECODED_FRAME;
}

/* State of a mark until all its fields were read. */
struct draft {
	struct mark *mark;
	struct text snapshot_base, snapshot_cat, sync_id;
	struct mark_field_value snapshot, linked;
	bool has_snapshot, has_linked, has_issued;
	uint64_t issued, happened;
	bool has_happened;
	struct text addresses[2];
	bool has_addresses[2];
	const struct label *stack[2];
};

static void decode_take_stack(struct mark_decode *d, struct draft *draft,
			      const struct mark_field_value *f, int end)
{
	const struct label *l;

	if (f->type == MARK_ADDRESSES) {
		draft->addresses[end] = f->text;
		draft->has_addresses[end] = true;
		return;
	}
	l = label_find(&d->labels, d->shared, f->number);
	draft->stack[end] = l;
	if (l && buf_reserve(&d->frame, 48))
		draft->mark->part[end ? PART_ESF : PART_SF] =
			decode_spell_frame(d->frame.data + (end ? 24 : 0), l->frame);
}

static void decode_take_number(struct draft *draft, const struct mark_field_value *f)
{
	struct mark *m = draft->mark;

	switch (f->kind) {
	case MARK_DURATION:
		m->dur = f->number;
		m->has |= HAS_DUR;
		break;
	case MARK_TIME:
		draft->happened = f->number;
		draft->has_happened = true;
		break;
	case MARK_ISSUED:
		draft->issued = f->number;
		draft->has_issued = true;
		break;
	case MARK_THREAD_TIME:
		m->tts = f->number;
		m->has |= HAS_TTS;
		break;
	case MARK_THREAD_DURATION:
		m->tdur = f->number;
		m->has |= HAS_TDUR;
		break;
	case MARK_INSTRUCTIONS:
		m->ticount = f->number;
		m->has |= HAS_TICOUNT;
		break;
	case MARK_INSTRUCTIONS_DELTA:
		m->tidelta = f->number;
		m->has |= HAS_TIDELTA;
		break;
	}
}

static void decode_take_field(struct mark_decode *d, struct draft *draft,
			      const struct mark_field_value *f)
{
	struct mark *m = draft->mark;
	const struct label *l;

	switch (f->kind) {
	case MARK_ARG:
		mark_field_put(d, &f->key, f);
		break;
	case MARK_NAME:
		m->part[PART_NAME] = f->text;
		break;
	case MARK_CATEGORY:
		m->part[PART_CAT] = f->text;
		break;
	case MARK_ID:
	case MARK_ID_LOCAL:
	case MARK_ID_GLOBAL:
		m->id_kind = f->kind == MARK_ID		? ID_PLAIN
			     : f->kind == MARK_ID_LOCAL ? ID_LOCAL
							: ID_GLOBAL;
		m->part[PART_ID] = mark_field_id(&d->id, f);
		break;
	case MARK_ID_SCOPE:
		m->part[PART_SCOPE] = f->text;
		break;
	case MARK_LINKED_ID:
		draft->linked = *f;
		draft->has_linked = true;
		break;
	case MARK_STACK:
	case MARK_END_STACK:
		decode_take_stack(d, draft, f, f->kind == MARK_END_STACK);
		break;
	case MARK_CNAME:
		l = f->type == MARK_LABEL ? label_find(&d->labels, d->shared, f->number) : NULL;
		m->part[PART_CNAME] = l ? l->name : f->text;
		break;
	case MARK_SYNC_ID:
		draft->sync_id = f->text;
		break;
	case MARK_SNAPSHOT:
		draft->snapshot = *f;
		draft->has_snapshot = true;
		break;
	case MARK_BASE_TYPE:
		draft->snapshot_base = f->text;
		break;
	case MARK_SNAPSHOT_CATEGORY:
		draft->snapshot_cat = f->text;
		break;
	default:
		decode_take_number(draft, f);
	}
}

/* {"snapshot": {...}}: adds the object's base type, then the arguments or the single value. */
static void decode_finish_snapshot(struct mark_decode *d, struct draft *draft)
{
	static const struct text snapshot = { "snapshot", 8 };
	struct buf members = d->args;

	d->args = d->extra;
	buf_clear(&d->args);
	if (draft->has_snapshot && !draft->snapshot_base.len && !draft->snapshot_cat.len) {
		mark_field_put(d, &snapshot, &draft->snapshot);
	} else {
		value_put(&d->args, &snapshot, VALUE_DICT);
		if (draft->snapshot_cat.len)
			value_put_text(&d->args, &TEXT("cat"), draft->snapshot_cat);
		if (draft->snapshot_base.len)
			value_put_text(&d->args, &TEXT("base_type"), draft->snapshot_base);
		if (draft->has_snapshot)
			mark_field_put(d, &TEXT("value"), &draft->snapshot);
		else
			buf_append(&d->args, members.data, members.len);
		value_put(&d->args, NULL, VALUE_END);
	}
	d->extra = members;
}

/*
 * Turns raw program counters into frames, with the innermost in sf. DECODED_FRAME: return a new
 * frame first.
 */
static int decode_finish_stack(struct mark_decode *d, struct draft *draft, int end,
			       struct mark *ret)
{
	const struct text *a = &draft->addresses[end];
	uint64_t parent = 0;
	uint32_t count = MIN(a->len / 8, (uint32_t)STACK_MAX);

	for (uint32_t i = 0; i < count; i++) {
		char name[20];
		struct text text = decode_spell_frame(
			name, load_u64((const uint8_t *)a->data + 8 * i, d->big_endian));
		uint64_t frame = frame_hash(text, (struct text){ 0 }, parent);

		if (frame_is_new(d->shared, &d->labels.owner, frame)) {
			buf_clear(&d->name);
			buf_append(&d->name, text.data, text.len);
			return decode_give_frame(
				d, frame, parent,
				(struct text){ d->name.data, (uint32_t)d->name.len },
				(struct text){ 0 }, ret);
		}
		parent = frame;
	}
	if (parent && buf_reserve(&d->frame, 48))
		draft->mark->part[end ? PART_ESF : PART_SF] =
			decode_spell_frame(d->frame.data + (end ? 24 : 0), parent);
	return DECODED_MARK;
}

/* "X" is written at its end: its counters were read there, but are shown at the beginning. */
static void decode_finish_times(struct draft *draft)
{
	struct mark *m = draft->mark;

	if (draft->has_happened)
		m->ts = draft->happened;
	/* The duration is from the request to the answer. */
	if (m->phase == PHASE_CLOCK_SYNC && draft->has_issued && draft->issued <= m->ts) {
		m->has |= HAS_DUR;
		m->dur = m->ts - draft->issued;
		m->ts = draft->issued;
	}
	if (m->phase != PHASE_COMPLETE)
		return;
	m->has |= HAS_DUR;
	m->dur = MIN(m->dur, m->ts);
	m->ts -= m->dur;
	if (m->has & HAS_TTS && m->has & HAS_TDUR)
		m->tts -= MIN(m->tts, m->tdur);
	if (m->has & HAS_TICOUNT && m->has & HAS_TIDELTA)
		m->ticount -= MIN(m->ticount, m->tidelta);
}

static int decode_mark(struct mark_decode *d, const uint8_t *p, size_t size, struct mark *ret)
{
	struct draft draft = { .mark = ret };
	const uint8_t *at = p + sizeof(struct mark_record), *end = p + size;
	const struct label *l = label_find(&d->labels, d->shared, load_u32(p + 4, d->big_endian));
	uint8_t phase = mark_phase_of((char)p[2]);
	struct mark_field_value f;
	int r;

	if (!phase) {
		d->shared->unknown_phases++;
		return DECODED_NOTHING;
	}
	buf_clear(&d->args);
	*ret = (struct mark){
		.phase = phase,
		.was = phase == p[2] ? 0 : (char)p[2],
		.instant = "tpgt"[p[3] & MARK_SCOPE_MASK],
		.has = HAS_OWN_FRAMES | (p[3] & MARK_BIND_ENCLOSING ? HAS_BIND_ENCLOSING : 0),
		.pid = d->pid,
		.tid = d->tid,
		.uid = (uint32_t)d->labels.owner.user,
		.ts = mark_record_time(d, p),
	};
	if (l) {
		ret->part[PART_NAME] = l->name;
		ret->part[PART_CAT] = l->cat;
	}
	while ((r = mark_field_next(d, &at, end, &f)) > 0)
		decode_take_field(d, &draft, &f);
	if (r < 0)
		return r;
	for (int i = 0; i < 2; i++) {
		const struct label *s = draft.stack[i];

		if (s && frame_is_new(d->shared, &d->labels.owner, s->frame))
			return decode_give_frame(d, s->frame, 0, s->name, s->cat, ret);
		r = draft.has_addresses[i] ? decode_finish_stack(d, &draft, i, ret) : DECODED_MARK;
		if (r != DECODED_MARK)
			return r;
	}
	decode_finish_times(&draft);
	if (draft.has_linked)
		value_put_text(&d->args, &TEXT("linked_id"),
			       mark_field_id(&d->linked, &draft.linked));
	if (ret->phase == PHASE_OBJECT_SNAPSHOT)
		decode_finish_snapshot(d, &draft);
	if (ret->phase == PHASE_CLOCK_SYNC)
		value_put_text(&d->args, &TEXT("sync_id"), draft.sync_id);
	if (buf_error(&d->args) < 0)
		return -ENOMEM;
	ret->part[PART_ARGS] = (struct text){ d->args.data, (uint32_t)d->args.len };
	if (!ret->part[PART_NAME].len && ret->phase != PHASE_END)
		ret->part[PART_NAME] = TEXT("unnamed");
	return DECODED_MARK;
}

static int decode_define(struct mark_decode *d, const uint8_t *p, size_t size, struct mark *ret)
{
	const uint8_t *at = p + sizeof(struct mark_record), *end = p + size;
	struct text name = { 0 }, cat = { 0 };
	uint64_t parent = 0, frame = 0;
	struct mark_field_value f;
	int r;

	while ((r = mark_field_next(d, &at, end, &f)) > 0) {
		const struct label *l;

		if (f.kind == MARK_NAME) {
			name = f.text;
		} else if (f.kind == MARK_CATEGORY) {
			cat = f.text;
		} else if (f.kind == MARK_PARENT) {
			l = label_find(&d->labels, d->shared, f.number);
			/* The outermost frame is reported once, when a stack first uses it. */
			parent = l ? l->frame : 0;
			if (l && frame_is_new(d->shared, &d->labels.owner, parent))
				return decode_give_frame(d, parent, 0, l->name, l->cat, ret);
		}
	}
	if (r < 0)
		return r;
	frame = frame_hash(name, cat, parent);
	r = label_define(&d->labels, d->shared, load_u32(p + 4, d->big_endian), name, cat, frame);
	if (r < 0 || !parent)
		return r < 0 ? r : DECODED_NOTHING;
	return frame_is_new(d->shared, &d->labels.owner, frame)
		       ? decode_give_frame(d, frame, parent, name, cat, ret)
		       : DECODED_NOTHING;
}

static uint64_t decode_count(struct mark_decode *d, const uint8_t *p, size_t size)
{
	const uint8_t *at = p + sizeof(struct mark_record), *end = p + size;
	struct mark_field_value f;

	while (mark_field_next(d, &at, end, &f) > 0)
		if (f.kind == MARK_COUNT)
			return f.number;
	return 0;
}

static int decode_epoch(struct mark_decode *d, const uint8_t *p, size_t size)
{
	bool was = d->begun;

	label_table_forget(&d->labels, d->shared);
	d->begun |= load_u32(p + 4, d->big_endian) >= d->generation;
	if (d->begun && !was) {
		d->dropped_before = decode_count(d, p, size);
		d->begun_time = mark_record_time(d, p);
	}
	return DECODED_NOTHING;
}

/* A loss shows as a mark at its place. */
static int decode_lost(struct mark_decode *d, const uint8_t *p, size_t size, struct mark *ret)
{
	uint64_t claimed = decode_count(d, p, size), time = mark_record_time(d, p);
	uint64_t count = MIN(claimed, marks_possible(d->begun_time, time));

	d->lost_reported += MIN(count, UINT64_MAX - d->lost_reported);
	d->lost_impossibly |= claimed > count;
	buf_clear(&d->name);
	buf_printf(&d->name, "%" PRIu64 " mark%s lost%s", count, plural_s(count),
		   claimed > count ? " at most: its program claims more" : "");
	buf_clear(&d->args);
	value_put_u64(&d->args, &TEXT("count"), VALUE_UINT, count);
	*ret = (struct mark){
		.phase = PHASE_INSTANT,
		.instant = 't',
		.pid = d->pid,
		.tid = d->tid,
		.ts = mark_record_time(d, p),
	};
	ret->part[PART_NAME] = (struct text){ d->name.data, (uint32_t)d->name.len };
	ret->part[PART_CAT] = TEXT("loss");
	ret->part[PART_ARGS] = (struct text){ d->args.data, (uint32_t)d->args.len };
	return buf_error(&d->name) < 0 || buf_error(&d->args) < 0 ? -ENOMEM : DECODED_MARK;
}

int mark_decode(struct mark_decode *d, const uint8_t *p, size_t size, struct mark *ret)
{
	if (p[2] == MARK_EPOCH)
		return decode_epoch(d, p, size);
	if (!d->begun)
		return DECODED_NOTHING;
	switch (p[2]) {
	case MARK_DEFINE:
		return decode_define(d, p, size, ret);
	case MARK_LOST:
		return decode_lost(d, p, size, ret);
	default:
		return p[2] < MARK_PHASE_MIN ? DECODED_NOTHING : decode_mark(d, p, size, ret);
	}
}
