/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Marks with fields. Each is first counted, then written, so that a record is in the ring as a
 * whole or not at all. Both passes make the same steps; each step adds its bytes, and writes them
 * if there is a destination.
 */
#include "emit.h"

#define ARGS_MAX 64
#define ADDRESSES_MAX 128

/* All labels of a mark are defined before its record starts. */
struct numbers {
	uint32_t label, frame, end_frame;
	uint32_t keys[ARGS_MAX];
};

static bool ring_define_number(struct thread *t, struct ring *r, struct traced_label *label,
			       uint32_t *ret)
{
	int64_t number = 0;

	if (label) {
		number = __atomic_load_n(&label->id, __ATOMIC_RELAXED);
		if (!number || number >= LABEL_MAX || !ring_knows(r, (uint32_t)number))
			number = ring_define(t, r, label);
	}
	*ret = number > 0 ? (uint32_t)number : 0;
	return number >= 0;
}

static bool mark_define_all(struct thread *t, struct ring *r, const struct traced_mark *m,
			    size_t arg_count, struct numbers *n)
{
	if (!ring_define_number(t, r, m->label, &n->label) ||
	    !ring_define_number(t, r, m->stack.frame, &n->frame) ||
	    !ring_define_number(t, r, m->end_stack.frame, &n->end_frame))
		return false;
	for (size_t i = 0; i < arg_count; i++) {
		struct traced_label *key = m->args[i].named ? NULL : m->args[i].key.label;

		if (!ring_define_number(t, r, key, &n->keys[i]))
			return false;
	}
	return true;
}

/* The fields of a mark. Bytes are always counted, and written if `to` is set. */
struct out {
	char *to; /* NULL: only count */
	uint64_t bytes;
};

static void mark_add_number(struct out *o, enum mark_kind kind, enum mark_type type, uint64_t value)
{
	if (o->to)
		o->to = mark_put_number(o->to, kind, type, value);
	o->bytes += 16;
}

static void mark_add_text(struct out *o, enum mark_kind kind, enum mark_type type, const char *text,
			  size_t length)
{
	if (o->to)
		o->to = mark_put_text(o->to, kind, type, 0, text, length);
	o->bytes += mark_text_bytes(length);
}

static void mark_add_string(struct out *o, enum mark_kind kind, const char *text)
{
	if (text)
		mark_add_text(o, kind, MARK_STRING, text, strlen(text));
}

static void mark_add_arg(struct out *o, const struct traced_arg *a, uint32_t key)
{
	bool text = a->type == TRACED_TYPE_STRING || a->type == TRACED_TYPE_JSON;
	const char *name = "";
	uint32_t bytes = 8;

	if (!key) {
		name = (a->named ? a->key.text : a->key.label ? a->key.label->name : "") ?: "";
		bytes += mark_padded(4 + strlen(name));
	}
	if (text)
		bytes += mark_padded(4 + (size_t)a->length);
	else if (a->type != TRACED_TYPE_NULL)
		bytes += 8;
	o->bytes += bytes;
	if (!o->to)
		return;
	o->to = mark_put_field(o->to, bytes, MARK_ARG, (enum mark_type)a->type, key);
	if (!key)
		o->to = mark_put_bytes(o->to, name, strlen(name));
	if (text) {
		o->to = mark_put_bytes(o->to, a->value.text, a->length);
	} else if (a->type != TRACED_TYPE_NULL) {
		memcpy(o->to, &a->value, 8);
		o->to += 8;
	}
}

static void mark_add_id(struct out *o, const struct traced_id *id, enum mark_kind kind)
{
	if (id->kind == TRACED_ID_NONE)
		return;
	if (id->text)
		mark_add_text(o, kind, MARK_STRING, id->text, strlen(id->text));
	else
		mark_add_number(o, kind, MARK_UINT, id->number);
	if (kind != MARK_LINKED_ID)
		mark_add_string(o, MARK_ID_SCOPE, id->scope);
}

static void mark_add_stack(struct out *o, const struct traced_stack *s, enum mark_kind kind,
			   uint32_t frame)
{
	size_t count = s->count < ADDRESSES_MAX ? s->count : ADDRESSES_MAX;

	if (frame) {
		mark_add_number(o, kind, MARK_LABEL, frame);
	} else if (s->addresses && count) {
		if (o->to) {
			o->to = mark_put_field(o->to, 8 + 8 * (uint32_t)count, kind, MARK_ADDRESSES,
					       0);
			memcpy(o->to, s->addresses, 8 * count);
			o->to += 8 * count;
		}
		o->bytes += 8 + 8 * count;
	}
}

static void mark_add_names(struct out *o, const struct traced_mark *m, uint32_t label)
{
	const struct traced_label *l = m->label;

	if (label)
		return;
	mark_add_string(o, MARK_NAME, l ? l->name : m->name);
	mark_add_string(o, MARK_CATEGORY, l ? l->category : m->category);
}

static void mark_add_fields(struct out *o, const struct traced_mark *m, size_t arg_count,
			    const struct numbers *n, uint64_t now)
{
	uint64_t end = m->time ?: now;

	mark_add_names(o, m, n->label);
	for (size_t i = 0; i < arg_count; i++)
		mark_add_arg(o, &m->args[i], n->keys[i]);
	mark_add_id(o, &m->id, (enum mark_kind)m->id.kind);
	mark_add_id(o, &m->linked, MARK_LINKED_ID);
	if (m->start)
		mark_add_number(o, MARK_DURATION, MARK_UINT, end > m->start ? end - m->start : 0);
	if (m->time)
		mark_add_number(o, MARK_TIME, MARK_UINT, m->time);
	if (m->issued)
		mark_add_number(o, MARK_ISSUED, MARK_UINT, m->issued);
	if (m->thread_duration)
		mark_add_number(o, MARK_THREAD_DURATION, MARK_UINT, m->thread_duration);
	if (m->instructions)
		mark_add_number(o, MARK_INSTRUCTIONS_DELTA, MARK_UINT, m->instructions);
	mark_add_stack(o, &m->stack, MARK_STACK, n->frame);
	mark_add_stack(o, &m->end_stack, MARK_END_STACK, n->end_frame);
	mark_add_string(o, MARK_CNAME, m->cname);
	mark_add_string(o, MARK_SYNC_ID, m->sync_id);
	mark_add_string(o, MARK_BASE_TYPE, m->base_type);
	mark_add_string(o, MARK_SNAPSHOT_CATEGORY, m->snapshot_category);
}

static void mark_write(struct thread *t, struct ring *r, char phase, const struct traced_mark *m)
{
	size_t arg_count = m->arg_count < ARGS_MAX ? m->arg_count : ARGS_MAX;
	struct out o = { 0 };
	struct numbers n;
	uint32_t counted = 0;
	uint64_t now;
	char counts[COUNT_FIELDS_BYTES], *p;

	if (!mark_define_all(t, r, m, arg_count, &n))
		return;
	if (unlikely(t->counts))
		counted = thread_count_fields(t, counts);
	mark_add_fields(&o, m, arg_count, &n, 0);
	o.bytes += 16 + counted;
	if (o.bytes > RECORD_MAX(r) || o.bytes > UINT16_MAX * UINT64_C(8)) {
		ring_drop(t, r);
		return;
	}
	if (!ring_has_room(r, (uint32_t)o.bytes) && !ring_make_room(t, r, (uint32_t)o.bytes))
		return;
	p = ring_at(r, r->head);
	now = clock_ns(CLOCK_BOOTTIME);
	mark_put_record(p, (uint16_t)(o.bytes / 8), (uint8_t)phase, (uint8_t)m->flags, n.label,
			now);
	if (unlikely(counted))
		memcpy(p + 16, counts, counted);
	o.to = p + 16 + counted;
	mark_add_fields(&o, m, arg_count, &n, now);
	ring_publish(r, (uint32_t)(r->head + (o.to - p)));
}

void mark_emit(char phase, const struct traced_mark *mark)
{
	struct thread *t = &traced_thread;
	struct ring *r = ring_begin(t);

	if (!r)
		return;
	mark_write(t, r, phase, mark);
	ring_end(t);
}

void traced_write(char phase, const struct traced_mark *mark)
{
	if (unlikely(user_event_wanted()))
		user_event_write(phase, mark);
	mark_emit(phase, mark);
}
